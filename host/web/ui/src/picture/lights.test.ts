// A light is found by its control, shows what its device can, and a choice changes the mapping and nothing else.

import { describe, expect, test } from 'vitest'

import { parseEvent } from '../stream/event-text'
import { canHold, isHeld, lightChanges, lightPlan, lightValues, mappingsOf, releaseOf, shownOf } from './lights'

const palette = { id: 'palette', message: 'note', channel: 0, values: ['red = 5', 'off = 0', 'deep blue = 45', 'nonsense', 'loud = 900'] }
const pad = parseEvent('note-on 36 100 ch 9')

const mapping = (trigger: Record<string, unknown>, feedback?: Record<string, unknown>) => ({ trigger, action: { type: 'NextMode' }, ...(feedback ? { feedback } : {}) })

test('a light can show what its device can, off first', () => {
  expect(lightValues(palette)).toEqual([{ name: 'off', value: 0 }, { name: 'red', value: 5 }, { name: 'deep blue', value: 45 }])
  expect(lightValues({ ...palette, message: 'sysex' })).toEqual([])
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
  const [change] = lightChanges(one, 'pads', pad, palette, { idle: 5, fired: null })
  expect(change).toEqual({ path: 'modes/0/mappings/0/feedback', value: { idle: { message_type: 'NoteOn', channel: 0, note: 36, velocity: 5 } } })
  const lit = { ...one, mapping: { ...one.mapping, feedback: change?.value } }
  expect(shownOf(lit.mapping, 'idle')).toBe(5)
  expect(lightChanges(lit, 'pads', pad, palette, { idle: 5, fired: null })).toEqual([])
  expect(lightChanges(lit, 'pads', pad, palette, { idle: null, fired: null })).toEqual([{ path: 'modes/0/mappings/0/feedback' }])
})

test('a mapping of many pads lights each by its own number, and one of any device names the device with the lights', () => {
  const row = { place: 'p', mapping: mapping({ type: 'Note', note: '36..51' }) }
  expect(lightChanges(row, 'pads', pad, { ...palette, channel: null }, { idle: null, fired: 45 })).toEqual([
    { path: 'p/feedback', value: { fired: { message_type: 'NoteOn', channel: 9, note: '{note}', velocity: 45 }, target: 'pads' } },
  ])
  const turn = { place: 'p', mapping: mapping({ type: 'CC', cc: 7, device: 'pads' }) }
  const ring = { ...palette, message: 'cc' }
  expect(lightChanges(turn, 'pads', parseEvent('cc 7 3'), ring, { idle: 5, fired: undefined })).toEqual([
    { path: 'p/feedback', value: { idle: { message_type: 'CC', channel: 0, cc: 7, value: 5 } } },
  ])
})

test('what was written by hand is left alone until something else is chosen', () => {
  const idle = { message_type: 'NoteOn', note: '{note}', velocity: '{value}' }
  const one = { place: 'p', mapping: mapping({ type: 'Note', note: 36, device: 'pads' }, { idle }) }
  expect(shownOf(one.mapping, 'idle')).toBe(undefined)
  expect(lightChanges(one, 'pads', pad, palette, { idle: undefined, fired: null })).toEqual([])
  expect(lightChanges(one, 'pads', pad, palette, { idle: undefined, fired: 5 })[0]?.value).toMatchObject({ idle, fired: { velocity: 5 } })
})

