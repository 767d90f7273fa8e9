// The stream is found again by its cursor, without anything twice and without asking too often.

import { describe, expect, test } from 'vitest'

import type { StreamItem } from '../api/types'
import { FIRST_PAUSE, LONGEST_PAUSE, parseItem, type Socket, StreamConnection, type StreamState } from './connection'

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

function stage(found: 'here' | 'signed-out' | 'away' = 'here') {
  const sockets: Fake[] = []
  const items: StreamItem[] = []
  const states: StreamState[] = []
  const waiting: { call: () => void; pause: number }[] = []
  const connection = new StreamConnection({
    open: (path) => {
      const socket = new Fake(path)
      sockets.push(socket)
      return socket
    },
    item: (item) => items.push(item),
    state: (state) => states.push(state),
    probe: async () => found,
    later: (call, pause) => waiting.push({ call, pause }),
    cancel: () => waiting.pop(),
  })
  /** The socket closes, and what is asked then is answered. */
  const lose = async () => {
    sockets.at(-1)?.onclose?.()
    await Promise.resolve()
    await Promise.resolve()
  }
  return { connection, sockets, items, states, waiting, lose }
}

describe('the stream', () => {
  test('begins now, and goes on after the last item that came', async () => {
    const { connection, sockets, items, states, waiting, lose } = stage()
    connection.connect()
    expect(sockets[0]?.path).toBe('/v1/stream')
    sockets[0]?.onopen?.()
    sockets[0]?.send({ kind: 'mode', mode: 'Play', cursor: 'a b-1' })
    await lose()
    expect(waiting.map((one) => one.pause)).toEqual([FIRST_PAUSE])
    waiting.pop()?.call()
    expect(sockets[1]?.path).toBe('/v1/stream?after=a%20b-1')
    sockets[1]?.onopen?.()
    expect(items.map((item) => item.cursor)).toEqual(['a b-1'])
    expect(states).toEqual(['open', 'lost', 'open'])
  })

  test('a socket that was given up brings nothing more', async () => {
    const { connection, sockets, items, waiting, lose } = stage()
    connection.connect()
    const first = sockets[0]
    const late = first?.onmessage
    await lose()
    waiting.pop()?.call()
    late?.({ data: JSON.stringify({ kind: 'mode', mode: 'Mix', cursor: '9' }) })
    expect(items).toEqual([])
    expect(connection.cursor).toBeNull()
  })

  test('pauses grow up to a bound, and begin anew once a socket is open', async () => {
    const { connection, sockets, waiting, lose } = stage('away')
    connection.connect()
    const pauses: number[] = []
    for (let attempt = 0; attempt < 8; attempt += 1) {
      await lose()
      const next = waiting.pop()
      pauses.push(next?.pause ?? 0)
      next?.call()
    }
    expect(pauses).toEqual([250, 500, 1000, 2000, 4000, LONGEST_PAUSE, LONGEST_PAUSE, LONGEST_PAUSE])
    sockets.at(-1)?.onopen?.()
    await lose()
    expect(waiting.at(-1)?.pause).toBe(FIRST_PAUSE)
  })

  test('a browser that is signed out says so, and seldom tries again', async () => {
    const { connection, states, waiting, lose } = stage('signed-out')
    connection.connect()
    await lose()
    expect(states.at(-1)).toBe('signed-out')
    expect(waiting.at(-1)?.pause).toBe(LONGEST_PAUSE)
  })

  test('once ended it stays so', async () => {
    const { connection, sockets, waiting, lose } = stage()
    connection.connect()
    connection.end()
    expect(sockets[0]?.closed).toBe(true)
    await lose()
    connection.retry()
    expect(sockets).toHaveLength(1)
    expect(waiting).toHaveLength(0)
  })

  test('what is no item is left out', () => {
    for (const text of ['', 'no', 'null', '1', '[]', '{}', '{"kind":"event"}', '{"kind":1,"cursor":"1"}']) {
      expect(parseItem(text), text).toBeNull()
    }
  })
})
