// What happens now: the rows of the event stream, how often each device is heard, and where its controls stand.

import type { Protocol, StreamItem } from '../api/types'
import { FiredMappings } from '../mapping/fired'
import { FilteredHistory, type Ring } from '../stream/history'
import { channelName } from '../stream/event-fields'
import { type EventParts, parseEvent } from '../stream/event-text'
import { type Heard, Rates } from '../stream/rates'
import type { Mapping } from './host.svelte'

/** A row of the event stream. */
export interface Row {
  /** Rises with each row. */
  id: number
  kind: Exclude<StreamItem['kind'], 'chat' | 'lights'>
  /** Nanoseconds since the host started; `null` where the host says none. */
  at: number | null
  device: string
  text: string
  /** Of an event. */
  parts: EventParts | null
  control: string | null
  rules: string[]
  trouble: boolean
}

/** What the rows are narrowed to. Empty texts and `null` let everything through. */
export interface Filter {
  text: string
  devices: ReadonlySet<string>
  /** Only events of devices that have a binding, or of those that have none. */
  link: 'linked' | 'unlinked' | ''
  protocol: Protocol | ''
  /** Only events of this kind, such as `note-on`. */
  kind: string
  /** Only events of this MIDI channel, 0 to 15. */
  channel: number | null
  /** Only events that no rule fired for. */
  unmapped: boolean
  /** Only what went wrong. */
  trouble: boolean
}

/** Where a control stands. */
export interface ControlState {
  /** 0 to 1. */
  level: number
  /** Whether it is held down. */
  pressed: boolean
  /** When it was last moved, by the page's clock in milliseconds. */
  hit: number
  parts: EventParts
  /** What it is called, if its device's profile is known. */
  name: string | null
  /** Its last event, as the host wrote it. */
  text: string
}

/** A mapping that fired. */
export interface Fired {
  /** By the page's clock, in milliseconds. */
  at: number
  device: string
}

/** Rows that are kept. */
export const MAX_ROWS = 10_000
/** Mappings of which it is remembered when they fired. */
const MAX_FIRED = 2000
/** Devices whose controls are remembered, and controls of one. */
const MAX_PICTURES = 64
const MAX_CONTROLS = 256

/** The row of an item; `null` for what has its place elsewhere. */
export function rowOf(item: StreamItem, id: number): Row | null {
  const row: Row = {
    id, kind: item.kind as Row['kind'], at: null, device: '', text: '', parts: null, control: null, rules: [], trouble: false,
  }
  switch (item.kind) {
    case 'event':
      return { ...row, at: item.at, device: item.device, text: item.event, parts: parseEvent(item.event), control: item.control ?? null, rules: item.rules }
    case 'failure':
      return { ...row, at: item.at, device: item.worker, text: item.reason, rules: [item.rule], trouble: true }
    case 'mode':
      return { ...row, text: item.mode }
    case 'message':
      return { ...row, device: item.feature, text: item.text, trouble: item.sink === 'alert' }
    case 'port':
    case 'reload':
      return { ...row, text: item.text, trouble: item.trouble }
    case 'plan':
      return { ...row, device: item.who, text: item.description, rules: [item.step] }
    case 'lock':
      return { ...row, device: item.by, text: item.locked ? 'locked' : 'unlocked' }
    case 'model':
      return { ...row, device: item.model, text: item.error ?? '', trouble: item.error !== null }
    case 'gap':
      return { ...row, text: item.lost === null ? '' : String(item.lost), trouble: true }
    default:
      return null
  }
}

/** A filter that lets everything through. */
export const EVERYTHING: Filter = { text: '', devices: new Set(), link: '', protocol: '', kind: '', channel: null, unmapped: false, trouble: false }

/** Whether a row is let through; `null` if every row is. */
export function passes(filter: Filter, isUnbound: (device: string) => boolean): ((row: Row) => boolean) | null {
  const { text, devices, link, protocol, kind, channel, unmapped, trouble } = filter
  const wanted = text.trim().toLowerCase()
  if (!wanted && devices.size === 0 && !link && !protocol && !kind && channel === null && !unmapped && !trouble) return null
  return (row) => {
    if (trouble && !row.trouble) return false
    if (devices.size > 0 && !devices.has(row.device)) return false
    if (link && (row.kind !== 'event' || isUnbound(row.device) !== (link === 'unlinked'))) return false
    if (protocol && row.parts?.protocol !== protocol) return false
    if (kind && row.parts?.kind !== kind) return false
    if (channel !== null && row.parts?.channel !== channel) return false
    if (unmapped && (row.kind !== 'event' || row.rules.length > 0)) return false
    if (!wanted) return true
    const shownAs = row.parts?.channel == null ? '' : channelName(row.parts.channel)
    return [row.device, row.text, row.control ?? '', shownAs, ...row.rules].some((part) => part.toLowerCase().includes(wanted))
  }
}

