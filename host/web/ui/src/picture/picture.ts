// Pictures of devices: which controls there are and where they are drawn. From a profile of the library where one is
// known, else from what was heard.

import { type EventParts, noteName, parseEvent } from '../stream/event-text'

/** How a control is drawn. */
export type Shape = 'pad' | 'key' | 'fader' | 'knob' | 'button'

/** A control of a picture. */
export interface PictureControl {
  /** What its events have as their `control`. */
  key: string
  name: string
  shape: Shape
  /** An event of it, as the host writes them. */
  event: string
  /** Row and column, from 1, where its place is known. */
  at: [number, number] | null
  /** How its light is set, where that is known. */
  light: DeviceLight | null
}

/** A device, drawn. */
export interface Picture {
  title: string
  /** Whether it is drawn from a profile; else from what was heard. */
  isKnown: boolean
  rows: number
  columns: number
  /** Controls with a place, then those of each shape that have none. */
  placed: PictureControl[]
  loose: { shape: Shape; controls: PictureControl[] }[]
}

/** What `conductor_get_device_profile` answers, as far as it is drawn. */
export interface DeviceProfile {
  id: string
  vendor: string
  name: string
  /** Rows and columns. */
  layout?: [number, number] | null
  /** The first is the one that the device is in as it comes. */
  modes?: { name: string }[]
  lights?: DeviceLight[]
  series: {
    kind: string
    controls: string[]
    places?: ([number, number] | null)[] | null
    /** The modes that it is for; none is all. */
    modes?: string[]
    light?: string | null
  }[]
}

/** How lights of a device are set. */
export interface DeviceLight {
  id: string
  /** What sets it, with the control's number: `note`, `cc`, `sysex` or `osc`. */
  message: string
  /** Where it is not the control's. */
  channel?: number | null
  /** `red = 5` */
  values: string[]
}

/** Controls that are drawn, at most. */
const MAX_CONTROLS = 400
/** Rows and columns that are drawn, at most. */
const MAX_SIDE = 40
const ORDER: Shape[] = ['pad', 'button', 'knob', 'fader', 'key']

const SHAPES: Record<string, Shape> = {
  pad: 'pad', key: 'key', fader: 'fader', crossfader: 'fader', slider: 'fader', wheel: 'fader', pedal: 'fader', strip: 'fader',
  knob: 'knob', encoder: 'knob', dial: 'knob', stick: 'knob', jog: 'knob', trigger: 'fader',
}

/** A full event of a control, made of its message: `note 36 ch 9` is of `note-on 36 100 ch 9`. `null` if none is known. */
export function eventOf(message: string): string | null {
  const [, kind, rest = '', channel = ''] = /^(\S+)(?: (.*?))?( ch \d+)?$/.exec(message.trim()) ?? []
  switch (kind) {
    case 'note':
      return `note-on ${rest} 100${channel}`
    case 'cc':
      return `cc ${rest} 64${channel}`
    case 'program':
      return `program ${rest}${channel}`
    case 'poly-aftertouch':
      return `poly-aftertouch ${rest} 64${channel}`
    case 'aftertouch':
      return `aftertouch 64${channel}`
    case 'pitch-bend':
      return `pitch-bend 8192${channel}`
    case 'gamepad-button':
      return `gamepad-button ${rest} down`
    case 'gamepad-stick':
      return `gamepad-stick ${rest} 0.5`
    case 'gamepad-trigger':
      return `gamepad-trigger ${rest} 0.5`
    case 'osc':
      return `osc ${rest} 1.0`
    default:
      return null
  }
}

