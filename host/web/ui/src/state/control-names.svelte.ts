// What controls are called by the profiles of their devices: asked for once each, for the devices that mappings wait for.

import { tool } from '../api/client'
import type { ControlNames } from '../mapping/sentence'
import { type DeviceProfile, pictureOf } from '../picture/picture'

/** Devices that are asked about, and no more. */
const MOST = 64
const NONE: ControlNames = new Map()

class DeviceNames {
  #known = $state.raw<ReadonlyMap<string, ControlNames>>(new Map())
  readonly #asked = new Set<string>()

  /** Those of a device; none of any device, or where they are not known. */
  of(device: unknown): ControlNames {
    return (typeof device === 'string' ? this.#known.get(device) : undefined) ?? NONE
  }

  /** Those of the device that a trigger waits for. */
  ofTrigger(trigger: unknown): ControlNames {
    return this.of((trigger as { device?: unknown } | null | undefined)?.device)
  }

  /** Asks for those of a device, and once more when a device comes that was away. */
  ask(device: string, isThere: boolean): void {
    const key = `${isThere ? 'there' : 'away'} ${device}`
    if (this.#asked.has(key) || this.#asked.size >= MOST) return
    this.#asked.add(key)
    tool<DeviceProfile>('conductor_get_device_profile', { port: device, drawing: true })
      .then(({ result }) => {
        const { placed, loose } = pictureOf(result)
        const controls = [...placed, ...loose.flatMap((group) => group.controls)]
        this.#known = new Map(this.#known).set(device, new Map(controls.map(({ key, name }) => [key, name])))
      })
      // No profile fits it: its controls are called by their numbers.
      .catch(() => {})
  }
}

export const deviceNames = new DeviceNames()
