// A form in the page: what is entered in its fields, and in those of tables within it, is what it comes to.

import { flushSync, mount, unmount } from 'svelte'
import { afterEach, expect, test } from 'vitest'

import SchemaForm from './SchemaForm.svelte'

const closed = (properties: object, required: string[] = []) => ({ type: 'object', additionalProperties: false, properties, required })
const MATCHER = closed({
  type: { enum: ['exact_name', 'usb_identifier'] }, value: { type: ['string', 'integer'] }, vendor_id: { type: 'integer' }, product_id: { type: 'integer' },
  serial: { type: 'string' }, bus: { type: 'integer' }, address: { type: 'integer' },
}, ['type'])
const BINDING = {
  ...closed({
    alias: { type: 'string' }, new_alias: { type: 'string' }, matchers: { type: 'array', items: { $ref: '#/$defs/Matcher' } },
    input: { $ref: '#/$defs/End', description: '{}: none.' }, channels: { type: 'array', items: { type: 'integer' } }, enabled: { type: 'boolean' },
  }, ['alias']),
  $defs: { Matcher: MATCHER, End: closed({ port: { type: 'integer' }, matchers: { type: 'array', items: { $ref: '#/$defs/Matcher' } } }) },
}

let page: Record<string, unknown> | null = null
afterEach(() => {
  if (page) void unmount(page)
  page = null
})

/** Shows a form. Gives what it comes to, and its properties. */
function show(initial: Record<string, unknown>) {
  const props = $state({ schema: BINDING, initial, fixed: ['alias'], showMistakes: false, refusal: null as string | null, value: null as Record<string, unknown> | null })
  page = mount(SchemaForm, { target: document.body, props })
  flushSync()
  return props
}

function labelled(text: string): HTMLInputElement | HTMLSelectElement | HTMLTextAreaElement {
  const control = [...document.querySelectorAll('label')].find((one) => one.textContent?.includes(text))?.control
  if (!(control instanceof HTMLInputElement || control instanceof HTMLSelectElement || control instanceof HTMLTextAreaElement)) throw new Error(`no field ${text}`)
  return control
}

function enter(label: string, text: string) {
  const field = labelled(label)
  field.value = text
  field.dispatchEvent(new Event(field instanceof HTMLSelectElement ? 'change' : 'input', { bubbles: true }))
  flushSync()
}

function press(text: string) {
  const button = [...document.querySelectorAll('button')].find((one) => one.textContent?.replaceAll(/\s+/g, ' ').includes(text))
  if (!button) throw new Error(`no button ${text}`)
  button.click()
  flushSync()
}

test('what the host refuses is said at the field that it names, and at the end if it names none', () => {
  const form = show({ alias: 'pads', channels: [99] })
  const ends = () => [...document.querySelectorAll('.note.bad')].map((one) => one.textContent)
  form.refusal = 'bindings[0].channels: 99 is out of range\nwrite 0 to 15'
  flushSync()
  const field = labelled('channels')
  expect([field.getAttribute('aria-invalid'), document.activeElement, ends()]).toEqual(['true', field, []])
  const said = (field.getAttribute('aria-describedby') ?? '').split(' ').map((id) => document.getElementById(id)?.textContent)
  expect(said).toContain(form.refusal)
  form.refusal = 'the show is locked'
  flushSync()
  expect([field.getAttribute('aria-invalid'), ends()]).toEqual([null, ['the show is locked']])
})

test('what is entered stays while the host says the same again, and goes when it says something else', () => {
  const form = show({ alias: 'pads', new_alias: 'pads' })
  enter('new_alias', 'drums')
  form.initial = { alias: 'pads', new_alias: 'pads' }
  form.schema = structuredClone(BINDING)
  flushSync()
  expect(form.value).toEqual({ alias: 'pads', new_alias: 'drums' })
  form.initial = { alias: 'pads', new_alias: 'pads', enabled: true }
  flushSync()
  expect(form.value).toEqual({ alias: 'pads', new_alias: 'pads', enabled: true })
})

