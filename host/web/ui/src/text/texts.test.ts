// Every language says the same things, with the same values.

import { expect, test } from 'vitest'

import { de } from './de'
import { en } from './en'

test('no text is missing, empty, or has other values', () => {
  expect(Object.keys(de).toSorted()).toEqual(Object.keys(en).toSorted())
  const values = (text: string) => [...text.matchAll(/\{\w+\}/g)].map(([value]) => value).toSorted()
  for (const key of Object.keys(en) as (keyof typeof en)[]) {
    expect(de[key].trim(), key).not.toBe('')
    expect(values(de[key]), key).toEqual(values(en[key]))
  }
})
