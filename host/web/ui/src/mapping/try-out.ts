// From a trigger, or a control, to what its device would send: how a mapping is tried without the device.

import { parseEvent } from '../stream/event-text'

/** An event in the host's line language, and the milliseconds before it. */
export interface Step {
  event: string
  after: number
}

type Trigger = Record<string, unknown>

/** Milliseconds between the events of one press, and beyond what a gesture waits for. */
const SHORT = 40
const BEYOND = 60
/** What the host takes a long press and the keys of a chord for where the trigger does not say. */
const LONG_PRESS_MS = 500

/** What is sent where a control is used as this event says: what it presses is let go again. */
export function stepsOf(event: string): Step[] {
  const { kind, number, channel, pressed } = parseEvent(event)
  if (!pressed || number === null) return [{ event, after: 0 }]
  return press(event, kind === 'note-on' ? `note-off ${number}${channel ? ` ch ${channel}` : ''}` : `${kind} ${number} up`)
}

/** What is to be sent for a trigger; `null` for one that this page can't imitate. */
export function stepsFor(trigger: Trigger): Step[] | null {
  const channel = trigger['channel'] === undefined ? '' : ` ${typeof trigger['channel'] === 'number' ? `ch ${trigger['channel']}` : trigger['channel']}`
  const number = (key: string) => first(trigger[key])
  switch (trigger['type']) {
    case 'Note': {
      const note = number('note')
      return note === null ? null : press(`note-on ${note} ${highest(trigger['velocity_range'], 100)}${channel}`, `note-off ${note}${channel}`)
    }
    case 'CC': {
      const cc = number('cc')
      return cc === null ? null : [{ event: `cc ${cc} ${highest(trigger['value_range'], 127)}${channel}`, after: 0 }]
    }
    case 'ProgramChange': {
      const program = number('program')
      return program === null ? null : [{ event: `program ${program}${channel}`, after: 0 }]
    }
    case 'PitchBend':
      return [{ event: `pitch-bend ${highest(trigger['value_range'], 16383)}${channel}`, after: 0 }]
    case 'Aftertouch':
      return [{ event: `aftertouch ${highest(trigger['pressure_range'], 127)}${channel}`, after: 0 }]
    case 'OscMessage':
      return osc(trigger, 0, 1)
    case 'OscArgRange': {
      const [arg, min, max] = [trigger['arg'] ?? 0, trigger['min'], trigger['max']]
      if (typeof arg !== 'number' || typeof min !== 'number' || typeof max !== 'number') return null
      return osc(trigger, arg, (min + max) / 2)
    }
    case 'GamepadButton':
    case 'Key': {
      const key = pressed(trigger)
      return key === null ? null : press(...key)
    }
    case 'ArtNetChannel': {
      const channel = number('dmx_channel')
      return channel === null ? null : [{ event: `artnet ${trigger['universe'] ?? 0} ${channel} 255`, after: 0 }]
    }
    case 'LongPress': {
      const key = pressed(trigger, channel)
      const held = typeof trigger['duration_ms'] === 'number' ? trigger['duration_ms'] : LONG_PRESS_MS
      return key === null ? null : press(...key, held + BEYOND)
    }
    case 'DoubleTap': {
      const key = pressed(trigger, channel)
      const taps = typeof trigger['taps'] === 'number' ? trigger['taps'] : 2
      return key === null ? null : Array.from({ length: taps }, (_, tap) => press(...key, SHORT, tap === 0 ? 0 : SHORT)).flat()
    }
    default:
      return null
  }
}

/** The events that press and release what a trigger names: a note, a button or a key. */
function pressed(trigger: Trigger, channel = ''): [string, string] | null {
  const note = first(trigger['note'])
  if (note !== null) return [`note-on ${note} 100${channel}`, `note-off ${note}${channel}`]
  const button = first(trigger['button'])
  if (button !== null) return [`gamepad-button ${button} down`, `gamepad-button ${button} up`]
  const key = first(trigger['key'])
  return key === null ? null : [`key ${key} down`, `key ${key} up`]
}

function press(down: string, up: string, held = SHORT, after = 0): Step[] {
  return [{ event: down, after }, { event: up, after: held }]
}

function osc(trigger: Trigger, arg: number, value: number): Step[] | null {
  const address = trigger['address']
  if (typeof address !== 'string') return null
  const quoted = /[\s"\\#]/.test(address) ? JSON.stringify(address) : address
  const numbers = Array.from({ length: arg + 1 }, (_, index) => float(index === arg ? value : 0))
  return [{ event: `osc ${quoted} ${numbers.join(' ')}`, after: 0 }]
}

/** A number as OSC's float: without a point it would be an integer. */
function float(value: number): string {
  return Number.isInteger(value) ? value.toFixed(1) : String(value)
}

/** A number or a name, of a range or a list the first; `null` for something else. */
function first(value: unknown): string | null {
  const one: unknown = Array.isArray(value) ? value[0] : value
  if (typeof one === 'number') return String(one)
  const name = typeof one === 'string' ? one.split('..')[0]?.trim() : undefined
  return name ? name.replace(/\s+/g, '_') : null
}

/** The highest value of a range; `usual` if there is none. */
function highest(range: unknown, usual: number): number {
  return Array.isArray(range) && typeof range[1] === 'number' ? range[1] : usual
}
