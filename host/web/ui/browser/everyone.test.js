// Everyone: pages and dialogs that have something on them, as axe sees them in light and in dark colours, and what a person
// decides, by keyboard alone.

import assert from 'node:assert/strict'
import { join } from 'node:path'
import { after, describe, test } from 'node:test'

import { ScriptedModel } from './model.js'
import { played } from './played.js'
import { freePort, oscInput, until } from './stage.js'

const METRONOME = join(process.env['CONDUCTOR_FEATURES'], 'tests', 'metronome.wasm')
const HOSTILE = join(process.env['CONDUCTOR_FEATURES'], 'tests', 'hostile-tools.wasm')

/** What mappings may wait for, in TOML: of each kind of control some, two alike, and some within others. */
const TRIGGERS = [
  'type = "Note", note = 40', 'type = "Note", note = 40', 'type = "Note", note = "36..51"', 'type = "Note", note = "C2", channel = 9, on = "release"',
  'type = "NoteRange", note_min = 60, note_max = 72', 'type = "VelocityRange", note = 45, min = 1, max = 63', 'type = "LongPress", note = 41, duration_ms = 500',
  'type = "DoubleTap", note = 42', 'type = "NoteChord", notes = [60, 64, 67]', 'type = "NoteSequence", notes = [60, 62, 64]',
  'type = "CC", cc = 7', 'type = "CC", cc = "1..8", value_range = [64, 127]', 'type = "CC14", cc = 3', 'type = "EncoderTurn", cc = 20', 'type = "RPN", parameter = 0',
  'type = "NRPN", parameter = 300', 'type = "Aftertouch"', 'type = "PolyAftertouch", note = 50', 'type = "PitchBend"', 'type = "ProgramChange", program = "0..3"',
  'type = "SysEx", prefix = "F0 7E ?? 06"', 'type = "MidiAny"', 'type = "OscMessage", address = "/fader/1"', 'type = "OscPattern", pattern = "/fader/*"',
  'type = "OscArgRange", address = "/fader/2", arg = 0, min = 0.5, max = 1.0', 'type = "GamepadButton", button = "south"', 'type = "GamepadAnalogStick", axis = "left x"',
  'type = "GamepadTrigger", trigger = "left trigger"', 'type = "ArtNetChannel", universe = 1, dmx_channel = 12', 'type = "OscMessage", address = "/desk", device = "desk"',
]
const many = TRIGGERS.map((trigger, index) => `
[[global_mappings]]
name = "mapping ${index + 1}"
trigger = { ${trigger} }
action = { type = "ModeChange", mode = "Play" }
`).join('')

/** Events of every protocol, as devices send them. */
const EVENTS = ['note-on 36 100 ch 9', 'note-off 36 64 ch 9', 'cc 7 64', 'pitch-bend 9000', 'program 3', 'sysex F0 7E 00 06 01 F7', 'osc /fader/1 0.5 1 "two" true', 'gamepad-button 128 down', 'artnet 1 12 255']

const config = (osc, desk, peer, model) => `${oscInput('tablet', osc)}${oscInput('desk', desk)}
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
${many}${model.config}`

