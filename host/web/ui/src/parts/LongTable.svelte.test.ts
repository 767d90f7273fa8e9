// Of a table with very many rows only those that can be seen are in the page, wherever it is scrolled to.

import { createRawSnippet, flushSync, mount, unmount } from 'svelte'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'

import LongTable from './LongTable.svelte'

/** What a browser would lay out: rows of 50 pixels in a box of 400. */
beforeEach(() => {
  vi.stubGlobal('ResizeObserver', class {
    observe() {}
    unobserve() {}
    disconnect() {}
  })
  vi.spyOn(Element.prototype, 'clientHeight', 'get').mockReturnValue(400)
  vi.spyOn(HTMLTableRowElement.prototype, 'getBoundingClientRect').mockReturnValue({ height: 50 } as DOMRect)
})

let page: Record<string, unknown> | null = null
afterEach(() => {
  if (page) void unmount(page)
  page = null
  vi.unstubAllGlobals()
  vi.restoreAllMocks()
})

function show(count: number) {
  const props = $state({
    items: Array.from({ length: count }, (_, number) => `row ${number}`), key: (one: string) => one, label: 'Rows', columns: 1, anew: '',
    head: createRawSnippet(() => ({ render: () => '<tr><th>Name</th></tr>' })),
    row: createRawSnippet<[string, number]>((item, index) => ({ render: () => `<tr data-row aria-rowindex="${index()}"><td>${item()}</td></tr>` })),
  })
  page = mount(LongTable<string>, { target: document.body, props })
  flushSync()
  return props
}

const rows = () => [...document.querySelectorAll('[data-row]')].map((one) => one.textContent)
const spaces = () => [...document.querySelectorAll<HTMLElement>('.space td')].map((one) => parseFloat(one.style.height))
function scrollTo(top: number) {
  const box = document.querySelector('.scroll')
  if (!box) throw new Error('no table')
  box.scrollTop = top
  box.dispatchEvent(new Event('scroll'))
  flushSync()
}

test('of 100,000 rows a few are in the page', () => {
  show(100_000)
  expect(rows()[0]).toBe('row 0')
  expect(rows().length).toBeLessThan(30)
  expect(document.querySelector('table')?.getAttribute('aria-rowcount')).toBe('100001')
  scrollTo(2_250_000)
  expect(rows().length).toBeLessThan(30)
  expect(rows()).toContain('row 50000')
  expect(document.querySelector('[aria-rowindex="50002"]')?.textContent).toBe('row 50000')
  // What is above and below is as high as its rows would be.
  const [above = 0, below = 0] = spaces()
  expect(above).toBeGreaterThan(2_240_000)
  expect(above + 50 * rows().length + below).toBeGreaterThan(100_000 * 45)
  expect(above + 50 * rows().length + below).toBeLessThan(100_000 * 46)
  scrollTo(9_000_000)
  expect(rows().at(-1)).toBe('row 99999')
  expect(spaces()[1]).toBe(0)
})

test('fewer items are all in the page, and those that are looked for anew are shown from the first', () => {
  const table = show(5000)
  scrollTo(100_000)
  expect(rows()).not.toContain('row 0')
  table.items = table.items.slice(0, 3000)
  table.anew = 'another search'
  flushSync()
  expect(document.querySelector('.scroll')?.scrollTop).toBe(0)
  table.items = table.items.slice(0, 100)
  flushSync()
  expect([rows().length, spaces(), document.querySelector('[role=region]')]).toEqual([100, [], null])
  expect(document.querySelector('table')?.getAttribute('aria-rowcount')).toBe(null)
})
