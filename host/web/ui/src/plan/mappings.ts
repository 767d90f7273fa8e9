// The mappings that a plan sets, in the words that people have for them.

import { type ControlNames, controlName, mappingInWords } from '../mapping/sentence'

interface Change {
  path: string[]
  value?: unknown
}

/** A mapping of a plan: whether any device fires it, else which; or a device that is there and has a name for its control; and what it does. */
export interface PlannedMapping {
  isAny: boolean
  device: string | null
  what: string
}

/** Mappings that are said. */
const MOST = 3

function isTable(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** Whether a plan changes what controls do. */
export function changesMappings(changes: readonly Change[]): boolean {
  return changes.some(({ path }) => path[0] === 'modes' || path[0] === 'global_mappings')
}

/**
 * The first mappings that are set as a whole, by the names that their controls have on their devices: of one that waits for any device, on
 * the first of `devices` that has a name for it.
 */
export function mappingsIn(changes: readonly Change[], devices: readonly string[], namesOf: (device: string) => ControlNames): PlannedMapping[] {
  const mappings = changes.map(({ value }) => value).filter(isTable).filter(({ trigger, action }) => isTable(trigger) && isTable(action))
  return mappings.slice(0, MOST).map((mapping) => {
    const trigger = mapping['trigger'] as Record<string, unknown>
    const own = typeof trigger['device'] === 'string' ? trigger['device'] : null
    const named = (own === null ? devices : [own]).find((device) => controlName(trigger, namesOf(device)) !== null)
    return { isAny: own === null, device: own ?? named ?? null, what: mappingInWords(mapping, named === undefined ? undefined : namesOf(named)) }
  })
}
