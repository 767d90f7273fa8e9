// Triggers and actions as people say them: the control by its name, notes and channels by theirs, then how it is used or what is
// done. What there are no words for is a line with its type and its keys.

import { numberOf } from '../picture/lights'
import { channelName } from '../stream/event-fields'
import { noteName } from '../stream/event-text'
import { t } from '../text'

type Table = Record<string, unknown>

/** What controls of a device are called, by what their events have as their `control`: `note 36 9`. */
export type ControlNames = ReadonlyMap<string, string>

/** Actions within an action that are said, and how deep they are followed. */
const MOST_SAID = 4
const MAX_DEPTH = 4
/** The usual time that a key is held for a long press, in milliseconds, and the usual number of taps. */
const LONG_PRESS_MS = 500
const TAPS = 2
const NO_NAMES: ControlNames = new Map()

function table(value: unknown): Table {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Table) : {}
}

/** A type without what may differ in how it is written: a feature's name, underscores, capitals. */
function kindOf({ type }: Table): string {
  return (String(type ?? '').split(':').at(-1) ?? '').replaceAll('_', '').toLowerCase()
}

function text(value: unknown): string {
  return typeof value === 'string' ? value : (JSON.stringify(value) ?? '')
}

/** Several of something: `a, b`. */
function listed(value: unknown, one: (value: unknown) => string = text): string {
  return [value].flat().map(one).join(', ')
}

/** A number or name, or a range of them: `C2`, `C2–D♯3`. */
function ranged(value: unknown, one: (number: number) => string): string {
  const parts = String(value ?? '').split('..').map((part) => part.trim())
  return parts.map((part) => (numberOf(part) === null ? part : one(numberOf(part) ?? 0))).join('–')
}

function note(value: unknown): string {
  return ranged(value, noteName)
}

function channel(value: unknown): string {
  return ranged(value, channelName)
}

/** The least and the most of what is looked for: ` (64–127)`; nothing where all is. */
function bounds(value: unknown): string {
  return Array.isArray(value) ? ` (${value.map(text).join('–')})` : ''
}

/** What a trigger looks at, without its device: `Note C2, ch10`. `null` for a trigger that is of no control. */
function control(trigger: Table): string | null {
  const of = (name: string) => (trigger['channel'] === undefined ? name : `${name}, ${channel(trigger['channel'])}`)
  const held = () => {
    if (trigger['note'] !== undefined) return of(`${t('field.note')} ${note(trigger['note'])}`)
    if (trigger['button'] !== undefined) return `${t('field.button')} ${text(trigger['button'])}`
    return trigger['key'] === undefined ? null : `${t('field.key')} ${text(trigger['key'])}`
  }
  switch (kindOf(trigger)) {
    case 'note':
    case 'velocityrange':
    case 'polyaftertouch':
    case 'longpress':
    case 'doubletap':
    case 'gamepadbutton':
    case 'key':
      return held()
    case 'noterange':
      return of(`${t('field.note')} ${note(trigger['note_min'])}–${note(trigger['note_max'])}`)
    case 'notechord':
      return of(`${t('field.note')} ${listed(trigger['notes'], note)}`)
    case 'gamepadbuttonchord':
      return `${t('field.button')} ${listed(trigger['buttons'])}`
    case 'keychord':
      return `${t('field.key')} ${listed(trigger['keys'])}`
    case 'cc':
    case 'encoderturn':
      return of(`${t('field.controller')} ${ranged(trigger['cc'], String)}`)
    case 'programchange':
      return of(`${t('field.program')} ${ranged(trigger['program'], String)}`)
    case 'pitchbend':
      return of(t('when.pitch-bend'))
    case 'aftertouch':
      return of(t('field.pressure'))
    case 'sysex':
      return `SysEx ${text(trigger['prefix'])}`
    case 'oscmessage':
    case 'oscargrange':
      return text(trigger['address'])
    case 'oscpattern':
      return text(trigger['pattern'])
    case 'gamepadanalogstick':
      return `${t('field.axis')} ${text(trigger['axis'])}`
    case 'gamepadtrigger':
      return `${t('field.axis')} ${text(trigger['trigger'])}`
    case 'artnetchannel':
      return `${t('field.dmx-channel')} ${text(trigger['universe'] ?? 0)}:${text(trigger['dmx_channel'])}`
    default:
      return null
  }
}

