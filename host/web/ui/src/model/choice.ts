// Which of the models that an API has are offered.

import type { AvailableModel } from '../api/types'

/** Models that are offered at once. */
export const MOST = 30

/** Those with this part in their name, the ones whose limits and prices are known first, and how many more there are. */
export function offered(models: readonly AvailableModel[], part: string): { shown: AvailableModel[]; left: number } {
  const wanted = part.trim().toLowerCase()
  const all = models.filter((model) => model.name.toLowerCase().includes(wanted))
  const sorted = all.toSorted((one, other) => Number(other.declared) - Number(one.declared))
  return { shown: sorted.slice(0, MOST), left: Math.max(all.length - MOST, 0) }
}

/** The context that has to be written down: what the API says of a model of which the feature knows none. */
export function contextOf(models: readonly AvailableModel[], name: string): number | null {
  const model = models.find((one) => one.name === name)
  return model && !model.declared ? (model.context ?? null) : null
}
