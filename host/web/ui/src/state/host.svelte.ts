// The host as the shell knows it: what it was asked, and when that has to be asked again.

import { type ApiError, get, reportErrors } from '../api/client'
import type { DiscoveredPort, Protocol, StreamItem } from '../api/types'
import { FrameBatch } from '../stream/batch'
import { type Probed, type Socket, StreamConnection, type StreamState } from '../stream/connection'
import { live } from './live.svelte'
import type { AppliedPlan } from './notices.svelte'
import { Resource } from './resource.svelte'

/** A mapping, as the host has it. */
export interface Mapping {
  /** `modes/0/mappings/3`, `global_mappings/3`. */
  place: string
  mode?: string | null
  mapping: Record<string, unknown>
}

/** How often what changes without a word of the stream (counters, rates, health) is asked for, in milliseconds. */
const STATUS_EVERY = 3000
/** How often lights are asked for at most, in milliseconds: they may change with each event. */
const LIGHTS_EVERY = 100

class Host {
  stream = $state<StreamState>('connecting')
  /** Whether the last question found no host behind the shell's server. */
  away = $state(false)
  signedOut = $state(false)
  /** How often something was missing in the stream, and how much of it is known. */
  gaps = $state(0)
  /** The plan that was applied last, if nothing was undone, redone or missed since. */
  #applied = $state<string | null>(null)
  /** Rises with each event of a conversation. */
  chatNews = $state.raw<{ conversation: number; number: number } | null>(null)

  readonly status = new Resource(async () => {
    const status = await get('/v1/status')
    live.enter(status.mode)
    return status
  })
  readonly plans = new Resource(() => get('/v1/plans'))
  readonly undo = new Resource(() => get('/v1/undo').catch(none))
  readonly redo = new Resource(() => get('/v1/redo').catch(none))
  readonly mappings = new Resource(async () => {
    const written = await get('/v1/mappings')
    live.map(written.mappings)
    return written
  })
  readonly overlaps = new Resource(() => get('/v1/overlaps'))
  readonly tools = new Resource(() => get('/v1/tools'))
  readonly receipts = new Resource(() => get('/v1/receipts'))
  readonly models = new Resource(() => get('/v1/models'))
  readonly skills = new Resource(() => get('/v1/skills'))
  /** What lights show, while that is drawn. */
  readonly lights = new Resource(() => get('/v1/lights'))

  /** The inputs that are there, by what their events are called. */
  readonly inputs = $derived.by(() => {
    const inputs = new Map<string, DiscoveredPort>()
    for (const port of this.status.value?.ports ?? []) {
      if (port.direction === 'input' && !inputs.has(port.device)) inputs.set(port.device, port)
    }
    return inputs
  })
  /** Names of bindings. */
  readonly aliases = $derived(new Set((this.status.value?.bindings ?? []).map((binding) => binding.alias)))

  #connection: StreamConnection | null = null
  /** How many pictures draw lights. */
  #lightsDrawn = 0
  /** When lights were asked for last, by the page's clock in milliseconds. */
  #lightsAsked = 0
  #lightsTimer: number | null = null

