// The stream of what happens: one WebSocket, found again by its cursor when it is lost, without anything twice.

import type { StreamItem } from '../api/types'

/** How the stream is. */
export type StreamState = 'connecting' | 'open' | 'lost' | 'signed-out'

/** Whether a host answers. */
export type Probed = 'here' | 'signed-out' | 'away'

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
  probe: () => Promise<Probed>
  /** Calls back later; gives what `cancel` takes. */
  later: (call: () => void, milliseconds: number) => number
  /** Takes a call back. */
  cancel: (timer: number) => void
}

/** The first pause before a socket is opened again, in milliseconds; it doubles with each attempt that fails. */
export const FIRST_PAUSE = 250
/** The longest pause. */
export const LONGEST_PAUSE = 5000
/** How often it is looked whether something came, in milliseconds: a browser gets no event for a connection that is gone. */
export const QUIET = 15_000
/** How long the host may take to answer after such a silence. */
export const PATIENCE = 5000

/** The shell's place in the stream. */
export class StreamConnection {
  #socket: Socket | null = null
  /** A socket that is to take the place of one that has been silent. */
  #renewal: Socket | null = null
  #hasCome = false
  #cursor: string | null = null
  #pause = FIRST_PAUSE
  #timer: number | null = null
  #watch: number | null = null
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
    const socket = this.#open()
    this.#socket = socket
    this.#watchOver(QUIET, () => void this.#lost())
    socket.onopen = () => {
      if (socket === this.#socket) this.#opened()
    }
  }

  /** Tries at once, without waiting for the pause to end: the network is back, the page is seen again, or the person asks. */
  retry(): void {
    if (this.#ended) return
    this.#pause = FIRST_PAUSE
    // Of a computer that slept, the socket may be gone.
    if (this.#state === 'open' && this.#socket && !this.#renewal) this.#look()
    else this.connect()
  }

  /** Ends it for good. */
  end(): void {
    this.#ended = true
    this.#clearTimer()
    this.#closeAll()
  }

  #open(): Socket {
    const after = this.#cursor === null ? '' : `?after=${encodeURIComponent(this.#cursor)}`
    const socket = this.options.open(`/v1/stream${after}`)
    socket.onmessage = ({ data }) => {
      if (socket !== this.#socket || typeof data !== 'string') return
      this.#hasCome = true
      // What was silent is alive, so nothing takes its place: what comes of both would come twice.
      this.#giveUpRenewal()
      const item = parseItem(data)
      if (!item) return
      this.#cursor = item.cursor
      this.options.item(item)
    }
    socket.onclose = () => {
      if (socket === this.#socket) void this.#lost()
    }
    return socket
  }

  #opened(): void {
    this.#pause = FIRST_PAUSE
    this.#become('open')
    this.#watchOver(QUIET, () => this.#look())
  }

  /** Looks whether something came, and if not, whether the host answers and has another socket. */
  #look(): void {
    if (this.#hasCome) {
      this.#hasCome = false
      this.#watchOver(QUIET, () => this.#look())
      return
    }
    const silent = this.#socket
    void this.#probe().then((found) => {
      if (silent === null || silent !== this.#socket || this.#renewal) return
      if (found === 'here') this.#renew(silent)
      else void this.#lost(found)
    })
  }

  /** A quiet host and a socket that brings nothing any more look the same: another one goes on after the last item. */
  #renew(silent: Socket): void {
    if (this.#hasCome) return this.#watchOver(QUIET, () => this.#look())
    const renewal = this.#open()
    this.#renewal = renewal
    this.#watchOver(PATIENCE, () => void this.#lost())
    renewal.onopen = () => {
      if (renewal !== this.#renewal) return
      this.#renewal = null
      this.#socket = renewal
      silent.close()
      this.#opened()
    }
  }

  #giveUpRenewal(): void {
    const renewal = this.#renewal
    if (!renewal) return
    this.#renewal = null
    renewal.close()
    this.#watchOver(QUIET, () => this.#look())
  }

  /** What the host says; a host that says nothing is away. */
  async #probe(): Promise<Probed> {
    let timer: number | null = null
    const silence = new Promise<Probed>((resolve) => {
      timer = this.options.later(() => resolve('away'), PATIENCE)
    })
    const found = await Promise.race([this.options.probe(), silence])
    if (timer !== null) this.options.cancel(timer)
    return found
  }

  async #lost(known?: Probed): Promise<void> {
    this.#closeAll()
    if (this.#ended) return
    this.#become('lost')
    const found = known ?? (await this.#probe())
    if (this.#ended || this.#socket) return
    if (found === 'signed-out') {
      // Another tab may sign in, so it goes on trying, but seldom.
      this.#become('signed-out')
      this.#pause = LONGEST_PAUSE
    }
    this.#timer = this.options.later(() => this.connect(), this.#pause)
    this.#pause = Math.min(this.#pause * 2, LONGEST_PAUSE)
  }

  #closeAll(): void {
    if (this.#watch !== null) this.options.cancel(this.#watch)
    this.#watch = null
    const sockets = [this.#socket, this.#renewal]
    this.#socket = null
    this.#renewal = null
    this.#hasCome = false
    for (const socket of sockets) socket?.close()
  }

  #watchOver(milliseconds: number, call: () => void): void {
    if (this.#watch !== null) this.options.cancel(this.#watch)
    this.#watch = this.options.later(call, milliseconds)
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
