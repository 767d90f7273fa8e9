// From an event to the triggers that would wait for it.

import type { EventParts } from '../stream/event-text'
import { words } from '../stream/event-text'

/** How a control can be waited for. The texts of the shell have a name for each. */
export type Way =
  | 'press' | 'release' | 'long-press' | 'double-tap' | 'move' | 'upper-half' | 'turn' | 'message' | 'half' | 'program'
  // What only learning tells.
  | 'chord' | 'velocity-layer' | 'recognized'

/** A trigger, as the configuration has it, without its device. */
export interface TriggerChoice {
  way: Way
  trigger: Record<string, unknown>
}

/** Milliseconds that a key is held for a long press. */
const LONG_PRESS_MS = 500
/** Bytes of a SysEx message that its trigger begins with. */
const SYSEX_BYTES = 8

/** The ways to wait for the control that an event is of, the usual one first; none for what no trigger waits for. */
export function triggersFor(text: string, parts: EventParts): TriggerChoice[] {
  const channel = parts.channel === null ? {} : { channel: parts.channel }
  const number = parts.number
  switch (parts.kind) {
    case 'note-on':
    case 'note-off':
    case 'poly-aftertouch': {
      if (number === null) return []
      const presses: TriggerChoice[] = [
        { way: 'press', trigger: { type: 'Note', note: number, ...channel } },
        { way: 'release', trigger: { type: 'Note', note: number, ...channel, on: 'release' } },
        { way: 'long-press', trigger: { type: 'LongPress', note: number, ...channel, duration_ms: LONG_PRESS_MS } },
        { way: 'double-tap', trigger: { type: 'DoubleTap', note: number, ...channel } },
      ]
      const pressure: TriggerChoice = { way: 'move', trigger: { type: 'PolyAftertouch', note: number, ...channel } }
      return parts.kind === 'poly-aftertouch' ? [pressure, ...presses] : presses
    }
    case 'cc':
      if (number === null) return []
      return [
        { way: 'move', trigger: { type: 'CC', cc: number, ...channel } },
        { way: 'upper-half', trigger: { type: 'CC', cc: number, ...channel, value_range: [64, 127] } },
        { way: 'turn', trigger: { type: 'EncoderTurn', cc: number, ...channel, direction: 'any' } },
      ]
    case 'program':
      return number === null ? [] : [{ way: 'program', trigger: { type: 'ProgramChange', program: number, ...channel } }]
    case 'aftertouch':
      return [{ way: 'move', trigger: { type: 'Aftertouch', ...channel } }]
    case 'pitch-bend':
      return [{ way: 'move', trigger: { type: 'PitchBend', ...channel } }]
    case 'sysex':
      return [{ way: 'message', trigger: { type: 'SysEx', prefix: words(text).slice(1, 1 + SYSEX_BYTES).join(' ') } }]
    case 'osc': {
      const address = parts.address ?? ''
      if (!address) return []
      const whole: TriggerChoice = { way: 'message', trigger: { type: 'OscMessage', address } }
      const half: TriggerChoice = { way: 'half', trigger: { type: 'OscArgRange', address, arg: 0, min: 0.5, max: 1 } }
      return parts.level === null ? [whole] : [whole, half]
    }
    case 'gamepad-button':
      if (number === null) return []
      return [
        { way: 'press', trigger: { type: 'GamepadButton', button: number } },
        { way: 'release', trigger: { type: 'GamepadButton', button: number, on: 'release' } },
        { way: 'long-press', trigger: { type: 'LongPress', button: number, duration_ms: LONG_PRESS_MS } },
        { way: 'double-tap', trigger: { type: 'DoubleTap', button: number } },
      ]
    case 'key':
      if (number === null) return []
      return [
        { way: 'press', trigger: { type: 'Key', key: number } },
        { way: 'release', trigger: { type: 'Key', key: number, on: 'release' } },
        { way: 'long-press', trigger: { type: 'LongPress', key: number, duration_ms: LONG_PRESS_MS } },
        { way: 'double-tap', trigger: { type: 'DoubleTap', key: number } },
      ]
    case 'gamepad-stick':
      return number === null ? [] : [{ way: 'move', trigger: { type: 'GamepadAnalogStick', axis: number, on: 'move' } }]
    case 'gamepad-trigger':
      return number === null ? [] : [{ way: 'move', trigger: { type: 'GamepadTrigger', trigger: number } }]
    case 'artnet':
      if (number === null || parts.universe === null) return []
      return [{ way: 'move', trigger: { type: 'ArtNetChannel', universe: parts.universe, dmx_channel: number } }]
    default:
      return []
  }
}

/** An alias for a port: letters, digits and hyphens of its name, unlike those that are taken. */
export function aliasFor(name: string, taken: ReadonlySet<string>): string {
  const plain = name.toLowerCase().normalize('NFKD').replace(/[^a-z0-9]+/g, '-').replace(/^-+|-+$/g, '').slice(0, 32)
  const base = plain || 'device'
  let alias = base
  for (let count = 2; taken.has(alias); count += 1) alias = `${base}-${count}`
  return alias
}
