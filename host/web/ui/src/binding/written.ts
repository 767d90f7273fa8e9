// What of a binding is written in the configuration, as the host's tools say it.

import { tool } from '../api/client'
import type { DiscoveredPort } from '../api/types'
import type { BatchChange } from '../mapping/batch'
import { matcherOf, type WrittenEnds } from './ports'

/** What is written of a binding, with the keys that `conductor_update_device_identity` changes. */
export type Written = Record<string, unknown> & WrittenEnds

interface ListedBindings {
  bindings: { alias: string; written?: Written | null }[]
  /** How many there are, if more than these. */
  total?: number
}

/** What is written of a binding, which is on one of the pages of the list. */
export async function writtenOf(alias: string): Promise<Written | undefined> {
  let total = 1
  for (let after = 0; after < total; ) {
    const { result } = await tool<ListedBindings>('conductor_list_device_bindings', { after })
    const found = result.bindings.find((one) => one.alias === alias)
    if (found || result.bindings.length === 0) return found?.written ?? undefined
    after += result.bindings.length
    total = result.total ?? 0
  }
  return undefined
}

interface Section {
  entries?: { place: string; value?: unknown }[] | null
  /** How many there are, if more than these. */
  total?: number | null
}

/**
 * Where a binding is written, such as `bindings/2`, and what it says; `null` if it is in an older form, which has another place.
 */
export async function placeOf(alias: string): Promise<{ place: string; says: Record<string, unknown> } | null> {
  let total = 1
  for (let after = 0; after < total; ) {
    const { result } = await tool<Section>('conductor_get_config', { section: 'bindings', after })
    const entries = result.entries ?? []
    for (const { place, value } of entries) {
      const says = (value ?? {}) as Record<string, unknown>
      if (says['alias'] === alias) return { place, says }
    }
    if (entries.length === 0) return null
    after += entries.length
    total = result.total ?? 0
  }
  return null
}

/**
 * What binds this output to a binding, so that it comes along with other changes. `null` where another one is written, unless this
 * one `isChosen`; and where it can't be told how to, as of a binding in an older form.
 */
export async function outputChange(alias: string, port: DiscoveredPort, isChosen: boolean): Promise<BatchChange | null> {
  const found = await placeOf(alias).catch(() => null)
  if (!found || (found.says['output'] !== undefined && !isChosen)) return null
  return { path: `${found.place}/output`, value: { matchers: [matcherOf(port)] } }
}
