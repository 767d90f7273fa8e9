// Events are read as the host writes them; what is not known keeps its word.

import { describe, expect, test } from 'vitest'

import { noteName, parseEvent, words } from './event-text'

describe('an event', () => {
  test.each([
    ['note-on 36 100 ch 9', { kind: 'note-on', protocol: 'midi', channel: 9, number: 36, pressed: true, control: 'note 36 9' }],
    ['note-off 36', { channel: 0, number: 36, pressed: false, level: 0, control: 'note 36 0' }],
    ['cc 7 127 ch 1', { number: 7, level: 1, control: 'cc 7 1' }],
    ['osc /fader 0.25', { protocol: 'osc', address: '/fader', level: 0.25, control: 'osc /fader' }],
    ['osc /mute true', { level: 1 }],
    ['osc "/a \\"b\\" c" "text"', { address: '/a "b" c', level: null }],
    ['gamepad-button 3 down', { protocol: 'hid', number: 3, pressed: true }],
    ['key 439 up', { protocol: 'keyboard', number: 439, pressed: false }],
    ['gamepad-stick 1 -1', { number: 1, level: 0 }],
    ['artnet 0 12 255', { protocol: 'artnet', universe: 0, number: 12, level: 1, control: 'dmx 0 12' }],
    ['beat 3', { kind: 'beat', protocol: null, control: 'beat' }],
    ['', { kind: '', protocol: null }],
  ])('%s', (text, expected) => {
    expect(parseEvent(text)).toMatchObject(expected)
  })

  test('escapes of quoted words are undone, and impossible ones replaced', () => {
    expect(words('"a\\n\\u{202e}b" \'c d\' e "\\u{ffffff}"')).toEqual(['a\n\u202eb', 'c d', 'e', '\ufffd'])
  })
})

test('notes have the names that the host gives them', () => {
  expect([noteName(60), noteName(0), noteName(127)]).toEqual(['C4', 'C-1', 'G9'])
})
