// Controllers in the shell, over real MIDI: drawn, mapped, lit, told apart, and sent to.

import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'

import { Instrument, NO_MIDI } from './instrument.js'
import { played } from './played.js'
import { oscInput, until } from './stage.js'

/** As its profile in the library knows it. Pad 1 is note 56, at the top left of eight rows of eight. */
const GRID = 'APC MINI'
/** One more that is known, with lights. JACK has one name for one port: it plays on one, and is lit on the other. */
const PADS = 'Launchpad Mini MK3 LPMiniMK3 MIDI'
const LIGHTS = `${PADS} lights`
/** No library knows it. */
const BOX = 'Mystery Box'

const config = (osc, port) => `${oscInput('tablet', osc)}
[[bindings]]
alias = "synth"
output = { matchers = [{ type = "name_contains", value = "Sampler" }] }

[[bindings]]
alias = "pedal"
name = "Twin Pedal"

[[bindings]]
alias = "pads"
name = "LPMiniMK3"

[[modes]]
name = "Play"

[[modes.mappings]]
name = "verse"
trigger = { type = "Note", note = 81, device = "pads" }
action = { type = "OscSend", target = "127.0.0.1:${port}", address = "/verse" }

[[modes.mappings]]
name = "sampled"
trigger = { type = "Note", note = 11, device = "pads" }
action = { type = "MidiForward", target = "synth" }
`

