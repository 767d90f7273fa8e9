// What was asked of the host, kept until it changes there.

/** A value of the host. Reading it again while it is being read asks once more afterwards, not twice at once. */
export class Resource<T> {
  /** The last answer; `null` before the first. */
  value = $state.raw<T | null>(null)
  /** Why the last question had no answer; `null` if it had. */
  error = $state<string | null>(null)
  #running: Promise<void> | null = null
  #again = false

  constructor(private readonly read: () => Promise<T>) {}

  /** Asks the host. What is there stays until the answer is. */
  load(): Promise<void> {
    if (this.#running) {
      this.#again = true
      return this.#running
    }
    this.#running = this.#load().finally(() => {
      this.#running = null
    })
    return this.#running
  }

  async #load(): Promise<void> {
    do {
      this.#again = false
      try {
        this.value = await this.read()
        this.error = null
      } catch (error) {
        this.error = error instanceof Error ? error.message : String(error)
      }
    } while (this.#again)
  }
}