describe('a light that is lit while its control is held', () => {
  const wanted = { idle: null, fired: 5, held: true }
  const lit = (velocity: number) => ({ message_type: 'NoteOn', channel: 0, note: 36, velocity })
  const press = { place: 'modes/0/mappings/0', mapping: mapping({ type: 'Note', note: 36, device: 'pads' }) }
  const other = { place: 'modes/0/mappings/1', mapping: mapping({ type: 'CC', cc: 1 }) }
  const elsewhere = { place: 'global_mappings/0', mapping: mapping({ type: 'CC', cc: 2 }) }
  const all = [press, other, elsewhere]

  test('is dark while it waits, and a mapping of the release makes it dark again', () => {
    expect(lightPlan(all, press, 'pads', pad, palette, wanted, 'dark')).toEqual([
      { path: 'modes/0/mappings/0/feedback', value: { idle: lit(0), fired: lit(5) } },
      {
        path: 'modes/0/mappings/2',
        value: { name: 'dark', trigger: { type: 'Note', note: 36, device: 'pads', on: 'release' }, action: { type: 'Suppress' }, feedback: { idle: lit(0) } },
      },
    ])
  })

  test('goes back to what was chosen for while it waits, at the device that it is of', () => {
    const any = { place: 'modes/0/mappings/0', mapping: mapping({ type: 'LongPress', note: 36, channel: 9 }) }
    const [, release] = lightPlan([any], any, 'pads', pad, palette, { ...wanted, idle: 45 }, 'dark')
    expect(release?.value).toEqual({
      name: 'dark', trigger: { type: 'Note', note: 36, channel: 9, on: 'release' }, action: { type: 'Suppress' }, feedback: { idle: lit(45), target: 'pads' },
    })
  })

  test('has one mapping of the release, which follows it and goes with it', () => {
    const feedback = { idle: lit(0), fired: lit(5) }
    const shown = { ...press, mapping: { ...press.mapping, feedback } }
    const release = { place: 'modes/0/mappings/2', mapping: { trigger: { type: 'Note', note: 36, device: 'pads', on: 'release' }, action: { type: 'Suppress' }, feedback: { idle: lit(0) } } }
    const now = [shown, other, release]
    expect(releaseOf(now, shown)).toBe(release)
    expect([isHeld(now, shown), isHeld(all, press)]).toEqual([true, false])
    const changes = (wish: { idle: number | null; fired: number | null; held: boolean }) => lightPlan(now, shown, 'pads', pad, palette, wish, 'dark')
    expect(changes({ ...wanted, idle: 0 })).toEqual([])
    expect(changes({ ...wanted, idle: 45 })).toEqual([
      { path: 'modes/0/mappings/0/feedback', value: { idle: lit(45), fired: lit(5) } }, { path: 'modes/0/mappings/2/feedback', value: { idle: lit(45) } },
    ])
    expect(changes({ idle: 0, fired: 5, held: false })).toEqual([{ path: 'modes/0/mappings/2' }])
    expect(changes({ idle: null, fired: null, held: true })).toEqual([{ path: 'modes/0/mappings/0/feedback' }, { path: 'modes/0/mappings/2' }])
    expect(releaseOf([shown, { ...release, place: 'modes/1/mappings/0' }], shown), 'that of another mode is not its own').toBeUndefined()
  })

  test('needs no second mapping where its own is told of the release', () => {
    const actions = [
      { type: 'MidiForward', target: 'synth' }, { type: 'Keystroke', keys: 'a', stroke: 'hold' },
      { type: 'Conditional', condition: { type: 'Always' }, then: { type: 'NextMode' }, else: { type: 'MidiForward', target: 'synth' } },
    ]
    for (const action of actions) {
      const one = { place: 'modes/0/mappings/0', mapping: { ...press.mapping, action } }
      expect(lightPlan([one], one, 'pads', pad, palette, wanted, 'dark')).toEqual([{ path: 'modes/0/mappings/0/feedback', value: { idle: lit(0), fired: lit(5) } }])
    }
    const both = { place: 'modes/0/mappings/0', mapping: mapping({ type: 'Note', note: 36, device: 'pads', on: 'both' }) }
    expect(lightPlan([both], both, 'pads', pad, palette, wanted, 'dark')).toHaveLength(1)
  })

  test('is one of a note: a fader has no release', () => {
    expect([canHold(press.mapping), canHold(other.mapping)]).toEqual([true, false])
    const turn = { place: 'modes/0/mappings/0', mapping: mapping({ type: 'CC', cc: 7, device: 'pads' }) }
    expect(lightPlan([turn], turn, 'pads', parseEvent('cc 7 3'), palette, wanted, 'dark')).toEqual([
      { path: 'modes/0/mappings/0/feedback', value: { fired: { message_type: 'NoteOn', channel: 0, note: 7, velocity: 5 } } },
    ])
  })
})
