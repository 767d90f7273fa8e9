// A form has the fields that a schema says, and each mistake is at its field.

import { describe, expect, test } from 'vitest'

import { blamed, entriesOf, readForm, variants } from './schema'

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
      target: 'form.required', address: 'form.pattern', retries: 'form.range',
    })
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

  test('a schema that is none, or goes in circles, has a form all the same', () => {
    for (const schema of [null, true, [], 'x', {}, { $ref: '#' }, { $ref: '#/$defs/a', $defs: { a: { $ref: '#/$defs/a' } } }, { properties: { a: null } }]) {
      expect(variants(schema)[0]?.fields).toEqual([])
    }
    const looped = { properties: { a: { $ref: '#/properties/a' }, __proto__x: { pattern: '(', type: 'string' } } }
    expect(only(looped).fields.map(({ widget }) => widget)).toEqual(['json', 'text'])
  })
})

test('a refusal of the host belongs to the field that it names', () => {
  const { fields } = variants({ properties: { mode: { type: 'string' }, max_midi_ports: { type: 'integer' }, name: { type: 'string' } } })[0] ?? { fields: [] }
  expect(blamed(fields, 'advanced_settings.max_midi_ports: 0 is too small; write 1 to 256')).toBe('max_midi_ports')
  expect(blamed(fields, 'there is no mode "Mixx"; there are Play, Mix')).toBe(null)
  expect(blamed(fields, 'modes[0].name: a mode of this name is there')).toBe('name')
  expect(blamed(fields, 'the port of this name is gone')).toBe(null)
})
