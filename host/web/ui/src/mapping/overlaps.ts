// Which mappings wait for some of the same events, by the place of each.

import type { Overlaps, PlacedMapping } from '../api/types'

/** Another mapping that waits for some of the same events, as one mapping sees it. */
export interface Overlapping {
  /** Its name, or its place if it has none. */
  name: string
  /** An event that both wait for, as the host writes it; `null` if it writes none. */
  event: string | null
  /** Whether both fire for it, or one keeps it from the other. */
  which: 'both' | 'keeps' | 'is-kept'
}

/** The mappings that each one overlaps with. `isTwin` says of which two it is known already that they have the same trigger. */
export function overlapsByPlace(overlaps: Overlaps, isTwin: (one: string, other: string) => boolean): Map<string, Overlapping[]> {
  const found = new Map<string, Overlapping[]>()
  const add = (of: PlacedMapping, other: PlacedMapping, event: string | null, which: Overlapping['which']) => {
    const all = found.get(of.place) ?? []
    all.push({ name: other.name ?? other.place, event, which })
    found.set(of.place, all)
  }
  for (const { first, second, event, consumed } of overlaps.overlaps) {
    if (isTwin(first.place, second.place)) continue
    add(first, second, event, consumed ? 'keeps' : 'both')
    add(second, first, event, consumed ? 'is-kept' : 'both')
  }
  return found
}
