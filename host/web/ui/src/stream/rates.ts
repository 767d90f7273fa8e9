// How often each device is heard, and which kinds of events it sends.

/** What is known of a device from the stream. */
export interface Heard {
  device: string
  /** Events since the page was opened. */
  count: number
  /** Events a second, over the last few seconds. */
  rate: number
  /** Milliseconds of the page's clock at its last event. */
  last: number
  /** Kinds, with how often each was heard. */
  kinds: Map<string, number>
}

/** Seconds that a rate is taken over. */
const WINDOW = 4
/** Devices that are remembered; of more, those that were heard last. */
export const MAX_DEVICES = 600
/** Kinds that are remembered of one device. */
const MAX_KINDS = 32

interface Counted extends Heard {
  seconds: number[]
}

/** Counts events by their device. */
export class Rates {
  #devices = new Map<string, Counted>()

  /** Counts an event that came at this moment of the page's clock, in milliseconds. */
  count(device: string, kind: string, now: number): void {
    let heard = this.#devices.get(device)
    if (!heard) {
      if (this.#devices.size >= MAX_DEVICES) this.#forgetOldest()
      heard = { device, count: 0, rate: 0, last: now, kinds: new Map(), seconds: [] }
      this.#devices.set(device, heard)
    }
    heard.count += 1
    heard.last = now
    if (heard.kinds.has(kind) || heard.kinds.size < MAX_KINDS) {
      heard.kinds.set(kind, (heard.kinds.get(kind) ?? 0) + 1)
    }
    const second = Math.floor(now / 1000)
    const slot = second % (WINDOW + 1)
    if (heard.seconds[slot * 2] !== second) {
      heard.seconds[slot * 2] = second
      heard.seconds[slot * 2 + 1] = 0
    }
    heard.seconds[slot * 2 + 1] = (heard.seconds[slot * 2 + 1] ?? 0) + 1
  }

  /** When a device was heard last; `undefined` if it never was. */
  last(device: string): number | undefined {
    return this.#devices.get(device)?.last
  }

  /** Every device, by its name, with its rate over the last seconds that are whole. */
  at(now: number): Heard[] {
    const current = Math.floor(now / 1000)
    const all = [...this.#devices.values()]
    for (const heard of all) {
      let events = 0
      for (let slot = 0; slot <= WINDOW; slot += 1) {
        const second = heard.seconds[slot * 2]
        if (second !== undefined && second < current && second >= current - WINDOW) events += heard.seconds[slot * 2 + 1] ?? 0
      }
      heard.rate = events / WINDOW
    }
    return all.toSorted((one, other) => one.device.localeCompare(other.device))
  }

  #forgetOldest(): void {
    let oldest: Counted | undefined
    for (const heard of this.#devices.values()) if (!oldest || heard.last < oldest.last) oldest = heard
    if (oldest) this.#devices.delete(oldest.device)
  }
}
