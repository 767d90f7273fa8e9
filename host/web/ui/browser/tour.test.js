// The first visit: from nothing to a mapping that works, by keyboard alone.

import assert from 'node:assert/strict'
import { describe, test } from 'node:test'

import { played } from './played.js'
import { oscInput } from './stage.js'

const config = (port) => `${oscInput('tablet', port)}
[[modes]]
name = "Play"
`

describe('the first visit', { concurrency: false }, () => {
  const { stage, peer, tab, play } = played(config)

  test('without a controller a message is sent to an OSC input, after it was agreed to twice', async () => {
    await tab.find('[data-tour="1"]', 'Touch the pad')
    assert.deepEqual(await tab.violations(), [])
    await tab.press('Send a test message')
    await tab.find('dialog label', 'action')
    await tab.press('Call')
    await tab.find('dialog pre', '/tour')
    await tab.tick('want exactly this')
    await tab.find('dialog button:disabled', 'Do it')
    await tab.type('what is to be done', 'Do')
    await tab.find('dialog button:not(:disabled)', 'Do it')
    await tab.press('Do it')
    await tab.find('dialog h3', 'Result')
    await tab.escape()
    await tab.find('[data-tour="2"]', '/tour')
  })

  test('what was touched is mapped, touched again, and works', async () => {
    await tab.press('Say what it does')
    await tab.offered('OscSend')
    await tab.type('Action', 'OscSend')
    await tab.type('target', `127.0.0.1:${peer.port}`)
    await tab.type('address', '/done')
    await tab.type('Name', 'first one')
    await tab.press('Show the plan')
    await tab.find('dialog [data-plan]', '/done')
    await tab.press('Apply')
    await tab.gone('dialog[open]')
    await tab.find('[data-tour="3"]', 'Touch it once more')
    await play('/tour')
    await tab.find('[data-tour="4"] [role=status]', 'It works: first one')
    await tab.find('[data-tour="4"] [role=status]', 'Click a control in the picture')
    await peer.came('/done')
    assert.deepEqual(await tab.violations(), [])
  })

  test('it is shown once, and again where it is asked for', async () => {
    await tab.press('Close the tour')
    await tab.gone('[data-tour]')
    await tab.go('settings')
    await tab.press('Show the tour')
    await tab.find('[data-tour="1"]')
    await tab.press('Skip the tour')
    await tab.gone('[data-tour]')
    await tab.go('')
    await tab.find('[data-device=tablet]')
    await tab.gone('[data-tour]')
  })
})
