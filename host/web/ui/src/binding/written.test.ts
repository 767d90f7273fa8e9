// A binding is found where it is written, on whichever page it stands.

import { afterEach, expect, test, vi } from 'vitest'

import type { DiscoveredPort } from '../api/types'
import { outputChange, placeOf } from './written'

afterEach(() => vi.unstubAllGlobals())

/** A host with these bindings, two on a page; the last one has an output of its own. */
function host(aliases: string[]): void {
  vi.stubGlobal('fetch', async (_: string, init: RequestInit) => {
    const { args } = JSON.parse(String(init.body)) as { args: { section: string; after: number } }
    expect(args.section).toBe('bindings')
    const all = aliases.map((alias, number) => ({ place: `bindings/${number}`, value: { alias, ...(number === aliases.length - 1 ? { output: {} } : {}) } }))
    const entries = all.slice(args.after, args.after + 2)
    const total = entries.length < all.length ? { total: all.length } : {}
    return new Response(JSON.stringify({ result: { entries, ...total }, plans: [], remarks: [] }))
  })
}

test('its place is found by its alias', async () => {
  host(['keys', 'pads', 'grid'])
  expect(await placeOf('grid')).toEqual({ place: 'bindings/2', says: { alias: 'grid', output: {} } })
  expect(await placeOf('keys')).toEqual({ place: 'bindings/0', says: { alias: 'keys' } })
  expect(await placeOf('gone')).toBe(null)
})

test('an output comes along where none is written, or where it was chosen', async () => {
  host(['keys', 'pads'])
  const port = { name: 'Lights', label: 'Lights', told_apart_by: null } as unknown as DiscoveredPort
  const change = { path: 'bindings/0/output', value: { matchers: [{ type: 'exact_name', value: 'Lights' }] } }
  expect(await outputChange('keys', port, false)).toEqual(change)
  expect(await outputChange('pads', port, false)).toBe(null)
  expect(await outputChange('pads', port, true)).toEqual({ ...change, path: 'bindings/1/output' })
  expect(await outputChange('gone', port, true)).toBe(null)
})