test('of several forms the one that is chosen is shown, with what both have', () => {
  const form = show({})
  form.schema = { properties: { to: { type: 'string' } }, oneOf: [{ properties: { kind: { const: 'osc' } } }, { properties: { kind: { const: 'midi' }, note: { type: 'integer' } } }] } as never
  flushSync()
  enter('to', 'desk')
  enter('Kind', '1')
  expect(form.value).toEqual({ kind: 'midi', to: 'desk' })
  enter('note', '36')
  expect(form.value).toEqual({ kind: 'midi', to: 'desk', note: 36 })
})

test('a list shows what it is without an entry as it would be entered', () => {
  const form = show({})
  form.schema = { properties: { args: { type: 'array', items: { type: ['string', 'number'] }, default: ['{unit}', 2] } } } as never
  flushSync()
  expect(labelled('args').getAttribute('placeholder')).toBe('{unit}\n2')
  enter('args', '{unit}\n2')
  expect(form.value).toEqual({ args: ['{unit}', 2] })
})

test('an example stands in an empty field, and a long help is behind a click but for its first sentence', () => {
  const form = show({})
  const description = 'Where to send it. Each place must be covered by a grant, which a person gives to the feature that sends, once for all of its mappings.'
  form.schema = { properties: { args: { type: 'array', items: { type: ['string', 'number'] }, default: ['{unit}'], examples: [[1, 'on']], description } } } as never
  flushSync()
  const field = labelled('args')
  expect(field.getAttribute('placeholder')).toBe('Such as 1\non')
  const said = (field.getAttribute('aria-describedby') ?? '').split(' ').map((id) => document.getElementById(id)?.textContent)
  expect(said).toContain('Where to send it.')
  const more = [...document.querySelectorAll('details')].find((one) => one.textContent?.includes('covered by a grant'))
  expect([more?.open, more?.querySelector('summary')?.textContent]).toEqual([false, 'More args'])
  expect(form.value).toEqual({})
})

test('a binding is changed in the fields of its tables', () => {
  const there = { alias: 'pads', new_alias: 'pads', matchers: [{ type: 'exact_name', value: 'Pads', serial: 'A1' }], input: { port: 9000 }, enabled: true }
  const form = show(there)
  expect(form.value).toEqual(there)
  expect([...document.querySelectorAll('label')].map((one) => one.textContent?.trim())).not.toContain('alias')
  enter('input port', '9001')
  enter('matchers 1 value', '"808"')
  expect(form.value).toEqual({ ...there, input: { port: 9001 }, matchers: [{ type: 'exact_name', value: '808', serial: 'A1' }] })
  // What is in use is in sight; the rest of a long table is behind a click.
  const isBehind = (label: string) => labelled(label).closest('details') !== null
  expect([isBehind('matchers 1 serial'), isBehind('matchers 1 bus')]).toEqual([false, true])

  press('Add one matchers')
  expect(form.value).toBe(null)
  form.showMistakes = true
  flushSync()
  expect(labelled('matchers 2 type').getAttribute('aria-invalid')).toBe('true')
  expect(labelled('matchers 1 type').getAttribute('aria-invalid')).toBe(null)
  enter('matchers 2 type', 'usb_identifier')
  enter('matchers 2 vendor_id', '6092')
  press('Remove matchers 1')
  expect(form.value).toEqual({ ...there, input: { port: 9001 }, matchers: [{ type: 'usb_identifier', vendor_id: 6092 }] })

  enter('input port', '')
  press('Remove matchers 1')
  expect(form.value).toEqual({ alias: 'pads', new_alias: 'pads', enabled: true })
  press('Add one input matchers')
  enter('input matchers 1 type', 'exact_name')
  expect(form.value).toEqual({ alias: 'pads', new_alias: 'pads', enabled: true, input: { matchers: [{ type: 'exact_name' }] } })
})
