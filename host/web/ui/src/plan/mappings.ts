// The mappings that a plan sets, in the words that people have for them.

import { type ControlNames, controlName, mappingInWords } from '../mapping/sentence'

interface Change {
  path: string[]
  value?: unknown
}

/** A mapping of a plan, and what it does. */
export interface PlannedMapping {
  /** Whether any device fires it. */
  isAny: boolean
  /** The device that its control is named by. */
  device: string
  what: string
}

/** Mappings that are said, and devices that are asked for a name of a control that any device may have. */
const MOST = 3
const MOST_DEVICES = 8

function isTable(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** Whether a plan changes what controls do. */
export function changesMappings(changes: readonly Change[]): boolean {
  return changes.some(({ path }) => path[0] === 'modes' || path[0] === 'global_mappings')
}

/** The mappings that are set as a whole, the first ones. */
function first(changes: readonly Change[]): Record<string, unknown>[] {
  const tables = changes.map(({ value }) => value).filter(isTable)
  return tables.filter(({ trigger, action }) => isTable(trigger) && isTable(action)).slice(0, MOST)
}

function ownDevice(mapping: Record<string, unknown>): string | null {
  const { device } = mapping['trigger'] as Record<string, unknown>
  return typeof device === 'string' ? device : null
}

/** The devices whose names say what the mappings do: those that these wait for; of one for any device, the first of `inputs`. */
export function devicesIn(changes: readonly Change[], inputs: readonly string[]): string[] {
  return [...new Set(first(changes).flatMap((mapping) => ownDevice(mapping) ?? inputs.slice(0, MOST_DEVICES)))]
}

/**
 * The first mappings that are set as a whole, by the names that their controls have on their devices: of one that waits for any device, on
 * the first of `devices` that has a name for it. One whose control has no name is left out: the plan's title says as much.
 */
export function mappingsIn(changes: readonly Change[], devices: readonly string[], namesOf: (device: string) => ControlNames): PlannedMapping[] {
  return first(changes).flatMap((mapping) => {
    const trigger = mapping['trigger'] as Record<string, unknown>
    const own = ownDevice(mapping)
    const device = (own === null ? devices : [own]).find((device) => controlName(trigger, namesOf(device)) !== null)
    return device === undefined ? [] : [{ isAny: own === null, device, what: mappingInWords(mapping, namesOf(device)) }]
  })
}
