// A binding is found where it is written, on whichever page it stands.

import { afterEach, expect, test, vi } from 'vitest'

import { placeOf } from './written'

afterEach(() => vi.unstubAllGlobals())

/** A host with these bindings, two on a page. */
function host(aliases: string[]): void {
  vi.stubGlobal('fetch', async (_: string, init: RequestInit) => {
    const { args } = JSON.parse(String(init.body)) as { args: { section: string; after: number } }
    expect(args.section).toBe('bindings')
    const all = aliases.map((alias, number) => ({ place: `bindings/${number}`, value: { alias } }))
    const entries = all.slice(args.after, args.after + 2)
    const total = entries.length < all.length ? { total: all.length } : {}
    return new Response(JSON.stringify({ result: { entries, ...total }, plans: [], remarks: [] }))
  })
}

test('its place is found by its alias', async () => {
  host(['keys', 'pads', 'grid'])
  expect(await placeOf('grid')).toEqual({ place: 'bindings/2', says: { alias: 'grid' } })
  expect(await placeOf('keys')).toEqual({ place: 'bindings/0', says: { alias: 'keys' } })
  expect(await placeOf('gone')).toBe(null)
})
