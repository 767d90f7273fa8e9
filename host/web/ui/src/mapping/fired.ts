// Which mappings a rule that fired is of. The event stream describes a rule by its name and its action, or, where it has no
// name, by its action alone; a place in the configuration it does not say.

import { words } from '../stream/event-text'

/** A mapping, as far as it is needed here. */
interface Mapped {
  place: string
  mode?: string | null
  mapping: Record<string, unknown>
}

/** A mapping, and what tells it from others with the same name or action. */
interface Known {
  place: string
  mode: string | null
  /** The only device that it waits for. */
  device: string | null
  isNamed: boolean
  waits: Waits
  /** What the stream says of its action, where more of it than its type is known. */
  said: string | null
}

/** What a trigger waits for, as far as it tells events apart here. */
interface Waits {
  /** Words that events begin with; empty if events of several kinds begin and end it. */
  kinds: readonly string[]
  numbers: [number, number] | null
  address: string | null
}

/** Mappings with one name, or of one action. */
interface Group {
  /** Those that wait for one control, by the first words of its events. */
  exact: Map<string, Known[]>
  /** The others. */
  rest: Known[]
}

/** Parentheses in a rule's text at which its name may end; a name with more of them is not found. */
const MAX_ENDS = 32
/** Mappings that are looked at for one event: with more alike, the others stay dark. */
const MAX_LOOKED = 256
/** Numbers of a range that are looked up one by one. */
const MAX_RANGE = 128

const KINDS: Record<string, readonly string[]> = {
  note: ['note-on', 'note-off'], noterange: ['note-on', 'note-off'], velocityrange: ['note-on', 'note-off'],
  cc: ['cc'], programchange: ['program'], pitchbend: ['pitch-bend'], aftertouch: ['aftertouch'], polyaftertouch: ['poly-aftertouch'],
  oscmessage: ['osc'], oscpattern: ['osc'], oscargrange: ['osc'],
  gamepadbutton: ['gamepad-button'], gamepadanalogstick: ['gamepad-stick'], gamepadtrigger: ['gamepad-trigger'],
  key: ['key'], artnetchannel: ['artnet'], sysex: ['sysex'], variable: ['variable'], beat: ['beat'], bar: ['beat'], transport: ['transport'],
}

/** The mappings that there are, found by what the stream says of their rules. */
export class FiredMappings {
  readonly #named = new Map<string, Group>()
  readonly #unnamed = new Map<string, Group>()

  constructor(mappings: readonly Mapped[]) {
    for (const { place, mode, mapping } of mappings) {
      const { name } = mapping
      const trigger = object(mapping['trigger'])
      const action = object(mapping['action'])
      const { device } = trigger
      const type = String(action['type'] ?? '').split(':').at(-1) ?? ''
      const known: Known = {
        place, mode: mode ?? null, device: typeof device === 'string' ? device : null, isNamed: typeof name === 'string', waits: waits(trigger),
        said: type === 'ModeChange' && typeof action['mode'] === 'string' ? `ModeChange to ${action['mode']}` : null,
      }
      if (typeof name === 'string') put(this.#named, name, known)
      else put(this.#unnamed, type, known)
    }
  }

  /**
   * The places of the mappings that a rule which fired for an event is of. Of several that can't be told apart, those that are
   * for the active mode or for every mode, if there are such.
   */
  meant(rule: string, device: string, event: string, mode: string | null): string[] {
    const [kind = '', first = ''] = words(event.slice(0, 1024))
    const group = this.#group(rule)
    if (!group) return []
    const found: Known[] = []
    let looked = 0
    for (const known of [group.exact.get(`${kind} ${first}`), group.rest]) {
      for (const one of known ?? []) {
        looked += 1
        if (looked > MAX_LOOKED) break
        if (one.device !== null && one.device !== device) continue
        if (!one.isNamed && (!mayBe(one.waits, kind, first) || (one.said !== null && one.said !== rule))) continue
        found.push(one)
      }
    }
    const active = found.filter((one) => one.mode === null || one.mode === mode)
    return (active.length > 0 ? active : found).map((one) => one.place)
  }

  #group(rule: string): Group | undefined {
    // A name may have a parenthesis, and so may what an action does.
    let end = rule.indexOf(' (')
    for (let ends = 0; end >= 0 && ends < MAX_ENDS; ends += 1) {
      const named = this.#named.get(rule.slice(0, end))
      if (named) return named
      end = rule.indexOf(' (', end + 1)
    }
    return this.#unnamed.get(/^[^ :]*/.exec(rule)?.[0] ?? '')
  }
}

function object(value: unknown): Record<string, unknown> {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {}
}

function put(groups: Map<string, Group>, key: string, known: Known): void {
  let group = groups.get(key)
  if (!group) {
    group = { exact: new Map(), rest: [] }
    groups.set(key, group)
  }
  const { kinds, numbers, address } = known.waits
  const [low, high] = numbers ?? [0, -1]
  // A name is enough: it may be that of a rule with another trigger than is known here.
  if (known.isNamed || (numbers === null && address === null) || kinds.length === 0 || high - low >= MAX_RANGE) {
    group.rest.push(known)
    return
  }
  const controls = address !== null ? [address] : Array.from({ length: high - low + 1 }, (_, index) => String(low + index))
  for (const kind of kinds) {
    for (const control of controls) {
      const key = `${kind} ${control}`
      const alike = group.exact.get(key)
      if (alike) alike.push(known)
      else group.exact.set(key, [known])
    }
  }
}

function waits(trigger: Record<string, unknown>): Waits {
  const kind = String(trigger['type'] ?? '').replaceAll('_', '').toLowerCase()
  const { address } = trigger
  let numbers: Waits['numbers'] = null
  for (const key of ['note', 'cc', 'program']) numbers ??= range(trigger[key])
  return { kinds: KINDS[kind] ?? [], numbers, address: typeof address === 'string' && !/[*?[{]/.test(address) ? address : null }
}

/** A number, or `36..51`; `null` where there are names. */
function range(value: unknown): [number, number] | null {
  if (typeof value === 'number') return [value, value]
  if (typeof value !== 'string') return null
  const [, low, high] = /^\s*(-?\d+)\s*(?:\.\.\s*(-?\d+)\s*)?$/.exec(value) ?? []
  return low === undefined ? null : [Number(low), Number(high ?? low)]
}

function mayBe({ kinds, numbers, address }: Waits, kind: string, first: string): boolean {
  if (kinds.length === 0) return true
  if (!kinds.includes(kind)) return false
  const number = /^-?\d+$/.test(first) ? Number(first) : null
  if (numbers !== null && number !== null && (number < numbers[0] || number > numbers[1])) return false
  return address === null || kind !== 'osc' || address === first
}
