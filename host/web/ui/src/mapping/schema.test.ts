// A form has the fields that a schema says, and each mistake is at its field.

import { describe, expect, test } from 'vitest'

import { blamed, entriesOf, helpOf, readForm, variants, withCleared, withoutPlace } from './schema'

const OSC = {
  type: 'object',
  properties: {
    type: { const: 'OscSend' },
    args: { type: 'array', items: { type: ['string', 'number', 'boolean'] }, maxItems: 3 },
    target: { type: 'string', description: 'Where to\nsend it' },
    address: { type: 'string', pattern: '^/' },
    retries: { type: ['integer', 'null'], minimum: 0, maximum: 9, default: 2 },
    quick: { type: 'boolean', default: true },
    how: { $ref: '#/$defs/How' },
  },
  required: ['target', 'address'],
  $defs: { How: { oneOf: [{ const: 'udp', description: 'Datagrams' }, { const: 'tcp' }] } },
}

function only(schema: unknown) {
  const [form] = variants(schema)
  if (!form) throw new Error('no form')
  return form
}

test.each([
  ['Where to send.', 'Where to send.', ''],
  ['From 0.0 to 1.0, e.g. half of it. Each must be covered by a grant, and what else there is to be said of it is said here.', 'From 0.0 to 1.0, e.g. half of it.', 'Each must be covered by a grant, and what else there is to be said of it is said here.'],
  [`${'One long sentence, '.repeat(10)}without an end`, `${'One long sentence, '.repeat(10)}without an end`, ''],
])('of a long help the first sentence is read first: %s', (help, first, rest) => {
  expect(helpOf({ help })).toEqual({ first, rest })
})

test('an example of a schema is that of its field', () => {
  const [form] = variants({ properties: { args: { type: 'array', items: { type: 'number' }, examples: [[1, 2]] }, name: { type: 'string' } } })
  expect(form?.fields.map(({ example }) => example)).toEqual([[1, 2], undefined])
})