describe('controllers', { concurrency: false, skip: NO_MIDI }, () => {
  let midi
  before(async () => {
    midi = new Instrument()
    for (const name of [GRID, PADS, BOX, 'Twin Pedal one', 'Twin Pedal two']) await midi.controller(name)
    for (const name of ['Sampler', LIGHTS]) await midi.synth(name)
  })
  const { stage, peer, tab } = played(config)
  before(async () => {
    const { unreachable } = await stage.ask('GET', '/v1/status')
    assert.deepEqual(unreachable, [], 'CONDUCTOR_BIN is built for JACK: `cargo xtask host --jack` does')
  })
  after(() => midi?.end())

  /** Waits until a synthesizer has heard this. */
  const heard = (name, bytes) => until(`${bytes} at ${name}`, () => midi.heard(name).includes(bytes))

  test('"+ Map" binds what has no binding and maps it, in one plan: by keyboard alone', async () => {
    await tab.go('')
    // Its port is closed: it is opened to learn, and what is touched then is meant.
    await tab.find(`[data-section=unbound] [data-device="player:${GRID}"]`, 'nothing heard yet')
    await tab.press(`Map player:${GRID}`)
    await tab.find('dialog [data-learning=listening]')
    assert.deepEqual(await tab.violations(), [])
    await midi.play(GRID, '90 38 64')
    await midi.play(GRID, '80 38 00')
    await tab.find('dialog [data-learned]')
    await tab.offered('OscSend')
    await tab.retype('The name of this device in mappings', 'grid')
    await tab.type('Action', 'OscSend')
    await tab.type('target', `127.0.0.1:${peer.port}`)
    await tab.type('address', '/pad')
    await tab.type('Name', 'first pad')
    await tab.press('Show the plan')
    await tab.find('dialog [data-plan]', 'alias = "grid"')
    await tab.find('dialog [data-plan]', '/pad')
    assert.deepEqual(await tab.violations(), [])
    await tab.press('Apply')
    await tab.gone('dialog[open]')
    await tab.find('[data-device="grid"]')
    await tab.gone('[data-section=unbound] [data-device]', GRID)
    await midi.play(GRID, '90 38 64')
    await peer.came('/pad')
  })

  test('a controller that is known is drawn as it is, and its pad is lit while it is held', async () => {
    await tab.go('')
    await tab.click('[data-device="grid"] .pick')
    await tab.find('h2', 'Akai Professional APC mini')
    await tab.find('span', 'from the device library')
    const place = await (await tab.find('[data-control="note 48 0"]')).evaluate((one) => [one.style.gridRow, one.style.gridColumn].map((part) => parseInt(part, 10)))
    assert.deepEqual(place, [2, 1], 'the ninth pad is the first of the second row')
    await midi.play(GRID, '90 38 64')
    await tab.find('[data-control="note 56 0"][data-lit]')
    await tab.find('[role=row]', 'pad 1')
    await midi.play(GRID, '80 38 00')
    await tab.find('[data-control="note 56 0"]:not([data-lit])')
    await midi.play(GRID, 'B0 30 7F')
    await until('the fader at its top', () => tab.page.evaluate(() => document.querySelector('[data-control="cc 48 0"]')?.getAttribute('aria-label')?.endsWith('100 %')))
    assert.deepEqual(await tab.violations(), [])
  })

  test('a plan of an agent calls a control as its device does', async () => {
    const mapping = { name: 'agents', trigger: { type: 'Note', note: 58 }, action: { type: 'OscSend', target: `127.0.0.1:${peer.port}`, address: '/agents' } }
    const { plans: [id] } = await stage.ask('POST', '/v1/tools/conductor_create_mapping', { args: mapping })
    await tab.go(`plans/${id}`)
    await tab.find(`[data-plan="${id}"] [data-in-words]`, `With any device, such as grid: Pad 3 sends /agents to 127.0.0.1:${peer.port}`)
    await tab.find(`[data-plan="${id}"] :is(h2, h3)`, 'Add the mapping "agents" to every mode: OscSend /agents on Note 58 of any device.')
    assert.deepEqual(await tab.violations(), [])
    await tab.click('button', 'Reject')
    await tab.find('.notice', 'Rejected: Add the mapping')
  })

  // SHL-4
  test('a pad of the picture is mapped by a click, and played by another, though nobody touches it', async () => {
    await tab.go('?device=grid')
    const pad = '[data-control="note 57 0"]'
    await tab.click(pad)
    await tab.find('dialog h2', 'pad 2')
    await tab.click('dialog button', 'New mapping')
    await tab.choose('Action', 'OscSend')
    await tab.enter('target', `127.0.0.1:${peer.port}`)
    await tab.enter('address', '/second')
    await tab.click('dialog button', 'Show the plan')
    await tab.find('dialog [data-plan]', '/second')
    await tab.click('dialog button', 'Apply')
    await tab.gone('dialog[open]')
    await midi.play(GRID, '90 39 64')
    await peer.came('/second')
    await midi.play(GRID, '80 39 00')
    await tab.click(pad)
    await tab.click('dialog button', 'Play it')
    await until('the packet', () => peer.count('/second') === 2)
    await tab.escape()
    await until('it is pressed and let go in the stream', () =>
      tab.page.evaluate(() => {
        const rows = [...document.querySelectorAll('[role=row][data-kind=event]')].map((row) => row.textContent)
        return ['note-on', 'note-off'].every((kind) => rows.filter((row) => row.includes(`${kind} 57`)).length === 2)
      }),
    )
    await stage.ask('POST', '/v1/undo')
  })

  // SHL-1
  test('a port that is found is set up by one plan: by keyboard alone', async () => {
    await tab.go('devices')
    await tab.find(`tr[data-port*="${BOX}"] button`, 'Set up')
    await tab.press(`Set up player:${BOX}`)
    await tab.find('dialog [data-plan]', BOX)
    assert.deepEqual(await tab.violations(), [])
    const before = await stage.config()
    assert.equal(before.includes(BOX), false, 'nothing changes before it is applied')
    await tab.press('Apply')
    await tab.gone('dialog[open]')
    await tab.find('[data-binding]', `player:${BOX}`)
    await tab.gone(`tr[data-port*="${BOX}"] button`, 'Set up')
    assert.equal((await stage.config()).includes(BOX), true)
    await tab.go('')
    await until('its port is opened', async () => (await stage.ask('GET', '/v1/status')).ports.some((port) => port.label.includes(BOX) && port.binding !== null && port.connected))
    await midi.play(BOX, '90 3C 64')
    await tab.find('[role=row]:not(.unbound)', 'note-on')
    await stage.ask('POST', '/v1/undo')
    await until('it has no binding', async () => (await stage.ask('GET', '/v1/status')).ports.some((port) => port.label.includes(BOX) && port.binding === null))
  })

  test('what is touched is learned as what it is, of a port that nothing else listens to', async () => {
    await tab.go('mappings')
    await tab.click('button', 'New mapping')
    await tab.click('dialog button', 'Learn by touch')
    await tab.find('dialog [data-learning=listening]')
    for (const bytes of ['B0 10 01', 'B0 10 01', 'B0 10 7F']) await midi.play(BOX, bytes)
    await tab.find('dialog [data-learned=encoder]', 'how far it was turned')
    await tab.choose('How', 'as it was recognized')
    await tab.choose('Action', 'OscSend')
    await tab.enter('target', `127.0.0.1:${peer.port}`)
    await tab.enter('address', '/turned')
    await tab.click('dialog button', 'Show the plan')
    await tab.find('dialog [data-plan]', 'twos_complement')
    await tab.find('dialog [data-plan]', '[[bindings]]')
    await tab.click('dialog button', 'Apply')
    await tab.gone('dialog[open]')
    await until('its port is opened', async () => (await stage.ask('GET', '/v1/status')).ports.some((port) => port.label.includes(BOX) && port.binding !== null && port.connected))
    await midi.play(BOX, 'B0 10 01')
    await peer.came('/turned')
    await stage.ask('POST', '/v1/undo')
  })

  test('the tour answers a touch at once, and then says what it was', async () => {
    await tab.go('settings')
    await tab.click('button', 'Show the tour')
    await tab.find('[data-tour="1"]', 'Touch the pad')
    await until('it is answered', async () => {
      await midi.play(BOX, 'B0 10 01')
      return tab.page.evaluate(() => document.querySelector('[data-tour="1"] [role=status]')?.textContent.includes('being recognized'))
    })
    await tab.find('[data-tour="2"]', BOX)
    await tab.click('button', 'Skip the tour')
    await tab.gone('[data-tour]')
  })

  test('what has no binding is drawn from what it sends, and its rows say that it has none', async () => {
    const { id } = await stage.ask('POST', '/v1/plans', { description: 'Listen to all.', changes: [{ path: ['advanced_settings'], value: { listen_mode: 'all' } }] })
    await stage.ask('POST', `/v1/plans/${id}/apply`)
    const device = `player:${BOX}`
    await until('its port is opened', async () => (await stage.ask('GET', '/v1/status')).ports.some((port) => port.device === device && port.connected))
    await tab.go(`?device=${encodeURIComponent(device)}`)
    await midi.play(BOX, '91 3C 64')
    await midi.play(BOX, 'B1 07 7F')
    await tab.find('.key-bank [data-control="note 60 1"].key[data-lit]')
    await tab.find('.fader-bank [data-control="cc 7 1"].fader')
    await tab.find('span', 'from what was heard')
    await tab.find(`[data-section=unbound] [data-device="${device}"]`, 'note-on')
    await tab.find(`[data-section=unbound] [data-device="${device}"] .dot.active`)
    const { cells, looks } = await tab.rowWith('note-on')
    assert.deepEqual([cells[1], cells[3], cells[4]], ['midi', 'ch2', 'note-on 60 C4 100'])
    await until('its rate', () =>
      tab.page.evaluate((device) => /0\.[1-9]\/s/.test(document.querySelector(`[data-section=unbound] [data-device="${device}"]`)?.textContent ?? ''), device),
    )
    assert.match(cells[2], /Mystery Box.*\(unbound\)/)
    assert.deepEqual(looks, ['dashed', 'italic'])
    // The pills: those with a binding, and how many inputs have none.
    await tab.find('[data-pill="pads"] [data-icon=midi]')
    await tab.click('[data-unbound]', 'unbound')
    await tab.find(`[data-pill="${device}"]`)
    await tab.gone('[data-pill="pads"]')
    await tab.find('[role=row].unbound', 'note-on')
    await midi.play(PADS, '90 0D 64')
    await until('it is counted', () => tab.page.evaluate(() => document.querySelector('[data-device="pads"]')?.textContent.includes('note-on')))
    await tab.gone('[role=row]', 'note-on 13')
    await tab.click('button', 'Show the signal flow')
    await tab.find(`[data-flow-unbound] [data-source="${device}"]`, 'note-on')
    await tab.find(`[data-flow-unbound] [data-source="${device}"] button`, 'Map')
    assert.deepEqual(await tab.violations(), [])
    await tab.click('[role=row].unbound button', 'Map')
    await tab.find('dialog label', 'The name of this device in mappings')
    await tab.escape()
    await tab.click('[data-unbound]', 'unbound')
    await stage.ask('POST', '/v1/undo')
  })

  test('what is sent to a device is shown and agreed to twice: by keyboard alone', async () => {
    const { keyboard } = tab.page
    await tab.go('devices')
    await tab.find('[data-binding=synth]', 'Sampler')
    await tab.press('Send a message')
    await tab.find('dialog h2', 'Send a message')
    await tab.find('dialog label', 'bytes')
    await tab.type('target', 'synth')
    await tab.type('bytes', '90 3C 64')
    await tab.press('Call')
    await tab.find('dialog .note', 'sends to "synth"')
    await tab.find('dialog pre', '90 3C 64 (3 bytes)')
    assert.deepEqual(await tab.violations(), [])
    await tab.find('dialog button:disabled', 'Do it')
    await tab.tick('want exactly this')
    await tab.find('dialog label', 'Type synth to go on')
    await tab.find('dialog button:disabled', 'Do it')
    await tab.type('Type synth to go on', 'synthesizer')
    await tab.find('dialog button:disabled', 'Do it')
    for (let count = 0; count < 'esizer'.length; count += 1) await keyboard.press('Backspace')
    await tab.find('dialog button:not(:disabled)', 'Do it')
    assert.deepEqual(midi.heard('Sampler'), [], 'nothing is sent before both')
    await tab.press('Do it')
    await tab.find('dialog h3', 'Result')
    await heard('Sampler', '90 3C 64')
    assert.equal(midi.heard('Sampler').length, 1, 'once')
    await tab.escape()
  })

  test('lights are chosen on the picture, and sent: by keyboard alone', async () => {
    await tab.go('?device=pads')
    await tab.find('h2', 'Novation Launchpad Mini MK3')
    await tab.find('[data-control="note 81 0"]')
    await tab.press('pad 1,')
    await tab.find('dialog [data-lights="modes/0/mappings/0"]', 'verse')
    const isAbove = await tab.page.evaluate(() => {
      const [name, list] = ['strong', 'select'].map((one) => document.querySelector(`dialog [data-lights] ${one}`).getBoundingClientRect())
      return name.bottom <= list.top
    })
    assert.equal(isAbove, true, 'its name has a line of its own')
    await tab.type('While it waits', 'red')
    await tab.type('While it is held', 'green')
    assert.deepEqual(await tab.violations(), [])
    await tab.press('Show the plan')
    await tab.find('dialog [data-plan]', 'Set the light of verse.')
    assert.deepEqual(midi.heard(LIGHTS), [], 'nothing is lit before it is applied')
    await tab.press('Apply')
    await tab.find('.notice', 'Applied: Set the light of verse.')
    await heard(LIGHTS, '90 51 05')
    await tab.find('[data-control="note 81 0"][data-light=red]')
    await midi.play(PADS, '90 51 64')
    await peer.came('/verse')
    await heard(LIGHTS, '90 51 15')
    await tab.find('[data-control="note 81 0"][data-light=green] .shown[data-name=green]')
    assert.deepEqual(await tab.violations(), [])
    // It is lit while it is held, unless it is said to stay.
    await midi.play(PADS, '80 51 00')
    await until('what it shows while it waits', () => midi.heard(LIGHTS).at(-1) === '90 51 05')
    await tab.find('[data-control="note 81 0"][data-light=red]')
    // A page that is opened later knows it as well, and says it.
    await tab.go('?device=pads')
    const said = await tab.find('[data-control="note 81 0"][data-light=red]')
    assert.match(await said.evaluate((one) => one.getAttribute('aria-label')), /, light: red, mapped: /)
    // It is shown as it is, and taken back where the hand is.
    await tab.press('pad 1,')
    await tab.find('dialog [data-lights]', 'verse')
    const chosen = await tab.page.evaluate(() => [...document.querySelectorAll('[data-lights] select')].map((one) => one.selectedOptions[0]?.textContent))
    assert.deepEqual(chosen, ['red', 'green'])
    await tab.escape()
    await tab.press('Undo')
    await tab.find('.notice', 'Undone')
    await tab.gone('[data-control="note 81 0"][data-light]')
  })

  // SHL-4
  test('the light of a mapping is seen, changed and taken away where the mapping is changed', async () => {
    const open = async () => {
      await tab.click('tr[data-place="modes/0/mappings/0"] button', 'Change')
      await tab.find('dialog [data-new-light]', 'While it waits')
      await tab.find('dialog label', 'address')
    }
    const chosen = () => tab.page.evaluate(() => [...document.querySelectorAll('dialog [data-new-light] select')].map((one) => one.selectedOptions[0]?.textContent))
    await tab.go('mappings')
    await open()
    assert.deepEqual(await chosen(), ['no light', 'no light'])
    await tab.choose('While it is held', 'green')
    assert.deepEqual(await tab.violations(), [])
    await tab.click('dialog button', 'Show the plan')
    await tab.find('dialog [data-plan]', 'Change a mapping: verse: Pad 1 sends /verse to')
    await tab.find('dialog [data-plan]', 'while_held')
    await tab.apply()
    // The file is written before its rules are in force.
    await tab.gone('dialog[open]')
    assert.match(await stage.config(), /while_held = true/)
    await tab.go('mappings')
    await open()
    assert.deepEqual(await chosen(), ['off', 'green'])
    await tab.choose('While it is held', 'no light')
    await tab.click('dialog button', 'Show the plan')
    await tab.find('dialog [data-plan]', '; no light.')
    await tab.apply()
    await tab.gone('dialog[open]')
    assert.doesNotMatch(await stage.config(), /feedback|while_held/)
    for (let count = 0; count < 2; count += 1) await stage.ask('POST', '/v1/undo')
  })

  // SHL-4
  test('a pad whose device has no output says so, and gets the port that is like its input: by keyboard alone', async () => {
    const own = `player:${GRID} lights`
    for (const name of ['Other Sampler', `${GRID} lights`]) await midi.synth(name)
    await tab.go('?device=grid')
    await tab.find('h2', 'Akai Professional APC mini')
    await tab.press('pad 1,')
    await tab.find('dialog [data-no-output=grid]', 'grid has no output yet: its lights go to the one that is chosen here.')
    await tab.offered(own)
    const first = () => tab.page.evaluate(() => document.querySelector('dialog [data-no-output] select').selectedOptions[0].value)
    assert.equal(await first(), own)
    assert.deepEqual(await tab.violations(), [])
    await tab.press('Use as output')
    await tab.find('dialog [data-plan]', 'Change the binding grid: give it an output.')
    await tab.find('dialog [data-plan]', `${GRID} lights`)
    await tab.press('Apply')
    await tab.gone('dialog[open]')
    await tab.go('devices')
    await tab.find('[data-binding=grid]', `output: ${own}`)
    await tab.gone('[data-binding=grid] [data-no-output]')
    await stage.ask('POST', '/v1/undo')
    await tab.find('[data-binding=grid] [data-no-output] button', 'Use as output grid')
    assert.deepEqual(await tab.violations(), [])
  })

  // SHL-4
  test('a pad whose device has no output is lit while it is held, by one plan that binds the output, too', async () => {
    const own = `${GRID} lights`
    await tab.go('?device=grid')
    await tab.find('h2', 'Akai Professional APC mini')
    await tab.press('pad 1,')
    await tab.find('dialog [data-lights]', 'first pad')
    await tab.find('dialog p', 'binds this output, too')
    await tab.choose('While it is held', 'green')
    await tab.find('dialog [data-lights]', 'When the control is released')
    const idle = () => tab.page.evaluate(() => document.querySelector('dialog [data-lights] select').selectedOptions[0]?.textContent)
    await until('it is dark while it waits', async () => (await idle()) === 'off')
    assert.deepEqual(await tab.violations(), [])
    await tab.click('dialog [data-lights] button', 'Show the plan')
    await tab.find('dialog [data-plan]', `Set the light of first pad. Give grid the output player:${own}.`)
    await tab.apply()
    await tab.gone('dialog[open]')
    await until('its output is there', async () => (await stage.ask('GET', '/v1/status')).bindings.find((one) => one.alias === 'grid').output?.state === 'bound')
    await until('it is lit', async () => {
      await midi.play(GRID, '90 38 64')
      return midi.heard(own).includes('90 38 01')
    })
    await midi.play(GRID, '80 38 00')
    await until('it is dark', () => midi.heard(own).at(-1) === '80 38 00')
    // Said to stay lit, it has no end.
    await tab.press('pad 1,')
    await tab.find('dialog [data-lights]', 'first pad')
    await tab.tick('Stays lit')
    await tab.find('dialog [data-lights] label', 'Once it has fired')
    await tab.find('dialog [data-lights]', 'until something else changes it')
    await tab.click('dialog [data-lights] button', 'Show the plan')
    await tab.find('dialog [data-plan]', 'while_held')
    await tab.apply()
    await tab.gone('dialog[open]')
    assert.doesNotMatch(await stage.config(), /while_held/)
    for (let count = 0; count < 2; count += 1) await stage.ask('POST', '/v1/undo')
    assert.doesNotMatch(await stage.config(), /feedback/)
  })

  // SHL-1, SHL-4
  test('a controller that was just plugged in is bound with its output, mapped and lit by one plan', async () => {
    const other = `Other ${GRID}`
    await midi.controller(other)
    await midi.synth(`${other} lights`)
    await tab.go('')
    await tab.find(`[data-section=unbound] [data-device="player:${other}"] button`, 'Map')
    await tab.press(`Map player:${other}`)
    await tab.find('dialog [data-learning=listening]')
    await midi.play(other, '90 38 64')
    await midi.play(other, '80 38 00')
    await tab.find('dialog [data-learned]')
    await tab.enter('The name of this device in mappings', 'other')
    await tab.choose('Action', 'OscSend')
    await tab.enter('target', `127.0.0.1:${peer.port}`)
    await tab.enter('address', '/third')
    await tab.choose('While it is held', 'green')
    await tab.find('dialog [data-new-light]', 'It goes dark when')
    const output = await tab.page.evaluate(() => document.querySelector('dialog [data-new-light] [data-no-output] select').value)
    assert.equal(output, `player:${other} lights`)
    assert.deepEqual(await tab.violations(), [])
    await tab.click('dialog button', 'Show the plan')
    await tab.find('dialog [data-plan]', `Bind other: Pad 1 sends /third to 127.0.0.1:${peer.port}; light green while it is held.`)
    await tab.apply()
    await tab.gone('dialog[open]')
    await until('it is lit', async () => {
      await midi.play(other, '90 38 64')
      return midi.heard(`${other} lights`).includes('90 38 01')
    })
    await peer.came('/third')
    await midi.play(other, '80 38 00')
    await until('it is dark', () => midi.heard(`${other} lights`).at(-1) === '80 38 00')
    await stage.ask('POST', '/v1/undo')
    await midi.unplug(other)
  })

  test('of twins the one that is touched gets the name: by keyboard alone', async () => {
    await tab.go('devices')
    await tab.find('[data-binding=pedal]', 'match it equally well')
    await tab.press('Choose by touch pedal')
    await tab.find('[data-binding=pedal] [role=status]', 'Touch the device that is to be pedal')
    await midi.play('Twin Pedal two', 'B0 40 7F')
    await tab.find('dialog [data-plan]', 'Twin Pedal two')
    assert.deepEqual(await tab.violations(), [])
    await tab.press('Apply')
    await tab.gone('dialog[open]')
    await tab.find('[data-binding=pedal]', 'player:Twin Pedal two')
    await tab.go('')
    await midi.play('Twin Pedal two', 'B0 40 00')
    const row = await tab.find('[role=row][data-kind=event]', 'cc 64 0')
    assert.match(await row.evaluate((one) => one.textContent), /pedal/)
  })

  // SHL-1
  test('a controller that is pulled out is missed, and is there again when it comes back', async () => {
    await tab.go('devices')
    await tab.find('[data-binding=grid]', `input: player:${GRID}`)
    const before = peer.count('/pad')
    await midi.unplug(GRID)
    await tab.find('[data-binding=grid]', 'input: not there')
    await tab.find('[data-binding=grid] .badge:is(.warn, .bad)')
    await midi.controller(GRID)
    await tab.find('[data-binding=grid]', `input: player:${GRID}`)
    await until('its port is opened', async () => (await stage.ask('GET', '/v1/status')).ports.some((port) => port.device === 'grid' && port.connected))
    await midi.play(GRID, '90 38 64')
    await until('the packet', () => peer.count('/pad') > before)
  })

  // SHL-1
  test('a controller that comes back under another name is used for its binding, and is still known by the old one', async () => {
    const other = 'Borrowed Pads'
    await midi.unplug(GRID)
    await midi.controller(other)
    await tab.go('devices')
    await tab.find('[data-binding=grid]', 'input: not there')
    await tab.find(`tr[data-port="player:${other}"] button`, 'Use for grid')
    await tab.go('')
    await tab.find(`[data-section=unbound] [data-device="player:${other}"] button`, 'Use for grid')
    await tab.press(`Use for grid: player:${other}`)
    await tab.find('dialog [data-plan]', other)
    assert.deepEqual(await tab.violations(), [])
    await tab.press('Apply')
    await tab.gone('dialog[open]')
    await tab.find('[data-device="grid"]')
    await until('its port is opened', async () => (await stage.ask('GET', '/v1/status')).ports.some((port) => port.device === 'grid' && port.connected))
    const before = peer.count('/pad')
    await midi.play(other, '90 38 64')
    await until('the packet', () => peer.count('/pad') > before)
    await midi.unplug(other)
    await midi.controller(GRID)
    await tab.go('devices')
    await tab.find('[data-binding=grid]', `input: player:${GRID}`)
    await stage.ask('POST', '/v1/undo')
    await until('its port is opened', async () => (await stage.ask('GET', '/v1/status')).ports.some((port) => port.device === 'grid' && port.connected))
  })

  // SHL-1
  test('in the signal flow a way is broken where its controller is pulled out, and whole once it is back', async () => {
    const way = '[data-source="grid"]'
    await tab.go('')
    await tab.click('button', 'Show the signal flow')
    await tab.find(`${way} .ports`, GRID)
    await tab.find(`${way} [data-flow="first pad"]`)
    await midi.unplug(GRID)
    await tab.find(`${way} .ports`, 'not there')
    await tab.find(`${way} .head .badge.bad`, 'not working')
    await tab.find(`${way} [data-flow="first pad"]`)
    assert.deepEqual(await tab.violations(), [])
    await midi.controller(GRID)
    await tab.find(`${way} .ports`, GRID)
    await tab.gone(`${way} .head .badge.bad`)
    await until('its port is opened', async () => (await stage.ask('GET', '/v1/status')).ports.some((port) => port.device === 'grid' && port.connected))
    const before = peer.count('/pad')
    // It is lit for a moment each time.
    await until('it is lit', async () => {
      await midi.play(GRID, '90 38 64')
      return tab.page.evaluate((way) => document.querySelector(`${way} .lit[data-flow="first pad"]`) !== null, way)
    })
    await until('the packet', () => peer.count('/pad') > before)
  })
})
