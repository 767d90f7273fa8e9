// The stream is found again by its cursor, without anything twice and without asking too often.

import { describe, expect, test } from 'vitest'

import type { StreamItem } from '../api/types'
import { FIRST_PAUSE, LONGEST_PAUSE, parseItem, PATIENCE, type Probed, QUIET, type Socket, StreamConnection, type StreamState } from './connection'

class Fake implements Socket {
  onopen: (() => void) | null = null
  onmessage: ((message: { data: unknown }) => void) | null = null
  onclose: (() => void) | null = null
  closed = false

  constructor(readonly path: string) {}

  close(): void {
    this.closed = true
  }

  send(item: unknown): void {
    this.onmessage?.({ data: JSON.stringify(item) })
  }
}

function stage(answer: Probed | Promise<Probed> = 'here') {
  const sockets: Fake[] = []
  const items: StreamItem[] = []
  const states: StreamState[] = []
  const waiting = new Map<number, { call: () => void; pause: number }>()
  const host = { answer }
  let timers = 0
  const connection = new StreamConnection({
    open: (path) => {
      const socket = new Fake(path)
      sockets.push(socket)
      return socket
    },
    item: (item) => items.push(item),
    state: (state) => states.push(state),
    probe: async () => host.answer,
    later: (call, pause) => {
      timers += 1
      waiting.set(timers, { call, pause })
      return timers
    },
    cancel: (timer) => waiting.delete(timer),
  })
  const settle = async () => {
    for (let turn = 0; turn < 10; turn += 1) await Promise.resolve()
  }
  /** The socket closes, and what is asked then is answered. */
  const lose = async () => {
    sockets.at(-1)?.onclose?.()
    await settle()
  }
  /** The pause that was waited for is over; gives it. */
  const pass = async (milliseconds?: number) => {
    const [timer, due] = [...waiting].find(([, { pause }]) => milliseconds === undefined || pause === milliseconds) ?? []
    if (timer === undefined || due === undefined) throw new Error(`nothing waits for ${milliseconds} ms`)
    waiting.delete(timer)
    due.call()
    await settle()
    return due.pause
  }
  const pauses = () => [...waiting.values()].map(({ pause }) => pause)
  return { connection, sockets, items, states, host, lose, pass, pauses, settle }
}

const mode = (cursor: string) => ({ kind: 'mode', mode: 'Play', cursor })

