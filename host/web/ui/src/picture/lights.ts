// Lights of a drawn device: what a control's light can show and shows now, which mappings it shows, and what a choice changes.

import type { Light } from '../api/types'
import type { BatchChange } from '../mapping/batch'
import type { EventParts } from '../stream/event-text'
import type { DeviceLight } from './picture'

/** When a light shows something of a mapping: while it waits, and from when it has fired. */
export type LightState = 'idle' | 'fired'

/** Something that a light can show, as its device calls it; by the number alone where nothing is known. */
export interface LightValue {
  name: string
  /** 0 to 127. */
  value: number
}

/** A mapping, as far as lights go. */
interface Mapped {
  place: string
  mode?: string | null
  mapping: Record<string, unknown>
}

/** Triggers that are for one note, and those that are for one controller. */
const OF_NOTES = new Set(['Note', 'VelocityRange', 'LongPress', 'DoubleTap'])
const OF_CONTROLLERS = new Set(['CC', 'EncoderTurn'])
const STEPS: Record<string, number> = { C: 0, D: 2, E: 4, F: 5, G: 7, A: 9, B: 11 }

/** What is chosen for a light: a value, nothing, or what is written by hand, which stays. */
export type LightChoice = number | null | 'hand'

/**
 * An event of the control that a trigger is of, if a light can show its mapping: of a note or controller, the first where it is for
 * several. `null` for what has no light.
 */
export function lightEventOf(trigger: Record<string, unknown>): string | null {
  const type = String(trigger['type'])
  const key = OF_NOTES.has(type) ? 'note' : OF_CONTROLLERS.has(type) ? 'cc' : null
  if (key === null || trigger['on'] === 'release') return null
  const number = numberOf(typeof trigger[key] === 'string' ? trigger[key].split('..')[0] : trigger[key])
  const channel = numberOf(trigger['channel']) ?? 0
  return number === null ? null : key === 'note' ? `note-on ${number} 100 ch ${channel}` : `cc ${number} 64 ch ${channel}`
}

/** The light of a control whose device is not known: what every light takes. */
export function anyLight(parts: EventParts): DeviceLight {
  return { id: '', message: parts.kind === 'cc' ? 'cc' : 'note', channel: null, values: ['off = 0', '1 = 1', '32 = 32', '64 = 64', '96 = 96', '127 = 127'] }
}

/** What a light can show; the first is what turns it off, where that is known. Empty for what no message of MIDI sets. */
export function lightValues(light: DeviceLight): LightValue[] {
  if (light.message !== 'note' && light.message !== 'cc') return []
  const values = light.values.flatMap((text) => {
    const [, name, value] = /^(.*) = (\d+)$/.exec(text) ?? []
    return name && Number(value) <= 127 ? [{ name, value: Number(value) }] : []
  })
  return [...values.filter(({ name }) => name === 'off'), ...values.filter(({ name }) => name !== 'off')]
}

/** What a light shows now. */
export interface ShownLight {
  /** As its device calls it; the number where that has no name. */
  name: string
  /** As CSS has it. */
  colour: string
  isDim: boolean
  blinks: boolean
  /** Whether it blinks without its name saying so: the host has it go on and off. */
  isSwitched: boolean
}

/** Colours by the words that profiles have for them. */
const COLOURS = new Map([
  ['red', '#e5322d'], ['orange', '#f57c00'], ['amber', '#ffb300'], ['yellow', '#f9e000'], ['green', '#22b14c'], ['cyan', '#19c5d9'],
  ['blue', '#2b6cff'], ['purple', '#8e44dd'], ['violet', '#8e44dd'], ['magenta', '#e03fd8'], ['pink', '#ff5fa8'], ['white', '#ffffff'],
])
/** Of a light whose colour is not known. */
const ANY_COLOUR = '#ffd98a'
const DIM = new Set(['dim', 'half', 'low'])
const BLINKING = new Set(['blinking', 'blink', 'flashing', 'flash', 'pulsing', 'pulse'])

/** What tells lights of a device apart. */
function lightKey(message: string, number: number | null, channel: number): string {
  return `${message} ${number} ${channel}`
}

/** What the lights of a device were set to, by what tells them apart. */
export function lightStates(lights: readonly Light[]): ReadonlyMap<string, Light> {
  return new Map(lights.map((one) => [lightKey(one.message, one.number, one.channel), one]))
}

/** What the light of a control shows; `null` if it is dark, or nothing was sent to it. */
export function shownLight(light: DeviceLight, parts: EventParts, states: ReadonlyMap<string, Light>): ShownLight | null {
  const state = states.get(lightKey(light.message, parts.number, light.channel ?? parts.channel ?? 0))
  if (!state) return null
  const named = lightValues(light).find(({ value }) => value === state.value)
  if (named ? named.name === 'off' : state.value === 0) return null
  const name = named?.name ?? String(state.value)
  const words = wordsOf(name)
  // "on" is in the colour that the light is called by.
  const colour = [...words, ...(named ? wordsOf(light.id) : [])].map((word) => COLOURS.get(word)).find((one) => one !== undefined)
  const blinksByName = words.some((word) => BLINKING.has(word))
  return {
    name, colour: colour ?? ANY_COLOUR, isDim: words.some((word) => DIM.has(word)),
    blinks: blinksByName || state.blinks, isSwitched: state.blinks && !blinksByName,
  }
}

function wordsOf(name: string): string[] {
  return name.toLowerCase().split(/[^a-z]+/).filter(Boolean)
}

