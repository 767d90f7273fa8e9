// Actions are read page by page, each once, and listed with those first that most mappings have.

import { afterEach, expect, test, vi } from 'vitest'

import { allActions, byUse, inList } from './actions'

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

test('what most mappings do comes first, and nothing is left out', () => {
  const all = ['AddToVariable', 'ArtNetSend', 'Keystroke', 'Launch', 'ModeChange', 'OscSend', 'Sequence', 'Text'].map((type) => ({ type, summary: '' }))
  const { usual, others } = byUse(all)
  expect(usual.map(({ type }) => type)).toEqual(['Keystroke', 'Text', 'OscSend', 'ModeChange', 'Launch'])
  expect(others.map(({ type }) => type)).toEqual(['AddToVariable', 'ArtNetSend', 'Sequence'])
})

test('a long summary is cut after a word in a list', () => {
  expect(inList('Types a text.')).toBe('Types a text.')
  const cut = inList(`Sends a message${', and waits'.repeat(20)}`)
  expect(cut).toMatch(/ waits …$|, and …$/)
  expect(cut.length).toBeLessThan(100)
  expect(inList('x'.repeat(200))).toBe(`${'x'.repeat(90)} …`)
})
