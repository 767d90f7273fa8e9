// What controls are called by the profiles of their devices: asked for once each, for the devices that mappings wait for.

import { tool } from '../api/client'
import type { ControlNames } from '../mapping/sentence'
import { type DeviceProfile, pictureOf } from '../picture/picture'
import { host } from './host.svelte'

/** Devices that are asked about, and no more. */
const MOST = 64
const NONE: ControlNames = new Map()

class DeviceNames {
  #known = $state.raw<ReadonlyMap<string, ControlNames>>(new Map())
  readonly #asked = new Map<string, Promise<void>>()

  /** Those of a device; none of any device, or where they are not known. */
  of(device: unknown): ControlNames {
    return (typeof device === 'string' ? this.#known.get(device) : undefined) ?? NONE
  }

  /** Those of the device that a trigger waits for. */
  ofTrigger(trigger: unknown): ControlNames {
    return this.of((trigger as { device?: unknown } | null | undefined)?.device)
  }

  /** Asks for those of a device, and once more when a device comes that was away. Ends once they are known, or can't be. */
  async ask(device: unknown): Promise<void> {
    if (typeof device !== 'string') return
    const port = host.inputs.get(device)
    if (port ? port.protocol === 'artnet' : !host.aliases.has(device)) return
    const key = `${port ? 'there' : 'away'} ${device}`
    const asked = this.#asked.get(key) ?? (this.#asked.size < MOST ? this.#read(device) : Promise.resolve())
    this.#asked.set(key, asked)
    await asked
  }

  async #read(device: string): Promise<void> {
    try {
      const { placed, loose } = pictureOf((await tool<DeviceProfile>('conductor_get_device_profile', { port: device, drawing: true })).result)
      const controls = [...placed, ...loose.flatMap((group) => group.controls)]
      this.#known = new Map(this.#known).set(device, new Map(controls.map(({ key, name }) => [key, name])))
    } catch {
      // No profile fits it: its controls are called by their numbers.
    }
  }
}

export const deviceNames = new DeviceNames()