describe('the stream', () => {
  test('begins now, and goes on after the last item that came', async () => {
    const { connection, sockets, items, states, lose, pass, pauses } = stage()
    connection.connect()
    expect(sockets[0]?.path).toBe('/v1/stream')
    sockets[0]?.onopen?.()
    sockets[0]?.send(mode('a b-1'))
    await lose()
    expect(pauses()).toEqual([FIRST_PAUSE])
    await pass()
    expect(sockets[1]?.path).toBe('/v1/stream?after=a%20b-1')
    sockets[1]?.onopen?.()
    expect(items.map((item) => item.cursor)).toEqual(['a b-1'])
    expect(states).toEqual(['open', 'lost', 'open'])
  })

  test('a socket that was given up brings nothing more', async () => {
    const { connection, sockets, items, lose, pass } = stage()
    connection.connect()
    const late = sockets[0]?.onmessage
    await lose()
    await pass()
    late?.({ data: JSON.stringify(mode('9')) })
    expect(items).toEqual([])
    expect(connection.cursor).toBeNull()
  })

  test('pauses grow up to a bound, and begin anew once a socket is open', async () => {
    const { connection, sockets, lose, pass, pauses } = stage('away')
    connection.connect()
    const waited: number[] = []
    for (let attempt = 0; attempt < 8; attempt += 1) {
      await lose()
      waited.push(await pass())
    }
    expect(waited).toEqual([250, 500, 1000, 2000, 4000, LONGEST_PAUSE, LONGEST_PAUSE, LONGEST_PAUSE])
    sockets.at(-1)?.onopen?.()
    await lose()
    expect(pauses()).toEqual([FIRST_PAUSE])
  })

  test('a browser that is signed out says so, and seldom tries again', async () => {
    const { connection, states, lose, pauses } = stage('signed-out')
    connection.connect()
    await lose()
    expect(states.at(-1)).toBe('signed-out')
    expect(pauses()).toEqual([LONGEST_PAUSE])
  })

  test('once ended it stays so', async () => {
    const { connection, sockets, lose, pauses } = stage()
    connection.connect()
    connection.end()
    expect(sockets[0]?.closed).toBe(true)
    await lose()
    connection.retry()
    expect(sockets).toHaveLength(1)
    expect(pauses()).toEqual([])
  })

  test('after a silence the host is asked, and another socket goes on after the last item', async () => {
    const { connection, sockets, items, states, pass, pauses } = stage()
    connection.connect()
    sockets[0]?.onopen?.()
    sockets[0]?.send(mode('1'))
    await pass(QUIET)
    expect(sockets, 'something had come').toHaveLength(1)
    await pass(QUIET)
    expect(sockets[1]?.path).toBe('/v1/stream?after=1')
    sockets[1]?.onopen?.()
    expect(sockets[0]?.closed).toBe(true)
    sockets[0]?.send(mode('2'))
    sockets[1]?.send(mode('2'))
    expect(items.map((item) => item.cursor)).toEqual(['1', '2'])
    expect(states, 'the state does not change').toEqual(['open'])
    expect(pauses()).toEqual([QUIET])
  })

  test('a socket that was silent and is not gone is kept', async () => {
    const { connection, sockets, items, pass, pauses } = stage()
    connection.connect()
    sockets[0]?.onopen?.()
    await pass(QUIET)
    sockets[0]?.send(mode('1'))
    sockets[1]?.onopen?.()
    sockets[1]?.send(mode('1'))
    expect([sockets[0]?.closed, sockets[1]?.closed]).toEqual([false, true])
    expect(items.map((item) => item.cursor)).toEqual(['1'])
    expect(pauses()).toEqual([QUIET])
  })

  test('a host that does not answer is away, whether it refuses or says nothing at all', async () => {
    for (const answer of ['away', new Promise<Probed>(() => {})] as const) {
      const { connection, sockets, states, host, pass } = stage(answer)
      connection.connect()
      sockets[0]?.onopen?.()
      await pass(QUIET)
      if (answer !== 'away') await pass(PATIENCE)
      expect(states).toEqual(['open', 'lost'])
      expect(sockets[0]?.closed).toBe(true)
      host.answer = 'here'
      await pass(FIRST_PAUSE)
      sockets[1]?.onopen?.()
      expect(states).toEqual(['open', 'lost', 'open'])
    }
  })

  test('a host that answers but opens no stream is lost, from the first socket on', async () => {
    const { connection, sockets, states, pass, pauses } = stage()
    connection.connect()
    sockets[0]?.onopen?.()
    await pass(QUIET)
    await pass(PATIENCE)
    expect(states).toEqual(['open', 'lost'])
    expect(sockets.map((socket) => socket.closed)).toEqual([true, true])
    await pass(FIRST_PAUSE)
    await pass(QUIET)
    expect(sockets[2]?.closed).toBe(true)
    expect(pauses()).toEqual([2 * FIRST_PAUSE])
  })

  test('a page that is seen again looks at once', async () => {
    const { connection, sockets, settle } = stage()
    connection.connect()
    sockets[0]?.onopen?.()
    connection.retry()
    await settle()
    expect(sockets).toHaveLength(2)
  })

  test('what is no item is left out', () => {
    for (const text of ['', 'no', 'null', '1', '[]', '{}', '{"kind":"event"}', '{"kind":1,"cursor":"1"}']) {
      expect(parseItem(text), text).toBeNull()
    }
  })
})
