// What a person lets features do, and models: granted and taken away, off and on, out of quarantine, added and removed, all
// by clicks.

import assert from 'node:assert/strict'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'

import { ScriptedModel } from './model.js'
import { played } from './played.js'
import { oscInput, until } from './stage.js'

const HOSTILE = join(process.env['CONDUCTOR_FEATURES'], 'tests', 'hostile-tools.wasm')
const KEY = 'key-of-the-test'

const config = (osc) => `# Mine.
${oscInput('tablet', osc)}
[[modes]]
name = "Play"
`

describe('features and models', { concurrency: false }, () => {
  let model
  let unchanged
  const { stage, tab } = played(config, { SHELL_TEST_KEY: KEY })
  before(async () => {
    model = await ScriptedModel.open([], ['small', 'large'])
    unchanged = await stage.config()
  })
  after(() => model?.close())

  const feature = async (name) => (await stage.ask('GET', '/v1/features')).find((one) => one.name === name)

  test('a feature that comes with Conductor is granted more by a word, and less by the same', async () => {
    await tab.go('features?feature=osc-output')
    await tab.enter('A capability that is meant', 'alert')
    await tab.click('.details button', 'Grant it')
    await tab.find('.notice.trouble', 'does not ask for alert')
    // It stands beside the page or before it, and covers nothing of it.
    for (const viewport of [{ width: 360, height: 740 }, { width: 1360, height: 900 }]) {
      await tab.page.setViewport(viewport)
      await until('it is drawn so', () => tab.page.evaluate((width) => innerWidth === width, viewport.width))
      const isOver = await tab.page.evaluate(() => {
        scrollTo(0, 0)
        const [notice, main] = ['.notice.trouble', 'main'].map((one) => document.querySelector(one).getBoundingClientRect())
        return notice.right > main.left && notice.left < main.right && notice.bottom > main.top && notice.top < main.bottom
      })
      assert.equal(isOver, false, `it lies over the page where that is ${viewport.width} pixels wide`)
    }
    assert.deepEqual(await tab.violations(), [])
    assert.equal(await stage.config(), unchanged)
    await tab.enter('A capability that is meant', 'network=10.0.0.5:9000')
    await tab.click('.details button', 'Grant it')
    await tab.find('.details .badge', 'udp: 10.0.0.5:9000')
    assert.match(await stage.config(), /10\.0\.0\.5:9000/)
    assert.deepEqual(await tab.violations(), [])
    await tab.enter('A capability that is meant', 'network=10.0.0.5:9000')
    await tab.click('.details button', 'Take it away')
    await tab.gone('.details .badge', '10.0.0.5:9000')
    assert.equal(await stage.config(), unchanged, 'nothing of it stays in the configuration')
  })

  test('a feature that comes with Conductor is disabled, stays off, and is enabled', async () => {
    const row = '[data-feature="artnet-output"]'
    await tab.go('features')
    await tab.click(`${row} button`, 'Disable')
    await tab.find('.notice', 'artnet-output is disabled')
    await tab.find(`${row} .badge`, 'disabled')
    assert.equal(await feature('artnet-output'), undefined, 'no host loads it')
    await tab.go('features')
    await tab.find(`${row} .badge`, 'disabled')
    await tab.click(`${row} button`, 'Enable')
    await tab.find('.notice', 'artnet-output is enabled')
    await tab.find(`${row} .badge`, 'loaded')
    assert.equal(await stage.config(), unchanged)
  })

  test('an installed feature gets what was ticked, then all that it asks for, then less', async () => {
    const name = 'hostile-tools'
    await tab.go('features')
    await tab.enter('File of this computer', HOSTILE)
    await tab.click('button', 'Look at it')
    await tab.click('fieldset label', 'bytes of its own data')
    await tab.find('fieldset input:checked')
    await tab.click('button.primary', 'Install')
    await tab.find(`[data-feature="${name}"]`)
    await tab.go(`features?feature=${name}`)
    await tab.find('.details .badge', 'store: 65536')
    assert.equal((await feature(name)).grants.alert ?? false, false, 'what was not ticked is not granted')
    await tab.click('.details button', 'Grant all that it asks for')
    await tab.find('.details .badge', 'alert')
    await until('it is in force', async () => (await feature(name)).grants.alert === true)
    await tab.click('.details button', 'Take away: alert')
    await tab.find('.notice', `What ${name} was granted was taken away.`)
    await until('it is in force', async () => !(await feature(name)).grants.alert)
    await tab.find('li', `revoke ${name}`)
    assert.deepEqual(await tab.violations(), [])
  })

  test('a feature that keeps trapping is seen in quarantine, and let out of it', async () => {
    const row = '[data-feature="hostile-tools"]'
    const trap = () => stage.ask('POST', '/v1/tools/look', { args: { how: 'trap' } }).then(() => assert.fail('it answered'), () => {})
    await tab.go('features')
    await tab.find(row)
    // The first quarantine is short: where the page is slower, the next one is longer.
    await until('the quarantine on the page', async () => {
      const { quarantine } = await feature('hostile-tools')
      if (quarantine == null) await trap()
      return quarantine > 3 && (await tab.page.evaluate((row) => document.querySelector(`${row} .badge.bad`)?.textContent.includes('quarantined'), row))
    })
    await tab.click(`${row} button`, 'End the quarantine')
    await tab.find('.notice', 'hostile-tools is out of quarantine')
    await tab.find(`${row} .badge`, 'loaded')
    assert.equal((await stage.ask('POST', '/v1/tools/look', { args: {} })).result, 'done')
  })

  /** Opens the dialog that adds a model, up to where a person is asked to agree. */
  const begin = async (on = tab) => {
    await on.click('button', 'Add a model')
    await on.choose('Provider', 'openai-compatible')
    await on.enter('Address of the API', model.url)
    await on.choose('Key', 'model-key')
    await on.click('dialog button', 'Continue')
    await on.find('dialog h3', `Let openai-compatible send requests to 127.0.0.1:${model.port}, with the key model-key?`)
  }

  test('what was granted for a model that is not added is taken back', async () => {
    const { listed } = model
    model.listed = ['only']
    await tab.go('settings')
    await begin()
    assert.deepEqual(await tab.violations(), [])
    assert.equal(await stage.config(), unchanged, 'nothing is granted before the person agrees')
    assert.equal(model.keys.length, 0, 'nothing is asked before the person agrees')
    await tab.click('dialog button', 'Agree, and go on')
    await tab.find('dialog .bad', 'Fill this in.')
    await tab.enter('variable of the host', 'SHELL_TEST_KEY')
    await tab.click('dialog button', 'Agree, and go on')
    await tab.find('dialog h3', 'Which model?')
    await tab.find('dialog .offered button[aria-pressed=true]', 'only')
    assert.match(await stage.config(), new RegExp(`127\\.0\\.0\\.1:${model.port}`))
    await tab.escape()
    await tab.find('.notice', 'what was granted for it is taken back')
    assert.equal(await stage.config(), unchanged)
    model.listed = listed
  })

  test('a tab that is left takes back what was granted in it for a model, and its plan', async () => {
    const other = await stage.tab()
    for (const step of ['Which model?', 'A plan']) {
      await other.go('settings')
      await begin(other)
      await other.click('dialog button', 'Agree, and go on')
      await other.find('dialog h3', 'Which model?')
      if (step === 'A plan') {
        await other.click('dialog .offered button', 'small')
        await other.click('dialog button', 'Show the plan')
        await other.find('dialog [data-plan]')
        assert.equal((await stage.ask('GET', '/v1/plans')).length, 1)
      }
      assert.match(await stage.config(), new RegExp(`127\\.0\\.0\\.1:${model.port}`), step)
      await other.page.reload()
      await until(`it is taken back: ${step}`, async () => (await stage.config()) === unchanged && (await stage.ask('GET', '/v1/plans')).length === 0)
    }
    assert.deepEqual(await other.wrong(), [])
    await other.page.close()
  })

  test('a model is added by clicks, answers, and is talked with', async () => {
    model.answers.push({ text: 'ok' }, { text: 'Here I am.' })
    await tab.go('chat')
    await begin()
    // The key is named already.
    await tab.find('dialog p', 'The key model-key already exists (SHELL_TEST_KEY)')
    await tab.click('dialog button', 'Agree, and go on')
    await tab.enter('Model, or a part of its name', 'lar')
    await tab.gone('dialog .offered button', 'small')
    await tab.click('dialog .offered button', 'large')
    await tab.click('dialog button', 'Show the plan')
    await tab.find('dialog [data-plan] .note', 'adds the model')
    assert.deepEqual(await tab.violations(), [])
    await tab.apply()
    await tab.find('dialog [data-checked=answers]')
    assert.deepEqual(await tab.violations(), [])
    await tab.click('dialog button', 'Talk with it')
    await tab.gone('dialog[open]')
    await tab.enter('Your message', 'Are you there?')
    await tab.page.keyboard.press('Enter')
    await tab.find('.said', 'Here I am.')
    assert.deepEqual(model.asked.map((one) => one.model), ['large', 'large'])
    assert.ok(model.keys.length > 2 && model.keys.every((key) => key === `Bearer ${KEY}`), JSON.stringify(model.keys))
    assert.doesNotMatch(await stage.config(), new RegExp(KEY))
    assert.equal(await tab.page.evaluate((key) => document.documentElement.outerHTML.includes(key), KEY), false)
  })

  test('a model that gives no answer says so', async () => {
    await tab.go('settings')
    await tab.click('[data-model="large"] button', 'Ask it for a word')
    await tab.find('.notice.trouble', 'nothing more is written down')
    await tab.find('[data-model="large"] .badge', 'gives no answers')
    model.answers.push({ text: 'ok' })
    await tab.click('[data-model="large"] button', 'Ask it for a word')
    await tab.find('.notice', 'large answers')
    await tab.gone('[data-model="large"] .badge', 'gives no answers')
  })

  test('a model is removed with its key and what was granted for it', async () => {
    await tab.go('settings')
    await tab.click('[data-model="large"] button', 'Remove')
    await tab.find('dialog [data-plan] [data-notes]', 'removes the model')
    await tab.escape()
    await until('the plan does not wait on', async () => (await stage.ask('GET', '/v1/plans')).length === 0)
    await tab.click('[data-model="large"] button', 'Remove')
    await tab.apply()
    await tab.click('dialog [data-left] button', 'Forget the key')
    await until('it is forgotten', async () => !('model-key' in (await stage.ask('GET', '/v1/secrets'))))
    await tab.click('dialog [data-left] button', 'Take it back')
    await until('it is taken back', async () => !(await stage.config()).includes(String(model.port)))
    assert.deepEqual(await tab.violations(), [])
    await tab.click('dialog .stack button', 'Close')
    await tab.gone('dialog[open]')
    await tab.gone('[data-model]')
    assert.deepEqual(await stage.ask('GET', '/v1/models'), [])
  })
})
