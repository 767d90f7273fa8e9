// What the tests of a `describe` play on together, from the first to the last.

import assert from 'node:assert/strict'
import { after, afterEach, before } from 'node:test'

import { OscPeer, Stage, Tab } from './stage.js'

/**
 * Registers, for the `describe` that it is called in, that a stage is there with a signed-in tab and an OSC peer, and that nothing
 * goes wrong in the tab. What it gives is filled before the first test.
 *
 * `config` makes the configuration, of the port at which the host hears OSC and the peer's; `env` are variables of the host's.
 */
export function played(config, env) {
  const stage = new Stage()
  const peer = new OscPeer()
  const tab = new Tab(stage)

  before(async () => {
    await peer.open()
    await stage.start((osc) => config(osc, peer.port), env)
    await tab.open(stage.link)
    await tab.find('[data-state=open]')
  })
  after(async () => {
    peer.close()
    await stage.end()
  })
  afterEach(async () => {
    assert.deepEqual(await tab.wrong(), [], 'nothing is refused by the policy, fails or comes from elsewhere')
  })

  /** What the device at the host's port sends. */
  const play = (address, value = 1) => peer.send(stage.osc, address, value)
  return { stage, peer, tab, play }
}
