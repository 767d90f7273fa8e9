// Learning by touch: the host listens to every port, bound or not, until something was moved and rests.

import type { Learned } from './learned'

/** What learning needs. */
export interface LearnOptions {
  /** Calls a tool, and gives what it answered. */
  tool: (name: string, args: Record<string, unknown>) => Promise<unknown>
  /** How much all ports have received so far, heard or not. */
  count: () => Promise<number>
  /** It listens: a person may be asked to move something. */
  listening: () => void
  /** Something is moved, of which is known what it is once it rests; or with `false`, it was no control. */
  moving?: (isMoving: boolean) => void
  /** What was moved, once. It listens no longer. */
  learned: (learned: Learned) => void
  /** It listens no longer, since something failed; `null` if nothing was moved for a long time. */
  failed: (why: string | null) => void
  /** Milliseconds of a clock. */
  now: () => number
  /** Calls back later; gives what `cancel` takes. */
  later: (call: () => void, milliseconds: number) => number
  /** Takes a call back. */
  cancel: (timer: number) => void
}

/** The pause between two looks at the ports, in milliseconds: a touch is to be answered at once. */
export const LOOK_EVERY = 150
/** How long a control has to rest before it is asked what was moved: longer than the pause in a double tap. */
export const SETTLE = 700
/** The same for devices that never rest, since they send a clock. */
export const MAX_SETTLE = 3000
/** How long nothing may be moved: ports that only learning needs are not kept open for a page that was forgotten. */
export const PATIENCE = 5 * 60_000

/** One session of learning. */
export class LearnSession {
  #session: number | null = null
  #ended = false
  #timer: number | null = null
  #count = 0
  #moved: { first: number; last: number } | null = null

  constructor(
    private readonly options: LearnOptions,
    /** The only device that is listened to; `null` for any. */
    private readonly device: string | null = null,
  ) {}

  /** Has the host listen. */
  async start(): Promise<void> {
    try {
      // Counted before it listens: what is moved at once counts, too.
      this.#count = await this.options.count()
      if (this.#ended) return
      const answer = await this.options.tool('conductor_start_learn', this.device === null ? {} : { device: this.device })
      const { session } = answer as { session?: unknown }
      if (typeof session !== 'number') throw new Error('conductor_start_learn named no session')
      this.#session = session
      if (this.#ended) return this.#stop()
      this.options.listening()
      this.#lookLater(this.options.now())
    } catch (error) {
      this.#fail(error)
    }
  }

  /** Ends it. Nothing is called back any more. */
  end(): void {
    if (this.#ended) return
    this.#ended = true
    if (this.#timer !== null) this.options.cancel(this.#timer)
    this.#timer = null
    this.#stop()
  }

  #lookLater(since: number): void {
    this.#timer = this.options.later(() => void this.#look(since), LOOK_EVERY)
  }

  async #look(since: number): Promise<void> {
    try {
      const count = await this.options.count()
      if (this.#ended) return
      const now = this.options.now()
      if (count !== this.#count) {
        this.#count = count
        if (this.#moved === null) this.options.moving?.(true)
        this.#moved = { first: this.#moved?.first ?? now, last: now }
      }
      const rests = this.#moved !== null && (now - this.#moved.last >= SETTLE || now - this.#moved.first >= MAX_SETTLE)
      if (rests) {
        this.#moved = null
        const learned = (await this.options.tool('conductor_stop_learn', { keep: true, session: this.#session })) as Learned
        if (this.#ended) return
        if (learned.controls.length > 0) {
          this.end()
          this.options.learned(learned)
          return
        }
        this.options.moving?.(false)
      }
      if (now - since < PATIENCE) return this.#lookLater(since)
      this.end()
      this.options.failed(null)
    } catch (error) {
      this.#fail(error)
    }
  }

  #fail(error: unknown): void {
    if (this.#ended) return
    this.end()
    this.options.failed(error instanceof Error ? error.message : String(error))
  }

  #stop(): void {
    if (this.#session === null) return
    const session = this.#session
    this.#session = null
    // It may have ended by itself, or the host is away: then there is nothing to end.
    this.options.tool('conductor_stop_learn', { session }).catch(() => {})
  }
}
