// Learning asks once what was moved rests, and ends its session however it ends.

import { expect, test } from 'vitest'

import { LearnSession, LOOK_EVERY, MAX_SETTLE, PATIENCE, SETTLE } from './learn'
import type { Learned } from './learned'

/** A host whose ports have received `count`, and a clock that goes on with each look. */
function stage(controls: () => unknown[] = () => [{ device: 'pads' }], device: string | null = null) {
  const host = { count: 0, asked: [] as [string, Record<string, unknown>][], now: 0, refuses: false, moving: [] as boolean[] }
  const said: unknown[] = []
  let waiting: { call: () => void; pause: number } | null = null
  const session = new LearnSession({
    tool: async (name, args) => {
      host.asked.push([name, args])
      if (host.refuses) throw new Error('no')
      return name === 'conductor_start_learn' ? { listening: true, session: 7 } : { controls: controls(), unbound: [] }
    },
    count: async () => host.count,
    listening: () => said.push('listening'),
    moving: (is) => host.moving.push(is),
    learned: (learned: Learned) => said.push(learned.controls),
    failed: (why) => said.push(['failed', why]),
    now: () => host.now,
    later: (call, pause) => {
      waiting = { call, pause }
      return 1
    },
    cancel: () => (waiting = null),
  }, device)
  const settle = async () => {
    for (let turn = 0; turn < 10; turn += 1) await Promise.resolve()
  }
  /** Looks until so much time has passed. */
  const pass = async (milliseconds: number) => {
    for (const end = host.now + milliseconds; host.now < end && waiting; ) {
      const { call, pause } = waiting as { call: () => void; pause: number }
      waiting = null
      host.now += pause
      call()
      await settle()
    }
  }
  return { host, said, session, pass, settle, isWaiting: () => waiting !== null }
}

const STOP = ['conductor_stop_learn', { session: 7 }]
const ASK = ['conductor_stop_learn', { keep: true, session: 7 }]

test('what was moved is asked for once it rests, and the session ends', async () => {
  const { host, said, session, pass, isWaiting } = stage(undefined, 'pads')
  await session.start()
  expect(host.asked).toEqual([['conductor_start_learn', { device: 'pads' }]])
  await pass(1000)
  host.count = 3
  await pass(SETTLE / 2)
  host.count = 4
  await pass(SETTLE / 2)
  expect(host.asked.length, 'it has not rested yet').toBe(1)
  await pass(SETTLE)
  expect(host.asked.slice(1)).toEqual([ASK, STOP])
  expect(said).toEqual(['listening', [{ device: 'pads' }]])
  expect(isWaiting()).toBe(false)
})

test('a clock that never rests does not hide it, and what is no control goes on', async () => {
  const found: unknown[] = []
  const { host, said, session, pass } = stage(() => found)
  await session.start()
  for (let beat = 0; beat < 2 * MAX_SETTLE; beat += LOOK_EVERY) {
    host.count += 1
    await pass(LOOK_EVERY)
  }
  expect(host.asked.length).toBeGreaterThan(1)
  expect(said).toEqual(['listening'])
  found.push({ device: 'keys' })
  for (let beat = 0; beat < 2 * MAX_SETTLE; beat += LOOK_EVERY) {
    host.count += 1
    await pass(LOOK_EVERY)
  }
  expect(said.at(-1)).toEqual([{ device: 'keys' }])
})

test('that something is moved is said with the next look, and once', async () => {
  const found: unknown[] = []
  const { host, session, pass } = stage(() => found)
  await session.start()
  await pass(LOOK_EVERY)
  expect(host.moving).toEqual([])
  host.count = 1
  await pass(LOOK_EVERY)
  expect(host.moving).toEqual([true])
  host.count = 2
  await pass(LOOK_EVERY)
  expect(host.moving).toEqual([true])
  await pass(SETTLE + 2 * LOOK_EVERY)
  expect(host.moving, 'it was no control').toEqual([true, false])
  found.push({ device: 'pads' })
  host.count = 3
  await pass(SETTLE + 2 * LOOK_EVERY)
  expect(host.moving).toEqual([true, false, true])
})

test('it ends when it is told to, also while the host is asked to begin', async () => {
  const { host, said, session, pass, settle, isWaiting } = stage()
  await session.start()
  await pass(500)
  session.end()
  session.end()
  await settle()
  expect(host.asked.slice(1)).toEqual([STOP])
  expect(isWaiting()).toBe(false)
  const early = stage()
  const started = early.session.start()
  await Promise.resolve()
  early.session.end()
  await started
  await early.settle()
  const begun = early.host.asked.filter(([name]) => name === 'conductor_start_learn').length
  expect(early.host.asked.length - begun, 'what was begun is ended').toBe(begun)
  expect([said, early.said]).toEqual([['listening'], []])
})

test('it is not kept for a page that was forgotten, and a refusal is said', async () => {
  const { host, said, session, pass } = stage()
  await session.start()
  await pass(PATIENCE + 1000)
  expect(said).toEqual(['listening', ['failed', null]])
  expect(host.asked.at(-1)).toEqual(STOP)
  const refused = stage()
  refused.host.refuses = true
  await refused.session.start()
  expect(refused.said).toEqual([['failed', 'no']])
})
