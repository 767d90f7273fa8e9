// An event as the fields that people look at: its kind, its channel, the note with its name, an OSC message's arguments with
// their types.

import { type EventParts, noteName, words } from './event-text'

/** What a field is. The texts of the shell have a name for each. */
export type FieldName =
  | 'kind' | 'note' | 'velocity' | 'controller' | 'value' | 'pressure' | 'program' | 'bytes' | 'address' | 'argument' | 'button'
  | 'key' | 'state' | 'axis' | 'universe' | 'dmx-channel' | 'before' | 'rest' | 'channel'

/** The type of an OSC argument. The texts of the shell have a name for each. */
export type OscType =
  | 'int' | 'float' | 'long' | 'double' | 'string' | 'char' | 'bool' | 'nil' | 'infinitum' | 'blob' | 'color' | 'midi' | 'time' | 'array'

/** One field of an event. */
export interface EventField {
  name: FieldName
  value: string
  /** What a number is called, such as `C2` for the note 36; `null` if it has no name. */
  called: string | null
  /** Of an OSC argument. */
  type: OscType | null
}

/** An argument of an OSC message. */
export interface OscArgument {
  /** As the host writes it. */
  text: string
  type: OscType
}

/** The fields behind an event's word, in the order in which the host writes them. */
const FIELDS: Record<string, FieldName[]> = {
  'note-on': ['note', 'velocity'],
  'note-off': ['note', 'velocity'],
  'poly-aftertouch': ['note', 'pressure'],
  cc: ['controller', 'value'],
  program: ['program'],
  aftertouch: ['pressure'],
  'pitch-bend': ['value'],
  'time-code': ['value'],
  'song-position': ['value'],
  'song-select': ['value'],
  'gamepad-button': ['button', 'state'],
  'gamepad-stick': ['axis', 'value'],
  'gamepad-trigger': ['axis', 'value'],
  key: ['key', 'state'],
  artnet: ['universe', 'dmx-channel', 'value', 'before'],
}

/** A quoted text, with its quotes. */
const QUOTED = `"(?:[^"\\\\]|\\\\.)*"|'(?:[^'\\\\]|\\\\.)*'`
const OSC_ADDRESS = new RegExp(`^osc\\s+(?:${QUOTED}|\\S+)`, 's')
const OSC_WORD = new RegExp(`[[\\]]|${QUOTED}|[^\\s[\\]"']+`, 'gs')

/** What a MIDI channel is called: channels count from 0 where they are numbers, and from 1 by name. */
export function channelName(channel: number): string {
  return `ch${channel + 1}`
}

/** The fields of an event, its kind first and its channel last. What is behind a word that is not known is one field. */
export function fieldsOf(text: string, parts: EventParts): EventField[] {
  const rest = words(text).slice(1)
  const fields: EventField[] = [field('kind', parts.kind)]
  if (parts.kind === 'osc') {
    fields.push(field('address', parts.address ?? ''))
    for (const { text: value, type } of oscArguments(text)) fields.push({ ...field('argument', value), type })
  } else if (parts.kind === 'sysex') {
    fields.push(field('bytes', rest.join(' ')))
  } else {
    const names = FIELDS[parts.kind]
    names?.forEach((name, index) => {
      const value = rest[index]
      if (value !== undefined) fields.push(field(name, value))
    })
    if (!names && rest.length > 0) fields.push(field('rest', rest.join(' ')))
  }
  if (parts.channel !== null) fields.push(field('channel', channelName(parts.channel)))
  return fields
}

function field(name: FieldName, value: string): EventField {
  const number = name === 'note' ? Number.parseInt(value, 10) : NaN
  return { name, value, called: Number.isNaN(number) ? null : noteName(number), type: null }
}

/** The arguments of an OSC message, in the order in which they were sent. An array is one of them. */
export function oscArguments(text: string): OscArgument[] {
  const found: OscArgument[] = []
  let array = ''
  let depth = 0
  for (const [word] of text.replace(OSC_ADDRESS, '').matchAll(OSC_WORD)) {
    if (word === '[') depth += 1
    if (depth === 0) {
      found.push({ text: word, type: typeOf(word) })
      continue
    }
    array += word === ']' || array.endsWith('[') || array === '' ? word : ` ${word}`
    if (word === ']') depth -= 1
    if (depth === 0) {
      found.push({ text: array, type: 'array' })
      array = ''
    }
  }
  // An array without an end: the host writes none.
  if (array) found.push({ text: array, type: 'array' })
  return found
}

function typeOf(word: string): OscType {
  if (word.startsWith('"')) return 'string'
  if (word.startsWith("'")) return 'char'
  if (word === 'true' || word === 'false') return 'bool'
  if (word === 'nil' || word === 'infinitum') return word
  const named = /^(blob|color|midi|time):/.exec(word)?.[1]
  if (named) return named as OscType
  if (/^-?\d+$/.test(word)) return 'int'
  if (word.endsWith('h')) return 'long'
  return word.endsWith('d') ? 'double' : 'float'
}
