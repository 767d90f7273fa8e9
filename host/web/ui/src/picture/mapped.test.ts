// A control of a picture is known to be mapped by what triggers name, however they write it.

import { expect, test } from 'vitest'

import { parseEvent } from '../stream/event-text'
import { MappedControls } from './mapped'

const mapping = (name: string, trigger: Record<string, unknown>, mode?: string) => ({ ...(mode ? { mode } : {}), mapping: { name, trigger } })
const found = (all: ReturnType<typeof mapping>[], event: string, device = 'pads') =>
  new MappedControls(all, device, 'Play').of(parseEvent(event)).map((one) => one.mapping.name)

test('notes are found by number, name, range and channel, and those of chords, too', () => {
  const all = [
    mapping('number', { type: 'Note', note: 36 }), mapping('range', { type: 'Note', note: '30..40', channel: 'ch10' }), mapping('name', { type: 'LongPress', note: 'C2' }),
    mapping('between', { type: 'NoteRange', note_min: 36, note_max: 37 }), mapping('chord', { type: 'NoteChord', notes: [36, 40] }),
    mapping('another', { type: 'Note', note: 37 }), mapping('controller', { type: 'CC', cc: 36 }), mapping('all', { type: 'MidiAny' }),
  ]
  expect(found(all, 'note-on 36 100 ch 9')).toEqual(['number', 'range', 'name', 'between', 'chord'])
  expect(found(all, 'note-on 36 100')).toEqual(['number', 'name', 'between', 'chord'])
  expect(found(all, 'cc 36 1')).toEqual(['controller'])
})

test('of another device or mode none is found, and of any device each', () => {
  const all = [
    mapping('any', { type: 'CC', cc: 7 }), mapping('mine', { type: 'CC', cc: 7, device: 'pads' }, 'Play'),
    mapping('theirs', { type: 'CC', cc: 7, device: 'keys' }), mapping('mixing', { type: 'CC', cc: 7 }, 'Mix'),
  ]
  expect(found(all, 'cc 7 1')).toEqual(['any', 'mine'])
  expect(found(all, 'cc 7 1', 'keys')).toEqual(['any', 'theirs'])
})

test('what is no MIDI is found by address, button, key, axis and DMX channel', () => {
  const all = [
    mapping('go', { type: 'OscMessage', address: '/go' }), mapping('half', { type: 'OscArgRange', address: '/go', min: 0.5, max: 1 }),
    mapping('south', { type: 'GamepadButton', button: 128 }), mapping('named', { type: 'GamepadButton', button: 'south' }), mapping('key', { type: 'Key', key: 300 }),
    mapping('stick', { type: 'GamepadAnalogStick', axis: 128 }), mapping('pull', { type: 'GamepadTrigger', trigger: 132 }),
    mapping('lamp', { type: 'ArtNetChannel', dmx_channel: '1..4' }), mapping('bend', { type: 'PitchBend' }), mapping('broken', { type: 'Note', note: '1..1e9' }),
  ]
  expect(found(all, 'osc /go 1.0')).toEqual(['go', 'half'])
  expect(found(all, 'gamepad-button 128 down')).toEqual(['south'])
  expect(found(all, 'key 300 down')).toEqual(['key'])
  expect(found(all, 'gamepad-stick 128 0.5')).toEqual(['stick'])
  expect(found(all, 'gamepad-trigger 132 0.5')).toEqual(['pull'])
  expect(found(all, 'artnet 0 2 255')).toEqual(['lamp'])
  expect(found(all, 'artnet 1 2 255')).toEqual([])
  expect(found(all, 'pitch-bend 8192')).toEqual(['bend'])
})