  /** Begins: the stream, and what every page needs. */
  start(): void {
    live.isUnbound = (device) => this.isUnbound(device)
    reportErrors((error) => this.#noticed(error))
    const batch = new FrameBatch<StreamItem>(
      (items, left) => {
        live.take(items, performance.now())
        if (left > 0) this.gaps += 1
      },
      nextFrame,
    )
    const connection = new StreamConnection({
      open: (path) => new WebSocket(path) as unknown as Socket,
      item: (item) => {
        if (item.kind !== 'chat' && item.kind !== 'lights') batch.push(item)
        this.#follow(item)
      },
      state: (state) => {
        this.stream = state
        if (state === 'open') {
          this.signedOut = false
          this.away = false
          this.refresh()
        }
      },
      probe: () => this.#probe(),
      later: (call, milliseconds) => window.setTimeout(call, milliseconds),
      cancel: (timer) => window.clearTimeout(timer),
    })
    this.#connection = connection
    connection.connect()
    addEventListener('online', () => connection.retry())
    document.addEventListener('visibilitychange', () => {
      if (document.visibilityState === 'visible') connection.retry()
    })
    window.setInterval(() => {
      if (document.visibilityState === 'visible' && this.stream === 'open') void this.status.load()
    }, STATUS_EVERY)
  }

  /** Tries to reach the host at once. */
  retry(): void {
    this.#connection?.retry()
  }

  /** Has it be known what lights show, until the function is called that it gives. */
  drawLights(): () => void {
    this.#lightsDrawn += 1
    this.#askForLights()
    return () => {
      this.#lightsDrawn -= 1
    }
  }

  /** The host says once after each answer that it is no longer true: so it says nothing where nothing is drawn. */
  #askForLights(): void {
    if (this.#lightsDrawn === 0 || this.#lightsTimer !== null) return
    this.#lightsTimer = window.setTimeout(() => {
      this.#lightsTimer = null
      this.#lightsAsked = performance.now()
      void this.lights.load()
    }, Math.max(0, this.#lightsAsked + LIGHTS_EVERY - performance.now()))
  }

  /** Asks for everything anew that pages have open. */
  refresh(): void {
    for (const resource of [this.status, this.plans, this.undo, this.redo, this.mappings]) void resource.load()
    for (const resource of [this.overlaps, this.tools, this.receipts, this.models, this.skills]) {
      if (resource.value !== null) void resource.load()
    }
    this.#askForLights()
  }

  /** The protocol of a device's events. */
  protocol(device: string): Protocol | null {
    return this.inputs.get(device)?.protocol ?? null
  }

  /** Whether a device has no binding, so that its events carry a port's own name. */
  isUnbound(device: string): boolean {
    if (this.aliases.has(device)) return false
    const port = this.inputs.get(device)
    return port ? port.binding === null : this.status.value !== null
  }

  /** Whether it is this plan that an undo takes back. */
  isLast({ id, description }: AppliedPlan): boolean {
    return this.#applied === id && this.undo.value?.description === description
  }

  /** Says that a plan was decided, or a change undone, before the stream says it. */
  changed(): void {
    for (const resource of [this.plans, this.undo, this.redo, this.mappings, this.status]) void resource.load()
    if (this.overlaps.value) void this.overlaps.load()
  }

  #follow(item: StreamItem): void {
    switch (item.kind) {
      case 'plan':
        if (item.step === 'applied') this.#applied = item.plan
        else if (item.step === 'undone' || item.step === 'redone') this.#applied = null
        for (const resource of [this.plans, this.undo, this.redo]) void resource.load()
        break
      case 'reload':
        this.changed()
        if (this.tools.value) void this.tools.load()
        if (this.receipts.value) void this.receipts.load()
        if (this.models.value) void this.models.load()
        break
      case 'port':
      case 'mode':
      case 'lock':
        void this.status.load()
        break
      case 'lights':
        this.#askForLights()
        break
      case 'model':
        if (this.models.value) void this.models.load()
        break
      case 'gap':
        this.gaps += 1
        this.#applied = null
        this.refresh()
        this.chatNews = { conversation: 0, number: Number.MAX_SAFE_INTEGER }
        break
      case 'chat':
        this.chatNews = { conversation: item.conversation, number: item.number }
        break
      default:
    }
  }

  async #probe(): Promise<Probed> {
    try {
      await get('/v1/modes')
      return 'here'
    } catch (error) {
      const failed = error as ApiError
      return failed.isSignedOut ? 'signed-out' : 'away'
    }
  }

  #noticed(error: ApiError): void {
    if (error.isSignedOut) this.signedOut = true
    else if (error.isAway && this.stream !== 'open') this.away = true
  }
}

/** Of what can't be undone or redone there is no next step, which the API answers with 404. */
function none(error: ApiError): null {
  if (error.status === 404) return null
  throw error
}

/** The next frame, or soon, where the tab is hidden and gets no frames. */
function nextFrame(call: () => void): void {
  if (document.visibilityState === 'visible') requestAnimationFrame(call)
  else window.setTimeout(call, 500)
}

export const host = new Host()
