// Forms made from JSON Schema: which fields a thing has, and what a person's entries come to, with each mistake at its
// field. Small tables have fields of their own; what a form can't show is entered as JSON. The host checks all of it again.

/** What a field is entered by. */
export type Widget = 'text' | 'number' | 'boolean' | 'choice' | 'list' | 'group' | 'groups' | 'json'

/** One field. */
export interface Field {
  name: string
  help: string
  required: boolean
  widget: Widget
  choices: { value: string; help: string }[]
  min: number | null
  max: number | null
  integer: boolean
  /** Whether text may stand for a number, such as `C4` or `{n + 1}`. */
  takesText: boolean
  /** Whether numbers and `true` in it are meant as such; else it is all text. */
  takesNumbers: boolean
  pattern: RegExp | null
  least: number
  most: number
  /** What holds if nothing is entered; `undefined` if that is not said. */
  fallback: unknown
  /** What it may be, for example; `undefined` if the schema has none. */
  example: unknown
  /** What a group, or each of several, has. */
  fields: Field[]
}

/** One form of a thing: of several, `constants` tell which it is. */
export interface Variant {
  title: string
  help: string
  constants: Record<string, unknown>
  fields: Field[]
}

/** What was entered in a field: text, whether a box is ticked, or what a group has. Nothing is an empty text. */
export type Entry = string | boolean | Entries | Entries[]
export interface Entries {
  [name: string]: Entry
}

/** Why a field can't be taken: a text of the shell, with its values. */
export interface Mistake {
  key: 'form.required' | 'form.number' | 'form.integer' | 'form.range' | 'form.json' | 'form.pattern' | 'form.slash' | 'form.count'
  values: Record<string, string | number>
}

type Schema = Record<string, unknown>

/** Schemas within schemas that are followed. */
const MAX_DEPTH = 8
/** Groups within groups, and fields of one: what has more is entered as JSON. */
const MAX_GROUPS = 3
const MAX_FIELDS = 12

