// Many items, one look at them a frame: what comes between two frames is handed over at once.

/** Items that wait for a frame. */
export class FrameBatch<T> {
  #waiting: T[] = []
  #left = 0
  #scheduled = false

  constructor(
    /** Takes what came since the last frame, and how many were left out. */
    private readonly flush: (items: T[], left: number) => void,
    /** Calls back with the next frame. */
    private readonly schedule: (call: () => void) => void,
    /** Items that wait, at most; of more, the newest. A tab in the background gets no frames. */
    private readonly most = 20_000,
  ) {}

  /** Adds an item. */
  push(item: T): void {
    this.#waiting.push(item)
    if (this.#waiting.length > this.most * 2) {
      this.#left += this.#waiting.length - this.most
      this.#waiting = this.#waiting.slice(-this.most)
    }
    if (this.#scheduled) return
    this.#scheduled = true
    this.schedule(() => this.#deliver())
  }

  #deliver(): void {
    this.#scheduled = false
    const items = this.#waiting
    const left = this.#left
    this.#waiting = []
    this.#left = 0
    this.flush(items, left)
  }
}
