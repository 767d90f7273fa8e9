// How things hang together: ports, the bindings that they are of, and the mappings that name those.

import type { BindingStatus, DiscoveredPort } from '../api/types'

/** A binding, or a port without one, between its ports and its mappings. */
export interface TopologyRow {
  /** What its events have as their device. */
  device: string
  /** The ports, as they are called. None is there of a binding that waits for its device. */
  ports: { name: string; direction: 'input' | 'output' }[]
  /** `null` for a port without a binding. */
  binding: BindingStatus | null
  /** What the mappings are called that name it, as a source or as a target. */
  mappings: string[]
}

/** A mapping, as far as it names devices. */
interface Mapped {
  place: string
  mapping: Record<string, unknown>
}

/** Names within an action or feedback that are followed, so deep. */
const MAX_DEPTH = 12
const NAMING = new Set(['device', 'target'])

/** The devices that a mapping names anywhere. */
function named(value: unknown, into: Set<string>, depth = 0): Set<string> {
  if (typeof value !== 'object' || value === null || depth > MAX_DEPTH) return into
  for (const [key, one] of Object.entries(value)) {
    if (typeof one === 'string' && NAMING.has(key)) into.add(one)
    else named(one, into, depth + 1)
  }
  return into
}

/** What a mapping is called. */
function called({ place, mapping }: Mapped): string {
  return typeof mapping['name'] === 'string' ? mapping['name'] : place
}

/** Every binding in its order, then the inputs without one; and what the mappings are called that hear every device. */
export function topology(bindings: readonly BindingStatus[], ports: readonly DiscoveredPort[], mappings: readonly Mapped[]): { rows: TopologyRow[]; everywhere: string[] } {
  const known = mappings.map((one) => ({ name: called(one), devices: named(one.mapping, new Set()), hears: (one.mapping['trigger'] as Record<string, unknown> | undefined)?.['device'] }))
  const of = (device: string) => known.filter(({ devices }) => devices.has(device)).map(({ name }) => name)
  const rows: TopologyRow[] = bindings.map((binding) => ({
    device: binding.alias, binding, mappings: of(binding.alias),
    ports: (['input', 'output'] as const).flatMap((direction) => (binding[direction]?.ports ?? []).map((name) => ({ name, direction }))),
  }))
  for (const port of ports) {
    if (port.direction !== 'input' || port.binding !== null) continue
    rows.push({ device: port.device, ports: [{ name: port.label, direction: 'input' }], binding: null, mappings: of(port.device) })
  }
  return { rows, everywhere: known.filter(({ hears }) => hears === undefined || hears === null).map(({ name }) => name) }
}
