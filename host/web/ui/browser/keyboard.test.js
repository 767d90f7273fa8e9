// A show kept by keyboard alone: mappings made, tried, changed and removed, plans decided, bindings, profiles and settings changed,
// devices muted, features let do more and less, modes added and chosen, models added and removed. No test of this file uses the
// mouse.

import assert from 'node:assert/strict'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'

import { ScriptedModel } from './model.js'
import { played } from './played.js'
import { oscInput, until } from './stage.js'

const HELLO = join(process.env['CONDUCTOR_FEATURES'], 'tests', 'hello.wasm')
const HOSTILE = join(process.env['CONDUCTOR_FEATURES'], 'tests', 'hostile-tools.wasm')
const KEY = 'key-of-the-test'

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
  let model
  const { stage, peer, tab, play } = played(config, { SHELL_TEST_KEY: KEY })
  before(async () => {
    model = await ScriptedModel.open([], ['small', 'large'])
  })
  after(() => model?.close())

  /** Says in the dialog that a message is sent to the peer, up to the plan of it, and applies that. */
  const mapTo = async (address, name) => {
    await tab.offered('OscSend')
    await tab.type('Action', 'OscSend')
    await tab.type('target', `127.0.0.1:${peer.port}`)
    await tab.type('address', address)
    await tab.type('Name', name)
    await tab.press('Show the plan')
    await tab.find('dialog [data-plan]', address)
    await tab.press('Apply')
    await tab.gone('dialog[open]')
  }
  /** Applies the plan of the dialog; types the digits of its id first if they are asked for. */
  const agree = async (said) => {
    const plan = await tab.find('dialog [data-plan]', said)
    await tab.find('dialog button', 'Apply')
    if (await plan.evaluate((one) => one.querySelector('input[maxlength]') !== null)) {
      const id = await plan.evaluate((one) => one.dataset.plan)
      await tab.type('does not apply a privileged plan', id.slice(0, 6))
      await tab.find('dialog button:not(:disabled)', 'Apply')
    }
    await tab.press('Apply')
  }
  /** The same, of a plan that closes its dialog. */
  const apply = async (said) => {
    await agree(said)
    await tab.gone('dialog[open]')
  }
  const undo = async () => {
    await tab.find('header button:not(:disabled)', 'Undo')
    await tab.press('Undo')
    await tab.find('.notice', 'Undone')
  }

  // SHL-4, SHL-5
  test('a control of the picture is gone to and mapped, does so though nobody touches it, and is free again', async () => {
    await tab.go('?device=tablet')
    await play('/left')
    await play('/right')
    await tab.find('[data-control="osc /left"]')
    await tab.find('[data-control="osc /right"]')
    await tab.tabTo('/left, 100 %')
    await tab.page.keyboard.press('ArrowRight')
    await tab.page.keyboard.press('Enter')
    await tab.find('dialog h2', '/right')
    await tab.press('New mapping')
    await mapTo('/lamp', 'right one')
    await tab.press('/right, 100 %')
    await tab.find('dialog td', 'right one')
    assert.equal(peer.count('/lamp'), 0)
    await tab.press('Play it')
    await peer.came('/lamp')
    await tab.find('dialog [role=status]', 'as if the device had sent it')
    assert.deepEqual(await tab.violations(), [])
    await tab.escape()
    await undo()
    assert.doesNotMatch(await stage.config(), /right one/)
  })

  test('a control that is touched is learned and mapped', async () => {
    await tab.go('mappings')
    await tab.press('New mapping')
    await tab.press('Learn by touch')
    await tab.find('dialog [data-learning=listening]')
    await play('/touched', 1)
    await play('/touched', 0)
    await tab.find('dialog [data-learned=button]')
    await mapTo('/learned', 'touched')
    await play('/touched', 1)
    await peer.came('/learned')
    await undo()
    await tab.gone('th', 'touched')
  })

  test('a mapping is looked for and tried, moved to another mode, and has to wait for one device', async () => {
    await tab.go('mappings')
    await tab.find('th', 'curtain')
    await tab.type('Search mappings', 'curt')
    await tab.find('[role=status]', '1 of 4 mappings')
    await tab.press('Try it curtain')
    await peer.came('/opened')
    await tab.go('mappings')
    await tab.find('th', 'second')
    await tab.tick('Choose second')
    await tab.type('Move to', 'Mix')
    await tab.find('button:not(:disabled)', 'Move 1 chosen')
    await tab.press('Move 1 chosen')
    await apply('Move 1 mapping to Mix.')
    await tab.find('tr[data-place="modes/1/mappings/0"] th', 'second')
    await tab.tick('Choose second')
    await tab.type('Wait for', 'tablet')
    await tab.find('button:not(:disabled)', 'Set for 1 chosen')
    await tab.press('Set for 1 chosen')
    await apply('Have 1 mapping wait for tablet.')
    await tab.find('tr[data-place="modes/1/mappings/0"] td', 'from tablet only')
    assert.match(await stage.config(), /device = "tablet"/)
    await undo()
    await tab.gone('td', 'from tablet only')
    await tab.find('header button:not(:disabled)', 'Undo')
    await tab.press('Undo')
    await tab.find('tr[data-place="modes/0/mappings/2"] th', 'second')
  })

  test('a mapping is opened from the list, sends elsewhere, and does so at once', async () => {
    await tab.go('mappings')
    await tab.find('th', 'curtain')
    await tab.press('Change curtain')
    await tab.find('dialog label', 'address')
    await tab.retype('address', '/raised')
    await tab.press('Show the plan')
    await tab.find('dialog [data-plan]', '/raised')
    await tab.press('Apply')
    await tab.gone('dialog[open]')
    await tab.find('tr[data-place="modes/0/mappings/0"] td', '/raised')
    const before = peer.count('/opened')
    await play('/curtain')
    await peer.came('/raised')
    assert.equal(peer.count('/opened'), before)
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

  test('a privileged plan is applied once the first digits of its id are typed, and taken back', async () => {
    const mapping = { name: 'starts', trigger: { type: 'OscMessage', address: '/start' }, action: { type: 'Shell', command: '/bin/true' } }
    const { id } = await stage.ask('POST', '/v1/plans', { description: 'Start a program.', changes: [{ path: ['global_mappings', '0'], value: mapping }] })
    await tab.go(`plans/${id}`)
    await tab.find('[data-plan] .badge.bad', 'privileged')
    await tab.find('button:disabled', 'Apply')
    await tab.type('does not apply a privileged plan', id.slice(0, 6))
    await tab.find('button:not(:disabled)', 'Apply')
    await tab.press('Apply')
    await tab.find('.notice', 'Applied: Start a program.')
    assert.match(await stage.config(), /\/bin\/true/)
    await undo()
    assert.doesNotMatch(await stage.config(), /\/bin\/true/)
  })

  test('a setting that is refused is mended at its field', async () => {
    const before = await stage.config()
    await tab.go('settings')
    await tab.find('label', 'max_midi_ports')
    await tab.retype('max_midi_ports', '257')
    await tab.press('Show the plan')
    await tab.find('.field .bad', 'out of range')
    assert.equal(await stage.config(), before)
    await tab.retype('max_midi_ports', '8')
    await tab.press('Show the plan')
    await apply('max_midi_ports = 8')
    assert.match(await stage.config(), /max_midi_ports = 8/)
    await undo()
  })

  test('a profile is made, changed and removed', async () => {
    await tab.go('settings')
    await tab.find('button:not(:disabled)', 'New profile')
    await tab.press('New profile')
    await tab.find('dialog label', 'apps')
    await tab.type('name', 'Studio')
    await tab.type('apps', 'Live')
    await tab.type('mode', 'Mix')
    await tab.press('Call')
    await apply('Add the profile Studio: Mix for Live.')
    await tab.find('[data-profile="Studio"]', 'Live → Mix')
    await tab.press('Change Studio')
    await tab.find('dialog h2', 'Change Studio')
    await tab.retype('mode', 'Play')
    await tab.press('Call')
    await apply('Change the profile Studio.')
    await tab.find('[data-profile="Studio"]', 'Live → Play')
    assert.match(await stage.config(), /Studio/)
    await tab.press('Remove Studio')
    await apply('Remove the profile Studio.')
    await tab.gone('[data-profile]')
    assert.doesNotMatch(await stage.config(), /Studio/)
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

  test('a feature that keeps trapping is let out of quarantine', async () => {
    const row = '[data-feature="hostile-tools"]'
    const quarantine = async () => (await stage.ask('GET', '/v1/features')).find((one) => one.name === 'hostile-tools').quarantine
    const trap = () => stage.ask('POST', '/v1/tools/look', { args: { how: 'trap' } }).then(() => assert.fail('it answered'), () => {})
    await tab.go('features')
    await tab.find(row)
    // The first quarantine is short: where the page is slower, the next one is longer.
    await until('the quarantine on the page', async () => {
      const left = await quarantine()
      if (left == null) await trap()
      return left > 5 && (await tab.page.evaluate((row) => document.querySelector(`${row} .badge.bad`)?.textContent.includes('quarantined'), row))
    })
    await tab.press('End the quarantine hostile-tools')
    await tab.find('.notice', 'hostile-tools is out of quarantine')
    await tab.find(`${row} .badge`, 'loaded')
    assert.equal((await stage.ask('POST', '/v1/tools/look', { args: {} })).result, 'done')
  })

  test('a feature is upgraded, brought back to the version before, disabled and enabled', async () => {
    const { keyboard } = tab.page
    const row = '[data-feature="hello"]'
    const version = async () => (await stage.ask('GET', '/v1/features')).find((one) => one.name === 'hello')?.package.version
    // The same feature, as another version: its descriptor says so, in each of its copies, and nothing else differs.
    const old = await readFile(HELLO, 'latin1')
    assert.match(old, /version = "1\.0\.0"/)
    const newer = join(stage.home, 'hello-newer.wasm')
    await writeFile(newer, old.replaceAll('version = "1.0.0"', 'version = "1.0.1"'), 'latin1')

    await tab.go('features')
    await tab.find('[data-feature="osc-output"]')
    await tab.type('File of this computer', HELLO)
    await keyboard.press('Enter')
    await tab.find('legend', 'What it asks for')
    await tab.press('Install')
    await tab.find(`${row} .badge`, 'loaded')
    assert.equal(await version(), '1.0.0')
    await tab.type('File of this computer', newer)
    await tab.type('In place of', 'hello')
    await tab.press('Look at it')
    await tab.find('p', 'It takes the place of version 1.0.0.')
    assert.deepEqual(await tab.violations(), [])
    await tab.press('Install')
    await tab.find(`${row} th`, '1.0.1')
    await tab.find('li', 'upgrade hello 1.0.1')
    assert.equal(await version(), '1.0.1')
    await tab.press('hello')
    await tab.find('.details button:not(:disabled)', 'Go back to the version before')
    await tab.press('Go back to the version before')
    await tab.find('.notice', 'hello is back at the version before.')
    await tab.find(`${row} th`, '1.0.0')
    assert.equal(await version(), '1.0.0')
    await tab.press('Disable hello')
    await tab.find('.notice', 'hello is disabled')
    assert.equal(await version(), undefined, 'no host loads it')
    await tab.find(`${row} button:not(:disabled)`, 'Enable hello')
    await tab.press('Enable hello')
    await tab.find('.notice', 'hello is enabled')
    await tab.find(`${row} .badge`, 'loaded')
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

  test('a mode that is not wanted any more is removed', async () => {
    await tab.go('settings')
    await tab.type('New mode', 'Coda')
    await tab.page.keyboard.press('Enter')
    await apply('Coda')
    await tab.find('li button', 'Remove Coda')
    await tab.press('Remove Coda')
    await apply('Coda')
    await tab.gone('li button', 'Remove Coda')
    assert.doesNotMatch(await stage.config(), /Coda/)
  })

  test('a model is added, answers, and is talked with', async () => {
    const { keyboard } = tab.page
    model.answers.push({ text: 'ok' }, { text: 'Here I am.' })
    await tab.go('settings')
    await tab.find('button', 'Add a model')
    await tab.press('Add a model')
    await tab.offered('openai-compatible')
    await tab.type('Provider', 'openai-compatible')
    await tab.type('Address of the API', model.url)
    await tab.offered('model-key')
    await tab.type('Key', 'model-key')
    await tab.press('Continue')
    await tab.find('dialog h3', `Let openai-compatible send requests to 127.0.0.1:${model.port}, with the key model-key?`)
    assert.equal(model.keys.length, 0, 'nothing is asked before the person agrees')
    await tab.type('variable of the host', 'SHELL_TEST_KEY')
    await tab.press('Agree, and go on')
    await tab.find('dialog h3', 'Which model?')
    await tab.find('dialog .offered button', 'small')
    await tab.type('Model, or a part of its name', 'lar')
    await tab.gone('dialog .offered button', 'small')
    await tab.press('large')
    await tab.find('dialog .offered button[aria-pressed=true]', 'large')
    await tab.press('Show the plan')
    await agree('adds the model')
    await tab.find('dialog [data-checked=answers]')
    await tab.press('Talk with it')
    await tab.gone('dialog[open]')
    await tab.find('h1', 'Chat')
    await tab.find('.log[aria-busy=false]')
    await tab.type('Your message', 'Are you there?')
    await keyboard.press('Enter')
    await tab.find('.said', 'Here I am.')
    assert.deepEqual(model.asked.map((one) => one.model), ['large', 'large'])
    assert.ok(model.keys.length > 2 && model.keys.every((key) => key === `Bearer ${KEY}`), JSON.stringify(model.keys))
  })

  test('a button has the focus again when what it asked for has come', async () => {
    model.answers.push({ text: 'ok' })
    await tab.go('settings')
    await tab.find('[data-model="large"] button', 'Ask it for a word')
    await tab.press('Ask it for a word large')
    await tab.find('.notice', 'large answers')
    await tab.find('[data-model="large"] button:not(:disabled)', 'Ask it for a word')
    await until('the focus', () => tab.page.evaluate(() => document.activeElement?.matches('[data-model="large"] button')))
  })

  test('a model that is not wanted any more is removed, with its key and what was granted for it', async () => {
    const left = (text) => tab.find('dialog [data-left] button:not(:disabled)', text)
    await tab.go('settings')
    await tab.find('[data-model="large"] button', 'Remove')
    await tab.press('Remove large')
    await agree('removes the model')
    await left('Forget the key')
    await tab.press('Forget the key')
    await until('it is forgotten', async () => !('model-key' in (await stage.ask('GET', '/v1/secrets'))))
    await left('Take it back')
    await tab.press('Take it back')
    await until('it is taken back', async () => !(await stage.config()).includes(String(model.port)))
    await tab.escape()
    await tab.gone('[data-model]')
    assert.deepEqual(await stage.ask('GET', '/v1/models'), [])
  })

  test('a binding gets another name, and hears as before', async () => {
    await tab.go('devices')
    await tab.find('[data-binding=tablet] button:not(:disabled)', 'Change tablet')
    await tab.press('Change tablet')
    await tab.find('dialog h2', 'Change tablet')
    await tab.retype('new_alias', 'desk')
    await tab.press('Call')
    await apply('call it desk')
    await tab.find('[data-binding=desk]')
    assert.match(await stage.config(), /alias = "desk"/)
    await until('its port is open', async () => (await stage.ask('GET', '/v1/status')).ports.some((port) => port.device === 'desk' && port.connected))
    await tab.go('')
    await play('/from-desk')
    const { cells } = await tab.rowWith('/from-desk')
    assert.equal(cells[2], 'desk')
  })

  test('a binding is removed, and comes back with the step before', async () => {
    await tab.go('devices')
    await tab.find('[data-binding] button', 'Remove ')
    const [alias] = await tab.page.evaluate(() => [...document.querySelectorAll('[data-binding]')].map((one) => one.dataset.binding))
    await tab.press(`Remove ${alias}`)
    await apply(alias)
    await tab.gone('[data-binding]')
    assert.deepEqual(await stage.ask('GET', '/v1/bindings'), [])
    assert.doesNotMatch(await stage.config(), /\[\[bindings\]\]/)
    await undo()
    await tab.find(`[data-binding="${alias}"] .badge`, 'working')
  })

  test('the show is locked, and unlocked', async () => {
    const isLocked = async () => (await stage.ask('GET', '/v1/status')).lock != null
    await tab.go('')
    await tab.find('header button:not(:disabled)', 'Lock the show')
    await tab.press('Lock the show')
    await tab.find('.strip', 'The show was locked by')
    assert.equal(await isLocked(), true)
    assert.deepEqual(await tab.violations(), [])
    await tab.find('header button', 'Unlock the show')
    await tab.press('Unlock the show')
    await tab.gone('.strip')
    assert.equal(await isLocked(), false)
  })
})
