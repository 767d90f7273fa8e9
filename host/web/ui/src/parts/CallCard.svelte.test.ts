// A call of a model in the page: what went wrong is there as a whole, without a click.

import { flushSync, mount, unmount } from 'svelte'
import { afterEach, expect, test } from 'vitest'

import type { Call } from '../chat/conversation'
import CallCard from './CallCard.svelte'

let page: Record<string, unknown> | null = null
afterEach(() => {
  if (page) void unmount(page)
  page = null
})

function show(result: string, failed: boolean) {
  const call: Call = { kind: 'call', number: 1, id: 'c1', tool: 'conductor_create_mapping', args: '{}', result, failed, proposed: false, approval: null }
  page = mount(CallCard, { target: document.body, props: { call, conversation: 1 } })
  flushSync()
  const texts = [...document.querySelectorAll('pre')].map((one) => one.textContent)
  return { heard: document.querySelector('[role=status]')?.textContent, isOpen: document.querySelector('details')?.open, said: texts.at(-1) }
}

test('why a call failed is said to its end', () => {
  const why = Array.from({ length: 800 }, (_, line) => `line ${line}: there is no such device`).join('\n')
  expect(show(why, true)).toEqual({ heard: `conductor_create_mapping: failed. ${why}`, isOpen: true, said: why })
})

test('what came of a call is one click away', () => {
  expect(show('done', false)).toEqual({ heard: '', isOpen: false, said: 'done' })
})
