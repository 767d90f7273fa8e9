// The actions that a mapping may have: the host's own, and those of features.

import { tool } from '../api/client'

/** An action. */
export interface Action {
  type: string
  /** The feature that has it; none if it is the host's own. */
  feature?: string | null
  summary: string
  /** The JSON Schema of its keys, if it was asked for by its type. */
  keys?: unknown
}

/** Every action, without its keys. One answer has room for so many; the others are on further pages. */
export async function allActions(): Promise<Action[]> {
  const all: Action[] = []
  let more = true
  while (more) {
    const { result } = await tool<{ actions: Action[]; total?: number }>('conductor_list_actions', { after: all.length })
    all.push(...result.actions)
    more = result.actions.length > 0 && all.length < (result.total ?? 0)
  }
  return all
}
