// What was opened for something that may not come to be: it is taken back if that is given up.

/** How a step is taken back. */
export interface Back<T> {
  /**
   * Takes it back. Gives whether the steps before it are taken back, too: they are not, once what they were for has come to
   * be after all.
   */
  now: (done: T) => Promise<boolean>
  /** The same for a page that is left: it can send something, and can't wait for the answer. */
  leaving: (done: T) => boolean
}

/** Steps that are taken back, the last one first, unless what they are for comes to be. */
export class Provisional {
  #backs: { now: () => Promise<boolean>; leaving: () => boolean }[] = []
  #ended = false

  /** Does a step. If it was given up while the step was under way, the step is taken back at once. */
  async open<T>(step: () => Promise<T>, back: Back<T>): Promise<T> {
    const done = await step()
    this.#backs.push({ now: () => back.now(done), leaving: () => back.leaving(done) })
    if (this.#ended) await this.giveUp()
    return done
  }

  /** It has come to be: nothing is taken back any more. */
  keep(): void {
    this.#backs = []
  }

  /** Takes everything back that was done, or is still being done. Gives whether there was anything. */
  async giveUp(): Promise<boolean> {
    const backs = this.#end()
    for (const { now } of backs) {
      if (!(await now())) return false
    }
    return backs.length > 0
  }

  /** The same, at once, for a page that is left. */
  leave(): void {
    this.#end().every(({ leaving }) => leaving())
  }

  /** What is to be taken back, the last step first. */
  #end() {
    this.#ended = true
    const backs = this.#backs.toReversed()
    this.#backs = []
    return backs
  }
}
