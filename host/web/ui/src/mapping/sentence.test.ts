// What a mapping waits for and does is said in words, with the names that people know; nothing of it is left out without words.

import { expect, test } from 'vitest'

import { calledInWords, controlInWords, doesInWords, mappingInWords, whenInWords } from './sentence'

const PADS = new Map([['note 36 9', 'pad 1'], ['cc 7 0', 'fader 1'], ['button 3', 'south']])

test.each([
  [{ type: 'Note', note: 36, channel: 9, device: 'pads' }, 'pad 1 (Note C2, ch10), from pads only, when it is pressed'],
  [{ type: 'Note', note: 36 }, 'pad 1 (Note C2), when it is pressed'],
  [{ type: 'Note', note: 36, channel: 0 }, 'Note C2, ch1, when it is pressed'],
  [{ type: 'Note', note: 'C4', channel: 'ch3', on: 'release' }, 'Note C4, ch3, when it is released'],
  [{ type: 'Note', note: '36..51' }, 'Note C2–D♯3, when it is pressed'],
  [{ type: 'CC', cc: 7, channel: 0 }, 'fader 1 (Controller 7, ch1), whenever it is moved'],
  [{ type: 'CC', cc: 1, value_range: [64, 127] }, 'Controller 1, in its upper half'],
  [{ type: 'CC', cc: 1, value_range: [0, 9] }, 'Controller 1, whenever it is moved (0–9)'],
  [{ type: 'LongPress', note: 40, duration_ms: 900 }, 'Note E2, when it is held for 900 ms'],
  [{ type: 'DoubleTap', button: 3 }, 'south (Button 3), when it is tapped twice'],
  [{ type: 'NoteChord', notes: [60, 64] }, 'Note C4, E4, when these are pressed together'],
  [{ type: 'OscMessage', address: '/go', device: 'tablet' }, '/go, from tablet only, whenever this message comes'],
  [{ type: 'OscArgRange', address: '/go', arg: 1, min: 0, max: 0.2 }, '/go, when argument 2 is 0 to 0.2'],
  [{ type: 'NRPN', parameter: 300, channel: 0 }, 'NRPN · parameter 300 · ch1'],
  [null, 'null'],
])('%j', (trigger, words) => {
  expect(whenInWords(trigger, PADS)).toBe(words)
})

test.each([
  [{ type: 'OscSend', target: '127.0.0.1:9000', address: '/verse' }, 'sends /verse to 127.0.0.1:9000'],
  [{ type: 'osc-output:OscSend', target: ['a:1', 'b:2'], address: '/x' }, 'sends /x to a:1, b:2'],
  [{ type: 'SendMidi', target: 'synth', message_type: 'NoteOn', note: 36, velocity: 100 }, 'sends NoteOn C2 100, ch1 to synth'],
  [{ type: 'SendMidi', target: 'synth', message_type: 'SysEx', bytes: 'F0 F7' }, 'sends SysEx F0 F7 to synth'],
  [{ type: 'MidiForward', target: 'synth' }, 'passes it on to synth'],
  [{ type: 'Keystroke', keys: ['s'], modifiers: ['ctrl'] }, 'strikes ctrl+s'],
  [{ type: 'ModeChange', mode: 'Mix' }, 'goes to the mode Mix'],
  [{ type: 'Sequence', actions: [{ type: 'NextMode' }, { type: 'Delay', ms: 20 }] }, 'goes to the next mode; waits 20 ms'],
  [{ type: 'Conditional', condition: 'x', then: { type: 'Suppress' } }, 'if its condition holds: does nothing'],
  [{ type: 'Conditional', condition: 'x', then: { type: 'NextMode' }, else: { type: 'Suppress' } }, 'if its condition holds: goes to the next mode, else: does nothing'],
  [{ type: 'TapTempo' }, 'TapTempo'],
])('%j', (action, words) => {
  expect(doesInWords(action)).toBe(words)
})

test('actions within actions are followed, but not without end', () => {
  let action: Record<string, unknown> = { type: 'NextMode' }
  for (let depth = 0; depth < 100; depth += 1) action = { type: 'Repeat', count: 2, action }
  expect(doesInWords(action)).toMatch(/^2 times: 2 times: .*…$/)
})

test.each([
  [{ type: 'Note', note: 36, channel: 9 }, { type: 'OscSend', target: '127.0.0.1:9000', address: '/verse' }, 'Pad 1 sends /verse to 127.0.0.1:9000'],
  [{ type: 'DoubleTap', note: 36, channel: 9 }, { type: 'NextMode' }, 'Pad 1, when it is tapped twice: goes to the next mode'],
  [{ type: 'OscMessage', address: '/go' }, { type: 'TapTempo' }, '/go: TapTempo'],
  [{ type: 'Beat', every: 4 }, { type: 'NextMode' }, 'Beat goes to the next mode'],
])('%j with %j', (trigger, action, words) => {
  expect(mappingInWords({ trigger, action }, PADS)).toBe(words)
})

test('a control has the name that its device gives it', () => {
  expect(controlInWords({ type: 'Note', note: 36, channel: 9 }, PADS)).toBe('pad 1')
  expect(controlInWords({ type: 'Note', note: 36, channel: 9 })).toBe('Note C2, ch10')
  expect(controlInWords({ type: 'Beat', every: 4 })).toBe('Beat')
})

test('a mapping is called by its name, else by what it waits for and does', () => {
  const mapping = { trigger: { type: 'Note', note: 36 }, action: { type: 'NextMode' } }
  expect(calledInWords({ ...mapping, name: 'kick', description: 'The kick.' })).toBe('kick')
  expect(calledInWords({ ...mapping, name: ' ', description: 'The kick.' })).toBe('The kick.')
  expect(calledInWords(mapping)).toBe('Note C2, when it is pressed → goes to the next mode')
})
