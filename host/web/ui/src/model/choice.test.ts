// What of a list of models is offered, and what is written down of the one that is chosen.

import { expect, test } from 'vitest'

import { contextOf, MOST, offered } from './choice'

const model = (name: string, declared = false, context: number | null = null) => ({ name, declared, context })

test('what is known comes first, and a part of a name narrows the list', () => {
  const models = [model('tiny'), model('Large-1', true), model('large-2')]
  expect(offered(models, '').shown.map((one) => one.name)).toEqual(['Large-1', 'tiny', 'large-2'])
  expect(offered(models, ' LARGE').shown.map((one) => one.name)).toEqual(['Large-1', 'large-2'])
  expect(offered(models, 'none')).toEqual({ shown: [], left: 0 })
})

test('of many the first are offered, and the rest are counted', () => {
  const models = Array.from({ length: MOST + 3 }, (_, number) => model(`m${number}`))
  const { shown, left } = offered(models, 'm')
  expect([shown.length, left]).toEqual([MOST, 3])
})

test('a context is written down where the feature does not know it, and the API does', () => {
  const models = [model('known', true, 9), model('said', false, 8192), model('unsaid')]
  expect(['known', 'said', 'unsaid', 'typed'].map((name) => contextOf(models, name))).toEqual([null, 8192, null, null])
})