describe('a form', () => {
  test('has what is required first, and knows what each field takes', () => {
    const form = only(OSC)
    expect(form.constants).toEqual({ type: 'OscSend' })
    expect(form.fields.map(({ name, widget, required }) => [name, widget, required])).toEqual([
      ['target', 'text', true], ['address', 'text', true], ['args', 'list', false], ['retries', 'number', false],
      ['quick', 'boolean', false], ['how', 'choice', false],
    ])
    expect(form.fields.find(({ name }) => name === 'how')?.choices).toEqual([{ value: 'udp', help: 'Datagrams' }, { value: 'tcp', help: '' }])
    expect(form.fields.find(({ name }) => name === 'target')?.help).toBe('Where to send it')
  })

  test('becomes the value, without what was not entered or is so anyway', () => {
    const form = only(OSC)
    const entries = { ...entriesOf(form.fields), target: 'desk', address: '/go', args: '1\ntrue\nword\n0.5' }
    expect(readForm(form, entries).mistakes).toEqual({ args: { key: 'form.count', values: { min: 0, max: 3 } } })
    entries.args = '1\ntrue\nword'
    expect(readForm(form, entries)).toEqual({ value: { type: 'OscSend', target: 'desk', address: '/go', args: [1, true, 'word'] }, mistakes: {} })
  })

  test('says each mistake at its field', () => {
    const form = only(OSC)
    const { mistakes } = readForm(form, { ...entriesOf(form.fields), address: 'go', retries: '11' })
    expect(Object.fromEntries(Object.entries(mistakes).map(([name, { key }]) => [name, key]))).toEqual({
      target: 'form.required', address: 'form.slash', retries: 'form.range',
    })
    const addresses = only({ properties: { all: { type: 'array', items: { type: 'string', pattern: '^/[!-~]*$' } }, word: { type: 'string', pattern: '^[a-z]+$' } } })
    const keys = (entries: Record<string, string>) => Object.values(readForm(addresses, { ...entriesOf(addresses.fields), ...entries }).mistakes).map(({ key }) => key)
    expect([keys({ all: '/a\nb' }), keys({ all: '/a\n/b c' }), keys({ word: 'A' }), keys({ all: '/a', word: 'a' })]).toEqual([['form.slash'], ['form.pattern'], ['form.pattern'], []])
    expect(readForm(form, { ...entriesOf(form.fields), retries: '1.5' }).mistakes['retries']?.key).toBe('form.integer')
    expect(readForm(form, { ...entriesOf(form.fields), retries: 'x' }).mistakes['retries']?.key).toBe('form.number')
  })

  test('what is there is shown as it would be entered, and comes back the same', () => {
    const form = only(OSC)
    const there = { type: 'OscSend', target: 'desk', address: '/go', args: ['{n}', 2], retries: 0, quick: false, how: 'tcp' }
    expect(readForm(form, entriesOf(form.fields, there))).toEqual({ value: there, mistakes: {} })
  })

  test('there is one for each alternative', () => {
    const forms = variants({
      type: 'object',
      oneOf: [
        { properties: { kind: { const: 'Note' }, note: { type: ['integer', 'string'] } }, required: ['note'] },
        { properties: { kind: { const: 'CC' }, table: { type: 'object' } } },
      ],
    })
    expect(forms.map(({ title }) => title)).toEqual(['Note', 'CC'])
    expect(readForm(forms[0]!, { note: 'C4' }).value).toEqual({ kind: 'Note', note: 'C4' })
    expect(readForm(forms[0]!, { note: '60' }).value).toEqual({ kind: 'Note', note: 60 })
    expect(readForm(forms[1]!, { table: '{ "a": 1 }' }).value).toEqual({ kind: 'CC', table: { a: 1 } })
    expect(readForm(forms[1]!, { table: '{' }).mistakes['table']?.key).toBe('form.json')
  })

  test('a small table has fields of its own, and so has each of a list of them', () => {
    const end = { type: 'object', additionalProperties: false, properties: { host: { type: 'string' }, port: { type: 'integer', minimum: 1 } }, required: ['port'] }
    const form = only({
      type: 'object',
      properties: {
        alias: { type: 'string' },
        input: { $ref: '#/$defs/End', description: 'What is heard' },
        matchers: { type: 'array', maxItems: 2, items: { type: 'object', additionalProperties: false, properties: { type: { enum: ['name', 'key'] }, value: { type: ['string', 'integer'] } }, required: ['type'] } },
        open: { type: 'object', properties: { a: { type: 'string' } } },
      },
      required: ['matchers'],
      $defs: { End: end },
    })
    expect(form.fields.map(({ name, widget, help, fields }) => [name, widget, help, fields.map((one) => one.name)])).toEqual([
      ['matchers', 'groups', '', ['type', 'value']], ['alias', 'text', '', []], ['input', 'group', 'What is heard', ['port', 'host']], ['open', 'json', '', []],
    ])
    const there = { alias: 'pads', input: { host: 'a', port: 9000 }, matchers: [{ type: 'name', value: '808' }, { type: 'key', value: 808 }] }
    const entries = entriesOf(form.fields, there)
    expect(entries['matchers']).toEqual([{ type: 'name', value: '"808"' }, { type: 'key', value: '808' }])
    expect(readForm(form, entries)).toEqual({ value: there, mistakes: {} })
    // A table in which nothing is entered is not there.
    expect(readForm(form, { ...entries, input: { host: ' ', port: '' } })).toEqual({ value: { alias: 'pads', matchers: there.matchers }, mistakes: {} })
    const keys = (more: object) => Object.entries(readForm(form, { ...entries, ...more }).mistakes).map(([at, { key }]) => [at, key])
    expect(keys({ input: { host: 'a', port: '' } })).toEqual([['input.port', 'form.required']])
    expect(keys({ matchers: [{ type: 'name', value: 'x' }, { type: '', value: 'x' }] })).toEqual([['matchers.1.type', 'form.required']])
    expect(keys({ matchers: [] })).toEqual([['matchers', 'form.required']])
    expect(keys({ matchers: [1, 2, 3].map(() => ({ type: 'name', value: 'x' })) })).toEqual([['matchers', 'form.count']])
  })

  test('a table with too much in it is entered as JSON', () => {
    const closed = { type: 'object', additionalProperties: false }
    const many = { ...closed, properties: Object.fromEntries(Array.from({ length: 13 }, (_, number) => [`key${number}`, { type: 'string' }])) }
    const circle = { ...closed, properties: { again: { $ref: '#/$defs/Circle' } } }
    const odd = { ...closed, properties: { anything: {} } }
    const form = only({ properties: { many, circle: { $ref: '#/$defs/Circle' }, odd, lists: { type: 'array', items: many } }, $defs: { Circle: circle } })
    expect(form.fields.map(({ widget }) => widget)).toEqual(['json', 'json', 'json', 'json'])
  })

  test('a box that was ticked can be cleared', () => {
    const form = only({ properties: { quick: { type: 'boolean' } } })
    expect(readForm(form, entriesOf(form.fields)).value).toEqual({})
    expect(readForm(form, { quick: false }, { quick: true }).value).toEqual({ quick: false })
  })

  test('a schema that is none, or goes in circles, has a form all the same', () => {
    for (const schema of [null, true, [], 'x', {}, { $ref: '#' }, { $ref: '#/$defs/a', $defs: { a: { $ref: '#/$defs/a' } } }, { properties: { a: null } }]) {
      expect(variants(schema)[0]?.fields).toEqual([])
    }
    const looped = { properties: { a: { $ref: '#/properties/a' }, __proto__x: { pattern: '(', type: 'string' } } }
    expect(only(looped).fields.map(({ widget }) => widget)).toEqual(['json', 'text'])
  })
})

test('what was there and was taken out is said to be nothing', () => {
  const cleared = { channels: [], input: {}, output: {} }
  expect(withCleared({ alias: 'a', channels: [1], output: { port: 1 } }, { alias: 'a', output: { port: 2 } }, cleared)).toEqual({ alias: 'a', output: { port: 2 }, channels: [] })
})

test('a refusal of the host says what is wrong, and not where in a file that is not there yet', () => {
  const wrong = 'modes[0].name: there is no mode "Mixx"'
  expect(withoutPlace(`builtin:mapping-tools: the configuration would not be valid: /home/me/config.toml:16:10: ${wrong}`)).toBe(wrong)
  expect(withoutPlace(`the configuration would not be valid:\nerror: C:\\me\\config.toml:16:10: ${wrong}`)).toBe(wrong)
  expect(withoutPlace(`the configuration would not be valid:\n${wrong}`)).toBe(wrong)
  expect(withoutPlace('the show is locked')).toBe('the show is locked')
})

test('a refusal of the host belongs to the field that it names', () => {
  const { fields } = variants({ properties: { mode: { type: 'string' }, max_midi_ports: { type: 'integer' }, name: { type: 'string' } } })[0] ?? { fields: [] }
  expect(blamed(fields, 'advanced_settings.max_midi_ports: 0 is too small; write 1 to 256')).toBe('max_midi_ports')
  expect(blamed(fields, 'there is no mode "Mixx"; there are Play, Mix')).toBe(null)
  expect(blamed(fields, 'modes[0].name: a mode of this name is there')).toBe('name')
  expect(blamed(fields, 'the port of this name is gone')).toBe(null)
})
