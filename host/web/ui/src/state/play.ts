// What a device would send, played by the host as if the device's port had sent it.

import { post } from '../api/client'
import type { Step } from '../mapping/try-out'

/** Plays events of a device, one after the other. */
export async function play(device: string, steps: readonly Step[]): Promise<void> {
  for (const { event, after } of steps) {
    if (after > 0) await new Promise((resolve) => window.setTimeout(resolve, after))
    await post('/v1/play', {}, { device, event })
  }
}
