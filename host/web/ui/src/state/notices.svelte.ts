// What came of what a person did: one line at the edge of the page, read out once.

/** A plan that was applied, and can be taken back as long as it was the last. */
export interface AppliedPlan {
  id: string
  description: string
}

/** A line. */
export interface Notice {
  id: number
  text: string
  trouble: boolean
  /** The plan that it is about. */
  plan: AppliedPlan | null
}

/** Lines that are shown at once. */
const MOST = 4
/** How long a good one stays, in milliseconds. A bad one stays until it is closed. */
const STAYS = 8000
/** The same of one with something to press. */
const STAYS_TO_PRESS = 12_000

class Notices {
  list = $state.raw<Notice[]>([])
  #next = 0

  /** Says that something was done; with a plan that was applied, offers to take it back. */
  say(text: string, plan: AppliedPlan | null = null): void {
    const id = this.#add(text, false, plan)
    window.setTimeout(() => this.close(id), plan ? STAYS_TO_PRESS : STAYS)
  }

  /** Says that something went wrong. */
  fail(error: unknown): void {
    this.#add(error instanceof Error ? error.message : String(error), true, null)
  }

  close(id: number): void {
    this.list = this.list.filter((notice) => notice.id !== id)
  }

  #add(text: string, trouble: boolean, plan: AppliedPlan | null): number {
    const id = this.#next++
    this.list = [...this.list, { id, text, trouble, plan }].slice(-MOST)
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
