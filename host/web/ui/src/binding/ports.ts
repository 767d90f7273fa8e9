// Which ports a binding could have that it has not: by direction, by what they speak, and by how alike names are.

import type { BindingStatus, DiscoveredPort } from '../api/types'

/** What of a binding is written, as far as its ports go. `null` is what is not written, or in an older form. */
export interface WrittenEnds {
  matchers?: unknown[] | null
  input?: Record<string, unknown> | null
  output?: Record<string, unknown> | null
}

/** Characters of a name that are compared. */
const MAX_COMPARED = 120
/** Words that tell the two directions of one device apart, and nothing else. */
const WAYS = new Set(['in', 'out', 'input', 'output', 'capture', 'playback'])

/** Whether a device is there and nothing can be sent to it: its binding has no output, or none that is there. */
export function lacksOutput({ protocol, health, input, output }: BindingStatus): boolean {
  if (protocol !== 'midi' || health === 'off') return false
  return output === null || (output.state !== 'bound' && input?.state === 'bound')
}

/** The outputs that no binding has, the one whose name is the most like that of the binding's input first. */
export function outputsFor({ alias, input }: BindingStatus, ports: readonly DiscoveredPort[]): DiscoveredPort[] {
  const name = input?.ports[0] ?? alias
  const free = ports.filter(({ direction, protocol, binding, state }) => direction === 'output' && protocol === 'midi' && binding === null && state !== 'ignored')
  return byLikeness(free, name, ({ label }) => label)
}

/** The output that is chosen for a binding, by its label: no two ports have the same. Until one is, the first of those that are offered. */
export function outputFor(binding: BindingStatus, ports: readonly DiscoveredPort[], picked: string | null): DiscoveredPort | null {
  const offered = outputsFor(binding, ports)
  return offered.find(({ label }) => label === picked) ?? offered[0] ?? null
}

/** A binding that an input without one is to have, as far as an output is looked for. */
export function bindingToBe(alias: string, port: DiscoveredPort): BindingStatus {
  const input = { state: 'bound' as const, ports: [port.label], matched_by: null, problem: null }
  return { alias, protocol: port.protocol, health: 'green', input, output: null, muted: false, help: null }
}

/** The bindings whose input is not there and that this input could be, the one whose name is the most like its own first. */
export function awayFor(port: DiscoveredPort, bindings: readonly BindingStatus[]): BindingStatus[] {
  if (port.direction !== 'input' || port.binding !== null || port.state === 'ignored') return []
  const away = bindings.filter(({ protocol, health, input }) => protocol === port.protocol && health !== 'off' && input?.state === 'unbound')
  return byLikeness(away, port.label, ({ alias }) => alias)
}

/** What tells a port, as a configuration has it: what no other port has, or its whole name. */
export function matcherOf(port: DiscoveredPort): unknown {
  return port.told_apart_by ?? { type: 'exact_name', value: port.name }
}

/**
 * What of a binding is to be otherwise so that this input is its, too. What told its input before is kept, and its output stays as
 * it is: where one of the two directions is said, the matchers are those of both and not of each.
 */
export function inputToo(port: DiscoveredPort, written: WrittenEnds | undefined): Record<string, unknown> {
  const input = written?.input
  const own = input?.['matchers']
  const matcher = matcherOf(port)
  if (input && Array.isArray(own)) return { input: { ...input, matchers: [matcher, ...(own as unknown[])] } }
  const matchers = [matcher, ...(written?.matchers ?? [])]
  return written?.output ? { matchers, output: written.output } : { matchers }
}

/** How alike two names are, 0 to 1: the pairs of characters that both have. */
export function likeness(one: string, other: string): number {
  const [these, those] = [pairs(one), pairs(other)]
  const left = [...those]
  for (const pair of these) {
    const at = left.indexOf(pair)
    if (at >= 0) left.splice(at, 1)
  }
  const all = these.length + those.length
  return all === 0 ? 0 : (2 * (those.length - left.length)) / all
}

function pairs(name: string): string[] {
  const words = name.slice(0, MAX_COMPARED).toLowerCase().split(/[^\p{L}\p{N}]+/u)
  const text = words.filter((word) => word && !WAYS.has(word)).join(' ')
  return Array.from({ length: Math.max(0, text.length - 1) }, (_, at) => text.slice(at, at + 2))
}

function byLikeness<T>(all: readonly T[], name: string, called: (one: T) => string): T[] {
  const rated = all.map((one) => ({ one, alike: likeness(name, called(one)) }))
  return rated.toSorted((a, b) => b.alike - a.alike).map(({ one }) => one)
}
