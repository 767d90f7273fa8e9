// Which mappings wait for a control of a picture, so that it can be marked: by the numbers and addresses that triggers name.

import type { EventParts } from '../stream/event-text'
import { isNamed, numberOf } from './lights'

/** A mapping, as far as controls go. */
interface Mapped {
  mode?: string | null
  mapping: Record<string, unknown>
}

/** Numbers of a range that are looked up one by one: no control has a higher one than that of a DMX channel. */
const MAX_RANGE = 512

/** Keys of triggers that name controls by their numbers, and what these controls are. */
const NUMBERED: [key: string, control: string][] = [
  ['note', 'note'], ['notes', 'note'], ['cc', 'cc'], ['program', 'program'], ['button', 'button'], ['buttons', 'button'],
  ['key', 'key'], ['keys', 'key'], ['axis', 'axis'], ['trigger', 'trigger'], ['dmx_channel', 'dmx'],
]
/** Kinds of events by what their control is called here, where that is not their own name. */
const CONTROLS: Record<string, string> = {
  'note-on': 'note', 'note-off': 'note', 'poly-aftertouch': 'note', 'gamepad-button': 'button', 'gamepad-stick': 'axis', 'gamepad-trigger': 'trigger', artnet: 'dmx',
}

/**
 * The mappings of this device and of any device, in this mode and in every mode, found by the control that they wait for. One that
 * names its control by a word (`"south"`) or by a pattern is not found.
 */
export class MappedControls<M extends Mapped> {
  readonly #found = new Map<string, M[]>()

  constructor(all: readonly M[], device: string, mode: string | null | undefined) {
    for (const one of all) {
      if (one.mode && one.mode !== mode) continue
      const trigger = one.mapping['trigger'] as Record<string, unknown> | null | undefined
      if (typeof trigger !== 'object' || trigger === null) continue
      if (trigger['device'] !== undefined && trigger['device'] !== device) continue
      for (const control of controlsOf(trigger)) {
        const alike = this.#found.get(control)
        if (alike) alike.push(one)
        else this.#found.set(control, [one])
      }
    }
  }

  /** Those that wait for the control that an event is of. */
  of(parts: EventParts): M[] {
    const kind = CONTROLS[parts.kind] ?? parts.kind
    const which = kind === 'osc' ? parts.address : parts.number
    const found = this.#found.get(which === null ? kind : `${kind} ${which}`) ?? []
    return found.filter(({ mapping }) => {
      const trigger = mapping['trigger'] as Record<string, unknown>
      if (kind === 'dmx') return (trigger['universe'] ?? 0) === parts.universe
      return parts.channel === null || isNamed(trigger['channel'], parts.channel)
    })
  }
}

/** The controls that a trigger names: `note 36`, `osc /go`, `pitch-bend`. */
function controlsOf(trigger: Record<string, unknown>): Set<string> {
  const type = String(trigger['type'] ?? '').replaceAll('_', '').toLowerCase()
  if (type === 'pitchbend') return new Set(['pitch-bend'])
  if (type === 'aftertouch') return new Set(['aftertouch'])
  if (type === 'noterange') return new Set(numbers([`${String(trigger['note_min'])}..${String(trigger['note_max'])}`]).map((number) => `note ${number}`))
  const { address } = trigger
  if (typeof address === 'string') return new Set([`osc ${address}`])
  return new Set(NUMBERED.flatMap(([key, control]) => numbers([trigger[key]].flat()).map((number) => `${control} ${number}`)))
}

function numbers(written: readonly unknown[]): number[] {
  return written.flatMap((one) => {
    const [from, to = from] = String(one ?? '').split('..')
    const [least, most] = [numberOf(from), numberOf(to)]
    if (least === null || most === null) return []
    return Array.from({ length: Math.min(Math.max(0, most - least + 1), MAX_RANGE) }, (_, index) => least + index)
  })
}
