// The colour of a device: the same for the same name, everywhere and on every visit.

/** Colours that there are. */
const COLOURS = 8

/** The class that has a device's colour. */
export function colour(device: string): string {
  let hash = 2166136261
  for (const character of device) hash = Math.imul(hash ^ (character.codePointAt(0) ?? 0), 16777619) >>> 0
  return `device-${hash % COLOURS}`
}
