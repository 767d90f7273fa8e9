// Each mapping of a pair gets the other one's name, and what becomes of an event that both wait for.

import { expect, test } from 'vitest'

import { overlapsByPlace } from './overlaps'

const lights = { place: 'modes/0/mappings/0', name: 'lights' }
const copy = { place: 'modes/0/mappings/1', name: 'copy' }
const unnamed = { place: 'global_mappings/0', name: null }
const pairs = {
  overlaps: [
    { first: copy, second: lights, event: 'note-on 36 127', consumed: true },
    { first: lights, second: unnamed, event: null, consumed: false },
  ],
  more: 0,
  not_compared: 0,
}

test('what keeps an event from another is told to both', () => {
  const found = overlapsByPlace(pairs, () => false)
  expect(found.get(copy.place)).toEqual([{ name: 'lights', event: 'note-on 36 127', which: 'keeps' }])
  expect(found.get(lights.place)).toEqual([
    { name: 'copy', event: 'note-on 36 127', which: 'is-kept' },
    { name: 'global_mappings/0', event: null, which: 'both' },
  ])
})

test('mappings that are shown to have the same trigger are not shown to overlap, too', () => {
  const isTwin = (one: string, other: string) => one === copy.place && other === lights.place
  expect([...overlapsByPlace(pairs, isTwin).keys()]).toEqual([lights.place, unnamed.place])
})
