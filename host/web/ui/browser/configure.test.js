// The configuration changed in forms, by the mouse: bindings, profiles, modes, settings; and thousands of mappings of which only
// those that can be seen are in the page.

import assert from 'node:assert/strict'
import { describe, test } from 'node:test'

import { played } from './played.js'
import { oscInput, until } from './stage.js'

/** Mappings of every mode. */
const MANY = 3000

const config = (osc, peer) => `${oscInput('tablet', osc)}
[[modes]]
name = "Play"

[[modes.mappings]]
name = "go"
trigger = { type = "OscMessage", address = "/go", device = "tablet" }
action = { type = "OscSend", target = "127.0.0.1:${peer}", address = "/lit" }

[[modes]]
name = "Mix"
${Array.from({ length: MANY }, (_, number) => `
[[global_mappings]]
name = "cue ${number}"
trigger = { type = "OscMessage", address = "/cue/${number}" }
action = { type = "OscSend", target = "127.0.0.1:${peer}", address = "/played/${number}" }
`).join('')}`

describe('the configuration', { concurrency: false }, () => {
  const { stage, peer, tab, play } = played(config)

  test('a binding gets another name and an output, its mapping follows, and the output is taken away again', async () => {
    await tab.go('devices')
    await tab.click('[data-binding="tablet"] button', 'Change')
    await tab.find('dialog h2', 'Change tablet')
    assert.equal(await (await tab.field('input port')).evaluate((one) => one.value), String(stage.osc))
    await tab.enter('new_alias', 'desk')
    await tab.enter('output port', 'nine')
    await tab.click('dialog button', 'Call')
    await tab.find('dialog [data-group=output] .bad', 'This has to be a number.')
    assert.deepEqual(await tab.violations(), [])
    await tab.enter('output port', String(peer.port))
    await tab.click('dialog button', 'Call')
    await tab.find('dialog [data-plan]', 'call it desk in 2 places, give it an output')
    await tab.apply()
    await tab.gone('dialog[open]')
    await tab.find('[data-binding="desk"]')
    assert.match(await stage.config(), /device = "desk"/)
    await until('its port is open', async () => (await stage.ask('GET', '/v1/status')).ports.some((port) => port.device === 'desk' && port.connected))
    await play('/go')
    await peer.came('/lit')
    const isThere = async () => (await stage.ask('GET', '/v1/status')).bindings.find((one) => one.alias === 'desk').output !== null
    assert.equal(await isThere(), true)
    await tab.click('[data-binding="desk"] button', 'Change')
    assert.equal(await (await tab.field('output port')).evaluate((one) => one.value), String(peer.port))
    await tab.clear('output port')
    await tab.click('dialog button', 'Call')
    await tab.find('dialog [data-plan]', 'Change the binding desk: take its output away.')
    await tab.apply()
    await tab.gone('dialog[open]')
    await until('it has no output', async () => !(await isThere()))
    assert.match(await stage.config(), new RegExp(`port = ${stage.osc}`), 'what was not touched stays')
  })

  test('a profile is made, changed and removed', async () => {
    await tab.go('settings')
    await tab.click('button', 'New profile')
    await tab.enter('name', 'Studio')
    await tab.enter('apps', 'Live')
    await tab.enter('mode', 'Mixx')
    await tab.enter('title', 'set')
    await tab.click('dialog button', 'Call')
    await tab.find('dialog .bad', 'did you mean "Mix"?')
    assert.deepEqual(await tab.violations(), [])
    await tab.enter('mode', 'Mix')
    await tab.click('dialog button', 'Call')
    await tab.find('dialog [data-plan]', 'Add the profile Studio: Mix for Live.')
    await tab.apply()
    await tab.gone('dialog[open]')
    await tab.find('[data-profile="Studio"]', 'Live · set → Mix')
    await tab.click('[data-profile="Studio"] button', 'Change')
    await tab.find('dialog h2', 'Change Studio')
    await tab.enter('new_name', 'Stage')
    await tab.enter('mode', 'Play')
    await tab.clear('title')
    await tab.click('dialog button', 'Call')
    await tab.find('dialog [data-plan]', 'Change the profile Studio.')
    await tab.apply()
    await tab.gone('dialog[open]')
    await tab.find('[data-profile="Stage"]', 'Live → Play')
    await tab.click('[data-profile="Stage"] button', 'Remove')
    await tab.find('dialog [data-plan]', 'Remove the profile Stage.')
    await tab.apply()
    await tab.gone('[data-profile]')
    assert.doesNotMatch(await stage.config(), /Stage|Studio/)
  })

  test('a setting that the host refuses says so at its field, and nowhere else', async () => {
    await tab.go('settings')
    const before = await stage.config()
    await tab.enter('max_midi_ports', '257')
    await tab.click('button', 'Show the plan')
    await tab.find('.field .bad', 'out of range')
    const { label, invalid, others } = await tab.page.evaluate(() => {
      const [label] = document.activeElement.labels ?? []
      const others = [...document.querySelectorAll('[role=alert], .note.bad, [aria-invalid]')].filter((one) => one !== document.activeElement)
      return { label: label?.textContent, invalid: document.activeElement.getAttribute('aria-invalid'), others: others.map((one) => one.textContent).filter(Boolean) }
    })
    assert.match(label, /max_midi_ports/, 'one goes on where the mistake is')
    assert.equal(invalid, 'true')
    assert.deepEqual(others, [])
    assert.deepEqual(await tab.violations(), [])
    assert.equal(await stage.config(), before)
    await tab.enter('max_midi_ports', '8')
    await tab.enter('ignore_ports', 'Through*')
    await tab.click('button', 'Show the plan')
    await tab.find('dialog [data-plan]', 'max_midi_ports = 8')
    await tab.apply()
    await tab.gone('dialog[open]')
    assert.match(await stage.config(), /max_midi_ports = 8/)
    // What was there can be taken away as a whole.
    await tab.go('settings')
    await until('the form has it', async () => (await (await tab.field('ignore_ports')).evaluate((one) => one.value)) === 'Through*')
    await tab.clear('ignore_ports')
    await tab.click('button', 'Show the plan')
    await tab.apply()
    await tab.gone('dialog[open]')
    assert.doesNotMatch(await stage.config(), /Through/)
  })

  test('of thousands of mappings those that can be seen are in the page, and each is found, tried and chosen', async () => {
    const places = () => tab.page.evaluate(() => [...document.querySelectorAll('tr[data-place]')].map((row) => row.dataset.place))
    const last = `global_mappings/${MANY - 1}`
    await tab.go('mappings')
    await tab.find('[role=status]', '3,001 of 3,001 mappings')
    assert.ok((await places()).length < 100, 'few of them are in the page')
    assert.equal((await places())[0], 'modes/0/mappings/0')
    assert.equal(await tab.page.evaluate(() => document.querySelector('main table').getAttribute('aria-rowcount')), String(MANY + 2))
    assert.deepEqual(await tab.violations(), [])
    const box = await tab.find('[role=region][aria-label=Mappings]')
    await box.evaluate((one) => one.scrollTo(0, one.scrollHeight))
    // Rows that are higher than was thought move the end.
    await until('the last one', async () => {
      await box.evaluate((one) => one.scrollTo(0, one.scrollHeight))
      return (await places()).at(-1) === last
    })
    assert.ok((await places()).length < 100, 'and no more at the end')
    await tab.click(`tr[data-place="${last}"] input`)
    await tab.find('button', 'Remove 1 chosen')
    await tab.enter('Search mappings', 'cue 1234')
    await tab.find('[role=status]', '1 of 3,001 mappings')
    assert.deepEqual(await places(), ['global_mappings/1234'])
    await tab.click('tr[data-place="global_mappings/1234"] button', 'Try it')
    await peer.came('/played/1234')
    // What was chosen is chosen still, though it is not in sight.
    await tab.click('button', 'Remove 1 chosen')
    await tab.find('dialog [data-plan]', 'cue 2999')
    await tab.click('dialog button', 'Reject')
    await tab.gone('dialog[open]')
    await tab.clear('Search mappings')
    await until('all of them, from the first', async () => (await places())[0] === 'modes/0/mappings/0')
  })

  test('of hundreds of ports those that can be seen are in the page, and each is found', async () => {
    const other = await stage.tab()
    // So many as no machine of a test has.
    await other.page.evaluateOnNewDocument(() => {
      const asked = globalThis.fetch
      globalThis.fetch = async (url, init) => {
        const answer = await asked(url, init)
        if (String(url) !== '/v1/status') return answer
        const status = await answer.json()
        const [port] = status.ports
        status.ports = Array.from({ length: 500 }, (_, number) => ({ ...port, key: `many ${number}`, label: `port ${number}.`, device: `port ${number}.`, binding: null, bindings: [] }))
        return new Response(JSON.stringify(status), { headers: { 'content-type': 'application/json' } })
      }
    })
    await other.page.goto(`${stage.origin}/devices`)
    await other.find('tr[data-port="port 0."]')
    const count = () => other.page.evaluate(() => document.querySelectorAll('tr[data-port]').length)
    assert.ok((await count()) < 100, 'few of them are in the page')
    assert.deepEqual(await other.violations(), [])
    await other.enter('Search ports', 'port 432.')
    await until('one', async () => (await count()) === 1)
    await other.find('tr[data-port="port 432."] button', 'Set up')
    assert.deepEqual(await other.wrong(), [])
    await other.page.close()
  })

  test('a mode is added and removed', async () => {
    await tab.go('settings')
    await tab.enter('New mode', 'Encore')
    await tab.click('button', 'Add it')
    await tab.find('dialog [data-plan]', 'Encore')
    await tab.apply()
    await tab.gone('dialog[open]')
    await tab.find('li button', 'Remove Encore')
    assert.deepEqual((await stage.ask('GET', '/v1/modes')).modes, ['Play', 'Mix', 'Encore'])
    await tab.click('li button', 'Remove Encore')
    await tab.find('dialog [data-plan]', 'Encore')
    await tab.apply()
    await tab.gone('li button', 'Remove Encore')
    assert.deepEqual((await stage.ask('GET', '/v1/modes')).modes, ['Play', 'Mix'])
  })
})
