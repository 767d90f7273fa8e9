// A show kept by keyboard alone: mappings changed and removed, plans turned down, devices muted, features let do more and less, a
// mode added and chosen. No test of this file uses the mouse.

import assert from 'node:assert/strict'
import { join } from 'node:path'
import { describe, test } from 'node:test'

import { played } from './played.js'
import { oscInput, until } from './stage.js'

const HOSTILE = join(process.env['CONDUCTOR_FEATURES'], 'tests', 'hostile-tools.wasm')

const mapping = (name, action) => `
[[modes.mappings]]
name = "${name}"
trigger = { type = "OscMessage", address = "/${name}" }
action = ${action}
`

const config = (osc, peer) => `${oscInput('tablet', osc)}
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
  const { stage, peer, tab, play } = played(config)

  test('a mapping is opened from the list, sends elsewhere, and does so at once', async () => {
    await tab.go('mappings')
    await tab.find('th', 'curtain')
    await tab.press('Change curtain')
    await tab.find('dialog label', 'address')
    await tab.retype('address', '/raised')
    await tab.press('Show the plan')
    await tab.find('dialog [data-plan]', '/raised')
    await tab.press('Apply')
    await tab.find('dialog [role=status]', 'applied')
    await tab.escape()
    await tab.find('tr[data-place="modes/0/mappings/0"] td', '/raised')
    await play('/curtain')
    await peer.came('/raised')
    assert.equal(peer.count('/opened'), 0)
  })

  test('mappings that are not wanted any more are ticked, and go as one plan', async () => {
    await tab.go('mappings')
    await tab.find('th', 'third')
    await tab.tick('Choose first')
    await tab.tick('Choose third')
    await tab.find('button:not(:disabled)', 'Remove 2 chosen')
    await tab.press('Remove 2 chosen')
    await tab.find('dialog [data-plan]', 'Remove 2 mappings.')
    await tab.press('Apply')
    await tab.gone('dialog[open]')
    await tab.find('tr[data-place="modes/0/mappings/1"] th', 'second')
    await tab.gone('th', 'first')
    await tab.gone('th', 'third')
    assert.doesNotMatch(await stage.config(), /first|third/)
  })

  test('a plan that another client proposed is opened, read, and turned down', async () => {
    const before = await stage.config()
    const { id } = await stage.ask('POST', '/v1/plans', { description: 'A mode for the interval.', changes: [{ path: ['modes', '2'], value: { name: 'Interval' } }] })
    await tab.go('plans')
    await tab.find(`[data-plan-row="${id}"]`)
    await tab.press('A mode for the interval.')
    await tab.find(`[data-plan="${id}"]`, 'Interval')
    await tab.press('Reject')
    await tab.find('.notice', 'Rejected: A mode for the interval.')
    await tab.find('p', 'No plan waits')
    assert.deepEqual(await stage.ask('GET', '/v1/plans'), [])
    assert.equal(await stage.config(), before)
  })

  test('a device is muted for a while, and heard again', async () => {
    const isMuted = async () => (await stage.ask('GET', '/v1/bindings'))[0].muted
    await tab.go('devices')
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
    await tab.go('features')
    await tab.find('[data-feature="osc-output"]')
    await tab.type('File of this computer', HOSTILE)
    await tab.page.keyboard.press('Enter')
    await tab.find('fieldset label', 'bytes of its own data')
    await tab.tick('bytes of its own data')
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
    await tab.go('settings')
    await tab.type('New mode', 'Encore')
    await keyboard.press('Enter')
    await tab.find('dialog [data-plan]', 'Encore')
    await tab.press('Apply')
    await tab.gone('dialog[open]')
    await tab.offered('Encore')
    await tab.type('Mode', 'Encore')
    await until('the mode', async () => (await stage.ask('GET', '/v1/modes')).mode === 'Encore')
    await tab.find('li:has(.badge.good)', 'Encore')
  })
})
