// What features use now: from two reports, how much of a processor and how many calls lie between them.

/** The counters of a report that rates are made of. */
export interface Used {
  name: string
  performed: number
  calls: number
  busy_ms: number
  cpu_ms: number
}

/** What one feature uses now. */
export interface Rate {
  /** Actions and calls a second. */
  calls: number
  /** Percent of one core: at work, a call's waiting included. */
  busy: number
  /** Percent of one core. */
  cpu: number
}

/** Milliseconds between two reports that are too few to say anything. */
const SHORTEST = 500

/** Compares each report with the one before. */
export class FeatureRates {
  #before = new Map<string, { used: Used; at: number }>()
  #rates = new Map<string, Rate>()

  /** Takes the reports of a moment, in milliseconds; gives the rates by feature. Of one that is new nothing is known yet. */
  take(features: readonly Used[], now: number): ReadonlyMap<string, Rate> {
    const before = new Map<string, { used: Used; at: number }>()
    const rates = new Map<string, Rate>()
    for (const used of features) {
      const was = this.#before.get(used.name)
      const known = this.#rates.get(used.name)
      if (was && now - was.at < SHORTEST) {
        before.set(used.name, was)
        if (known) rates.set(used.name, known)
        continue
      }
      before.set(used.name, { used, at: now })
      if (was) rates.set(used.name, between(was.used, used, (now - was.at) / 1000))
    }
    this.#before = before
    this.#rates = rates
    return rates
  }
}

function between(was: Used, used: Used, seconds: number): Rate {
  // A host that was restarted counts from 0 again.
  const rate = (now: number, then: number) => Math.max(0, now - then) / seconds
  return {
    calls: rate(used.performed + used.calls, was.performed + was.calls),
    busy: rate(used.busy_ms, was.busy_ms) / 10,
    cpu: rate(used.cpu_ms, was.cpu_ms) / 10,
  }
}
