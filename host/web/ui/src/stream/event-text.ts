// Events as the host writes them, `note-on 36 100 ch 9`, read into their parts.

import type { Protocol } from '../api/types'

/** An event's parts. */
export interface EventParts {
  /** Its word: `note-on`, `cc`, `osc`, ... */
  kind: string
  /** What it came by; `null` for what the host makes itself, such as a beat. */
  protocol: Protocol | null
  /** 0 to 15; `null` where there is none. */
  channel: number | null
  /** Note, controller, button, axis, DMX channel; `null` where there is none. */
  number: number | null
  /** Of Art-Net. */
  universe: number | null
  /** Of OSC. */
  address: string | null
  /** 0 to 1, of what has a value. */
  level: number | null
  /** Whether something is pressed by it; `null` if it presses and releases nothing. */
  pressed: boolean | null
  /** What tells the control on its device: events of one control have the same. */
  control: string
}

const MIDI = new Set([
  'note-off', 'note-on', 'poly-aftertouch', 'cc', 'program', 'aftertouch', 'pitch-bend', 'sysex', 'time-code',
  'song-position', 'song-select', 'tune-request', 'clock', 'start', 'continue', 'stop', 'active-sensing', 'reset',
])
/** Those that have a channel. */
const CHANNELLED = new Set(['note-off', 'note-on', 'poly-aftertouch', 'cc', 'program', 'aftertouch', 'pitch-bend'])
/** What the host says of the text of a quoted word. */
const ESCAPES: Record<string, string> = { n: '\n', r: '\r', t: '\t' }

/** The words of an event; a quoted one is one word, without its quotes and with its escapes undone. */
export function words(text: string): string[] {
  const found: string[] = []
  const pattern = /"((?:[^"\\]|\\.)*)"|'((?:[^'\\]|\\.)*)'|(\S+)/gs
  for (const [, double, single, plain] of text.matchAll(pattern)) {
    found.push(plain ?? unescaped(double ?? single ?? ''))
  }
  return found
}

function unescaped(text: string): string {
  return text.replace(/\\(?:u\{([0-9a-f]{1,6})\}|(.))/gs, (_, code: string | undefined, plain: string | undefined) => {
    if (code !== undefined) {
      const point = Number.parseInt(code, 16)
      return point <= 0x10ffff ? String.fromCodePoint(point) : '\ufffd'
    }
    return ESCAPES[plain ?? ''] ?? plain ?? ''
  })
}

function number(word: string | undefined): number | null {
  if (word === undefined) return null
  const value = Number.parseFloat(word)
  return Number.isFinite(value) ? value : null
}

function within(value: number | null, most: number): number | null {
  return value === null ? null : Math.min(Math.max(value / most, 0), 1)
}

/** Reads an event. What is not known keeps its first word as its kind. */
export function parseEvent(text: string): EventParts {
  const [kind = '', ...rest] = words(text)
  const parts: EventParts = {
    kind, protocol: null, channel: null, number: null, universe: null, address: null, level: null, pressed: null, control: kind,
  }
  if (MIDI.has(kind)) parts.protocol = 'midi'
  if (CHANNELLED.has(kind)) {
    const at = rest.lastIndexOf('ch')
    parts.channel = at >= 0 ? (number(rest[at + 1]) ?? 0) : 0
  }
  const [first, second, third] = rest
  switch (kind) {
    case 'note-on':
    case 'note-off':
      parts.number = number(first)
      parts.pressed = kind === 'note-on'
      parts.level = parts.pressed ? within(number(second), 127) : 0
      parts.control = `note ${parts.number} ${parts.channel}`
      break
    case 'poly-aftertouch':
      parts.number = number(first)
      parts.level = within(number(second), 127)
      parts.control = `note ${parts.number} ${parts.channel}`
      break
    case 'cc':
      parts.number = number(first)
      parts.level = within(number(second), 127)
      parts.control = `cc ${parts.number} ${parts.channel}`
      break
    case 'program':
      parts.number = number(first)
      parts.control = `program ${parts.channel}`
      break
    case 'aftertouch':
      parts.level = within(number(first), 127)
      parts.control = `aftertouch ${parts.channel}`
      break
    case 'pitch-bend':
      parts.level = within(number(first), 16_383)
      parts.control = `pitch-bend ${parts.channel}`
      break
    case 'osc': {
      parts.protocol = 'osc'
      parts.address = first ?? ''
      parts.control = `osc ${parts.address}`
      // The first argument that is a number is what a fader of a tablet sends.
      const value = rest.slice(1).map(number).find((value) => value !== null)
      if (value !== undefined && value !== null) parts.level = Math.min(Math.max(value, 0), 1)
      if (second === 'true' || second === 'false') parts.level = second === 'true' ? 1 : 0
      break
    }
    case 'gamepad-button':
      parts.protocol = 'hid'
      parts.number = number(first)
      parts.pressed = second === 'down'
      parts.level = parts.pressed ? 1 : 0
      parts.control = `button ${parts.number}`
      break
    case 'key':
      parts.protocol = 'keyboard'
      parts.number = number(first)
      parts.pressed = second === 'down'
      parts.level = parts.pressed ? 1 : 0
      parts.control = `key ${parts.number}`
      break
    case 'gamepad-stick': {
      parts.protocol = 'hid'
      parts.number = number(first)
      const way = number(second)
      parts.level = way === null ? null : Math.min(Math.max((way + 1) / 2, 0), 1)
      parts.control = `axis ${parts.number}`
      break
    }
    case 'gamepad-trigger':
      parts.protocol = 'hid'
      parts.number = number(first)
      parts.level = within(number(second), 1)
      parts.control = `trigger ${parts.number}`
      break
    case 'artnet':
      parts.protocol = 'artnet'
      parts.universe = number(first)
      parts.number = number(second)
      parts.level = within(number(third), 255)
      parts.control = `dmx ${parts.universe} ${parts.number}`
      break
    default:
  }
  return parts
}

const NOTES = ['C', 'C♯', 'D', 'D♯', 'E', 'F', 'F♯', 'G', 'G♯', 'A', 'A♯', 'B']

/** The name of a MIDI note; C4 is middle C, 60. */
export function noteName(note: number): string {
  return `${NOTES[note % 12] ?? '?'}${Math.floor(note / 12) - 1}`
}
