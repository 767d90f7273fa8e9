// The stream of what happens: one WebSocket, found again by its cursor when it is lost, without anything twice.

import type { StreamItem } from '../api/types'

/** How the stream is. */
export type StreamState = 'connecting' | 'open' | 'lost' | 'signed-out'

/** What a socket has to be able to do; a WebSocket is one. */
export interface Socket {
  onopen: (() => void) | null
  onmessage: ((message: { data: unknown }) => void) | null
  onclose: (() => void) | null
  close(): void
}

/** What the connection is made with. */
export interface StreamOptions {
  /** Opens a socket at this path and query. */
  open: (path: string) => Socket
  /** Each item, in order, once. */
  item: (item: StreamItem) => void
  /** Another state. */
  state: (state: StreamState) => void
  /** Why no socket could be had: whether the browser is signed out, or no host answers. */
  probe: () => Promise<'here' | 'signed-out' | 'away'>
  /** Calls back later; gives what `cancel` takes. */
  later: (call: () => void, milliseconds: number) => number
  /** Takes a call back. */
  cancel: (timer: number) => void
}

/** The first pause before a socket is opened again, in milliseconds; it doubles with each attempt that fails. */
export const FIRST_PAUSE = 250
/** The longest pause. */
export const LONGEST_PAUSE = 5000

/** The shell's place in the stream. */
export class StreamConnection {
  #socket: Socket | null = null
  #cursor: string | null = null
  #pause = FIRST_PAUSE
  #timer: number | null = null
  #ended = false
  #state: StreamState = 'connecting'

  constructor(private readonly options: StreamOptions) {}

  /** The cursor of the last item that was handed on; `null` before the first. */
  get cursor(): string | null {
    return this.#cursor
  }

  /** Opens the stream: from where it was lost, else from now on. */
  connect(): void {
    if (this.#socket || this.#ended) return
    this.#clearTimer()
    this.#become(this.#state === 'open' ? 'lost' : this.#state)
    const after = this.#cursor === null ? '' : `?after=${encodeURIComponent(this.#cursor)}`
    const socket = this.options.open(`/v1/stream${after}`)
    this.#socket = socket
    socket.onopen = () => {
      if (socket !== this.#socket) return
      this.#pause = FIRST_PAUSE
      this.#become('open')
    }
    socket.onmessage = ({ data }) => {
      if (socket !== this.#socket || typeof data !== 'string') return
      const item = parseItem(data)
      if (!item) return
      this.#cursor = item.cursor
      this.options.item(item)
    }
    socket.onclose = () => {
      if (socket === this.#socket) void this.#lost()
    }
  }

  /** Tries at once, without waiting for the pause to end: the network is back, or the person asks. */
  retry(): void {
    if (this.#ended) return
    this.#pause = FIRST_PAUSE
    this.connect()
  }

  /** Ends it for good. */
  end(): void {
    this.#ended = true
    this.#clearTimer()
    const socket = this.#socket
    this.#socket = null
    socket?.close()
  }

  async #lost(): Promise<void> {
    this.#socket = null
    if (this.#ended) return
    this.#become('lost')
    const found = await this.options.probe()
    if (this.#ended || this.#socket) return
    if (found === 'signed-out') {
      // Another tab may sign in, so it goes on trying, but seldom.
      this.#become('signed-out')
      this.#pause = LONGEST_PAUSE
    }
    this.#timer = this.options.later(() => this.connect(), this.#pause)
    this.#pause = Math.min(this.#pause * 2, LONGEST_PAUSE)
  }

  #clearTimer(): void {
    if (this.#timer !== null) this.options.cancel(this.#timer)
    this.#timer = null
  }

  #become(state: StreamState): void {
    if (state === this.#state) return
    this.#state = state
    this.options.state(state)
  }
}

/** An item of the stream; `null` if it is none, as a host of another version may send. */
export function parseItem(text: string): StreamItem | null {
  try {
    const item: unknown = JSON.parse(text)
    if (typeof item !== 'object' || item === null) return null
    const { cursor, kind } = item as Record<string, unknown>
    return typeof cursor === 'string' && typeof kind === 'string' ? (item as StreamItem) : null
  } catch {
    return null
  }
}
