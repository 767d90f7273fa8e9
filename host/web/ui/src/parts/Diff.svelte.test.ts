// A diff is shown as it is if it is short, and folded up with the number of its lines if it is long.

import { flushSync, mount, unmount } from 'svelte'
import { afterEach, expect, test } from 'vitest'

import Diff from './Diff.svelte'

let page: Record<string, unknown> | null = null
afterEach(() => {
  if (page) void unmount(page)
  page = null
})

function show(lines: number) {
  page = mount(Diff, { target: document.body, props: { diff: `${Array.from({ length: lines }, (_, line) => `+line ${line}`).join('\n')}\n` } })
  flushSync()
}

test('twelve lines are shown at once', () => {
  show(12)
  expect(document.querySelector('details')).toBeNull()
  expect(document.querySelectorAll('.line.added')).toHaveLength(12)
})

test('thirteen are folded up, and all there', () => {
  show(13)
  const folded = document.querySelector('details')
  expect([folded?.open, folded?.querySelector('summary')?.textContent]).toEqual([false, 'What changes in the file (13 lines)'])
  expect(folded?.querySelectorAll('.line.added')).toHaveLength(13)
})
