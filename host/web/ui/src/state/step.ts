// A step back or forth among the changes that were applied.

import { post } from '../api/client'
import { t } from '../text'
import { plain } from '../text/plain'
import { host } from './host.svelte'
import { attempt, notices } from './notices.svelte'

/** Takes the last change back, or makes it again, and says so. Gives whether it went well. */
export async function step(what: 'undo' | 'redo'): Promise<boolean> {
  const went = await attempt(async () => {
    const done = await post(what === 'undo' ? '/v1/undo' : '/v1/redo')
    notices.say(t(what === 'undo' ? 'step.undone' : 'step.redone', { what: plain(done?.description, 200) }))
  })
  host.changed()
  return went
}
