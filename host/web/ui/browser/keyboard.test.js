// A show kept by keyboard alone: mappings changed and removed, plans turned down, devices muted, features let do more and less, a
// mode added and chosen. No test of this file uses the mouse.

import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { after, afterEach, before, describe, test } from 'node:test'

import { OscPeer, Stage, until } from './stage.js'

const HOSTILE = join(process.env['CONDUCTOR_FEATURES'], 'tests', 'hostile-tools.wasm')

const mapping = (name, action) => `
[[modes.mappings]]
name = "${name}"
trigger = { type = "OscMessage", address = "/${name}" }
action = ${action}
`

const config = (osc, peer) => `
[[bindings]]
alias = "tablet"
protocol = "osc"
input = { host = "127.0.0.1", port = ${osc} }

[[modes]]
name = "Play"
${mapping('curtain', `{ type = "OscSend", target = "127.0.0.1:${peer}", address = "/opened" }`)}
${mapping('first', '{ type = "ModeChange", mode = "Mix" }')}
${mapping('second', '{ type = "ModeChange", mode = "Mix" }')}
${mapping('third', '{ type = "ModeChange", mode = "Mix" }')}

[[modes]]
name = "Mix"
`

describe('by keyboard alone', { concurrency: false }, () => {
  let stage
  let peer
  let tab

  before(async () => {
    peer = await OscPeer.open()
    stage = await Stage.start((osc) => config(osc, peer.port))
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

  const play = (address) => peer.send(stage.osc, address, 1)
  const came = (address) => until(address, () => peer.received.some((bytes) => bytes.toString('latin1').startsWith(`${address}\0`)))
  const text = () => readFile(join(stage.home, 'config.toml'), 'utf8')
  /** Opens a page anew, and waits for its stream. */
  const go = async (page) => {
    await tab.page.goto(`${stage.origin}/${page}`)
    await tab.find('[data-state=open]')
  }
  /** Goes to a field, and writes this in the place of what is in it. */
  const write = async (label, text) => {
    const { keyboard } = tab.page
    await tab.tabTo(label)
    await keyboard.down('Control')
    await keyboard.press('a')
    await keyboard.up('Control')
    await keyboard.type(text)
  }
  /** Goes to a box, and ticks it. */
  const tick = async (label) => {
    await tab.tabTo(label)
    await tab.page.keyboard.press(' ')
  }

  test('a mapping is opened from the list, sends elsewhere, and does so at once', async () => {
    await go('mappings')
    await tab.find('th', 'curtain')
    await tab.press('Change curtain')
    await tab.find('dialog label', 'address')
    await write('address', '/raised')
    await tab.press('Show the plan')
    await tab.find('dialog [data-plan]', '/raised')
    await tab.press('Apply')
    await tab.find('dialog [role=status]', 'applied')
    await tab.page.keyboard.press('Escape')
    await tab.gone('dialog[open]')
    await tab.find('tr[data-place="modes/0/mappings/0"] td', '/raised')
    await play('/curtain')
    await came('/raised')
    assert.equal(peer.received.some((bytes) => bytes.toString('latin1').startsWith('/opened\0')), false)
  })

  test('mappings that are not wanted any more are ticked, and go as one plan', async () => {
    await go('mappings')
    await tab.find('th', 'third')
    await tick('Choose first')
    await tick('Choose third')
    await tab.find('button:not(:disabled)', 'Remove 2 chosen')
    await tab.press('Remove 2 chosen')
    await tab.find('dialog [data-plan]', 'Remove 2 mappings.')
    await tab.press('Apply')
    await tab.gone('dialog[open]')
    await tab.find('tr[data-place="modes/0/mappings/1"] th', 'second')
    await tab.gone('th', 'first')
    await tab.gone('th', 'third')
    assert.doesNotMatch(await text(), /first|third/)
  })

  test('a plan that another client proposed is opened, read, and turned down', async () => {
    const before = await text()
    const { id } = await stage.ask('POST', '/v1/plans', { description: 'A mode for the interval.', changes: [{ path: ['modes', '2'], value: { name: 'Interval' } }] })
    await go('plans')
    await tab.find(`[data-plan-row="${id}"]`)
    await tab.press('A mode for the interval.')
    await tab.find(`[data-plan="${id}"]`, 'Interval')
    await tab.press('Reject')
    await tab.find('.notice', 'Rejected: A mode for the interval.')
    await tab.find('p', 'No plan waits')
    assert.deepEqual(await stage.ask('GET', '/v1/plans'), [])
    assert.equal(await text(), before)
  })

  test('a device is muted for a while, and heard again', async () => {
    const isMuted = async () => (await stage.ask('GET', '/v1/bindings'))[0].muted
    await go('devices')
    await tab.find('[data-binding=tablet]')
    await tab.press('Mute until restart tablet')
    await tab.find('[data-binding=tablet] .badge', 'muted until restart')
    assert.equal(await isMuted(), true)
    await tab.find('[data-binding=tablet] button', 'Unmute tablet')
    await tab.press('Unmute tablet')
    await tab.gone('[data-binding=tablet] .badge', 'muted until restart')
    assert.equal(await isMuted(), false)
  })

  test('a feature is looked at, installed with one grant, given the rest, and made to give one back', async () => {
    const name = 'hostile-tools'
    const feature = async () => (await stage.ask('GET', '/v1/features')).find((one) => one.name === name)
    await go('features')
    await tab.find('[data-feature="osc-output"]')
    await tab.tabTo('File of this computer')
    await tab.page.keyboard.type(HOSTILE)
    await tab.page.keyboard.press('Enter')
    await tab.find('fieldset label', 'bytes of its own data')
    await tick('bytes of its own data')
    await tab.find('fieldset input:checked')
    await tab.press('Install')
    await tab.find(`[data-feature="${name}"] .badge`, 'loaded')
    await tab.press(name)
    await tab.find('.details .badge', 'store: 65536')
    assert.equal((await feature()).grants.alert ?? false, false, 'what was not ticked is not granted')
    await tab.press('Grant all that it asks for')
    await tab.find('.details .badge', 'alert')
    await until('it is in force', async () => (await feature()).grants.alert === true)
    await tab.find('.details button:not(:disabled)', 'Take away: alert')
    await tab.press('Take away: alert')
    await tab.find('.notice', `What ${name} was granted was taken away.`)
    await until('it is in force', async () => !(await feature()).grants.alert)
  })

  test('a mode is added, and chosen for the whole show', async () => {
    const { keyboard } = tab.page
    await go('settings')
    await tab.tabTo('New mode')
    await keyboard.type('Encore')
    await keyboard.press('Enter')
    await tab.find('dialog [data-plan]', 'Encore')
    await tab.press('Apply')
    await tab.gone('dialog[open]')
    await until('it can be chosen', () => tab.page.evaluate(() => [...document.querySelectorAll('header option')].some((one) => one.value === 'Encore')))
    await tab.tabTo('Mode')
    await keyboard.type('Encore')
    await until('the mode', async () => (await stage.ask('GET', '/v1/modes')).mode === 'Encore')
    await tab.find('li:has(.badge.good)', 'Encore')
  })
})
