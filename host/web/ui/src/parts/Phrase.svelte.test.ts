// What is agreed to is said once more: chosen where it is a tool, typed where it is a device; nothing is said beforehand.

import { flushSync, mount, unmount } from 'svelte'
import { afterEach, expect, test } from 'vitest'

import { host } from '../state/host.svelte'
import Phrase from './Phrase.svelte'

let page: Record<string, unknown> | null = null
afterEach(() => {
  if (page) void unmount(page)
  page = null
  host.tools.value = null
})

function show(phrase: string) {
  const view = (name: string, tier: string) => ({ name, tier })
  host.tools.value = [view('conductor_send_midi', 'hardware-io'), view('conductor_list_mappings', 'read-only')] as never
  const props = $state({ phrase, tool: 'conductor_preview_action', value: '' })
  page = mount(Phrase, { target: document.body, props })
  flushSync()
  return props
}

test('where no device is named what is to be done is chosen among what else could be', () => {
  const props = show('conductor_preview_action')
  const list = document.querySelector('select')
  if (!list) throw new Error('no list')
  expect([...list.options].map((one) => one.textContent)).toEqual(['Choose …', 'Do an action once', 'Send a message'])
  expect([list.selectedIndex, props.value]).toEqual([0, ''])
  list.selectedIndex = 1
  list.dispatchEvent(new Event('change', { bubbles: true }))
  flushSync()
  expect(props.value).toBe('conductor_preview_action')
})

test('the name of a device is typed, with names to find it by', () => {
  const props = show('synth')
  const field = document.querySelector('input')
  if (!field) throw new Error('no field')
  expect([...document.querySelectorAll<HTMLOptionElement>('datalist option')].map((one) => one.value)).toEqual(['synth'])
  field.value = 'synth'
  field.dispatchEvent(new Event('input', { bubbles: true }))
  flushSync()
  expect(props.value).toBe('synth')
})