function isSchema(value: unknown): value is Schema {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function schemas(value: unknown): Schema[] {
  return Array.isArray(value) ? value.filter(isSchema) : []
}

/** Follows `$ref`s of the same document. */
function resolved(schema: Schema, root: Schema, depth = 0): Schema {
  const to = schema['$ref']
  if (typeof to !== 'string' || !to.startsWith('#/') || depth > MAX_DEPTH) return schema
  let found: unknown = root
  for (const part of to.slice(2).split('/')) {
    const key = part.replace(/~1/g, '/').replace(/~0/g, '~')
    found = isSchema(found) && Object.hasOwn(found, key) ? found[key] : undefined
  }
  if (!isSchema(found)) return schema
  const { $ref: _, ...beside } = schema
  return { ...resolved(found, root, depth + 1), ...beside }
}

function types(schema: Schema): string[] {
  const type = schema['type']
  if (typeof type === 'string') return [type]
  if (Array.isArray(type)) return type.filter((one): one is string => typeof one === 'string')
  return schemas(schema['anyOf']).concat(schemas(schema['oneOf'])).flatMap(types)
}

function choices(schema: Schema): Field['choices'] | null {
  const listed = schema['enum']
  if (Array.isArray(listed)) {
    const values = listed.filter((value): value is string => typeof value === 'string')
    return values.length > 0 ? values.map((value) => ({ value, help: '' })) : null
  }
  const all = schemas(schema['oneOf']).concat(schemas(schema['anyOf'])).filter((one) => one['type'] !== 'null')
  if (all.length > 0 && all.every((one) => typeof one['const'] === 'string')) {
    return all.map((one) => ({ value: one['const'] as string, help: text(one['description']) }))
  }
  return null
}

function text(value: unknown): string {
  return typeof value === 'string' ? value.replaceAll('\n', ' ') : ''
}

function first(value: unknown): unknown {
  return Array.isArray(value) ? (value as unknown[])[0] : undefined
}

/** Characters of a help that is read at a glance, whole. */
const MAX_GLANCE = 100

/** A help in two: what is read first, its first sentence, and the rest. A short one is read at once. */
export function helpOf({ help }: Pick<Field, 'help'>): { first: string; rest: string } {
  if (help.length <= MAX_GLANCE) return { first: help, rest: '' }
  const [, first, rest] = /^(.*?[.!?])\s+(?=[\p{Lu}\d"'`{(])(.*)$/su.exec(help) ?? []
  return first === undefined || rest === undefined ? { first: help, rest: '' } : { first, rest }
}

function finite(value: unknown): number | null {
  return typeof value === 'number' && Number.isFinite(value) ? value : null
}

function pattern(value: unknown): RegExp | null {
  if (typeof value !== 'string' || value.length > 400) return null
  try {
    return new RegExp(value, 'u')
  } catch {
    return null
  }
}

/** The fields of a table that has these keys and no others; `null` if it has too many, or of a kind that no field takes. */
function fieldsOfGroup(schema: Schema, root: Schema, depth: number): Field[] | null {
  const properties = Object.entries(propertiesOf(schema))
  const isOpen = schema['additionalProperties'] !== false || schemas(schema['oneOf']).concat(schemas(schema['anyOf'])).length > 0
  if (isOpen || depth >= MAX_GROUPS || properties.length === 0 || properties.length > MAX_FIELDS) return null
  const required = new Set(strings(schema['required']))
  const fields = properties.map(([name, property]) => field(name, property, root, required.has(name), depth + 1))
  return fields.every((one) => one.widget !== 'json') ? requiredFirst(fields) : null
}

function requiredFirst(fields: Field[]): Field[] {
  return fields.toSorted((one, other) => Number(other.required) - Number(one.required))
}

function field(name: string, given: Schema, root: Schema, required: boolean, depth = 0): Field {
  let schema = resolved(given, root)
  // `T | null` is `T` that may be left out.
  const meant = schemas(schema['anyOf']).filter((one) => one['type'] !== 'null')
  if (meant.length === 1 && meant[0]) schema = { ...schema, ...resolved(meant[0], root), anyOf: undefined }
  const of = types(schema).filter((type) => type !== 'null')
  const made: Field = {
    name, required, help: text(given['description']) || text(schema['description']),
    widget: 'json', choices: [], integer: false, takesText: false, takesNumbers: false,
    min: finite(schema['minimum']), max: finite(schema['maximum']), pattern: pattern(schema['pattern']),
    least: finite(schema['minItems']) ?? 0, most: finite(schema['maxItems']) ?? Number.POSITIVE_INFINITY,
    fallback: given['default'] ?? schema['default'], example: first(given['examples']) ?? first(schema['examples']), fields: [],
  }
  const offered = choices(schema)
  if (offered) return { ...made, widget: 'choice', choices: offered }
  const only = (...allowed: string[]) => of.length > 0 && of.every((type) => allowed.includes(type))
  if (only('boolean')) return { ...made, widget: 'boolean' }
  if (only('integer', 'number')) return { ...made, widget: 'number', integer: !of.includes('number') }
  if (only('string')) return { ...made, widget: 'text', takesText: true }
  if (only('string', 'integer', 'number', 'boolean')) {
    return { ...made, widget: 'text', takesText: true, takesNumbers: true, integer: !of.includes('number') && of.includes('integer') }
  }
  const within = only('object') ? fieldsOfGroup(schema, root, depth) : null
  if (within) return { ...made, widget: 'group', fields: within }
  const list = of.includes('array') ? [schema, ...schemas(schema['anyOf'])].find((one) => isSchema(one['items'])) : undefined
  if (list && only('array', 'string')) {
    const items = resolved(list['items'] as Schema, root)
    const itemTypes = types(items)
    if (itemTypes.length > 0 && itemTypes.every((type) => ['string', 'number', 'integer', 'boolean'].includes(type))) {
      return {
        ...made, widget: 'list', takesText: itemTypes.includes('string'), takesNumbers: itemTypes.some((type) => type !== 'string'),
        pattern: pattern(items['pattern']), least: finite(list['minItems']) ?? 0, most: finite(list['maxItems']) ?? Number.POSITIVE_INFINITY,
      }
    }
    const each = only('array') && itemTypes.every((type) => type === 'object') ? fieldsOfGroup(items, root, depth) : null
    if (each) return { ...made, widget: 'groups', fields: each }
  }
  return made
}

/** The forms that a schema allows: one, or one for each of its `oneOf`. Without properties there are no fields. */
export function variants(given: unknown): Variant[] {
  if (!isSchema(given)) return [{ title: '', help: '', constants: {}, fields: [] }]
  const root = given
  const schema = resolved(given, root)
  const alternatives = schemas(schema['oneOf']).concat(schemas(schema['anyOf'])).map((one) => resolved(one, root))
  const shapes = alternatives.filter((one) => isSchema(one['properties']))
  return (shapes.length > 0 ? shapes : [schema]).map((shape) => {
    const properties = { ...propertiesOf(schema), ...propertiesOf(shape) }
    const required = new Set([...strings(schema['required']), ...strings(shape['required'])])
    const constants: Record<string, unknown> = {}
    const fields: Field[] = []
    for (const [name, property] of Object.entries(properties)) {
      const one = resolved(property, root)
      if ('const' in one) constants[name] = one['const']
      else fields.push(field(name, property, root, required.has(name)))
    }
    const title = Object.values(constants).filter((value) => typeof value === 'string').join(' ')
    // What has to be said comes first.
    return { title, help: text(shape['description']), constants, fields: requiredFirst(fields) }
  })
}

function propertiesOf(schema: Schema): Record<string, Schema> {
  const properties = schema['properties']
  if (!isSchema(properties)) return {}
  return Object.fromEntries(Object.entries(properties).filter((entry): entry is [string, Schema] => isSchema(entry[1])))
}

function strings(value: unknown): string[] {
  return Array.isArray(value) ? value.filter((one): one is string => typeof one === 'string') : []
}

/** What stands in a field's place at first: a value that is there, as a person would enter it. */
export function entered(field: Field, value: unknown): Entry {
  if (field.widget === 'boolean') return value === true
  if (field.widget === 'group') return entriesOf(field.fields, isSchema(value) ? value : {})
  if (field.widget === 'groups') return schemas(value).map((one) => entriesOf(field.fields, one))
  if (value === undefined || value === null) return ''
  if (field.widget === 'list') {
    if (typeof value === 'string') return value
    return Array.isArray(value) ? value.map((one) => word(one, field)).join('\n') : JSON.stringify(value)
  }
  if (field.widget === 'json') return JSON.stringify(value, null, 2)
  return typeof value === 'object' ? JSON.stringify(value) : word(value, field)
}

/** A value as a word that comes to it: in quotes if it is a text that would be taken for something else. */
function word(value: unknown, field: Field): string {
  return typeof value === 'string' && scalar(value, field) !== value ? JSON.stringify(value) : String(value)
}

/** Whether nothing is entered, or only what would be so anyway. */
export function isBlank(fields: readonly Field[], entries: Entries): boolean {
  return fields.every((field) => {
    const entry = entries[field.name] ?? ''
    if (typeof entry === 'string') return !entry.trim()
    if (typeof entry === 'boolean') return entry === (field.fallback === true)
    return Array.isArray(entry) ? entry.length === 0 : isBlank(field.fields, entry)
  })
}

/** The entries of a thing that is there. */
export function entriesOf(fields: Field[], value: Record<string, unknown> = {}): Entries {
  return Object.fromEntries(fields.map((field) => [field.name, entered(field, value[field.name] ?? (field.widget === 'boolean' ? field.fallback : undefined))]))
}

const NUMBER = /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i

const QUOTED = /^"(?:[^"\\]|\\["\\/bfnrt]|\\u[\da-f]{4})*"$/i

/** A word that may stand for a number or a truth value. In quotes it is a text. */
function scalar(word: string, field: Field): unknown {
  if (!field.takesNumbers) return word
  if (field.takesText && QUOTED.test(word)) return JSON.parse(word) as string
  if (NUMBER.test(word)) return Number(word)
  if (word === 'true' || word === 'false') return word === 'true'
  return word
}

function outOfRange(value: number, field: Field): Mistake | null {
  const { min, max } = field
  if (field.integer && !Number.isInteger(value)) return { key: 'form.integer', values: {} }
  if ((min === null || value >= min) && (max === null || value <= max)) return null
  return { key: 'form.range', values: { min: min ?? '−∞', max: max ?? '∞' } }
}

/** Why a text does not have the form of a field: of an address, that it begins with something else. */
function mismatch({ pattern }: Field, said: string): Mistake {
  const isAddress = pattern !== null && /^\^\\?\//.test(pattern.source)
  return { key: isAddress && !said.startsWith('/') ? 'form.slash' : 'form.pattern', values: {} }
}

function read(field: Field, entry: string | boolean, before: unknown): { value?: unknown; mistake?: Mistake } {
  if (typeof entry === 'boolean') {
    // What is as it would be anyway need not be written down, unless it was.
    return entry === (field.fallback === true) && !field.required && before === undefined ? {} : { value: entry }
  }
  const said = entry.trim()
  if (!said) return field.required ? { mistake: { key: 'form.required', values: {} } } : {}
  switch (field.widget) {
    case 'number': {
      if (!NUMBER.test(said)) return { mistake: { key: 'form.number', values: {} } }
      const value = Number(said)
      const mistake = outOfRange(value, field)
      return mistake ? { mistake } : { value }
    }
    case 'list': {
      const items = said.split('\n').map((line) => line.trim()).filter(Boolean)
      if (items.length < field.least || items.length > field.most) {
        return { mistake: { key: 'form.count', values: { min: field.least, max: Number.isFinite(field.most) ? field.most : '∞' } } }
      }
      const mistaken = items.find((item) => field.pattern?.test(item) === false)
      if (mistaken !== undefined) return { mistake: mismatch(field, mistaken) }
      const values = items.map((item) => scalar(item, field))
      if (!field.takesText && values.some((value) => typeof value === 'string')) return { mistake: { key: 'form.number', values: {} } }
      return { value: values }
    }
    case 'json':
      try {
        return { value: JSON.parse(said) as unknown }
      } catch {
        return { mistake: { key: 'form.json', values: {} } }
      }
    case 'text': {
      const value = scalar(said, field)
      if (typeof value === 'number') {
        const mistake = outOfRange(value, field)
        return mistake ? { mistake } : { value }
      }
      if (field.pattern && !field.pattern.test(said)) return { mistake: mismatch(field, said) }
      // Blanks at the edges of a text may be meant.
      return { value: typeof value === 'string' && !field.takesNumbers ? entry : value }
    }
    default:
      return { value: said }
  }
}

/**
 * What the entries come to, and the mistakes by their fields' names: `input.port`, `matchers.0.type`. With a mistake the value
 * is not to be used. `before` is what was there before it was entered.
 */
export function readForm(variant: Variant, entries: Entries, before: Record<string, unknown> = {}): { value: Record<string, unknown>; mistakes: Record<string, Mistake> } {
  const mistakes: Record<string, Mistake> = {}
  return { value: { ...variant.constants, ...readFields(variant.fields, entries, before, '', mistakes) }, mistakes }
}

function readFields(fields: readonly Field[], entries: Entries, before: Record<string, unknown>, place: string, mistakes: Record<string, Mistake>): Record<string, unknown> {
  const value: Record<string, unknown> = {}
  for (const field of fields) {
    const at = `${place}${field.name}`
    const entry = entries[field.name] ?? ''
    const was = before[field.name]
    if (typeof entry === 'object') {
      const several = Array.isArray(entry)
      if (several ? entry.length === 0 : isBlank(field.fields, entry)) {
        if (field.required) mistakes[at] = { key: 'form.required', values: {} }
      } else if (several) {
        const { least, most } = field
        if (entry.length < least || entry.length > most) mistakes[at] = { key: 'form.count', values: { min: least, max: Number.isFinite(most) ? most : '∞' } }
        // Which of them was which before is not known, once one was removed.
        value[field.name] = entry.map((one, index) => readFields(field.fields, one, {}, `${at}.${index}.`, mistakes))
      } else {
        value[field.name] = readFields(field.fields, entry, isSchema(was) ? was : {}, `${at}.`, mistakes)
      }
      continue
    }
    const found = read(field, entry, was)
    if (found.mistake) mistakes[at] = found.mistake
    else if (found.value !== undefined) value[field.name] = found.value
  }
  return value
}

/** What was entered, with a word for each thing that was there `before` and is not any more, where there is one: `cleared` has it. */
export function withCleared(before: Record<string, unknown>, entered: Record<string, unknown>, cleared: Record<string, unknown>): Record<string, unknown> {
  const gone = Object.entries(cleared).filter(([name]) => before[name] !== undefined && entered[name] === undefined)
  return { ...entered, ...Object.fromEntries(gone) }
}

/**
 * A refusal of the host, without which tool says it and where in the file it is: what a form is about is not written there yet.
 */
export function withoutPlace(refusal: string): string {
  return refusal.replace(/^[^\n]{0,200}?the configuration would not be valid:\s+(?:error: )?(?:[^\n]{0,4000}?\.toml:\d+:\d+: )?/, '')
}

/**
 * The field that a refusal of the host is about, by its name: the first that stands in it as a key does, in a path, in
 * quotes, or with an underscore in it. `null` if it names none.
 */
export function blamed(fields: readonly Field[], refusal: string): string | null {
  let first: { name: string; at: number } | null = null
  for (const { name } of fields) {
    const word = name.replace(/[^\w]/g, '\\$&')
    const at = refusal.search(new RegExp(`${name.includes('_') ? '(?<![\\w-])' : '(?<=[./`"\'])'}${word}(?![\\w-])`))
    if (at >= 0 && (first === null || at < first.at)) first = { name, at }
  }
  return first?.name ?? null
}
