// A light is found by its control, shows what its device can, and a choice changes the mapping and nothing else.

import { describe, expect, test } from 'vitest'

import { parseEvent } from '../stream/event-text'
import { canHold, isHeld, lightChanges, lightEventOf, lightStates, lightValues, mappingsOf, shownLight, shownOf } from './lights'

const palette = { id: 'palette', message: 'note', channel: 0, values: ['red = 5', 'off = 0', 'deep blue = 45', 'nonsense', 'loud = 900'] }
const pad = parseEvent('note-on 36 100 ch 9')

const mapping = (trigger: Record<string, unknown>, feedback?: Record<string, unknown>) => ({ trigger, action: { type: 'NextMode' }, ...(feedback ? { feedback } : {}) })

test('a light can show what its device can, off first', () => {
  expect(lightValues(palette)).toEqual([{ name: 'off', value: 0 }, { name: 'red', value: 5 }, { name: 'deep blue', value: 45 }])
  expect(lightValues({ ...palette, message: 'sysex' })).toEqual([])
})

describe('what a light shows', () => {
  const set = (value: number, blinks = false, channel = 0) => lightStates([{ message: 'note', channel, number: 36, value, blinks }])

  test('is called and coloured as its device calls it', () => {
    expect(shownLight(palette, pad, set(5))).toEqual({ name: 'red', colour: '#e5322d', isDim: false, blinks: false, isSwitched: false })
    expect(shownLight(palette, pad, set(45))).toMatchObject({ name: 'deep blue', colour: '#2b6cff' })
    // Neither a word of every object nor a number without a name is a colour.
    const odd = { ...palette, values: ['constructor = 1'] }
    expect(shownLight(odd, pad, set(1))).toMatchObject({ name: 'constructor', colour: '#ffd98a' })
    expect(shownLight(palette, pad, set(6))).toMatchObject({ name: '6', colour: '#ffd98a' })
    const one = { id: 'green', message: 'note', values: ['off = 0', 'on = 1', 'dim = 2'] }
    expect(shownLight(one, pad, set(1, false, 9))).toMatchObject({ name: 'on', colour: '#22b14c', isDim: false })
    expect(shownLight(one, pad, set(2, false, 9))).toMatchObject({ colour: '#22b14c', isDim: true })
  })

  test('is nothing where it is dark, of another control, or set by what no note or control change is', () => {
    expect(shownLight(palette, pad, set(0))).toBeNull()
    const bits = { ...palette, values: ['off = 12', 'red = 15'] }
    expect([shownLight(bits, pad, set(12)), shownLight(bits, pad, set(0))]).toEqual([null, null])
    expect(shownLight(palette, pad, set(5, false, 9))).toBeNull()
    expect(shownLight(palette, parseEvent('note-on 37 100'), set(5))).toBeNull()
    expect(shownLight({ ...palette, message: 'cc' }, pad, set(5))).toBeNull()
    expect(shownLight(palette, pad, lightStates([]))).toBeNull()
  })

  test('blinks by itself, or as the host has it', () => {
    const blinking = { ...palette, values: ['red = 5', 'red blinking = 4'] }
    expect(shownLight(blinking, pad, set(4))).toMatchObject({ colour: '#e5322d', blinks: true, isSwitched: false })
    expect(shownLight(blinking, pad, set(5, true))).toMatchObject({ name: 'red', blinks: true, isSwitched: true })
  })
})

test.each([
  [{ type: 'Note', note: 'C2', channel: 'ch10' }, 'note-on 36 100 ch 9'],
  [{ type: 'LongPress', note: '36..51' }, 'note-on 36 100 ch 0'],
  [{ type: 'CC', cc: 7, channel: 1 }, 'cc 7 64 ch 1'],
  [{ type: 'Note', note: 36, on: 'release' }, null],
  [{ type: 'LongPress', button: 3 }, null],
  [{ type: 'OscMessage', address: '/go' }, null],
])('the light of a trigger is that of its control, if it has one: %j', (trigger, event) => {
  expect(lightEventOf(trigger)).toBe(event)
})

test('the mappings of a control are those whose trigger names it, however it is written', () => {
  const triggers = [
    { type: 'Note', note: 36 }, { type: 'Note', note: '36..51', device: 'pads' }, { type: 'Note', note: 'C2', channel: 'ch10' }, { type: 'LongPress', note: '36' },
    { type: 'Note', note: 37 }, { type: 'Note', note: 36, device: 'keys' }, { type: 'Note', note: 36, channel: 0 }, { type: 'Note', note: 36, on: 'release' },
    { type: 'CC', cc: 36 }, { type: 'MidiAny' },
  ]
  const all = triggers.map((trigger, index) => ({ place: `modes/0/mappings/${index}`, mode: 'Play', mapping: mapping(trigger) }))
  expect(mappingsOf(all, 'pads', pad, 'Play').map(({ place }) => place.at(-1))).toEqual(['0', '1', '2', '3'])
  expect(mappingsOf(all, 'pads', pad, 'Mix')).toEqual([])
  expect(mappingsOf([{ place: 'global_mappings/0', mapping: mapping({ type: 'CC', cc: 7 }) }], 'pads', parseEvent('cc 7 3'), 'Mix')).toHaveLength(1)
})

