// A release is said to end a light where it does that alone, and the page knows so.

import { expect, test } from 'vitest'

import { FiredMappings } from './fired'
import { isRelease, onlyEndsLight, planned, ruleInWords } from './light-end'

const feedback = { while_held: true, idle: { message_type: 'NoteOn', note: 36, velocity: 0 }, fired: { message_type: 'NoteOn', note: 36, velocity: 5 } }
const mapping = (trigger: object = {}, action: object = { type: 'OscSend' }, more: object = { feedback }) => ({ trigger: { type: 'Note', note: 36, ...trigger }, action, ...more })
const place = 'modes/0/mappings/0'

test.each<[string, Record<string, unknown>, boolean]>([
  ['a press', mapping(), true],
  ['a press that is said', mapping({ on: 'press' }), true],
  ['both', mapping({ on: 'both' }), false],
  ['what is forwarded', mapping({}, { type: 'MidiForward', target: 'synth' }), false],
  ['a key that is held down', mapping({}, { type: 'Keystroke', keys: 'a', stroke: 'hold' }), false],
  ['a branch', mapping({}, { type: 'Conditional' }), false],
  ['a light that stays', mapping({}, { type: 'OscSend' }, { feedback: { ...feedback, while_held: false } }), false],
  ['no light', mapping({}, { type: 'OscSend' }, {}), false],
])('with %s', (_, one, expected) => {
  expect(onlyEndsLight(one)).toBe(expected)
})

test('a note that ends is a release, however that is written', () => {
  expect(['note-off 36 0', 'note-on 36 0', 'note-on 36 100', 'cc 36 0'].map((text) => isRelease(text.split(' ')))).toEqual([true, true, false, false])
})

test('of a release the light is said to end, with the name of its mapping', () => {
  const one = new FiredMappings([{ place, mode: 'Play', mapping: mapping() }])
  const said = (mappings: FiredMappings, rule: string, event: string) => ruleInWords(rule, mappings.lightEnds([rule], 'pads', event, 'Play'))
  expect(said(one, 'OscSend', 'note-off 36 0')).toBe('light ends')
  expect(said(one, 'OscSend, changed', 'note-off 36 0')).toBe('light ends, changed')
  expect(said(one, 'OscSend', 'note-on 36 100')).toBe('OscSend')
  expect(said(one, 'OscSend', 'note-off 37 0')).toBe('OscSend')
  const named = new FiredMappings([{ place, mode: 'Play', mapping: mapping({}, { type: 'OscSend' }, { feedback, name: 'kick' }) }])
  expect(said(named, 'kick (OscSend)', 'note-off 36 0')).toBe('kick (light ends)')
})

test('where another mapping may be meant, nothing is said of a light', () => {
  const other = { place: 'modes/0/mappings/1', mode: 'Play', mapping: mapping({ on: 'release' }, { type: 'OscSend' }, {}) }
  const two = new FiredMappings([{ place, mode: 'Play', mapping: mapping() }, other])
  expect(two.lightEnds(['OscSend'], 'pads', 'note-off 36 0', 'Play').size).toBe(0)
  const elsewhere = new FiredMappings([{ place, mode: 'Play', mapping: mapping() }, { ...other, mode: 'Mix' }])
  expect(elsewhere.lightEnds(['OscSend'], 'pads', 'note-off 36 0', 'Play').size).toBe(1)
  expect(elsewhere.lightEnds(['OscSend'], 'pads', 'note-off 36 0', undefined).size, 'of any mode').toBe(0)
})

test('a plan leaves the mappings that it adds, of a device that it binds, too', () => {
  const binding = { path: ['bindings', '0'], value: { alias: 'grid' } }
  const added = planned([], [binding, { path: ['modes', '0', 'mappings', '0'], value: mapping({ device: 'grid' }) }], ['Play'])
  expect(added).toEqual([{ place, mode: 'Play', mapping: mapping() }])
  const before = { place, mode: 'Play', mapping: mapping({}, { type: 'OscSend' }, {}) }
  expect(planned([before], [{ path: [...place.split('/'), 'feedback'], value: feedback }], ['Play'])).toEqual([{ ...before, mapping: mapping() }])
  expect(planned([before], [{ path: place.split('/') }], ['Play']), 'what moves others is not followed').toBe(null)
  expect(planned([before], [{ path: ['modes', '1'], value: { name: 'Mix' } }], ['Play'])).toBe(null)
  expect(planned([before], [{ path: ['advanced_settings'], value: {} }], ['Play'])).toEqual([before])
})
