// Events as the host writes them become fields, each with what it is; OSC arguments keep their types.

import { describe, expect, test } from 'vitest'

import { fieldsOf, oscArguments } from './event-fields'
import { parseEvent } from './event-text'

describe('an event has the fields', () => {
  test.each<[string, [string, string][]]>([
    ['note-on 36 100 ch 9', [['kind', 'note-on'], ['note', '36'], ['velocity', '100'], ['channel', 'ch10']]],
    ['note-off 36 64', [['kind', 'note-off'], ['note', '36'], ['velocity', '64'], ['channel', 'ch1']]],
    ['poly-aftertouch 60 12', [['kind', 'poly-aftertouch'], ['note', '60'], ['pressure', '12'], ['channel', 'ch1']]],
    ['cc 7 127 ch 1', [['kind', 'cc'], ['controller', '7'], ['value', '127'], ['channel', 'ch2']]],
    ['program 3', [['kind', 'program'], ['program', '3'], ['channel', 'ch1']]],
    ['aftertouch 9 ch 15', [['kind', 'aftertouch'], ['pressure', '9'], ['channel', 'ch16']]],
    ['pitch-bend 8192', [['kind', 'pitch-bend'], ['value', '8192'], ['channel', 'ch1']]],
    ['sysex F0 7E 00 F7', [['kind', 'sysex'], ['bytes', 'F0 7E 00 F7']]],
    ['clock', [['kind', 'clock']]],
    ['osc "/a b" 1 "two"', [['kind', 'osc'], ['address', '/a b'], ['argument', '1'], ['argument', '"two"']]],
    ['gamepad-button 128 down', [['kind', 'gamepad-button'], ['button', '128'], ['state', 'down']]],
    ['gamepad-stick 129 -0.5', [['kind', 'gamepad-stick'], ['axis', '129'], ['value', '-0.5']]],
    ['key 439 up', [['kind', 'key'], ['key', '439'], ['state', 'up']]],
    ['artnet 0 12 255 3', [['kind', 'artnet'], ['universe', '0'], ['dmx-channel', '12'], ['value', '255'], ['before', '3']]],
    ['later-kind 1 2', [['kind', 'later-kind'], ['rest', '1 2']]],
    ['note-on', [['kind', 'note-on'], ['channel', 'ch1']]],
    ['', [['kind', '']]],
  ])('of %j', (text, expected) => {
    expect(fieldsOf(text, parseEvent(text)).map(({ name, value }) => [name, value])).toEqual(expected)
  })

  test('with the names of notes', () => {
    const called = (text: string) => fieldsOf(text, parseEvent(text)).map((one) => one.called)
    expect(called('note-on 36 100')).toEqual([null, 'C2', null, null])
    expect(called('cc 36 100'), 'a controller has none').toEqual([null, null, null, null])
  })
})

test('the arguments of an OSC message have types', () => {
  const text = `osc /x/y 1 -5 0.5 1e-3 1h 0.5d "a \\"b] [" ' ' '\\'' true nil infinitum blob:00ff color:ff000080 midi:00903c64 time:3.7 [1 "two" [] [0.5]]`
  expect(oscArguments(text).map(({ text, type }) => [text, type])).toEqual([
    ['1', 'int'], ['-5', 'int'], ['0.5', 'float'], ['1e-3', 'float'], ['1h', 'long'], ['0.5d', 'double'], ['"a \\"b] ["', 'string'], [`' '`, 'char'], [`'\\''`, 'char'],
    ['true', 'bool'], ['nil', 'nil'], ['infinitum', 'infinitum'], ['blob:00ff', 'blob'], ['color:ff000080', 'color'], ['midi:00903c64', 'midi'], ['time:3.7', 'time'],
    ['[1 "two" [] [0.5]]', 'array'],
  ])
  expect(oscArguments('osc "/a [b" 2'), 'what is in an address is no argument').toEqual([{ text: '2', type: 'int' }])
  expect(oscArguments('osc /none')).toEqual([])
  expect(oscArguments('osc /cut [1 [2'), 'what is cut off is shown as it is').toEqual([{ text: '[1 [2', type: 'array' }])
})
