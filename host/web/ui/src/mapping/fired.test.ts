// A rule that fired is found among the mappings by what the stream says of it, at the pace of a busy stream.

import { expect, test } from 'vitest'

import { FiredMappings } from './fired'

const note = (note: number | string, more: object = {}) => ({ type: 'Note', note, ...more })
const MAPPINGS = [
  { place: 'modes/0/mappings/0', mode: 'Play', mapping: { name: 'drums', trigger: note('36..39', { device: 'pads' }), action: { type: 'OscSend' } } },
  { place: 'modes/0/mappings/1', mode: 'Play', mapping: { trigger: { type: 'CC', cc: 7 }, action: { type: 'builtin:osc-output:OscSend', address: '/fader' } } },
  { place: 'modes/0/mappings/2', mode: 'Play', mapping: { name: 'solo (left) (2)', trigger: note(40), action: { type: 'Conditional' } } },
  { place: 'modes/0/mappings/3', mode: 'Play', mapping: { trigger: note(50), action: { type: 'Keystroke', keys: 'a' } } },
  { place: 'modes/0/mappings/4', mode: 'Play', mapping: { trigger: note(50), action: { type: 'Keystroke', keys: 'b' } } },
  { place: 'modes/1/mappings/0', mode: 'Mix', mapping: { name: 'drums', trigger: note(36), action: { type: 'OscSend' } } },
  { place: 'modes/1/mappings/1', mode: 'Mix', mapping: { trigger: { type: 'OscMessage', address: '/go' }, action: { type: 'ModeChange', mode: 'Play' } } },
  { place: 'global_mappings/0', mapping: { trigger: { type: 'OscMessage', address: '/go' }, action: { type: 'ModeChange', mode: 'Mix' } } },
  { place: 'global_mappings/1', mapping: { trigger: { type: 'LongPress', note: 60 }, action: { type: 'Text' } } },
  { place: 'global_mappings/2', mapping: { trigger: { type: 'OscPattern', address: '/track/*' }, action: { type: 'Shell' } } },
]
const fired = new FiredMappings(MAPPINGS)

test.each<[string, string, string, string, string | null, string[]]>([
  ['a name', 'drums (OscSend)', 'pads', 'note-on 36 100 ch 9', 'Play', ['modes/0/mappings/0']],
  ['a name in the mode that is active', 'drums (OscSend)', 'pads', 'note-on 36 100', 'Mix', ['modes/1/mappings/0']],
  ['a name of another device', 'drums (OscSend)', 'keys', 'note-on 38 100', 'Play', ['modes/1/mappings/0']],
  ['no such name', 'drums 2 (OscSend)', 'pads', 'note-on 36 100', 'Play', []],
  ['a name with parentheses', 'solo (left) (2) (Conditional (OscSend, else Text))', 'any', 'note-on 40 1', 'Play', ['modes/0/mappings/2']],
  ['no name, and a feature\'s action', 'OscSend', 'any', 'cc 7 3', 'Play', ['modes/0/mappings/1']],
  ['no name, and another control', 'OscSend', 'any', 'cc 8 3', 'Play', []],
  ['two alike', 'Keystroke a', 'any', 'note-on 50 9', 'Play', ['modes/0/mappings/3', 'modes/0/mappings/4']],
  ['an action with its mode', 'ModeChange to Mix', 'app', 'osc /go 1', 'Mix', ['global_mappings/0']],
  ['an action with its mode, in a mode', 'ModeChange to Play', 'app', 'osc "/go" 1', 'Mix', ['modes/1/mappings/1']],
  ['another address', 'ModeChange to Play', 'app', 'osc /no 1', 'Mix', []],
  ['a gesture, which ends with any event', 'Text', 'pads', 'note-off 60', null, ['global_mappings/1']],
  ['a pattern', 'Shell: ls', 'app', 'osc /track/3 1', null, ['global_mappings/2']],
  ['a rule of a configuration that has gone', 'rule 7', 'pads', 'note-on 36 100', 'Play', []],
])('%s', (_, rule, device, event, mode, places) => {
  expect(fired.meant(rule, device, event, mode)).toEqual(places)
})

test('what is looked at for an event is bounded, however many mappings there are', () => {
  let read = 0
  const mappings = Array.from({ length: 20_000 }, (_, number) => ({
    place: `global_mappings/${number}`, mapping: { trigger: { type: 'OscMessage', address: `/${number % 10_000}` }, action: { type: 'OscSend' } },
  }))
  const alike = Array.from({ length: 20_000 }, (_, number) => ({ place: `modes/0/mappings/${number}`, mode: 'Play', mapping: { name: 'same', trigger: note(1), action: { type: 'Text' } } }))
  const many = new FiredMappings([...mappings, ...alike])
  expect(many.meant('OscSend', 'app', 'osc /7 1', null)).toEqual(['global_mappings/7', 'global_mappings/10007'])
  expect(many.meant('same (Text)', 'app', 'note-on 1 1', 'Play').length).toBeLessThanOrEqual(256)
  // A name is sought at so many parentheses, and not at each of a text that has nothing else.
  const text = Object.assign(new String(' ('.repeat(100_000)), { slice: (from: number, to: number) => { read += to - from; return '' } })
  expect(many.meant(text as unknown as string, 'app', 'note-on 1 1', null)).toEqual([])
  expect(read).toBeLessThan(2000)
})
