// Every control that can be mapped has a trigger that waits for it, and a binding has a name of its own.

import { expect, test } from 'vitest'

import { parseEvent } from '../stream/event-text'
import { aliasFor, triggersFor } from './trigger'

test.each([
  ['note-on 36 100 ch 9', { type: 'Note', note: 36, channel: 9 }],
  ['note-off 36 ch 9', { type: 'Note', note: 36, channel: 9 }],
  ['cc 7 64', { type: 'CC', cc: 7, channel: 0 }],
  ['pitch-bend 8192 ch 2', { type: 'PitchBend', channel: 2 }],
  ['osc "/a b" 0.5', { type: 'OscMessage', address: '/a b' }],
  ['sysex F0 7E 7F 06 01 F7', { type: 'SysEx', prefix: 'F0 7E 7F 06 01 F7' }],
  ['gamepad-button 3 down', { type: 'GamepadButton', button: 3 }],
  ['key 439 down', { type: 'Key', key: 439 }],
  ['artnet 1 12 255', { type: 'ArtNetChannel', universe: 1, dmx_channel: 12 }],
])('%s', (text, trigger) => {
  expect(triggersFor(text, parseEvent(text))[0]?.trigger).toEqual(trigger)
})

test('what no trigger waits for has none', () => {
  for (const text of ['clock', 'beat 3', '', 'note-on', 'osc', 'artnet 1']) expect(triggersFor(text, parseEvent(text)), text).toEqual([])
})

test('an alias is plain, and not taken', () => {
  expect(aliasFor('Maschine Mikro MK3 [1]', new Set())).toBe('maschine-mikro-mk3-1')
  expect(aliasFor('Müller', new Set(['mu-ller', 'muller']))).not.toBe('muller')
  expect(aliasFor('\u202e<b>', new Set(['b']))).toBe('b-2')
  expect(aliasFor('音', new Set())).toBe('device')
})
