// The light of a mapping in the page: what it shows is seen, changed and taken away.

import { flushSync, mount, unmount } from 'svelte'
import { afterEach, expect, test } from 'vitest'

import type { BindingStatus } from '../api/types'
import type { LightChoice } from '../picture/lights'
import NewLight from './NewLight.svelte'

const side = { state: 'bound' as const, ports: ['Pads'], matched_by: null, problem: null }
const binding: BindingStatus = { alias: 'pads', protocol: 'midi', health: 'green', input: side, output: side, muted: false, help: null }
const light = { id: 'pad', message: 'note', channel: null, values: ['off = 0', 'red = 5', 'green = 21'] }

let page: Record<string, unknown> | null = null
afterEach(() => {
  if (page) void unmount(page)
  page = null
})

function show(value: LightChoice, idle: LightChoice, isThere: boolean) {
  const props = $state({ binding, light, value, idle, held: true, picked: null, isThere })
  page = mount(NewLight, { target: document.body, props })
  flushSync()
  return props
}

const lists = () => [...document.querySelectorAll('select')]
const chosen = () => lists().map((list) => list.selectedOptions[0]?.textContent)

function choose(which: number, value: string) {
  const list = lists()[which]
  if (!list) throw new Error(`no list ${which}`)
  list.value = value
  list.dispatchEvent(new Event('change', { bubbles: true }))
  flushSync()
}

test('of a mapping that is made only what it shows once it is touched is asked', () => {
  const props = show(null, null, false)
  expect(chosen()).toEqual(['no light'])
  choose(0, '21')
  expect([props.value, props.idle]).toEqual([21, null])
})

test('what a mapping shows is seen and changed', () => {
  const props = show(21, 5, true)
  expect(chosen()).toEqual(['red', 'green'])
  choose(0, '0')
  choose(1, '5')
  expect([props.value, props.idle]).toEqual([5, 0])
})

test('a light that is taken away leaves nothing that was dark for its sake', () => {
  const props = show(21, 0, true)
  choose(1, '')
  expect([props.value, props.idle]).toEqual([null, null])
})

test('what is written by hand is said to be, and stays while it is not chosen anew', () => {
  const props = show('hand', 99, true)
  expect(chosen()).toEqual(['99', 'as written by hand'])
  choose(1, '5')
  expect([props.value, props.idle]).toEqual([5, 99])
})
