// Everyone: pages and dialogs that have something on them, as axe sees them in light and in dark colours, and what a person
// decides, by keyboard alone.

import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { after, afterEach, before, describe, test } from 'node:test'

import { ScriptedModel } from './model.js'
import { OscPeer, Stage, until } from './stage.js'

const METRONOME = join(process.env['CONDUCTOR_FEATURES'], 'tests', 'metronome.wasm')

const config = (osc, peer, model) => `
[[bindings]]
alias = "tablet"
protocol = "osc"
input = { host = "127.0.0.1", port = ${osc} }

[[modes]]
name = "Play"

[[modes.mappings]]
name = "go lights"
trigger = { type = "OscMessage", address = "/go" }
action = { type = "OscSend", target = "127.0.0.1:${peer}", address = "/lit" }

[[modes]]
name = "Mix"

[[profiles]]
name = "Studio"
apps = ["Live"]
mode = "Mix"
${model.config}`

describe('everyone', { concurrency: false }, () => {
  let stage
  let peer
  let model
  let tab

  before(async () => {
    peer = await OscPeer.open()
    const action = { type: 'OscSend', target: `127.0.0.1:${peer.port}`, address: '/once' }
    model = await ScriptedModel.open([
      { call: { tool: 'conductor_preview_action', args: { action } } },
      { text: 'It was sent once.' },
      { call: { tool: 'conductor_preview_action', args: { action } } },
      { text: 'It was not sent.' },
    ])
    stage = await Stage.start((osc) => config(osc, peer.port, model))
    tab = await stage.tab(stage.link)
    await tab.find('[data-state=open]')
  })
  after(async () => {
    peer?.close()
    model?.close()
    await stage?.end()
  })
  afterEach(async () => {
    assert.deepEqual(await tab.wrong(), [], 'nothing is refused by the policy, fails or comes from elsewhere')
  })

  const sent = (address) => peer.received.filter((bytes) => bytes.toString('latin1').startsWith(`${address}\0`)).length
  const text = () => readFile(join(stage.home, 'config.toml'), 'utf8')
  const go = async (page, on = tab) => {
    await on.page.goto(`${stage.origin}/${page}`)
    await on.find('[data-state=open]')
  }

  test('a call that reaches a device is agreed to in the chat, and refused, by keyboard alone', async () => {
    const { keyboard } = tab.page
    const say = async (said) => {
      // Nothing is sent while the turn before is under way.
      await tab.find('.log[aria-busy=false]')
      await tab.tabTo('Your message')
      await keyboard.type(said)
      await keyboard.press('Enter')
      await tab.find('.said', said)
    }
    await go('chat')
    await say('Send it once')
    await tab.find('[data-call] .shown', '/once')
    assert.deepEqual(await tab.violations(), [])
    await tab.press('Agree')
    const phrase = await (await tab.find('[data-call] label', 'to go on')).evaluate((one) => /Type (.*) to go on/.exec(one.textContent)?.[1])
    assert.equal(sent('/once'), 0, 'nothing is sent before it is agreed to twice')
    await tab.tabTo('to go on')
    await keyboard.type(phrase)
    await tab.press('Agree')
    await tab.find('.said', 'It was sent once.')
    await until('the packet', () => sent('/once') === 1)
    await say('Once more')
    await tab.find('[data-call] .shown', '/once')
    await tab.press('Refuse')
    await tab.find('[data-call] p', 'You refused.')
    // The answer comes after what was refused would have been sent.
    await tab.find('.said', 'It was not sent.')
    assert.equal(sent('/once'), 1)
  })

  test('a feature is installed with a grant, and one that comes with Conductor is granted more, by keyboard alone', async () => {
    const { keyboard } = tab.page
    await go('features')
    await tab.find('[data-feature="osc-output"]')
    await tab.tabTo('File of this computer')
    await keyboard.type(METRONOME)
    await keyboard.press('Enter')
    await tab.find('fieldset label', '127.0.0.1')
    assert.deepEqual(await tab.violations(), [])
    for (const label of await tab.page.evaluate(() => [...document.querySelectorAll('fieldset label')].map((one) => one.textContent.trim()))) {
      await tab.tabTo(label)
      await keyboard.press(' ')
    }
    await until('all is ticked', () => tab.page.evaluate(() => [...document.querySelectorAll('fieldset input')].every((one) => one.checked)))
    await tab.press('Install')
    await tab.find('[data-feature="metronome"] .badge', 'loaded')
    await tab.press('osc-output')
    await tab.find('.details')
    await tab.tabTo('A capability that is meant')
    await keyboard.type('network=10.0.0.5:9000')
    await keyboard.press('Enter')
    await tab.find('.details .badge', 'udp: 10.0.0.5:9000')
    await tab.press('Take away all that was granted to it')
    await tab.gone('.details .badge', 'udp: 10.0.0.5:9000')
    assert.doesNotMatch(await text(), /10\.0\.0\.5/)
  })

  test('a plan is proposed in a form, applied, undone and done again by keyboard alone', async () => {
    const { keyboard } = tab.page
    await go('settings')
    await tab.tabTo('New mode')
    await keyboard.type('Encore')
    await keyboard.press('Enter')
    await tab.find('dialog [data-plan]', 'Encore')
    await tab.press('Apply')
    await tab.gone('dialog[open]')
    const modes = async () => (await stage.ask('GET', '/v1/modes')).modes
    await until('the mode', async () => (await modes()).includes('Encore'))
    await tab.find('header button:not(:disabled)', 'Undo')
    await tab.press('Undo')
    await until('it is undone', async () => !(await modes()).includes('Encore'))
    await tab.find('header button:not(:disabled)', 'Redo')
    await tab.press('Redo')
    await until('it is there again', async () => (await modes()).includes('Encore'))
  })

  for (const scheme of ['light', 'dark']) {
    test(`pages and dialogs with something on them can be used by everyone in ${scheme} colours`, async () => {
      const tab = await stage.tabIn(scheme)
      const { id } = await stage.ask('POST', '/v1/plans', {
        description: `Start a program in ${scheme} colours.`,
        changes: [{ path: ['modes', '0', 'mappings', '1'], value: { name: 'starts', trigger: { type: 'OscMessage', address: '/start' }, action: { type: 'Shell', command: '/bin/true' } } }],
      })
      const [{ id: conversation }] = await stage.ask('GET', '/v1/conversations')
      const clean = async (what) => assert.deepEqual(await tab.violations(), [], what)
      const close = async () => {
        await tab.page.keyboard.press('Escape')
        await tab.gone('dialog[open]')
      }

      await go('', tab)
      await peer.send(stage.osc, '/go', 0.5)
      await tab.click('button', 'Show the signal flow')
      await tab.find('[data-flow="go lights"]')
      await tab.find('[role=row]', '/go')
      await clean('the signal flow')
      await tab.click('[role=row] button', '/go')
      await tab.find('dialog td', 'go lights')
      await clean('an event')
      await close()
      await go(`plans/${id}`, tab)
      await tab.find('[data-plan]', '/bin/true')
      await clean('a privileged plan')
      await go('mappings', tab)
      await tab.click('tr[data-place="modes/0/mappings/0"] button', 'Change')
      await tab.find('dialog label', 'target')
      await clean('a mapping that is changed')
      await close()
      await go('features?feature=metronome', tab)
      await tab.find('.details')
      await tab.find('li', 'install metronome')
      await clean('a feature')
      await go(`chat/${conversation}`, tab)
      await tab.find('.said', 'It was not sent.')
      await clean('a conversation')
      await go('settings', tab)
      await tab.find('[data-profile="Studio"]')
      await tab.find('[data-model="scripted"]')
      await clean('the settings')
      await tab.click('button', 'Add a model')
      await tab.choose('Provider', 'openai-compatible')
      await clean('a model that is added')
      await close()
      await tab.click('[data-model="scripted"] button', 'Remove')
      await tab.find('dialog [data-plan] .note', 'removes the model')
      await clean('a model that is removed')
      await close()
      await tab.click('[data-profile="Studio"] button', 'Change')
      await tab.find('dialog label', 'apps')
      await clean('a form of a tool')
      await close()
      assert.deepEqual(await tab.wrong(), [])
      await stage.ask('POST', `/v1/plans/${id}/reject`)
    })
  }
})
