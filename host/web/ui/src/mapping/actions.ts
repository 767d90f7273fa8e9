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

/** What most mappings do, the most usual first. */
const USUAL = ['Keystroke', 'Text', 'OscSend', 'SendMidi', 'MidiForward', 'ModeChange', 'Launch']
/** Characters of a summary in a list: the whole of it is said once the action is chosen. */
const MAX_LISTED = 90

/** The actions that most mappings have, in the order of how usual they are, and all the others. */
export function byUse(all: readonly Action[]): { usual: Action[]; others: Action[] } {
  return {
    usual: USUAL.flatMap((type) => all.filter((one) => one.type === type)),
    others: all.filter(({ type }) => !USUAL.includes(type)),
  }
}

/** What stands in a list, such as a summary: cut after a word if it is long. */
export function inList(text: string): string {
  if (text.length <= MAX_LISTED) return text
  const cut = text.slice(0, MAX_LISTED)
  const word = cut.lastIndexOf(' ')
  return `${(word > 0 ? cut.slice(0, word) : cut).replace(/[\s,.:;]+$/, '')} …`
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