/** The picture of a profile. */
export function pictureOf(profile: DeviceProfile): Picture {
  const controls: PictureControl[] = []
  const first = profile.modes?.[0]?.name
  for (const series of profile.series) {
    // What it sends in another mode is of the same controls, at the same places.
    if (first !== undefined && series.modes && series.modes.length > 0 && !series.modes.includes(first)) continue
    const light = profile.lights?.find((one) => one.id === series.light) ?? null
    series.controls.forEach((text, index) => {
      if (controls.length >= MAX_CONTROLS) return
      const split = text.lastIndexOf(': ')
      if (split < 0) return
      const event = eventOf(text.slice(split + 2))
      if (!event) return
      const at = series.places?.[index] ?? null
      controls.push({
        key: parseEvent(event).control, name: text.slice(0, split), shape: SHAPES[series.kind] ?? 'button', event,
        at: at && at[0] >= 1 && at[1] >= 1 && at[0] <= MAX_SIDE && at[1] <= MAX_SIDE ? at : null, light,
      })
    })
  }
  const [rows, columns] = profile.layout ?? [0, 0]
  return arranged(`${profile.vendor} ${profile.name}`, true, { rows, columns }, controls)
}

/** The picture of what was heard of a device: a keyboard of its notes, a bank of its faders. */
export function heardPicture(title: string, heard: Iterable<{ parts: EventParts; text: string; name: string | null }>): Picture {
  const controls: PictureControl[] = []
  for (const { parts, text, name } of heard) {
    const shape = heardShape(parts)
    if (!shape || controls.length >= MAX_CONTROLS) continue
    controls.push({ key: parts.control, name: name ?? heardName(parts), shape, event: pressing(parts, text), at: null, light: null })
  }
  controls.sort((one, other) => {
    const number = (control: PictureControl) => parseEvent(control.event).number ?? 0
    return number(one) - number(other) || one.key.localeCompare(other.key)
  })
  return arranged(title, false, { rows: 0, columns: 0 }, controls)
}

function arranged(title: string, isKnown: boolean, layout: { rows: number; columns: number }, controls: PictureControl[]): Picture {
  const placed = controls.filter((control) => control.at !== null)
  const rest = controls.filter((control) => control.at === null)
  const most = (which: 0 | 1) => Math.max(0, ...placed.map((control) => control.at?.[which] ?? 0))
  return {
    title, isKnown, placed,
    rows: Math.min(Math.max(layout.rows, most(0)), MAX_SIDE), columns: Math.min(Math.max(layout.columns, most(1)), MAX_SIDE),
    loose: ORDER.map((shape) => ({ shape, controls: rest.filter((control) => control.shape === shape) })).filter((group) => group.controls.length > 0),
  }
}

/** A release is an event of a key, but what is wanted of it is its press. */
function pressing(parts: EventParts, text: string): string {
  if (parts.kind !== 'note-off' && parts.kind !== 'poly-aftertouch') return text
  return `note-on ${parts.number} 100${parts.channel ? ` ch ${parts.channel}` : ''}`
}

function heardShape(parts: EventParts): Shape | null {
  switch (parts.kind) {
    case 'note-on':
    case 'note-off':
    case 'poly-aftertouch':
      return 'key'
    case 'cc':
    case 'pitch-bend':
    case 'aftertouch':
    case 'artnet':
    case 'gamepad-trigger':
      return 'fader'
    case 'osc':
      return parts.level === null ? 'button' : 'fader'
    case 'gamepad-stick':
      return 'knob'
    case 'gamepad-button':
    case 'key':
    case 'program':
      return 'button'
    default:
      return null
  }
}

function heardName(parts: EventParts): string {
  switch (parts.kind) {
    case 'note-on':
    case 'note-off':
    case 'poly-aftertouch':
      return noteName(parts.number ?? 0)
    case 'cc':
      return `CC ${parts.number}`
    case 'osc':
      return parts.address ?? ''
    case 'artnet':
      return `${parts.universe}:${parts.number}`
    case 'gamepad-button':
      return `B${parts.number}`
    case 'key':
      return `K${parts.number}`
    case 'gamepad-stick':
    case 'gamepad-trigger':
      return `A${parts.number}`
    default:
      return parts.kind
  }
}

/** Whether a note's key is a black one. */
export function isBlack(control: PictureControl): boolean {
  const note = parseEvent(control.event).number
  return note !== null && [1, 3, 6, 8, 10].includes(note % 12)
}
