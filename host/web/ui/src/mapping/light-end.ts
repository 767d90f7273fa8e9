// Releases that do nothing but end a light: the host says that the rule of the mapping fires, though its action is for presses alone.

import { t } from '../text'

/** A mapping, as far as it is needed here. */
interface Mapped {
  place: string
  mode?: string | null
  mapping: Record<string, unknown>
}

/** One change of a plan. */
interface Change {
  path: readonly string[]
  value?: unknown
}

/** Rules that only ended a light, with the names of their mappings, which are empty where these have none. */
export type LightEnds = ReadonlyMap<string, string>

/** Triggers of notes that a light can follow until the note ends. */
const OF_NOTES = new Set(['note', 'noterange', 'velocityrange'])

/** Whether the words of an event are those of a note that ends. */
export function isRelease([kind, , velocity]: readonly string[]): boolean {
  return kind === 'note-off' || (kind === 'note-on' && velocity === '0')
}

/** Whether a release only ends the light of this mapping. Not where its trigger or its action is about releases, too. */
export function onlyEndsLight(mapping: Record<string, unknown>): boolean {
  const [trigger, action, feedback] = [table(mapping['trigger']), table(mapping['action']), table(mapping['feedback'])]
  if (feedback['while_held'] !== true) return false
  if (!OF_NOTES.has(String(trigger['type']).replaceAll('_', '').toLowerCase())) return false
  if (trigger['on'] !== undefined && trigger['on'] !== null && trigger['on'] !== 'press') return false
  // What a branch does is not known here.
  const type = String(action['type'] ?? '').split(':').at(-1)
  return type !== undefined && type !== '' && type !== 'MidiForward' && type !== 'Conditional' && action['stroke'] !== 'hold'
}

/** What is said of a rule that fired. A plan says of one that it changes that it is `changed`. */
export function ruleInWords(rule: string, ends: LightEnds): string {
  const name = ends.get(rule)
  if (name === undefined) return rule
  const changed = rule.endsWith(CHANGED) ? CHANGED : ''
  return `${name ? `${name} (${t('stream.light-ends')})` : t('stream.light-ends')}${changed}`
}

/** What the host adds to a rule's text in a plan. */
export const CHANGED = ', changed'

/**
 * The mappings that a plan leaves; `null` where its changes are others than whole mappings and their lights. What waits for a
 * binding that the plan makes waits for any device here: its events are told by the name that the device has so far.
 */
export function planned(all: readonly Mapped[], changes: readonly Change[], modes: readonly string[]): Mapped[] | null {
  const after = new Map(all.map((one) => [one.place, one]))
  const bound = new Set<unknown>()
  for (const { path, value } of changes) {
    const [first, which, list] = path
    if (first === 'bindings') bound.add(table(value)['alias'])
    if (first !== 'global_mappings' && first !== 'modes') continue
    const inMode = first === 'modes'
    if (inMode && list !== 'mappings') return null
    const depth = inMode ? 4 : 2
    const mode = inMode ? modes[Number(which)] : null
    const place = path.slice(0, depth).join('/')
    const before = after.get(place)
    if (mode === undefined) return null
    if (path.length === depth && isTable(value)) after.set(place, { place, mode, mapping: value })
    else if (path.length === depth + 1 && path[depth] === 'feedback' && before) after.set(place, { ...before, mapping: { ...before.mapping, feedback: value } })
    else return null
  }
  return [...after.values()].map((one) => {
    const trigger = table(one.mapping['trigger'])
    const { device, ...rest } = trigger
    return device !== undefined && bound.has(device) ? { ...one, mapping: { ...one.mapping, trigger: rest } } : one
  })
}

function isTable(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function table(value: unknown): Record<string, unknown> {
  return isTable(value) ? value : {}
}
