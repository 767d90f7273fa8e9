// Whatever is moved or removed together is what was chosen, though each change moves the places behind it.

import { expect, test } from 'vitest'

import { type BatchChange, fromDevice, listOfMode, moves, removals } from './batch'

type Lists = Record<string, string[]>

/** Every mapping of the lists, each known by a name. */
const all = (lists: Lists) =>
  Object.entries(lists).flatMap(([list, names]) => names.map((name, index) => ({ place: `${list}/${index}`, mapping: { name } })))

/** What the lists are after the changes, made as a plan makes them. */
function made(lists: Lists, changes: BatchChange[]): Lists {
  const after = structuredClone(lists)
  for (const { path, value } of changes) {
    const [list, index] = [path.slice(0, path.lastIndexOf('/')), Number(path.slice(path.lastIndexOf('/') + 1))]
    const names = (after[list] ??= [])
    if (value === undefined) {
      expect(index, path).toBeLessThan(names.length)
      names.splice(index, 1)
    } else {
      expect(index, path).toBe(names.length)
      names.push((value as { name: string }).name)
    }
  }
  return after
}

const twelve = Array.from({ length: 12 }, (_, index) => `m${index}`)

test('what is removed together is what was chosen', () => {
  const lists = { 'modes/0/mappings': twelve, global_mappings: ['a', 'b'] }
  const places = ['modes/0/mappings/2', 'global_mappings/0', 'modes/0/mappings/10', 'modes/0/mappings/11']
  expect(made(lists, removals(places))).toEqual({ 'modes/0/mappings': twelve.filter((name) => !['m2', 'm10', 'm11'].includes(name)), global_mappings: ['b'] })
})

test('what is moved stands behind what was there, in its order', () => {
  const lists = { global_mappings: ['g'], 'modes/0/mappings': twelve, 'modes/1/mappings': ['x'] }
  const places = new Set(['modes/0/mappings/10', 'modes/0/mappings/2', 'global_mappings/0'])
  expect(made(lists, moves(all(lists), places, listOfMode(1)))).toEqual({
    global_mappings: [],
    'modes/0/mappings': twelve.filter((name) => !['m2', 'm10'].includes(name)),
    'modes/1/mappings': ['x', 'g', 'm2', 'm10'],
  })
  expect(made(lists, moves(all(lists), new Set(['modes/1/mappings/0']), listOfMode(null)))['global_mappings']).toEqual(['g', 'x'])
})

test('what is there already stays, and a mode without mappings gets its first', () => {
  const lists = { 'modes/1/mappings': ['x', 'y'], 'modes/11/mappings': ['z'] }
  expect(moves(all(lists), new Set(['modes/1/mappings/0']), listOfMode(1))).toEqual([])
  expect(made(lists, moves(all(lists), new Set(['modes/1/mappings/0', 'modes/11/mappings/0']), listOfMode(1)))).toEqual({ 'modes/1/mappings': ['x', 'y', 'z'], 'modes/11/mappings': [] })
  expect(made(lists, moves(all(lists), new Set(['modes/1/mappings/1']), listOfMode(2)))['modes/2/mappings']).toEqual(['y'])
})

test('what waits for another device waits for the one that was chosen, and the rest stays as it is', () => {
  const trigger = (device?: string) => ({ trigger: { type: 'Note', note: 1, ...(device ? { device } : {}) } })
  const mappings = [trigger('pads'), trigger('old'), trigger(), trigger('old')].map((mapping, index) => ({ place: `global_mappings/${index}`, mapping }))
  const chosen = new Set(['global_mappings/0', 'global_mappings/1', 'global_mappings/2'])
  expect(fromDevice(mappings, chosen, 'pads')).toEqual([
    { path: 'global_mappings/1/trigger/device', value: 'pads' }, { path: 'global_mappings/2/trigger/device', value: 'pads' },
  ])
  expect(fromDevice(mappings, chosen, null)).toEqual([{ path: 'global_mappings/0/trigger/device' }, { path: 'global_mappings/1/trigger/device' }])
})
