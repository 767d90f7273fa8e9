// The first visit: from nothing to a mapping that works, by keyboard alone.

import assert from 'node:assert/strict'
import { after, afterEach, before, describe, test } from 'node:test'

import { OscPeer, Stage, until } from './stage.js'

const config = (port) => `
[[bindings]]
alias = "tablet"
protocol = "osc"
input = { host = "127.0.0.1", port = ${port} }

[[modes]]
name = "Play"
`

describe('the first visit', { concurrency: false }, () => {
  let stage
  let peer
  let tab

  before(async () => {
    stage = await Stage.start(config)
    peer = await OscPeer.open()
    tab = await stage.tab(stage.link)
    await tab.find('[data-state=open]')
  })
  after(async () => {
    peer?.close()
    await stage?.end()
  })
  afterEach(async () => {
    assert.deepEqual(await tab.wrong(), [], 'nothing is refused by the policy, fails or comes from elsewhere')
  })

  const press = (text) => tab.press(text)

  test('without a controller a message is sent to an OSC input, after it was agreed to twice', async () => {
    await tab.find('[data-tour="1"]', 'Touch the pad')
    assert.deepEqual(await tab.violations(), [])
    await press('Send a test message')
    await tab.find('dialog label', 'action')
    await press('Call')
    await tab.find('dialog pre', '/tour')
    await tab.tabTo('want exactly this')
    await tab.page.keyboard.press(' ')
    const phrase = await (await tab.find('dialog label', 'to go on')).evaluate((one) => /Type (.*) to go on/.exec(one.textContent)?.[1])
    await tab.tabTo('to go on')
    await tab.page.keyboard.type(phrase)
    await press('Do it')
    await tab.find('dialog h3', 'Result')
    await tab.page.keyboard.press('Escape')
    await tab.gone('dialog[open]')
    await tab.find('[data-tour="2"]', '/tour')
  })

  test('what was touched is mapped, touched again, and works', async () => {
    const { keyboard } = tab.page
    await press('Say what it does')
    await until('the actions', () => tab.page.evaluate(() => [...document.querySelectorAll('dialog option')].some((one) => one.value === 'OscSend')))
    await tab.tabTo('Action')
    await keyboard.type('OscSend')
    await tab.tabTo('target')
    await keyboard.type(`127.0.0.1:${peer.port}`)
    await tab.tabTo('address')
    await keyboard.type('/done')
    await tab.tabTo('Name')
    await keyboard.type('first one')
    await press('Show the plan')
    await tab.find('dialog [data-plan]', '/done')
    await press('Apply')
    await tab.find('dialog [role=status]', 'applied')
    await keyboard.press('Escape')
    await tab.gone('dialog[open]')
    await tab.find('[data-tour="3"]', 'Touch it once more')
    await peer.send(stage.osc, '/tour', 1)
    await tab.find('[data-tour="4"] [role=status]', 'It works: first one')
    await until('the packet', () => peer.received.some((bytes) => bytes.toString('latin1').startsWith('/done\0')))
    assert.deepEqual(await tab.violations(), [])
  })

  test('it is shown once, and again where it is asked for', async () => {
    await press('Close the tour')
    await tab.gone('[data-tour]')
    await tab.page.goto(`${stage.origin}/settings`)
    await tab.find('[data-state=open]')
    await press('Show the tour')
    await tab.find('[data-tour="1"]')
    await press('Skip the tour')
    await tab.gone('[data-tour]')
    await tab.page.goto(stage.origin)
    await tab.find('[data-state=open]')
    await tab.find('[data-device=tablet]')
    await tab.gone('[data-tour]')
  })
})
