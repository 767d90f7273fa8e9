// A change that a tool proposes, shown to be decided about.

import { tool } from '../api/client'
import { dialogs } from './dialogs.svelte'
import { attempt } from './notices.svelte'

/** Has a tool propose a plan, and opens it; says what went wrong. */
export async function propose(name: string, args: Record<string, unknown>): Promise<void> {
  await attempt(async () => {
    const [plan] = (await tool(name, args)).plans
    if (plan) dialogs.open({ kind: 'plan', id: plan })
  })
}
