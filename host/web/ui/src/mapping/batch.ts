// Changes to many mappings at once, as one plan makes them: one after the other, so that each place is meant as it is then.

/** One change of a plan: a path from the top, and what is to be there. Without a value, what is there is removed. */
export interface BatchChange {
  path: string
  value?: unknown
}

/** A mapping and where it stands, such as `modes/0/mappings/3`. */
interface Placed {
  place: string
  mapping: Record<string, unknown>
}

/** The list that a place is in: `modes/0/mappings` for `modes/0/mappings/3`. */
function listOf(place: string): string {
  return place.slice(0, place.lastIndexOf('/'))
}

/** The list of a mode's mappings, by the mode's number; of the mappings of every mode for `null`. */
export function listOfMode(mode: number | null): string {
  return mode === null ? 'global_mappings' : `modes/${mode}/mappings`
}

/** Removes what is at these places, from behind, so that no place moves before its turn. */
export function removals(places: readonly string[]): BatchChange[] {
  return places.toSorted((one, other) => other.localeCompare(one, 'en', { numeric: true })).map((path) => ({ path }))
}

/**
 * Moves the mappings at `places` behind the last one of `list`, in the order that they stand in. Those that are in the list
 * already stay where they are: no change at all if that is all of them.
 */
export function moves(all: readonly Placed[], places: ReadonlySet<string>, list: string): BatchChange[] {
  const moved = all.filter((one) => places.has(one.place) && listOf(one.place) !== list)
  // None of them is taken from this list, so its length stays.
  const end = all.filter((one) => listOf(one.place) === list).length
  const added = moved.map((one, index) => ({ path: `${list}/${end + index}`, value: one.mapping }))
  return [...removals(moved.map((one) => one.place)), ...added]
}

/** Has the mappings at `places` wait for this device alone; for any with `null`. No change for those that do already. */
export function fromDevice(all: readonly Placed[], places: ReadonlySet<string>, device: string | null): BatchChange[] {
  const of = ({ mapping }: Placed) => (mapping['trigger'] as { device?: unknown } | undefined)?.device ?? null
  return all
    .filter((one) => places.has(one.place) && of(one) !== device)
    .map(({ place }) => ({ path: `${place}/trigger/device`, ...(device === null ? {} : { value: device }) }))
}
