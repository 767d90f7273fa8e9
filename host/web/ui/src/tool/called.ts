// What a tool is called by what it does. Its own name is for agents and the terminal.

import { has, t } from '../text'
import { plain } from '../text/plain'

/** What a tool does, in a few words; of one that the shell has no text for, the words of its name. */
export function toolCalled(name: string): string {
  const key = `tool-name.${name}`
  if (has(key)) return t(key)
  const words = name.replace(/^conductor_/, '').replaceAll('_', ' ').trim()
  return plain(words ? words.charAt(0).toUpperCase() + words.slice(1) : name, 80)
}
