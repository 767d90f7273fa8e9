// The shell in a browser, before a host that runs: from what a device sends to what a click changes.

import assert from 'node:assert/strict'
import { join } from 'node:path'
import { describe, test } from 'node:test'

import { played } from './played.js'
import { oscInput, until } from './stage.js'

const PAGES = ['', 'mappings', 'devices', 'plans', 'features', 'chat', 'record', 'settings']
const MARKUP = '<img src=x onerror=alert(1)><script>alert(2)</script>'

const config = (port) => `${oscInput('tablet', port)}
[[modes]]
name = "Play"

[[modes.mappings]]
name = ${JSON.stringify(`named ${MARKUP}`)}
trigger = { type = "OscMessage", address = "/named" }
action = { type = "ModeChange", mode = "Mix" }

[[modes]]
name = "Mix"

[features.bench]
path = ${JSON.stringify(join(process.env['CONDUCTOR_FEATURES'], 'tests', 'bench.wasm'))}
`

describe('the shell', { concurrency: false }, () => {
  const { stage, peer, tab, play } = played(config)

  test('a link signs in once, and is not kept in the address', async () => {
    assert.equal(tab.page.url(), `${stage.origin}/`)
    const context = await stage.browser.createBrowserContext()
    const other = await context.newPage()
    assert.equal((await other.goto(stage.link)).status(), 401)
    await other.goto(stage.origin)
    await until('it says how to get in', () => other.evaluate(() => document.querySelector('main pre')?.textContent === 'conductor ui'))
    await context.close()
  })

  test('what a device sends is a row, and its control is drawn', async () => {
    await play('/go', 0.5)
    const row = await tab.find('[role=row][data-kind=event]', '/go')
    const text = await row.evaluate((one) => one.textContent)
    assert.match(text, /tablet/)
    assert.match(text, /no mapping/)
    await tab.find('[data-control="osc /go"]')
  })

  test('a click maps it: the plan is shown, applied, does what it says, and is undone', async () => {
    await tab.go('')
    await play('/go', 0.5)
    await tab.click('[role=row] button', '/go')
    await tab.find('dialog h3', 'What it does')
    await tab.click('dialog button', 'New mapping')
    await tab.choose('Action', 'OscSend')
    await tab.enter('target', `127.0.0.1:${peer.port}`)
    await tab.enter('address', '/lit')
    await tab.enter('Name', 'go lights')
    await tab.click('dialog button', 'Show the plan')
    await tab.find('dialog [data-plan]', '/lit')
    // What was shown and not meant does not wait on.
    await tab.click('dialog button', 'Back to the form')
    const waiting = async () => (await stage.ask('GET', '/v1/plans')).length
    await until('no plan', async () => (await waiting()) === 0)
    await tab.click('dialog button', 'Show the plan')
    await tab.find('dialog [data-plan]', '/lit')
    assert.equal(await waiting(), 1)
    await tab.escape()
    await until('no plan of a dialog that is closed', async () => (await waiting()) === 0)
    await tab.click('[role=row] button', '/go')
    await tab.click('dialog button', 'New mapping')
    await tab.choose('Action', 'OscSend')
    await tab.enter('target', `127.0.0.1:${peer.port}`)
    await tab.enter('address', '/lit')
    await tab.enter('Name', 'go lights')
    await tab.click('dialog button', 'Show the plan')
    await tab.find('dialog [data-plan]', '/lit')
    assert.deepEqual(await tab.violations(), [])
    assert.equal(peer.received.length, 0, 'nothing changes before it is applied')
    await tab.click('dialog button', 'Apply')
    await tab.gone('dialog[open]')
    // It is said in the page, which is read out again, and taken back there.
    await tab.find('.notices [role=status] .notice', 'Applied: ')
    await tab.find('.notices [data-undo-plan]', 'Undo')
    await play('/go', 1)
    await peer.came('/lit')
    await tab.click('button', 'Go on')
    await tab.find('[role=row]', 'go lights')
    await tab.click('header button', 'Undo')
    await tab.find('.notice', 'Undone')
    assert.equal((await stage.conductor('plan', 'list')).includes('go lights'), false)
    await tab.go('mappings')
    await tab.find('td', 'named')
    await tab.gone('td', 'go lights')
  })

  test('a mapping that is there fires, and the mode on the page is the host\'s', async () => {
    await tab.go('')
    await play('/named')
    await until('the mode', () => tab.page.evaluate(() => document.querySelector('header select')?.value === 'Mix'))
    await tab.choose('Mode', 'Play')
    await until('the host\'s mode', async () => (await stage.ask('GET', '/v1/modes')).mode === 'Play')
  })

  test('a mapping is tried from the list, without what it waits for being sent', async () => {
    await tab.go('mappings')
    await tab.click('tr[data-place="modes/0/mappings/0"] button', 'Try it')
    await tab.find('.notice', 'osc /named 1.0 from tablet')
    await until('the host\'s mode', async () => (await stage.ask('GET', '/v1/modes')).mode === 'Mix')
    // What a mapping does may be done before the row of who had it done is kept.
    const isPlayed = (row) => row.what === 'play' && row.subject === 'tablet osc /named 1.0'
    await until('the row', async () => (await stage.ask('GET', '/v1/audit?limit=1000')).some(isPlayed))
    await stage.ask('POST', '/v1/mode', { mode: 'Play' })
    await until('the mode as before', async () => (await stage.ask('GET', '/v1/modes')).mode === 'Play')
  })

  test('the same by keyboard alone', async () => {
    await tab.go('')
    await play('/keys')
    await tab.find('[role=row]', '/keys')
    await tab.press('osc /keys')
    await tab.find('dialog h3', 'What it does')
    await tab.press('New mapping')
    await tab.offered('ModeChange')
    await tab.type('Action', 'ModeChange')
    // Not the one of the mode that it is for.
    await tab.find('dialog label .name', 'mode')
    await tab.type('mode', 'Mix')
    await tab.press('Show the plan')
    await tab.find('dialog [data-plan]', '/keys')
    await tab.press('Apply')
    await tab.gone('dialog[open]')
    await play('/keys')
    await until('the mode', async () => (await stage.ask('GET', '/v1/modes')).mode === 'Mix')
    await stage.ask('POST', '/v1/mode', { mode: 'Play' })
    await stage.ask('POST', '/v1/undo')
  })

  test('the plan of another client appears as it comes, and is rejected', async () => {
    await tab.go('plans')
    await tab.find('p', 'No plan waits')
    const description = `Another mode ${MARKUP} \u202egnp`
    const { id } = await stage.ask('POST', '/v1/plans', { description, changes: [{ path: ['modes', '2'], value: { name: 'Third' } }] })
    const row = await tab.find(`[data-plan-row="${id}"]`, `Another mode ${MARKUP}`)
    assert.match(await row.evaluate((one) => one.textContent), /[^\\]\\u\{202e\}gnp/, 'escaped once')
    await tab.find('nav', '1 plan waits')
    await tab.click(`[data-plan-row="${id}"] a`, 'Another mode')
    await tab.find('[data-plan]', 'Third')
    assert.deepEqual(await tab.violations(), [])
    // What is proposed for another configuration can't be applied, until that is in force again.
    const other = await stage.ask('POST', '/v1/plans', { description: 'A fourth mode', changes: [{ path: ['modes', '2'], value: { name: 'Fourth' } }] })
    await stage.ask('POST', `/v1/plans/${other.id}/apply`)
    await tab.find('[data-plan] p.note', 'The configuration has changed')
    await tab.find('button:disabled', 'Apply')
    assert.deepEqual(await tab.violations(), [])
    await stage.ask('POST', '/v1/undo')
    await tab.gone('[data-plan] p.note.warn')
    await tab.find('button:not(:disabled)', 'Apply')
    await tab.click('button', 'Reject')
    await tab.find('p', 'No plan waits')
    assert.deepEqual(await stage.ask('GET', '/v1/plans'), [])
  })

  test('mappings that are chosen move to another mode, as one plan', async () => {
    const mapping = (name) => ({ name, trigger: { type: 'OscMessage', address: `/${name}` }, action: { type: 'ModeChange', mode: 'Play' } })
    const changes = ['one', 'two', 'three'].map((name, index) => ({ path: ['modes', '0', 'mappings', String(index + 1)], value: mapping(name) }))
    const { id } = await stage.ask('POST', '/v1/plans', { description: 'Three more.', changes })
    await stage.ask('POST', `/v1/plans/${id}/apply`)
    await tab.go('mappings')
    // What is for those that are chosen comes with the first of them, and the search has room.
    await tab.find('input[aria-label="Choose one"]')
    await tab.gone('[data-chosen]')
    assert.ok((await (await tab.field('Search mappings')).evaluate((one) => one.clientWidth)) >= 300)
    // What was chosen is a mapping and not its place: another one that comes to stand there is not chosen.
    await (await tab.find('input[aria-label="Choose one"]')).evaluate((one) => one.click())
    await tab.find('button:not(:disabled)', 'Move 1 chosen')
    const first = await stage.ask('POST', '/v1/plans', { description: 'One less.', changes: [{ path: ['modes', '0', 'mappings', '0'] }] })
    await stage.ask('POST', `/v1/plans/${first.id}/apply`)
    await tab.find('tr[data-place="modes/0/mappings/1"] th', 'two')
    await tab.gone('[data-chosen]')
    await stage.ask('POST', '/v1/undo')
    await tab.find('button:not(:disabled)', 'Move 1 chosen')
    await (await tab.find('input[aria-label="Choose three"]')).evaluate((one) => one.click())
    await tab.choose('Move to', 'Mix')
    await tab.click('button', 'Move 2 chosen')
    await tab.find('dialog [data-plan]', 'Move 2 mappings to Mix.')
    assert.deepEqual(await tab.violations(), [])
    await tab.click('dialog button', 'Apply')
    await tab.gone('dialog[open]')
    await tab.find('.notice', 'Applied: Move 2 mappings to Mix.')
    for (const [place, name] of [['modes/0/mappings/1', 'two'], ['modes/1/mappings/0', 'one'], ['modes/1/mappings/1', 'three']]) {
      await tab.find(`tr[data-place="${place}"] th`, name)
    }
    await stage.ask('POST', '/v1/mode', { mode: 'Mix' })
    await play('/three')
    await until('the mode', async () => (await stage.ask('GET', '/v1/modes')).mode === 'Play')
    await stage.ask('POST', '/v1/undo')
    await tab.find('tr[data-place="modes/0/mappings/1"] th', 'one')
    // The same mappings wait for one device alone, and for any again.
    for (const name of ['one', 'two']) await (await tab.find(`input[aria-label="Choose ${name}"]`)).evaluate((one) => one.click())
    await tab.choose('Wait for', 'tablet')
    await tab.click('button', 'Set for 2 chosen')
    await tab.find('dialog [data-plan]', 'Have 2 mappings wait for tablet.')
    await tab.click('dialog button', 'Apply')
    await tab.gone('dialog[open]')
    await tab.find('tr[data-place="modes/0/mappings/2"] td', 'from tablet only')
    await stage.ask('POST', '/v1/undo')
    await tab.gone('td', 'from tablet only')
    await stage.ask('POST', '/v1/undo')
    await tab.gone('th', 'three')
  })

  test('mappings that wait for some of the same events name each other, and such an event', async () => {
    const mapping = (name, trigger) => ({ name, trigger: { type: 'Note', ...trigger }, action: { type: 'ModeChange', mode: 'Play' } })
    const changes = [
      { path: ['modes', '0', 'mappings', '1'], value: mapping('row', { note: '36..39' }) },
      { path: ['global_mappings', '0'], value: { ...mapping('pad', { note: 38, device: 'tablet' }), consume: true } },
    ]
    const { id } = await stage.ask('POST', '/v1/plans', { description: 'Two that meet.', changes })
    await tab.go('mappings')
    await tab.find('tr[data-place="modes/0/mappings/0"]')
    await stage.ask('POST', `/v1/plans/${id}/apply`)
    await tab.find('tr[data-place="global_mappings/0"] .overlap', 'note-on 38 127: kept from row')
    await tab.find('tr[data-place="modes/0/mappings/1"] .overlap', 'note-on 38 127: pad keeps it from this one')
    await tab.find('tr[data-place="modes/0/mappings/1"] .badge', 'overlap')
    assert.deepEqual(await tab.violations(), [])
    await stage.ask('POST', '/v1/undo')
    await tab.gone('.overlap')
  })

  test('what was done is on record, and its chain is whole', async () => {
    await tab.go('record')
    await tab.find('[data-audit]', 'plan reject')
    await tab.find('[data-chain=whole]', 'Rows')
  })

  test('a feature is looked at, installed and disabled', async () => {
    await tab.go('features')
    await tab.enter('File of this computer', join(process.env['CONDUCTOR_FEATURES'], 'tests', 'hello.wasm'))
    await tab.click('button', 'Look at it')
    await tab.find('legend', 'What it asks for')
    assert.deepEqual(await tab.violations(), [])
    await tab.click('button.primary', 'Install')
    await tab.find('[data-feature="hello"]')
    await tab.click('[data-feature="bench"] a', 'bench')
    await tab.find('.details', 'The configuration names its file')
    await tab.click('[data-feature="hello"] button', 'Disable')
    await tab.find('.notice', 'hello is disabled')
    await tab.find('li', 'disable')
    await tab.find('[data-feature="hello"] .badge', 'disabled')
    await tab.click('[data-feature="hello"] button', 'Enable')
    await tab.find('.notice', 'hello is enabled')
    await tab.find('[data-feature="hello"] .badge', 'loaded')
  })

  test('texts of others are text, whatever is in them', async () => {
    await tab.go('')
    const hostile = { markup: `/${MARKUP}`, bidi: '/a\u202ecod.exe', long: `/${'x'.repeat(8000)}` }
    for (const address of Object.values(hostile)) await play(address)
    await tab.find('[role=row]', MARKUP)
    await tab.find('[role=row]', '/a\\u{202e}cod.exe')
    await tab.find('[role=row]', 'xxxx')
    const wide = await tab.page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth)
    assert.ok(wide <= 0, `the page is ${wide} pixels wider than its window`)
    // A row that came late would have the rows below it moved on.
    await tab.click('button', 'Pause')
    await tab.click('[role=row] button', MARKUP)
    await tab.find('dialog dd', MARKUP)
    await tab.go('mappings')
    await tab.find('td', `named ${MARKUP}`)
    assert.equal(await tab.page.evaluate(() => document.querySelectorAll('img[src=x]').length), 0)
  })

  test('words that are of Conductor alone are explained where they come first', async () => {
    const said = {
      mappings: 'A mapping is what a control does', devices: 'A binding gives a device the name', plans: 'A plan is a change that waits for you',
      features: 'A feature is an extension', record: 'What was done, and by whom', settings: 'These are called as in the configuration file',
    }
    for (const [page, text] of Object.entries(said)) {
      await tab.go(page)
      await tab.find('main p', text)
    }
    await tab.go('devices')
    await tab.find('main p', 'A port is one way into or out of a device')
    await tab.click('[data-binding="tablet"] button', 'Change')
    await tab.find('dialog p', '`matchers` tell its ports')
    await tab.escape()
    await tab.go('mappings')
    await tab.click('tr[data-place] button', 'Change')
    await tab.find('dialog p', '/named, whenever this message comes')
    await tab.click('dialog summary', 'As written')
    const trigger = await tab.field('Trigger (JSON)')
    const described = await trigger.evaluate((one) => one.getAttribute('aria-describedby').split(' ').map((id) => document.getElementById(id)?.textContent).join(' '))
    assert.match(described, /What is waited for, as the configuration file has it/)
    assert.deepEqual(await tab.violations(), [])
    await tab.escape()
  })

  for (const scheme of ['light', 'dark']) {
    test(`every page can be used by everyone in ${scheme} colours`, async () => {
      const tab = await stage.tabIn(scheme)
      for (const page of PAGES) {
        await tab.go(page)
        if (page === '') {
          await play('/go', 0.5)
          await tab.find('[role=row]', '/go')
        }
        await until('what the page asks for', () => tab.page.evaluate(() => !document.querySelector('main').innerText.includes('Asking the host')))
        assert.deepEqual(await tab.violations(), [], `/${page}`)
      }
      assert.deepEqual(await tab.wrong(), [])
    })
  }

  test('on a small screen no page is wider than its window', async () => {
    await tab.page.setViewport({ width: 360, height: 740 })
    for (const page of PAGES) {
      await tab.go(page)
      const wide = await tab.page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth)
      assert.ok(wide <= 0, `/${page} is ${wide} pixels wider than its window`)
    }
    await tab.page.setViewport({ width: 1360, height: 900 })
  })

  test('the other language is everywhere', async () => {
    await tab.go('settings')
    await tab.choose('Language', 'Deutsch')
    await tab.find('nav a', 'Einstellungen')
    assert.equal(await tab.page.evaluate(() => document.documentElement.lang), 'de')
    assert.deepEqual(await tab.violations(), [])
    await tab.choose('Sprache', 'English')
    await tab.find('nav a', 'Settings')
  })

  test('a host that ends and comes back is found again without a reload', async () => {
    await tab.go('')
    await tab.page.evaluate(() => (globalThis.sameDocument = true))
    await stage.host.end()
    await tab.find('[data-state=lost]')
    await stage.run()
    await tab.find('[data-state=open]')
    await play('/back')
    await tab.find('[role=row]', '/back')
    assert.equal(await tab.page.evaluate(() => globalThis.sameDocument), true)
  })

  test('a session that has ended says how to get in again', async () => {
    await stage.browser.defaultBrowserContext().deleteCookie(...(await stage.browser.defaultBrowserContext().cookies()))
    await tab.page.goto(stage.origin)
    await tab.find('main pre', 'conductor ui')
    assert.deepEqual(await tab.violations(), [])
    await tab.page.goto(await stage.another())
    await tab.find('[data-state=open]')
  })
})