/** How that is used. The words are those that a new mapping offers. */
function use(trigger: Table): string {
  switch (kindOf(trigger)) {
    case 'note':
    case 'noterange':
    case 'gamepadbutton':
    case 'key': {
      const on = trigger['on']
      return `${t(on === 'release' ? 'way.release' : on === 'both' ? 'when.both' : 'way.press')}${bounds(trigger['velocity_range'])}`
    }
    case 'velocityrange':
      return `${t('way.velocity-layer')}${bounds([trigger['min'] ?? 0, trigger['max'] ?? 127])}`
    case 'longpress': {
      const held = trigger['duration_ms'] ?? LONG_PRESS_MS
      return held === LONG_PRESS_MS ? t('way.long-press') : t('when.held', { ms: text(held) })
    }
    case 'doubletap': {
      const taps = trigger['taps'] ?? TAPS
      return taps === TAPS ? t('way.double-tap') : t('when.taps', { taps: text(taps) })
    }
    case 'notechord':
    case 'gamepadbuttonchord':
    case 'keychord':
      return t('way.chord')
    case 'cc': {
      const range = trigger['value_range']
      return text(range) === '[64,127]' ? t('way.upper-half') : `${t('way.move')}${bounds(range)}`
    }
    case 'encoderturn':
      return t('way.turn')
    case 'programchange':
      return t('way.program')
    case 'sysex':
    case 'oscmessage':
    case 'oscpattern':
      return t('way.message')
    case 'oscargrange': {
      const { arg = 0, min, max } = trigger as { arg?: unknown; min?: unknown; max?: unknown }
      if (arg === 0 && min === 0.5 && max === 1) return t('way.half')
      return t('when.argument', { which: text(typeof arg === 'number' ? arg + 1 : arg), min: text(min), max: text(max) })
    }
    default:
      return `${t('way.move')}${bounds(trigger['value_range'])}`
  }
}

/** What its device calls the one control of a trigger; `null` where it is of several, or that is not known. */
export function controlName(trigger: Table, names: ControlNames): string | null {
  if (names.size === 0) return null
  if (typeof trigger['address'] === 'string') return names.get(`osc ${trigger['address']}`) ?? null
  for (const [key, kind] of [['note', 'note'], ['cc', 'cc'], ['button', 'button']] as const) {
    const number = numberOf(trigger[key])
    if (number === null) continue
    if (kind === 'button') return names.get(`button ${number}`) ?? null
    const of = numberOf(trigger['channel'])
    if (of !== null) return names.get(`${kind} ${number} ${of}`) ?? null
    if (trigger['channel'] !== undefined) return null
    return [...names].find(([known]) => known.startsWith(`${kind} ${number} `))?.[1] ?? null
  }
  return null
}

/** The control that a trigger is of, by its name if its device gives it one: `pad 1`, else `Note C2, ch10`. */
export function controlInWords(trigger: Table, names: ControlNames = NO_NAMES): string {
  return controlName(trigger, names) ?? control(trigger) ?? String(trigger['type'] ?? '')
}

/** When a mapping fires: `pad 1 (Note C2, ch10), from pads only, when it is pressed`. */
export function whenInWords(value: unknown, names: ControlNames = NO_NAMES): string {
  const trigger = table(value)
  const what = control(trigger)
  if (what === null) return asLine(value)
  const name = controlName(trigger, names)
  const of = name === null || name === what ? what : `${name} (${what})`
  const from = typeof trigger['device'] === 'string' ? [t('map.from-this', { device: trigger['device'] })] : []
  return [of, ...from, use(trigger)].join(', ')
}

