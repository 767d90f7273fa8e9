// Actions are read page by page, each once.

import { afterEach, expect, test, vi } from 'vitest'

import { allActions } from './actions'

afterEach(() => vi.unstubAllGlobals())

/** A host that has these actions, two on a page; and from where on it was asked for them. */
function host(all: { type: string; summary: string }[]): number[] {
  const asked: number[] = []
  vi.stubGlobal('fetch', async (_: string, init: RequestInit) => {
    const { args } = JSON.parse(String(init.body)) as { args: { after: number } }
    asked.push(args.after)
    const actions = all.slice(args.after, args.after + 2)
    const total = actions.length < all.length ? { total: all.length } : {}
    return new Response(JSON.stringify({ result: { actions, ...total }, plans: [], remarks: [] }))
  })
  return asked
}

test('actions that one answer has no room for are on further pages', async () => {
  const all = ['A', 'B', 'C', 'D', 'E'].map((type) => ({ type, summary: `Does ${type}.` }))
  const asked = host(all)
  expect(await allActions()).toEqual(all)
  expect(asked).toEqual([0, 2, 4])
})

test('actions that one answer has room for are asked for once', async () => {
  const all = [{ type: 'A', summary: 'Does A.' }]
  const asked = host(all)
  expect(await allActions()).toEqual(all)
  expect(asked).toEqual([0])
})