/** A number as a configuration writes it: `36`, `"36"`, `"C4"` (60), `"ch10"` (9); `null` for what is none. */
export function numberOf(written: unknown): number | null {
  if (typeof written === 'number') return written
  if (typeof written !== 'string') return null
  const text = written.trim()
  if (/^\d+$/.test(text)) return Number(text)
  const [, channel] = /^ch(\d+)$/i.exec(text) ?? []
  if (channel) return Number(channel) - 1
  const [, letter = '', sign = '', octave] = /^([A-G])([#b]?)(-?\d)$/i.exec(text) ?? []
  const step = STEPS[letter.toUpperCase()]
  if (step === undefined || octave === undefined) return null
  return step + (sign === '#' ? 1 : sign === 'b' ? -1 : 0) + (Number(octave) + 1) * 12
}

/** Whether what a trigger names is this number: one number, a range such as `"36..51"`, or any where it names none. */
export function isNamed(written: unknown, number: number | null): boolean {
  if (written === undefined || written === null) return true
  if (number === null) return false
  const [from, to = from] = String(written).split('..')
  const [least, most] = [numberOf(from), numberOf(to)]
  return least !== null && most !== null && least <= number && number <= most
}

/** The mappings that are for this control of this device, in the mode that is active: each by its press, turn or hold. */
export function mappingsOf<M extends Mapped>(all: readonly M[], device: string, parts: EventParts, mode: string | null | undefined): M[] {
  return all.filter(({ mode: of, mapping }) => {
    if (of && of !== mode) return false
    const trigger = mapping['trigger'] as Record<string, unknown> | undefined
    if (typeof trigger !== 'object' || trigger === null || trigger['on'] === 'release') return false
    if (trigger['device'] !== undefined && trigger['device'] !== device) return false
    const type = String(trigger['type'])
    const key = OF_NOTES.has(type) ? 'note' : OF_CONTROLLERS.has(type) ? 'cc' : null
    const sends = parts.kind === 'cc' ? 'cc' : parts.kind.startsWith('note') ? 'note' : null
    return key !== null && key === sends && trigger[key] !== undefined && isNamed(trigger[key], parts.number) && isNamed(trigger['channel'], parts.channel)
  })
}

/** The value that a mapping has its light show; `null` for nothing, `undefined` for a message that was written by hand. */
export function shownOf(mapping: Record<string, unknown>, state: LightState): number | null | undefined {
  const feedback = mapping['feedback'] as Record<string, Record<string, unknown>> | undefined
  const message = feedback?.[state]
  if (!message) return null
  const value = message['message_type'] === 'CC' ? message['value'] : message['velocity']
  return typeof value === 'number' ? value : undefined
}

/** What a light is to show: `null` is nothing, and what is `undefined` stays. */
export interface LightWish extends Record<LightState, number | null | undefined> {
  /** Whether it is lit only for as long as the control of the mapping is held. */
  held: boolean
}

/**
 * The changes that have a mapping's light show this. The message has the control's own number; that of the event where the mapping
 * is for several. What is lit while its control is held is dark while it waits, where nothing else is wished.
 */
export function lightChanges(
  { place, mapping }: Pick<Mapped, 'place' | 'mapping'>, device: string, parts: EventParts, light: DeviceLight, { held, ...wish }: LightWish,
): BatchChange[] {
  const trigger = mapping['trigger'] as Record<string, unknown>
  const key = light.message === 'cc' ? 'cc' : 'note'
  const sends = parts.kind === 'cc' ? 'cc' : 'note'
  // The number of a note in a message is the trigger's own where both are notes, so that a range is lit as a whole.
  const isRange = key === sends && String(trigger[key]).includes('..')
  const number = isRange ? `{${key}}` : parts.number
  const channel = light.channel ?? parts.channel ?? 0
  const ends = held && wish.fired !== null && canHold(mapping)
  const off = lightValues(light).find(({ name }) => name === 'off')?.value ?? 0
  const wanted = { idle: ends && wish.idle === null ? off : wish.idle, fired: wish.fired }
  const { while_held: heldBefore, ...before } = (mapping['feedback'] ?? {}) as Record<string, unknown>
  const after: Record<string, unknown> = { ...before }
  for (const state of ['idle', 'fired'] as const) {
    const value = wanted[state]
    if (value === undefined) continue
    if (value === null) delete after[state]
    else after[state] = key === 'cc' ? { message_type: 'CC', channel, cc: number, value } : { message_type: 'NoteOn', channel, note: number, velocity: value }
  }
  const path = `${place}/feedback`
  // What a key says stays without a light; whose lights they are does not.
  if (after['idle'] === undefined && after['fired'] === undefined && after['text'] === undefined) return mapping['feedback'] === undefined ? [] : [{ path }]
  if (trigger['device'] === undefined) after['target'] ??= device
  if (ends) after['while_held'] = true
  return isSame(after, heldBefore ? { ...before, while_held: heldBefore } : before) ? [] : [{ path, value: after }]
}

/** Whether two tables have the same values, in whatever order their keys are. */
function isSame(one: Record<string, unknown>, other: Record<string, unknown>): boolean {
  const sorted = (table: Record<string, unknown>) => JSON.stringify(Object.entries(table).sort(([a], [b]) => (a < b ? -1 : 1)))
  return sorted(one) === sorted(other)
}

/** Whether the light of a mapping can end as its control is let go: of a note that fires it with its press. */
export function canHold(mapping: Record<string, unknown>): boolean {
  const trigger = mapping['trigger'] as Record<string, unknown> | undefined
  return (trigger?.['type'] === 'Note' || trigger?.['type'] === 'VelocityRange') && trigger['on'] !== 'release'
}

/** Whether the light of a mapping is lit only for as long as its control is held. */
export function isHeld(mapping: Record<string, unknown>): boolean {
  return (mapping['feedback'] as Record<string, unknown> | undefined)?.['while_held'] === true
}