/** What a mapping does: `sends /verse to 127.0.0.1:9000`. */
export function doesInWords(value: unknown, depth = 0): string {
  const action = table(value)
  const said = (key: string) => text(action[key])
  const within = (one: unknown) => (depth < MAX_DEPTH ? doesInWords(one, depth + 1) : '…')
  switch (kindOf(action)) {
    case 'oscsend':
      return t('does.send', { what: said('address'), target: listed(action['target']) })
    case 'sendmidi':
      return t('does.send', { what: message(action), target: said('target') })
    case 'midiforward':
      return t('does.forward', { target: said('target') })
    case 'keystroke':
      return t('does.keys', { keys: [action['modifiers'] ?? [], action['keys'] ?? []].flat().map(text).join('+') })
    case 'text':
      return t('does.text', { text: said('text') })
    case 'modechange':
      return t('does.mode', { mode: said('mode') })
    case 'nextmode':
      return t('does.next-mode')
    case 'previousmode':
      return t('does.previous-mode')
    case 'launch':
      return t('does.start', { what: said('app') })
    case 'shell':
      return t('does.start', { what: said('command') })
    case 'setvariable':
      return t('does.set', { variable: said('variable'), value: said('value') })
    case 'togglevariable':
      return t('does.toggle', { variable: said('variable') })
    case 'addtovariable':
      return t('does.add', { variable: said('variable'), by: said('by') })
    case 'delay':
      return action['ms'] === undefined ? asLine(value) : t('does.wait', { ms: said('ms') })
    case 'suppress':
      return t('does.nothing')
    case 'repeat':
      return t('does.repeat', { count: said('count'), what: within(action['action']) })
    case 'sequence': {
      const actions = Array.isArray(action['actions']) ? action['actions'] : []
      const more = actions.length > MOST_SAID ? [t('mappings.overlap-more', { count: actions.length - MOST_SAID })] : []
      return [...actions.slice(0, MOST_SAID).map(within), ...more].join('; ')
    }
    case 'conditional':
      return action['else'] === undefined
        ? t('does.if', { what: within(action['then']) })
        : t('does.if-else', { what: within(action['then']), otherwise: within(action['else']) })
    default:
      return asLine(value)
  }
}

/** Ways of use that go without saying. */
const USUAL = new Set(['way.press', 'way.move', 'way.message', 'way.program'] as const)

/** What a mapping makes of its control, as a sentence begins: `Pad 1 sends /verse to 127.0.0.1:9000`. */
export function mappingInWords(mapping: Table, names: ControlNames = NO_NAMES): string {
  const [trigger, action] = [table(mapping['trigger']), mapping['action']]
  const [does, used] = [doesInWords(action), use(trigger)]
  const isUsual = control(trigger) === null || [...USUAL].some((key) => t(key) === used)
  const subject = isUsual ? controlInWords(trigger, names) : `${controlInWords(trigger, names)}, ${used}`
  const said = `${subject}${isUsual && does !== asLine(action) ? ' ' : ': '}${does}`
  return said.charAt(0).toUpperCase() + said.slice(1)
}

/** A MIDI message that is sent: `NoteOn C2 100, ch10`. */
function message(action: Table): string {
  const { message_type: type, note: struck, cc, program, value, velocity, pressure, bytes } = action
  const number = struck === undefined ? (cc ?? program) : note(struck)
  const words = [type, number, value ?? velocity ?? pressure, bytes].filter((one) => one !== undefined).map(text)
  return `${words.join(' ')}${bytes === undefined ? `, ${channel(action['channel'] ?? 0)}` : ''}`
}

/** What there are no words for: its type, then its keys, with channels by their names. */
function asLine(value: unknown): string {
  if (typeof value !== 'object' || value === null) return String(value)
  const { type, ...rest } = value as Table
  const keys = Object.entries(rest).map(([key, one]) => (key === 'channel' ? channel(one) : `${key} ${text(one)}`))
  return [String(type ?? ''), ...keys].join(' · ')
}

/** What a mapping is called: its name or its description, else its trigger and its action in words. */
export function calledInWords(mapping: Table, names: ControlNames = NO_NAMES): string {
  const { name, description, trigger, action } = mapping
  const said = [name, description].find((text): text is string => typeof text === 'string' && text.trim() !== '')
  return said ?? `${whenInWords(trigger, names)} → ${doesInWords(action)}`
}
