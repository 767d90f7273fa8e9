// What was heard last: a bounded list that drops its oldest, and what of it a filter lets through.

/** The newest items, at most so many. */
export class Ring<T> {
  #items: T[] = []
  #next = 0
  #total = 0

  constructor(readonly capacity: number) {}

  /** How many there are now. */
  get length(): number {
    return this.#items.length
  }

  /** How many there have ever been. */
  get total(): number {
    return this.#total
  }

  /** Adds one; the oldest goes where there is no room. */
  push(item: T): void {
    this.#items[this.#next] = item
    this.#next = (this.#next + 1) % this.capacity
    this.#total += 1
  }

  /** The item `back` places before the newest, which is at 0. */
  newest(back: number): T | undefined {
    if (back < 0 || back >= this.#items.length) return undefined
    return this.#items[(this.#next - 1 - back + 2 * this.capacity) % this.capacity]
  }

  /** From the oldest to the newest. */
  *[Symbol.iterator](): Iterator<T> {
    for (let back = this.#items.length - 1; back >= 0; back -= 1) yield this.newest(back) as T
  }

  /** Forgets all. */
  clear(): void {
    this.#items = []
    this.#next = 0
  }
}

/** A history, and the part of it that a filter lets through. Both are bounded. */
export class FilteredHistory<T> {
  readonly all: Ring<T>
  #shown: Ring<T>
  #filter: ((item: T) => boolean) | null = null

  constructor(capacity: number) {
    this.all = new Ring(capacity)
    this.#shown = this.all
  }

  /** What is to be shown. */
  get shown(): Ring<T> {
    return this.#shown
  }

  /** Adds an item. */
  push(item: T): void {
    this.all.push(item)
    if (this.#filter?.(item)) this.#shown.push(item)
  }

  /** Another filter; `null` lets everything through. */
  filter(filter: ((item: T) => boolean) | null): void {
    this.#filter = filter
    if (!filter) {
      this.#shown = this.all
      return
    }
    this.#shown = new Ring(this.all.capacity)
    for (const item of this.all) if (filter(item)) this.#shown.push(item)
  }

  /** A copy that stays as it is while more comes. */
  frozen(): Ring<T> {
    const copy = new Ring<T>(this.all.capacity)
    for (const item of this.#shown) copy.push(item)
    return copy
  }

  /** Forgets all. */
  clear(): void {
    this.all.clear()
    if (this.#shown !== this.all) this.#shown.clear()
  }
}