test('what is chosen is what the mapping shows then, and nothing chosen removes it', () => {
  const one = { place: 'modes/0/mappings/0', mapping: mapping({ type: 'Note', note: 36, device: 'pads' }) }
  expect(shownOf(one.mapping, 'idle')).toBe(null)
  const [change] = lightChanges(one, 'pads', pad, palette, { idle: 5, fired: null, held: false })
  expect(change).toEqual({ path: 'modes/0/mappings/0/feedback', value: { idle: { message_type: 'NoteOn', channel: 0, note: 36, velocity: 5 } } })
  const lit = { ...one, mapping: { ...one.mapping, feedback: change?.value } }
  expect(shownOf(lit.mapping, 'idle')).toBe(5)
  expect(lightChanges(lit, 'pads', pad, palette, { idle: 5, fired: null, held: false })).toEqual([])
  expect(lightChanges(lit, 'pads', pad, palette, { idle: null, fired: null, held: false })).toEqual([{ path: 'modes/0/mappings/0/feedback' }])
})

test('what a key says of a mapping stays, whatever its light shows', () => {
  const path = 'modes/0/mappings/0/feedback'
  const said = { place: 'modes/0/mappings/0', mapping: mapping({ type: 'Note', note: 36, device: 'pads' }, { text: 'Mute' }) }
  expect(lightChanges(said, 'pads', pad, palette, { idle: null, fired: null, held: false })).toEqual([])
  const [change] = lightChanges(said, 'pads', pad, palette, { idle: 5, fired: null, held: false })
  expect(change?.value).toMatchObject({ text: 'Mute', idle: { velocity: 5 } })
  const lit = { ...said, mapping: { ...said.mapping, feedback: change?.value } }
  expect(lightChanges(lit, 'pads', pad, palette, { idle: null, fired: null, held: false })).toEqual([{ path, value: { text: 'Mute' } }])
})

test('a mapping of many pads lights each by its own number, and one of any device names the device with the lights', () => {
  const row = { place: 'p', mapping: mapping({ type: 'Note', note: '36..51' }) }
  expect(lightChanges(row, 'pads', pad, { ...palette, channel: null }, { idle: null, fired: 45, held: false })).toEqual([
    { path: 'p/feedback', value: { fired: { message_type: 'NoteOn', channel: 9, note: '{note}', velocity: 45 }, target: 'pads' } },
  ])
  const turn = { place: 'p', mapping: mapping({ type: 'CC', cc: 7, device: 'pads' }) }
  const ring = { ...palette, message: 'cc' }
  expect(lightChanges(turn, 'pads', parseEvent('cc 7 3'), ring, { idle: 5, fired: undefined, held: false })).toEqual([
    { path: 'p/feedback', value: { idle: { message_type: 'CC', channel: 0, cc: 7, value: 5 } } },
  ])
})

test('what was written by hand is left alone until something else is chosen', () => {
  const idle = { message_type: 'NoteOn', note: '{note}', velocity: '{value}' }
  const one = { place: 'p', mapping: mapping({ type: 'Note', note: 36, device: 'pads' }, { idle }) }
  expect(shownOf(one.mapping, 'idle')).toBe(undefined)
  expect(lightChanges(one, 'pads', pad, palette, { idle: undefined, fired: null, held: false })).toEqual([])
  expect(lightChanges(one, 'pads', pad, palette, { idle: undefined, fired: 5, held: false })[0]?.value).toMatchObject({ idle, fired: { velocity: 5 } })
})

describe('a light that is lit while its control is held', () => {
  const wanted = { idle: null, fired: 5, held: true }
  const lit = (velocity: number) => ({ message_type: 'NoteOn', channel: 0, note: 36, velocity })
  const press = { place: 'modes/0/mappings/0', mapping: mapping({ type: 'Note', note: 36, device: 'pads' }) }
  const path = 'modes/0/mappings/0/feedback'

  test('is dark while it waits, or what was chosen for then', () => {
    expect(lightChanges(press, 'pads', pad, palette, wanted)).toEqual([{ path, value: { idle: lit(0), fired: lit(5), while_held: true } }])
    const any = { place: 'modes/0/mappings/0', mapping: mapping({ type: 'VelocityRange', note: 36, min: 1, max: 60 }) }
    expect(lightChanges(any, 'pads', pad, palette, { ...wanted, idle: 45 })).toEqual([
      { path, value: { idle: lit(45), fired: lit(5), target: 'pads', while_held: true } },
    ])
  })

  test('may be changed, said to stay, and taken away', () => {
    const shown = { ...press, mapping: { ...press.mapping, feedback: { while_held: true, idle: lit(0), fired: lit(5) } } }
    expect([isHeld(shown.mapping), isHeld(press.mapping)]).toEqual([true, false])
    expect(lightChanges(shown, 'pads', pad, palette, { ...wanted, idle: 0 })).toEqual([])
    expect(lightChanges(shown, 'pads', pad, palette, { idle: 0, fired: 5, held: false })).toEqual([{ path, value: { idle: lit(0), fired: lit(5) } }])
    expect(lightChanges(shown, 'pads', pad, palette, { idle: null, fired: null, held: true })).toEqual([{ path }])
    const stays = { ...press, mapping: { ...press.mapping, feedback: { while_held: false, fired: lit(5) } } }
    expect(lightChanges(stays, 'pads', pad, palette, { idle: null, fired: 5, held: false })).toEqual([])
  })

  test('is one of a press: faders, gestures and releases have no end', () => {
    const triggers = [{ type: 'CC', cc: 7 }, { type: 'LongPress', note: 36 }, { type: 'Note', note: 36, on: 'release' }]
    expect(triggers.map((trigger) => canHold(mapping(trigger)))).toEqual([false, false, false])
    const turn = { place: 'modes/0/mappings/0', mapping: mapping({ type: 'CC', cc: 7, device: 'pads' }) }
    expect(lightChanges(turn, 'pads', parseEvent('cc 7 3'), palette, wanted)).toEqual([
      { path, value: { fired: { message_type: 'NoteOn', channel: 0, note: 7, velocity: 5 } } },
    ])
  })
})
