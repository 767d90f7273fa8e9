// What came of what a person did: one line at the edge of the page, read out once.

/** A line. */
export interface Notice {
  id: number
  text: string
  trouble: boolean
}

/** Lines that are shown at once. */
const MOST = 4
/** How long a good one stays, in milliseconds. A bad one stays until it is closed. */
const STAYS = 8000

class Notices {
  list = $state.raw<Notice[]>([])
  #next = 0

  /** Says that something was done. */
  say(text: string): void {
    const id = this.#add(text, false)
    window.setTimeout(() => this.close(id), STAYS)
  }

  /** Says that something went wrong. */
  fail(error: unknown): void {
    this.#add(error instanceof Error ? error.message : String(error), true)
  }

  close(id: number): void {
    this.list = this.list.filter((notice) => notice.id !== id)
  }

  #add(text: string, trouble: boolean): number {
    const id = this.#next++
    this.list = [...this.list, { id, text, trouble }].slice(-MOST)
    return id
  }
}

export const notices = new Notices()

/** Does something that a person asked for, and says what went wrong. Gives whether it went well. */
export async function attempt(what: () => Promise<unknown>): Promise<boolean> {
  try {
    await what()
    return true
  } catch (error) {
    notices.fail(error)
    return false
  }
}
