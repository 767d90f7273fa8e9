// What the tools that learn tell of a control that was moved: its trigger, and those of what else was done with it.

import { parseEvent } from '../stream/event-text'
import { type TriggerChoice, triggersFor } from './trigger'

/** What `conductor_stop_learn` answers, as far as it is used here. */
export interface Learned {
  /** The last one moved first. */
  controls: LearnedControl[]
}

/** A control that was moved. */
export interface LearnedControl {
  /** A binding's alias, or a port's own name. */
  device: string
  /** What it is: `fader`, `key`. */
  kind: string
  /** What speaks for that. */
  evidence: string[]
  /** Its last event, as the stream has it. */
  last: string
  /** A trigger for it, as a line of the configuration. */
  toml: string
  /** What else was done with it. */
  gestures: { kind: string; evidence: string; toml: string }[]
}

/** Gestures that there are texts for. A layer of velocities is one of several, so it is not what was meant before others. */
const GESTURES = new Set(['long-press', 'double-tap', 'chord', 'velocity-layer'])

/**
 * The trigger of a line such as `trigger = { channel = 9, note = 36, type = "Note" }`, whose values are JSON; `null` if it is none.
 */
export function triggerOf(toml: string): Record<string, unknown> | null {
  const inside = /^\s*trigger\s*=\s*\{(.*)\}\s*$/s.exec(toml)?.[1]
  if (inside === undefined) return null
  const trigger: Record<string, unknown> = {}
  // A key, and a value up to the comma that ends it: strings and what is in brackets have commas of their own.
  const entry = /\s*([A-Za-z0-9_-]+)\s*=\s*((?:"(?:[^"\\]|\\.)*"|\[[^\]]*\]|[^,"[\]])+?)\s*(?:,|$)/gsy
  for (let read = 0; read < inside.length; read = entry.lastIndex) {
    if (!inside.slice(read).trim()) break
    entry.lastIndex = read
    const [, key, value] = entry.exec(inside) ?? []
    if (key === undefined || value === undefined) return null
    try {
      trigger[key] = JSON.parse(value)
    } catch {
      return null
    }
  }
  return typeof trigger['type'] === 'string' ? trigger : null
}

/**
 * The ways to wait for a control that was learned, without its device: what was done with it first, then the control as it was
 * recognized, then the other ways to wait for its last event.
 */
export function waysOf(control: LearnedControl): TriggerChoice[] {
  const ways: TriggerChoice[] = []
  const add = (way: TriggerChoice['way'], trigger: Record<string, unknown> | null) => {
    if (!trigger) return
    const { device: _, ...rest } = trigger
    if (!ways.some((one) => alike(one.trigger, rest))) ways.push({ way, trigger: rest })
  }
  const gestures = control.gestures.filter(({ kind }) => GESTURES.has(kind))
  const isLayer = ({ kind }: { kind: string }) => kind === 'velocity-layer'
  const usual = triggersFor(control.last, parseEvent(control.last))
  for (const { kind, toml } of gestures.filter((one) => !isLayer(one))) add(kind as TriggerChoice['way'], triggerOf(toml))
  const recognized = triggerOf(control.toml)
  if (recognized) {
    const { device: _, ...rest } = recognized
    add(usual.find(({ trigger }) => alike(trigger, rest))?.way ?? 'recognized', recognized)
  }
  for (const { toml } of gestures.filter(isLayer)) add('velocity-layer', triggerOf(toml))
  for (const { way, trigger } of usual) add(way, trigger)
  return ways
}

/** Whether two triggers are the same, whatever the order of their keys. */
function alike(one: Record<string, unknown>, other: Record<string, unknown>): boolean {
  const sorted = (value: Record<string, unknown>) => JSON.stringify(Object.entries(value).toSorted(([a], [b]) => (a < b ? -1 : 1)))
  return sorted(one) === sorted(other)
}
