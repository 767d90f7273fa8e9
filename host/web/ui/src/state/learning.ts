// Learning by touch, at the host that the page is of.

import { tool } from '../api/client'
import { type LearnOptions, LearnSession } from '../mapping/learn'
import { host } from './host.svelte'

/** Begins to learn: from one device, or from any. What is begun has to be ended, if it has not ended by itself. */
export function learn(on: Pick<LearnOptions, 'listening' | 'moving' | 'learned' | 'failed'>, device: string | null = null): LearnSession {
  const session = new LearnSession({
    ...on,
    tool: async (name, args) => (await tool(name, args)).result,
    count: async () => {
      await host.status.load()
      const ports = (host.status.value?.ports ?? []).filter((port) => device === null || port.device === device || port.bindings.includes(device))
      return ports.reduce((sum, port) => sum + port.events + port.unheard, 0)
    },
    now: () => performance.now(),
    later: (call, milliseconds) => window.setTimeout(call, milliseconds),
    cancel: (timer) => window.clearTimeout(timer),
  }, device)
  void session.start()
  return session
}