describe('everyone', { concurrency: false }, () => {
  let model
  const { stage, peer, tab, play } = played(async (osc, port) => {
    const action = { type: 'OscSend', target: `127.0.0.1:${port}`, address: '/once' }
    model = await ScriptedModel.open([
      { call: { tool: 'conductor_preview_action', args: { action } } },
      { text: 'It was sent once.' },
      { call: { tool: 'conductor_preview_action', args: { action } } },
      { text: 'It was not sent.' },
    ])
    return config(osc, await freePort(), port, model)
  })
  after(() => model?.close())

  test('a call that reaches a device is agreed to in the chat, and refused, by keyboard alone', async () => {
    const { keyboard } = tab.page
    const say = async (said) => {
      // Nothing is sent while the turn before is under way.
      await tab.find('.log[aria-busy=false]')
      await tab.type('Your message', said)
      await keyboard.press('Enter')
      await tab.find('.said', said)
    }
    await tab.go('chat')
    await say('Send it once')
    await tab.find('[data-call] .shown', '/once')
    assert.deepEqual(await tab.violations(), [])
    await tab.press('Agree')
    await tab.find('[data-call] label', 'what is to be done')
    assert.equal(peer.count('/once'), 0, 'nothing is sent before it is agreed to twice')
    await tab.type('what is to be done', 'Do')
    await tab.press('Agree')
    await tab.find('.said', 'It was sent once.')
    await until('the packet', () => peer.count('/once') === 1)
    await say('Once more')
    await tab.find('[data-call] .shown', '/once')
    await tab.press('Refuse')
    await tab.find('[data-call] p', 'You refused.')
    // The answer comes after what was refused would have been sent.
    await tab.find('.said', 'It was not sent.')
    assert.equal(peer.count('/once'), 1)
  })

  test('a feature is installed with a grant, and one that comes with Conductor is granted more, by keyboard alone', async () => {
    const { keyboard } = tab.page
    await tab.go('features')
    await tab.find('[data-feature="osc-output"]')
    await tab.type('File of this computer', METRONOME)
    await keyboard.press('Enter')
    await tab.find('fieldset label', '127.0.0.1')
    assert.deepEqual(await tab.violations(), [])
    for (const label of await tab.page.evaluate(() => [...document.querySelectorAll('fieldset label')].map((one) => one.textContent.trim()))) {
      await tab.tick(label)
    }
    await until('all is ticked', () => tab.page.evaluate(() => [...document.querySelectorAll('fieldset input')].every((one) => one.checked)))
    await tab.press('Install')
    await tab.find('[data-feature="metronome"] .badge', 'loaded')
    await tab.press('osc-output')
    await tab.find('.details')
    await tab.type('A capability that is meant', 'network=10.0.0.5:9000')
    await keyboard.press('Enter')
    await tab.find('.details .badge', 'udp: 10.0.0.5:9000')
    await tab.press('Take away all that was granted to it')
    await tab.gone('.details .badge', 'udp: 10.0.0.5:9000')
    assert.doesNotMatch(await stage.config(), /10\.0\.0\.5/)
  })

  test('a plan is proposed in a form, applied, undone and done again by keyboard alone', async () => {
    const { keyboard } = tab.page
    await tab.go('settings')
    await tab.type('New mode', 'Encore')
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

      await tab.go('')
      await play('/go', 0.5)
      await tab.click('button', 'Show the signal flow')
      await tab.find('[data-flow="go lights"]')
      await tab.find('[role=row]', '/go')
      await clean('the signal flow')
      await tab.click('[role=row] button', '/go')
      await tab.find('dialog td', 'go lights')
      await clean('an event')
      await tab.escape()
      await tab.go(`plans/${id}`)
      await tab.find('[data-plan]', '/bin/true')
      await clean('a privileged plan')
      await tab.go('mappings')
      await until('all mappings', () => tab.page.evaluate((count) => document.querySelectorAll('tr[data-place]').length === count, TRIGGERS.length + 1))
      await tab.find('tr .badge', 'same trigger as mapping 2')
      await tab.find('tr .overlap', 'mapping 3')
      await clean('many mappings')
      await tab.click('tr[data-place="modes/0/mappings/0"] button', 'Change')
      await tab.find('dialog label', 'target')
      await clean('a mapping that is changed')
      await tab.escape()
      await tab.go('features?feature=metronome')
      await tab.find('.details')
      await tab.find('li', 'install metronome')
      await clean('a feature')
      await tab.enter('File of this computer', HOSTILE)
      await tab.click('button', 'Look at it')
      await tab.click('fieldset label', 'bytes of its own data')
      await tab.find('fieldset input:checked')
      await clean('what a feature asks for, ticked in part')
      await tab.go(`chat/${conversation}`)
      await tab.find('.said', 'It was not sent.')
      await tab.page.evaluate(() => {
        for (const one of document.querySelectorAll('[data-call] details')) one.open = true
      })
      await tab.find('[data-call] pre', '/once')
      await clean('a conversation with what was called')
      await tab.go('devices')
      await tab.find('[data-binding=desk]')
      await tab.click('button', 'Send a message')
      await tab.find('dialog label', 'target')
      await clean('what is to be sent to a device')
      await tab.escape()
      await clean('devices')
      await tab.go('record')
      await tab.find('[data-chain=whole]')
      await clean('the record')
      await tab.go('settings')
      await tab.find('[data-profile="Studio"]')
      await tab.find('[data-model="scripted"]')
      await clean('the settings')
      await tab.click('button', 'Add a model')
      await tab.choose('Provider', 'openai-compatible')
      await clean('a model that is added')
      await tab.escape()
      await tab.click('[data-model="scripted"] button', 'Remove')
      await tab.find('dialog [data-plan] [data-notes]', 'removes the model')
      await clean('a model that is removed')
      await tab.escape()
      await tab.click('[data-profile="Studio"] button', 'Change')
      await tab.find('dialog label', 'apps')
      await clean('a form of a tool')
      await tab.escape()
      await tab.unbind('desk')
      await tab.go('')
      await tab.find('[data-section=unbound] [data-device="desk"]')
      for (const device of ['tablet', 'desk']) {
        for (const event of EVENTS) await stage.ask('POST', '/v1/play', { device, event })
      }
      await tab.find('[role=row].unbound', 'artnet 1 12 255')
      await tab.find('[role=row].unbound button', 'Map')
      await clean('events of what is bound and what is not')
      assert.deepEqual(await tab.wrong(), [])
      await stage.ask('POST', `/v1/plans/${id}/reject`)
    })
  }
})
