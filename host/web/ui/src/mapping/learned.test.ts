// What the tools that learn tell becomes triggers: the gesture that was made before the control, and nothing twice.

import { describe, expect, test } from 'vitest'

import { triggerOf, waysOf } from './learned'

describe('the line of a trigger', () => {
  test.each<[string, unknown]>([
    ['trigger = { channel = 9, device = "pads", note = 36, type = "Note" }', { channel: 9, device: 'pads', note: 36, type: 'Note' }],
    ['trigger = { notes = [60,64,67], type = "NoteChord" }', { notes: [60, 64, 67], type: 'NoteChord' }],
    ['trigger = { device = "a, b = \\"c\\" }", max = 1.0, min = 0.5, type = "OscArgRange" }', { device: 'a, b = "c" }', max: 1, min: 0.5, type: 'OscArgRange' }],
    ['trigger = { on = true, type = "X" }', { on: true, type: 'X' }],
    ['trigger = { note = 36 }', null],
    ['trigger = { note = , type = "Note" }', null],
    ['trigger = { note = 36 type = "Note" }', null],
    ['{ type = "Note" }', null],
    ['', null],
  ])('%s', (line, trigger) => {
    expect(triggerOf(line)).toEqual(trigger)
  })
})

const control = { device: 'pads', kind: 'pad', evidence: [], last: 'note-on 36 100 ch 9', toml: 'trigger = { channel = 9, device = "pads", note = 36, type = "Note" }', gestures: [] }

test('of a press the usual ways are known, and its own comes first', () => {
  expect(waysOf(control).map(({ way }) => way)).toEqual(['press', 'release', 'long-press', 'double-tap'])
  expect(waysOf(control)[0]?.trigger).toEqual({ type: 'Note', note: 36, channel: 9 })
})

test('a gesture comes first, as it was made; layers of velocity do not', () => {
  const gestures = [
    { kind: 'velocity-layer', evidence: '', toml: 'trigger = { channel = 9, device = "pads", note = 36, type = "Note", velocity_range = [1,67] }' },
    { kind: 'long-press', evidence: '', toml: 'trigger = { channel = 9, device = "pads", duration_ms = 500, note = 36, type = "LongPress" }' },
    { kind: 'chord', evidence: '', toml: 'trigger = { channel = 9, device = "pads", notes = [36,40], type = "NoteChord" }' },
    { kind: 'of-a-later-version', evidence: '', toml: 'trigger = { type = "Wave" }' },
  ]
  expect(waysOf({ ...control, gestures }).map(({ way }) => way)).toEqual(['long-press', 'chord', 'press', 'velocity-layer', 'release', 'double-tap'])
})

test('a control that the events alone do not tell is as it was recognized', () => {
  const toml = 'trigger = { cc = 16, channel = 0, device = "pads", direction = "any", mode = "twos_complement", type = "EncoderTurn" }'
  const ways = waysOf({ ...control, kind: 'encoder', last: 'cc 16 127', toml })
  expect(ways.map(({ way }) => way)).toEqual(['recognized', 'move', 'upper-half', 'turn'])
  expect(ways[0]?.trigger).toMatchObject({ type: 'EncoderTurn', mode: 'twos_complement' })
  expect(ways[0]?.trigger).not.toHaveProperty('device')
})
