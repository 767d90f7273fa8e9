// What was opened for something that may not come to be: it is taken back if that is given up.

/**
 * Takes a step back. Gives whether the steps before it are taken back, too: they are not, once what they were for has come
 * to be after all.
 */
type Back<T> = (done: T) => Promise<boolean>

/** Steps that are taken back, the last one first, unless what they are for comes to be. */
export class Provisional {
  #backs: (() => Promise<boolean>)[] = []
  #ended = false

  /** Does a step. If it was given up while the step was under way, the step is taken back at once. */
  async open<T>(step: () => Promise<T>, back: Back<T>): Promise<T> {
    const done = await step()
    this.#backs.push(() => back(done))
    if (this.#ended) await this.giveUp()
    return done
  }

  /** It has come to be: nothing is taken back any more. */
  keep(): void {
    this.#backs = []
  }

  /** Takes everything back that was done, or is still being done. Gives whether there was anything. */
  async giveUp(): Promise<boolean> {
    this.#ended = true
    const backs = this.#backs.toReversed()
    this.#backs = []
    for (const back of backs) {
      if (!(await back())) return false
    }
    return backs.length > 0
  }
}
