// Who asked for something, in words: the host says the door, the scope and the name that a client gives itself.

import { t } from '../text'
import { plain } from '../text/plain'

/** Who asked, as the texts of the shell have it, and the name that it gives itself; `null` where the host's own words are shown. */
export type Asker =
  | { key: 'who.browser' | 'who.here' | 'who.chat' | 'who.agent-unnamed' }
  | { key: 'who.agent'; name: string }

/** What the shell's server calls itself. */
const SHELL = 'conductor-ui'

/**
 * Reads what the host says, such as `socket:owner "conductor-cli"`. Only the owner of the home can open its socket. An escaped name
 * stays as it is.
 */
export function askerOf(said: string): Asker | null {
  const [, door = '', scope, name] = /^([a-z-]+):([a-z]+)(?: "((?:[^"\\]|\\.)*)")?(?: by elicitation)?$/.exec(said) ?? []
  if (scope === 'owner' && (door === 'socket' || door === 'cli')) return { key: name === SHELL ? 'who.browser' : 'who.here' }
  if (scope !== 'agent') return null
  if (door === 'chat') return { key: 'who.chat' }
  if (door !== 'mcp-socket' && door !== 'mcp-http') return null
  return name ? { key: 'who.agent', name } : { key: 'who.agent-unnamed' }
}

/** Who asked, as a page says it; in the host's own words where there are no others. */
export function who(said: string): string {
  const asker = askerOf(said)
  if (!asker) return plain(said, 160)
  return 'name' in asker ? t(asker.key, { name: plain(asker.name, 80) }) : t(asker.key)
}
