// The stream becomes rows, and a filter lets through what it says.

import { expect, test } from 'vitest'

import type { StreamItem } from '../api/types'
import { EVERYTHING, type Filter, live, passes, rowOf } from './live.svelte'

const ITEMS = [
  { kind: 'event', cursor: '1', at: 5, device: 'pads', event: 'note-on 36 100', rules: ['kick (OscSend)'], control: 'pad 1' },
  { kind: 'event', cursor: '2', at: 6, device: 'tablet', event: 'osc /go', rules: [] },
  { kind: 'failure', cursor: '3', at: 7, worker: 'osc', rule: 'kick', reason: 'no route' },
  { kind: 'mode', cursor: '4', mode: 'Mix' },
  { kind: 'gap', cursor: '5', lost: null },
  { kind: 'event', cursor: '6', at: 8, device: 'keys', event: 'cc 7 36 ch 9', rules: ['volume'] },
] as unknown as StreamItem[]
const rows = ITEMS.map((item, id) => rowOf(item, id)).filter((row) => row !== null)

test.each<[string, Partial<Filter>, number[]]>([
  ['nothing', {}, [0, 1, 2, 3, 4, 5]],
  ['a word, in a name of a control or a rule', { text: ' PAD ' }, [0]],
  ['the name of a channel', { text: 'ch10' }, [5]],
  ['a device', { devices: new Set(['tablet']) }, [1]],
  ['several devices', { devices: new Set(['tablet', 'pads']) }, [0, 1]],
  ['devices with a binding', { link: 'linked' }, [1, 5]],
  ['devices without one', { link: 'unlinked' }, [0]],
  ['a protocol', { protocol: 'osc' }, [1]],
  ['a kind', { kind: 'cc' }, [5]],
  ['a channel', { channel: 9 }, [5]],
  ['the first channel, which is not written', { channel: 0 }, [0]],
  ['what is unmapped', { unmapped: true }, [1]],
  ['problems', { trouble: true }, [2, 4]],
])('a filter for %s', (_, filter, expected) => {
  const lets = passes({ ...EVERYTHING, ...filter }, (device) => device === 'pads') ?? (() => true)
  expect(rows.filter(lets).map((row) => row.id)).toEqual(expected)
})

test('what has its place elsewhere is no row', () => {
  expect(rowOf({ kind: 'chat', cursor: '1', conversation: 1, number: 2 } as unknown as StreamItem, 0)).toBeNull()
  expect(rowOf({ kind: 'lights', cursor: '1', device: 'pads' }, 0)).toBeNull()
  expect(rowOf({ kind: 'from-a-later-version', cursor: '1' } as unknown as StreamItem, 0)).toBeNull()
})

test('a mapping has fired if the rule of an event is its, in the mode of then', () => {
  const trigger = { type: 'Note', note: 36 }
  live.map([
    { place: 'modes/0/mappings/0', mode: 'Play', mapping: { trigger, action: { type: 'OscSend' } } },
    { place: 'modes/1/mappings/0', mode: 'Mix', mapping: { trigger, action: { type: 'OscSend' } } },
  ])
  live.enter('Play')
  const event = { kind: 'event', cursor: '1', at: 5, device: 'pads', event: 'note-on 36 100', rules: ['OscSend'] }
  live.take([event] as unknown as StreamItem[], 100)
  live.take([{ kind: 'mode', cursor: '2', mode: 'Mix' }, { ...event, cursor: '3' }] as unknown as StreamItem[], 200)
  expect([live.fired('modes/0/mappings/0'), live.fired('modes/1/mappings/0')]).toEqual([{ at: 100, device: 'pads' }, { at: 200, device: 'pads' }])
  live.map([])
  expect(live.fired('modes/0/mappings/0'), 'places are of other mappings now').toBeUndefined()
})

test('another filter is seen at once, without an event', () => {
  const before = live.frame
  live.narrow({ ...EVERYTHING, text: 'cc' })
  expect(live.frame).toBeGreaterThan(before)
  live.narrow(EVERYTHING)
})
