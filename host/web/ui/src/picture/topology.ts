// How things hang together: ports, the bindings that they are of, and the mappings that name those.

import type { BindingStatus, DiscoveredPort } from '../api/types'

/** A binding, or a port without one, between its ports and its mappings. */
export interface TopologyRow<M = unknown> {
  /** What its events have as their device. */
  device: string
  /** The ports, as they are called. None is there of a binding that waits for its device. */
  ports: { name: string; direction: 'input' | 'output' }[]
  /** `null` for a port without a binding. */
  binding: BindingStatus | null
  /** What the mappings are called that name it, as a source or as a target. */
  mappings: string[]
  /** Those whose trigger waits for it alone. */
  from: M[]
}

/** A mapping, as far as it names devices. */
interface Mapped {
  place: string
  mapping: Record<string, unknown>
}

/** Names within an action or feedback that are followed, so deep. */
const MAX_DEPTH = 12
const NAMING = new Set(['device', 'target'])
const SENT_TO = new Set(['target'])

/** The devices that a mapping names anywhere, by one of these keys. */
function named(value: unknown, into: Set<string>, keys = NAMING, depth = 0): Set<string> {
  if (typeof value !== 'object' || value === null || depth > MAX_DEPTH) return into
  for (const [key, one] of Object.entries(value)) {
    if (typeof one === 'string' && keys.has(key)) into.add(one)
    else named(one, into, keys, depth + 1)
  }
  return into
}

/** The MIDI bindings of which no output is there. */
export function unreachable(bindings: readonly BindingStatus[]): ReadonlySet<string> {
  return new Set(bindings.filter(({ protocol, output }) => protocol === 'midi' && output && output.state !== 'bound').map(({ alias }) => alias))
}

/** Those of these to which a mapping sends. */
export function sentTo(mapping: Record<string, unknown>, devices: ReadonlySet<string>): string[] {
  if (devices.size === 0) return []
  return [...named([mapping['action'], mapping['feedback']], new Set(), SENT_TO)].filter((target) => devices.has(target))
}

/** What a mapping is called. */
export function called({ place, mapping }: Mapped): string {
  return typeof mapping['name'] === 'string' ? mapping['name'] : place
}

/** What hangs together, and what nothing is there of. */
export interface Topology<M> {
  /** Every binding in its order, then the inputs without one. */
  rows: TopologyRow<M>[]
  /** What the mappings are called that hear every device, and these. */
  everywhere: string[]
  any: M[]
  /** Mappings that wait for a device that is none of those, by its name. */
  missing: { device: string; from: M[] }[]
}

/** How bindings, ports and mappings hang together. */
export function topology<M extends Mapped>(bindings: readonly BindingStatus[], ports: readonly DiscoveredPort[], mappings: readonly M[]): Topology<M> {
  const names = new Map<string, string[]>()
  const from = new Map<string, M[]>()
  const any: M[] = []
  for (const mapping of mappings) {
    for (const device of named(mapping.mapping, new Set())) put(names, device, called(mapping))
    const hears = (mapping.mapping['trigger'] as Record<string, unknown> | undefined)?.['device']
    if (typeof hears === 'string') put(from, hears, mapping)
    else any.push(mapping)
  }
  const take = (device: string) => {
    const found = from.get(device) ?? []
    from.delete(device)
    return { mappings: names.get(device) ?? [], from: found }
  }
  const rows: TopologyRow<M>[] = bindings.map((binding) => ({
    device: binding.alias, binding, ...take(binding.alias),
    ports: (['input', 'output'] as const).flatMap((direction) => (binding[direction]?.ports ?? []).map((name) => ({ name, direction }))),
  }))
  for (const port of ports) {
    if (port.direction !== 'input' || port.binding !== null) continue
    rows.push({ device: port.device, ports: [{ name: port.label, direction: 'input' }], binding: null, ...take(port.device) })
  }
  return { rows, everywhere: any.map(called), any, missing: [...from].map(([device, from]) => ({ device, from })) }
}

function put<T>(lists: Map<string, T[]>, key: string, value: T): void {
  const list = lists.get(key)
  if (list) list.push(value)
  else lists.set(key, [value])
}