class Live {
  /** Rises with every frame in which something came; what is drawn from the fields below depends on it. */
  frame = $state(0)
  /** What is shown while it is paused. */
  paused = $state.raw<Ring<Row> | null>(null)
  filter = $state.raw<Filter>(EVERYTHING)
  /** Whether a device has no binding. */
  isUnbound: (device: string) => boolean = () => false
  readonly rows = new FilteredHistory<Row>(MAX_ROWS)
  readonly #rates = new Rates()
  readonly #fired = new Map<string, Fired>()
  readonly #pictures = new Map<string, Map<string, ControlState>>()
  #mappings = new FiredMappings([])
  #mode: string | null = null
  #ids = 0
  #lastRow: Row | null = null

  /** Other mappings are in force: their places may be those of others by now. */
  map(mappings: readonly Mapping[]): void {
    this.#mappings = new FiredMappings(mappings)
    this.#fired.clear()
  }

  /** This mode is active. */
  enter(mode: string | null): void {
    this.#mode = mode
  }

  /** Takes what came since the last frame. */
  take(items: StreamItem[], now: number): void {
    for (const item of items) {
      if (item.kind === 'mode') this.enter(item.mode)
      const row = rowOf(item, this.#ids)
      if (!row) continue
      this.#ids += 1
      this.rows.push(row)
      if (row.parts) {
        this.#rates.count(row.device, row.parts.kind, now)
        this.#move(row, row.parts, now)
        for (const rule of row.rules) {
          for (const place of this.#mappings.meant(rule, row.device, row.text, this.#mode)) this.#fire(place, { at: now, device: row.device })
        }
        this.#lastRow = row
      }
    }
    this.frame += 1
  }

  /** The rows that are to be drawn: those that were there when it was paused, or all. */
  get ring(): Ring<Row> {
    return this.paused ?? this.rows.shown
  }

  pause(): void {
    this.paused = this.rows.frozen()
  }

  resume(): void {
    this.paused = null
  }

  narrow(filter: Filter): void {
    this.filter = filter
    this.rows.filter(passes(filter, this.isUnbound))
    if (this.paused) this.pause()
    this.frame += 1
  }

  clear(): void {
    this.rows.clear()
    if (this.paused) this.pause()
    this.frame += 1
  }

  /** The newest event. */
  get lastEvent(): Row | null {
    return this.#lastRow
  }

  heard(now: number): Heard[] {
    return this.#rates.at(now)
  }

  /** When a device was heard last, by the page's clock in milliseconds; `undefined` if it never was. */
  lastOf(device: string): number | undefined {
    return this.#rates.last(device)
  }

  /** The controls of a device that were moved, by what tells them apart. */
  controls(device: string): ReadonlyMap<string, ControlState> {
    return this.#pictures.get(device) ?? new Map()
  }

  /** When the mapping at this place fired last, and for whose event. */
  fired(place: string): Fired | undefined {
    return this.#fired.get(place)
  }

  #fire(place: string, fired: Fired): void {
    if (!this.#fired.has(place) && this.#fired.size >= MAX_FIRED) this.#fired.delete(this.#fired.keys().next().value as string)
    this.#fired.set(place, fired)
  }

  #move(row: Row, parts: EventParts, now: number): void {
    let controls = this.#pictures.get(row.device)
    if (!controls) {
      if (this.#pictures.size >= MAX_PICTURES) this.#pictures.delete(this.#pictures.keys().next().value as string)
      controls = new Map()
      this.#pictures.set(row.device, controls)
    }
    const known = controls.get(parts.control)
    if (!known && controls.size >= MAX_CONTROLS) return
    // Pressure on a key that is held is no new press.
    const pressed = parts.pressed ?? (known?.pressed ?? false)
    controls.set(parts.control, {
      level: parts.level ?? (parts.pressed ? 1 : 0), pressed, hit: now, parts, name: row.control, text: row.text,
    })
  }
}

export const live = new Live()
