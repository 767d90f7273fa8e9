// What a device would send for a trigger, in the host's line language.

import { expect, test } from 'vitest'

import { stepsFor, stepsOf } from './try-out'

const events = (trigger: Record<string, unknown>) => stepsFor(trigger)?.map((step) => step.event) ?? null

test.each([
  [{ type: 'Note', note: 36 }, ['note-on 36 100', 'note-off 36']],
  [{ type: 'Note', note: '36..39', channel: 9, velocity_range: [1, 40] }, ['note-on 36 40 ch 9', 'note-off 36 ch 9']],
  [{ type: 'Note', note: 'C3', channel: 'ch10', on: 'release' }, ['note-on C3 100 ch10', 'note-off C3 ch10']],
  [{ type: 'CC', cc: [7, 8] }, ['cc 7 127']],
  [{ type: 'CC', cc: 'mod wheel', value_range: [0, 63] }, ['cc mod_wheel 63']],
  [{ type: 'PitchBend' }, ['pitch-bend 16383']],
  [{ type: 'ProgramChange', program: 3 }, ['program 3']],
  [{ type: 'OscMessage', address: '/go' }, ['osc /go 1.0']],
  [{ type: 'OscMessage', address: '/a "b"' }, ['osc "/a \\"b\\"" 1.0']],
  [{ type: 'OscArgRange', address: '/xy', arg: 1, min: 0.5, max: 1 }, ['osc /xy 0.0 0.75']],
  [{ type: 'GamepadButton', button: 'xbox a' }, ['gamepad-button xbox_a down', 'gamepad-button xbox_a up']],
  [{ type: 'Key', key: 'f13' }, ['key f13 down', 'key f13 up']],
  [{ type: 'ArtNetChannel', universe: 2, dmx_channel: 5 }, ['artnet 2 5 255']],
  [{ type: 'DoubleTap', note: 36, taps: 3 }, ['note-on 36 100', 'note-off 36', 'note-on 36 100', 'note-off 36', 'note-on 36 100', 'note-off 36']],
])('%j', (trigger, expected) => expect(events(trigger)).toEqual(expected))

test.each([
  ['note-on 36 100 ch 9', ['note-on 36 100 ch 9', 'note-off 36 ch 9']],
  ['note-on 36 100', ['note-on 36 100', 'note-off 36']],
  ['gamepad-button 128 down', ['gamepad-button 128 down', 'gamepad-button 128 up']],
  ['key 183 down', ['key 183 down', 'key 183 up']],
  ['note-off 36', ['note-off 36']],
  ['cc 7 64', ['cc 7 64']],
  ['osc "/a b" 1.0', ['osc "/a b" 1.0']],
])('%s as a control is used', (event, expected) => expect(stepsOf(event).map((step) => step.event)).toEqual(expected))

test('a long press is held for longer than it has to be', () => {
  const steps = stepsFor({ type: 'LongPress', button: 128, duration_ms: 800 })
  expect(steps?.map((step) => step.event)).toEqual(['gamepad-button 128 down', 'gamepad-button 128 up'])
  expect(steps?.[1]?.after).toBeGreaterThan(800)
})

test('what can\'t be imitated is not', () => {
  for (const trigger of [{}, { type: 'EncoderTurn', cc: 1 }, { type: 'Beat' }, { type: 'Note' }, { type: 'OscMessage', address: 7 }, { type: 'OscArgRange', address: '/a' }]) {
    expect(events(trigger)).toBeNull()
  }
})
