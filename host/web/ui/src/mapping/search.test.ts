// Mappings are found by what stands in them, and looking for one does not write all of them anew.

import { expect, test } from 'vitest'

import { searchable } from './search'

const all = [
  { place: 'a', mode: 'Play', mapping: { name: 'Kick', trigger: { type: 'Note', note: 36 } } },
  { place: 'b', mode: null, mapping: { name: 'fader', trigger: { type: 'CC', cc: 7 } } },
]

test('a mapping is found by its mode and by anything that it has, in any case', () => {
  const found = (text: string, isMeant = (_: { mode: string | null }) => true) => searchable(all).find(text, isMeant).map(({ place }) => place)
  expect(found('')).toEqual(['a', 'b'])
  expect(found(' KICK ')).toEqual(['a'])
  expect(found('play')).toEqual(['a'])
  expect(found('"cc":7')).toEqual(['b'])
  expect(found('note":37')).toEqual([])
  expect(found('e', ({ mode }) => mode === null)).toEqual(['b'])
})

test('a mapping is found by what is said of it, too', () => {
  const said = searchable(all, ({ place }) => (place === 'a' ? 'Pad 1 is pressed' : ''))
  expect(said.find('pad 1', () => true).map(({ place }) => place)).toEqual(['a'])
})

test('of 100,000 each is written once, however often it is looked for', () => {
  let written = 0
  const mapping = { toJSON: () => ((written += 1), { type: 'Note' }) }
  const many = searchable(Array.from({ length: 100_000 }, () => ({ mode: null, mapping })))
  expect(many.find('', () => true).length).toBe(100_000)
  expect(written).toBe(0)
  for (const text of ['n', 'no', 'not', 'note', 'notes']) many.find(text, () => true)
  expect(written).toBe(100_000)
})
