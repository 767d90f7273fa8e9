// A conversation is what its events come to, however they are cut into pages.

import { expect, test } from 'vitest'

import type { Recorded } from '../api/types'
import { empty, fold } from './conversation'

const EVENTS = [
  { number: 1, at: 5, kind: 'message', text: 'Map the pad' },
  { number: 2, at: 6, kind: 'asked', model: 'm' },
  { number: 3, at: 6, kind: 'text', text: 'I ' },
  { number: 4, at: 6, kind: 'text', text: 'look.' },
  { number: 5, at: 6, kind: 'call_begun', call: 'c1', tool: 'conductor_send_test' },
  { number: 6, at: 6, kind: 'call', call: 'c1', tool: 'conductor_send_test', args: '{}' },
  { number: 7, at: 10, kind: 'approval', call: 'c1', id: 'a1', effect: 'Sends', shown: '90 24 64', phrase: 'synth', expires_in_ms: 1000 },
  { number: 8, at: 11, kind: 'approval_decided', call: 'c1', agreed: true },
  { number: 9, at: 12, kind: 'call_ended', call: 'c1', result: 'sent', failed: false },
  { number: 10, at: 12, kind: 'plan', plan: 'p1', description: 'Map it.' },
  { number: 11, at: 13, kind: 'plan_decided', plan: 'p1', outcome: 'applied' },
  { number: 12, at: 13, kind: 'answered', usage: { input: 10, cached: 2, output: 5 }, cost: 700 },
  { number: 13, at: 13, kind: 'answered', usage: { input: 1, cached: 0, output: 1 }, cost: null },
  { number: 14, at: 14, kind: 'turn_ended', outcome: 'done' },
  { number: 15, at: 14, kind: 'from-a-later-version' },
] as unknown as Recorded[]

test('a turn is shown with what it did and cost', () => {
  const view = fold(empty(), EVENTS)
  expect(view.items.map(({ kind }) => kind)).toEqual(['message', 'text', 'call', 'plan', 'ended'])
  expect(view.items[1]).toMatchObject({ text: 'I look.' })
  expect(view.items[2]).toMatchObject({ args: '{}', result: 'sent', approval: { shown: '90 24 64', agreed: true, expires: 1010 } })
  expect(view.items[3]).toMatchObject({ outcome: 'applied', description: 'Map it.' })
  expect(view).toMatchObject({ busy: false, model: 'm', cost: 700, unknown: 1, tokens: { input: 11, cached: 2, output: 6 }, last: 15 })
})

test('pages that overlap come to the same, and change no view that was shown', () => {
  const whole = fold(empty(), EVENTS)
  for (let cut = 1; cut < EVENTS.length; cut += 1) {
    const before = fold(empty(), EVENTS.slice(0, cut))
    const kept = structuredClone(before)
    expect(fold(before, EVENTS.slice(Math.max(cut - 3, 0)))).toEqual(whole)
    expect(before).toEqual(kept)
  }
})
