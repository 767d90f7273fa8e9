// The page Live, from what comes in to what is seen: the signal flow, the stream with its filters, pills, learning, and the
// connection.

import assert from 'node:assert/strict'
import { after, describe, test } from 'node:test'

import { played } from './played.js'
import { OscPeer, freePort, oscInput, until } from './stage.js'

const config = (osc, desk, peer) => `${oscInput('tablet', osc)}${oscInput('desk', desk)}
[[modes]]
name = "Play"

[[modes.mappings]]
name = "go (loud)"
trigger = { type = "OscMessage", address = "/go", device = "tablet" }
action = { type = "OscSend", target = "127.0.0.1:${peer}", address = "/lit" }

[[modes.mappings]]
trigger = { type = "OscMessage", address = "/plain" }
action = { type = "OscSend", target = "127.0.0.1:${peer}", address = "/bare" }

[[modes.mappings]]
trigger = { type = "OscMessage", address = "/other" }
action = { type = "OscSend", target = "127.0.0.1:${peer}", address = "/other" }
`

describe('the page Live', { concurrency: false }, () => {
  let taken
  let desk
  const { stage, peer, tab, play } = played(async (osc, port) => {
    taken = await OscPeer.open()
    desk = await freePort()
    return config(osc, desk, port)
  })
  after(() => taken?.close())

  const playDesk = (address, value = 1) => peer.send(desk, address, value)
  /** The events of the rows that are there, the newest first. */
  const rows = () => tab.page.evaluate(() => [...document.querySelectorAll('[role=row][data-kind]')].map((row) => row.querySelector('code')?.textContent ?? row.textContent))
  /** How many events the page has counted of a device. */
  const counted = (device) =>
    tab.page.evaluate((device) => Number(/([\d,]+) events?/.exec(document.querySelector(`[data-device="${device}"]`)?.textContent ?? '')?.[1]?.replace(',', '') ?? 0), device)
  const applied = async (description, changes) => {
    const { id } = await stage.ask('POST', '/v1/plans', { description, changes })
    await stage.ask('POST', `/v1/plans/${id}/apply`)
  }

  /** Keeps which edges of the signal flow are lit, which they are for a moment. Gives what says which were so far. */
  const edges = async (on) => {
    await on.page.evaluate(() => {
      globalThis.lit = []
      const look = () => {
        for (const one of document.querySelectorAll('.lit[data-flow]')) globalThis.lit.push(one.dataset.flow)
        for (const one of document.querySelectorAll('.head.lit')) globalThis.lit.push(one.parentElement.dataset.source)
      }
      new MutationObserver(look).observe(document.querySelector('main'), { subtree: true, attributes: true, childList: true })
    })
    return async () => [...new Set(await on.page.evaluate(() => globalThis.lit))].toSorted()
  }

  // SHL-1, SHL-3
  test('in the signal flow the edges light up by which an event passes, and no others', async () => {
    await tab.go('')
    await tab.click('button', 'Show the signal flow')
    await tab.find('[data-source="tablet"] [data-flow="go (loud)"] .badge', 'osc-output')
    await tab.find('[data-source="*"] [data-flow="modes/0/mappings/1"]', '/plain')
    await tab.find('[data-source="desk"]', 'no mapping waits for it')
    const lit = await edges(tab)
    await play('/go')
    await peer.came('/lit')
    await until('the edges of a name', async () => (await lit()).includes('go (loud)'))
    assert.deepEqual(await lit(), ['go (loud)', 'tablet'])
    await playDesk('/plain')
    await until('the edges of no name', async () => (await lit()).includes('modes/0/mappings/1'))
    assert.deepEqual(await lit(), ['desk', 'go (loud)', 'modes/0/mappings/1', 'tablet'])
    assert.deepEqual(await tab.violations(), [])
  })

  // SHL-3
  test('in the signal flow what has no binding is a group of its own, with edges that light up, too', async () => {
    const other = await stage.tab()
    await other.unbind('desk')
    await other.go('')
    await other.click('button', 'Show the signal flow')
    await other.find('[data-flow-unbound] [data-source="desk"]', 'nothing heard yet')
    await other.find('[data-section=unbound] p', 'No mapping can name these devices yet')
    const inGroup = await other.page.evaluate(() => [...document.querySelectorAll('[data-source]')].filter((one) => one.closest('[data-flow-unbound]')).map((one) => one.dataset.source))
    assert.deepEqual(inGroup, ['desk'])
    const lit = await edges(other)
    await playDesk('/plain')
    await until('its edge, and that of the mapping of any device', async () => (await lit()).length === 2)
    assert.deepEqual(await lit(), ['desk', 'modes/0/mappings/1'])
    await other.find('[data-flow-unbound] [data-source="desk"]', 'osc')
    assert.deepEqual(await other.violations(), [])
    await other.click('[data-flow-unbound] [data-source="desk"] button', 'Map')
    await other.find('dialog label', 'The name of this device in mappings')
    assert.deepEqual(await other.wrong(), [])
    await other.page.close()
  })

  // SHL-1
  test('in the signal flow a way is seen to be broken where no port of its binding is there, and what it can\'t send fails', async () => {
    const matchers = (value) => [{ type: 'name_contains', value }]
    await applied('A controller that is at home, and a synthesizer, too.', [
      { path: ['bindings', '2'], value: { alias: 'grid', matchers: matchers('APC MINI') } },
      { path: ['bindings', '3'], value: { alias: 'sampler', output: { matchers: matchers('No Such Sampler') } } },
      { path: ['modes', '0', 'mappings', '3'], value: { name: 'unheard', trigger: { type: 'Note', note: 56, device: 'grid' }, action: { type: 'MidiForward', target: 'sampler' } } },
      { path: ['modes', '0', 'mappings', '4'], value: { name: 'unsent', trigger: { type: 'OscMessage', address: '/unsent' }, action: { type: 'SendMidi', target: 'sampler', message_type: 'CC', cc: 1, value: 1 } } },
    ])
    await tab.go('')
    await tab.click('button', 'Show the signal flow')
    await tab.find('[data-source="tablet"] .badge.good', 'working')
    for (const device of ['grid', 'sampler']) {
      await tab.find(`[data-source="${device}"] .ports`, 'not there')
      await tab.find(`[data-source="${device}"] .head .badge.bad`, 'not working')
    }
    await tab.find('[data-source="grid"] [data-flow="unheard"] .badge.warn', 'sampler: not there')
    await tab.find('[data-source="*"] [data-flow="unsent"] .badge.warn', 'sampler: not there')
    await tab.gone('[data-flow="go (loud)"] .badge.warn')
    await play('/unsent')
    await tab.find('[role=row].trouble', 'no port is bound to "sampler"')
    assert.deepEqual(await tab.violations(), [])
    await tab.go('devices')
    await tab.find('tr', 'no port is bound to "sampler"')
    await stage.ask('POST', '/v1/undo')
    await tab.gone('[data-binding=sampler]')
  })

  // SHL-1
  test('in the signal flow a mapping is seen to wait for a binding that is gone, and is whole again with it', async () => {
    await tab.go('')
    await tab.click('button', 'Show the signal flow')
    await tab.find('[data-source="tablet"] [data-flow="go (loud)"]')
    await applied('The tablet is not wanted any more.', [{ path: ['bindings', '0'], value: null }])
    await tab.find('[data-missing="tablet"] .badge.warn', 'no such binding')
    await tab.find('[data-missing="tablet"] [data-flow="go (loud)"]')
    await tab.gone('[data-source="tablet"]')
    assert.deepEqual(await tab.violations(), [])
    await stage.ask('POST', '/v1/undo')
    await tab.find('[data-source="tablet"] [data-flow="go (loud)"]')
    await tab.gone('[data-missing]')
    await until('its port is open', async () => (await stage.ask('GET', '/v1/status')).ports.some((port) => port.device === 'tablet' && port.connected))
    const lit = await edges(tab)
    const before = peer.count('/lit')
    await play('/go')
    await until('the packet', () => peer.count('/lit') > before)
    await until('the edges', async () => (await lit()).length === 2)
    assert.deepEqual(await lit(), ['go (loud)', 'tablet'])
  })

  // SHL-3
  test('a row says what it came by, from where, and what came of it; a device shows that it is active', async () => {
    await tab.go('')
    await play('/go', 0.5)
    const { cells, colours } = await tab.rowWith('/go')
    assert.deepEqual([cells[1], cells[2], cells[3]], ['osc', 'tablet', ''])
    assert.match(cells[5], /go \(loud\)/)
    await tab.find('[data-device="tablet"]')
    const colour = await tab.page.evaluate(() => /device-\d/.exec(document.querySelector('[data-device="tablet"]').className)?.[0])
    assert.deepEqual(colours, [colour], 'the row has the colour of its device')
    await tab.find('[data-device="tablet"] .dot.active')
    await until('one is counted', async () => (await counted('tablet')) === 1)
    await play('/go', 0.6)
    await until('one more', async () => (await counted('tablet')) === 2)
    await tab.find('[data-device="tablet"] .dot:not(.active)')
    await tab.gone('[data-device="desk"] .dot.active')
  })

  // SHL-3
  test('a device shows that it is active for two seconds after an event, and no longer', async () => {
    const other = await stage.tab()
    // The page's clock, in milliseconds, which stands still until it is set.
    await other.page.evaluateOnNewDocument(() => {
      globalThis.clock = 10_000
      performance.now = () => globalThis.clock
    })
    const set = (clock) => other.page.evaluate((clock) => (globalThis.clock = clock), clock)
    const dots = ['[data-device="tablet"] .dot', '[data-pill="tablet"] .dot']
    await other.go('')
    for (const dot of dots) await other.find(`${dot}:not(.active)`)
    await play('/go')
    await other.rowWith('/go')
    await set(10_001)
    for (const dot of dots) await other.find(`${dot}.active`)
    await set(11_999)
    // In the second after that of the event it has a rate, which says that the clock was looked at.
    const areActive = await until('a rate', () =>
      other.page.evaluate((dots) => {
        const [, rate] = /([\d.]+)\/s/.exec(document.querySelector('[data-device="tablet"]').textContent) ?? []
        return Number(rate) > 0 ? dots.map((dot) => document.querySelector(dot).matches('.active')) : null
      }, dots),
    )
    assert.deepEqual(areActive, [true, true])
    await set(12_000)
    for (const dot of dots) await other.find(`${dot}:not(.active)`)
    assert.deepEqual(await other.wrong(), [])
    await other.page.close()
  })

  // SHL-3
  test('a device says how much comes of it now, and which kinds', async () => {
    await tab.go('')
    const rate = () => tab.page.evaluate(() => Number(/([\d.]+)\/s/.exec(document.querySelector('[data-device="tablet"]')?.textContent ?? '')?.[1] ?? 0))
    await until('a rate', async () => {
      await play('/go')
      return (await rate()) > 0
    })
    await tab.find('[data-device="tablet"]', 'osc')
    await until('nothing comes any more', async () => (await rate()) === 0)
  })

  // SHL-4
  test('a click on a control of the picture says what it does, maps it, and plays it though nobody touches the device', async () => {
    await tab.go('?device=tablet')
    const control = '[data-control="osc /pad"]'
    // It is lit for a moment each time.
    await until('it is lit', async () => {
      await play('/pad', 1)
      return tab.page.evaluate((control) => document.querySelector(`${control}[data-lit]`) !== null, control)
    })
    await tab.find(`${control}:not([data-lit])`)
    await tab.click(control)
    await tab.find('dialog h2', '/pad')
    await tab.find('dialog dd[data-field=address]', '/pad')
    await tab.click('dialog button', 'New mapping')
    await tab.choose('Action', 'OscSend')
    await tab.enter('target', `127.0.0.1:${peer.port}`)
    await tab.enter('address', '/kick')
    await tab.enter('Name', 'kick')
    await tab.click('dialog button', 'Show the plan')
    await tab.find('dialog [data-plan]', '/kick')
    await tab.click('dialog button', 'Apply')
    await tab.gone('dialog[open]')
    await play('/pad', 1)
    await peer.came('/kick')
    await tab.click(control)
    await tab.find('dialog td', 'kick')
    await tab.click('dialog button', 'Play it')
    await until('the packet', () => peer.count('/kick') === 2)
    assert.deepEqual(await tab.violations(), [])
    // What it does is changed from there, too.
    await tab.click('dialog [data-mapping] button', 'Change kick')
    await tab.find('dialog h2', 'Change a mapping')
    await tab.find('dialog label', 'address')
    await tab.escape()
    await tab.find('[role=row]', 'kick')
    await stage.ask('POST', '/v1/undo')
  })

  test('a row stays the same one while others come before it', async () => {
    await tab.go('')
    await play('/kept')
    const row = await tab.find('[role=row][data-kind=event]', '/kept')
    await play('/later')
    await until('the next one', async () => (await rows())[0]?.includes('/later'))
    const there = await row.evaluate((one) => ({ text: one.textContent, isThere: one.isConnected }))
    assert.match(there.text, /\/kept/, 'what is pressed there opens what was aimed at')
    assert.equal(there.isThere, true)
  })

  // SHL-4
  test('a device that is not there is drawn by its binding, and played on its picture', async () => {
    const action = { type: 'OscSend', target: `127.0.0.1:${peer.port}`, address: '/from-afar' }
    await applied('A controller that is at home.', [
      { path: ['bindings', '2'], value: { alias: 'grid', matchers: [{ type: 'name_contains', value: 'APC MINI' }] } },
      { path: ['modes', '0', 'mappings', '3'], value: { name: 'afar', trigger: { type: 'Note', note: 56, device: 'grid' }, action } },
    ])
    await tab.go('devices')
    await tab.find('[data-binding=grid]', 'input: not there')
    await tab.click('[data-binding=grid] a', 'Show it')
    await tab.find('h2', 'Akai Professional APC mini')
    await tab.click('[data-control="note 56 0"]')
    await tab.find('dialog td', 'afar')
    await tab.click('dialog button', 'Play it')
    await peer.came('/from-afar')
    await tab.escape()
    await tab.find('[role=row]', 'afar')
    assert.deepEqual(await tab.violations(), [])
    // The list of mappings says it in words, with its device's name for the control; how it is written is shown where it is asked for.
    await tab.go('mappings')
    const row = 'tr[data-place="modes/0/mappings/3"]'
    await tab.find(`${row} td`, 'pad 1 (Note G♯3), from grid only, when it is pressed')
    await tab.find(`${row} td`, `sends /from-afar to 127.0.0.1:${peer.port}`)
    await tab.enter('Search mappings', 'pad 1')
    await tab.find('[role=status]', '1 of 4 mappings')
    await tab.click(`${row} button`, 'As written')
    await tab.find('dialog p', 'trigger = {')
    assert.deepEqual(await tab.violations(), [])
    await tab.escape()
    await stage.ask('POST', '/v1/undo')
  })

  test('what a screen reader reads out by itself does not change with each event', async () => {
    await tab.go('')
    await play('/go')
    await until('it is counted', async () => (await counted('tablet')) === 1)
    await tab.page.evaluate(() => {
      globalThis.said = []
      for (const region of document.querySelectorAll('[aria-live]:not([aria-live=off]), [role=status], [role=alert], [role=log]')) {
        new MutationObserver(() => globalThis.said.push(region.textContent)).observe(region, { subtree: true, childList: true, characterData: true })
      }
    })
    for (let count = 0; count < 20; count += 1) await play('/go', count / 20)
    await until('they are counted', async () => (await counted('tablet')) === 21)
    await tab.find('[role=row]', '/go')
    assert.deepEqual(await tab.page.evaluate(() => globalThis.said), [])
  })

  test('an event is opened into what each mapping makes of it', async () => {
    await tab.go('')
    await play('/go', 0.7)
    await tab.click('[role=row] button', '/go')
    await tab.find('dialog td', 'go (loud)')
    const told = await tab.page.evaluate(() => [...document.querySelectorAll('dialog tbody tr')].map((row) => [...row.querySelectorAll('td')].map((cell) => cell.textContent.trim())))
    const named = told.find(([rule]) => rule.includes('go (loud)'))
    assert.equal(named?.[1], 'yes')
    for (const [rule, fires, why] of told) {
      assert.notEqual(why, '', rule)
      if (!rule.includes('go (loud)')) assert.equal(fires, 'no', rule)
    }
    assert.deepEqual(await tab.violations(), [])
    await tab.escape()
  })

  // SHL-3
  test('an event shows its fields, in its row and opened, and the stream is narrowed by them', async () => {
    await tab.go('')
    for (const event of ['note-on 36 100 ch 9', 'cc 7 1 ch 9', 'osc /mixed 1 0.5 "two"']) await stage.ask('POST', '/v1/play', { device: 'tablet', event })
    const { cells } = await tab.rowWith('note-on')
    assert.deepEqual([cells[1], cells[3], cells[4]], ['midi', 'ch10', 'note-on 36 C2 100'])
    await tab.click('[role=row] button', '/mixed')
    await tab.find('dialog dd[data-field=argument]', 'two')
    const fields = await tab.page.evaluate(() => [...document.querySelectorAll('dialog dd[data-field]')].map((one) => [one.dataset.field, one.textContent.trim()]))
    assert.deepEqual(fields, [
      ['kind', 'osc'],
      ['address', '/mixed'],
      ['argument', '1 whole number, 32 bits'],
      ['argument', '0.5 number, 32 bits'],
      ['argument', '"two" text'],
    ])
    assert.deepEqual(await tab.violations(), [])
    await tab.escape()
    const shown = (what, expected) => until(what, async () => (await rows()).toSorted().join() === expected.toSorted().join())
    await tab.choose('Channel', 'ch10')
    await shown('a channel', ['note-on 36 C2 100', 'cc 7 1'])
    await tab.choose('Kind', 'note-on')
    await shown('a kind', ['note-on 36 C2 100'])
    await tab.choose('Channel', 'ch1')
    await shown('neither', [])
    await tab.choose('Channel', 'Every channel')
    await tab.choose('Kind', 'osc')
    await shown('another kind', ['osc /mixed 1 0.5 "two"'])
  })

  // SHL-4
  test('a control of the picture that is mapped is marked, and says what it does', async () => {
    await tab.go('?device=tablet')
    await play('/go')
    await play('/unmapped')
    const marked = await tab.find('[data-control="osc /go"][data-mapped]:has(.mark)')
    assert.equal(await marked.evaluate((one) => one.title), 'mapped: go (loud)')
    assert.match(await marked.evaluate((one) => one.getAttribute('aria-label')), /^\/go, 100 %, mapped: go \(loud\)$/)
    await tab.find('[data-control="osc /unmapped"]:not([data-mapped], :has(.mark))')
    assert.deepEqual(await tab.violations(), [])
  })

  // SHL-3
  test('a row is opened by a click anywhere on it, and by Enter, with all of what it says', async () => {
    const long = `/edge/${'x'.repeat(3000)}/end`
    await tab.go('')
    await play(long)
    const row = await tab.find('[role=row][data-kind=event]', '/edge')
    assert.equal(await row.evaluate((one) => one.querySelector('button').getAttribute('aria-haspopup')), 'dialog')
    const isOpen = () => tab.page.evaluate(() => document.querySelector('dialog[open]') !== null)
    for (const edge of ['left', 'right']) {
      await until(`a click at its ${edge} edge opens it`, async () => {
        const { x, y, cursor } = await row.evaluate((one, edge) => {
          one.scrollIntoView({ block: 'center', behavior: 'instant' })
          const { left, right, top, height } = one.getBoundingClientRect()
          const [x, y] = [edge === 'left' ? left + 20 : right - 20, top + height / 2]
          return { x, y, cursor: getComputedStyle(document.elementFromPoint(x, y)).cursor }
        }, edge)
        assert.equal(cursor, 'pointer')
        await tab.page.mouse.click(x, y)
        return isOpen()
      })
      await tab.find('dialog dd[data-field=address]', '/end')
      assert.deepEqual(await tab.violations(), [])
      await tab.escape()
    }
    await tab.press('osc /edge/')
    await tab.find('dialog dd[data-field=address]', '/end')
    await tab.escape()
    // What is no event is read in full, too.
    await stage.ask('POST', '/v1/plans', { description: `A mode that nobody needs ${'y'.repeat(400)} indeed.`, changes: [{ path: ['modes', '1'], value: { name: 'Spare' } }] })
    await tab.click('button', 'Go on')
    await tab.find('[role=row][data-kind=plan]', 'A mode that nobody needs')
    await tab.press('A mode that nobody needs')
    await tab.find('dialog p', 'y indeed.')
    assert.deepEqual(await tab.violations(), [])
    await tab.escape()
    const [{ id }] = await stage.ask('GET', '/v1/plans')
    await stage.ask('POST', `/v1/plans/${id}/reject`)
  })

  test('while it is paused no row comes, and none is lost', async () => {
    await tab.go('')
    await play('/shown')
    await tab.find('[role=row]', '/shown')
    await until('it is counted', async () => (await counted('tablet')) === 1)
    await tab.click('button', 'Pause')
    await play('/held')
    await until('the page has it', async () => (await counted('tablet')) === 2)
    assert.equal((await rows()).some((row) => row.includes('/held')), false)
    await tab.click('button', 'Go on')
    await tab.find('[role=row]', '/held')
  })

  test('filters let through what they say', async () => {
    await tab.go('')
    await play('/go')
    await play('/nothing')
    await playDesk('/plain')
    await tab.find('[role=row]', '/go')
    await tab.find('[role=row]', '/nothing')
    await tab.find('[role=row]', '/plain')
    /** Waits until of the events these alone are shown. */
    const only = (what, addresses) =>
      until(what, async () => {
        const shown = (await rows()).filter((row) => row.startsWith('osc '))
        return shown.length === addresses.length && addresses.every((address) => shown.some((row) => row.startsWith(`osc ${address} `)))
      })
    await only('everything', ['/go', '/nothing', '/plain'])
    await tab.enter('Search events', 'NOTH')
    await only('a text', ['/nothing'])
    await tab.enter('Search events', 'loud')
    await only('the name of a mapping', ['/go'])
    await tab.clear('Search events')
    await tab.choose('Device', 'desk')
    await only('a device', ['/plain'])
    await tab.choose('Device', 'Every device')
    await tab.choose('Protocol', 'midi')
    await only('another protocol', [])
    await tab.choose('Protocol', 'osc')
    await only('its protocol', ['/go', '/nothing', '/plain'])
    await (await tab.field('Unmapped only')).click()
    await only('what no mapping takes', ['/nothing'])
    await (await tab.field('Unmapped only')).click()
    await only('everything again', ['/go', '/nothing', '/plain'])
  })

  // SHL-3
  test('pills narrow the stream to the devices that are chosen', async () => {
    await tab.go('')
    await play('/go')
    await playDesk('/plain')
    await tab.find('[role=row]', '/go')
    await tab.find('[role=row]', '/plain')
    await tab.find('[data-pill="tablet"] [data-icon=osc]')
    const shown = (what, count) => until(what, async () => (await rows()).filter((row) => row.startsWith('osc ')).length === count)
    await tab.click('[data-pill="tablet"]')
    await shown('one device', 1)
    await tab.find('[data-pill="tablet"][aria-pressed=true]')
    await tab.click('[data-pill="desk"]')
    await shown('two devices', 2)
    // An option of a closed list is not to be seen.
    await until('the list says so', () => tab.page.evaluate(() => [...document.querySelectorAll('option')].some((one) => one.textContent === '2 devices')))
    await tab.click('[data-pill="tablet"]')
    await until('the other device', async () => (await rows()).every((row) => row.startsWith('osc /plain ')))
    await tab.click('[data-pill="desk"]')
    await shown('all', 2)
    await tab.choose('Show events', 'Without a binding')
    await shown('none is unbound', 0)
    await tab.choose('Show events', 'With a binding')
    await shown('all are bound', 2)
    assert.deepEqual(await tab.violations(), [])
  })

  // SHL-1
  test('a control that is touched is learned and mapped, and nothing listens any more then', async () => {
    const listens = async () =>
      stage.ask('POST', '/v1/tools/conductor_stop_learn', { args: { keep: true } }).then(
        () => true,
        (error) => {
          if (/nothing is being learned/.test(error.message)) return false
          throw error
        },
      )
    await tab.go('mappings')
    await tab.click('button', 'New mapping')
    for (const end of ['Cancel', '×']) {
      await tab.click('dialog button', 'Learn by touch')
      await tab.find('dialog [data-learning=listening]')
      assert.equal(await listens(), true)
      await tab.click('dialog button', end)
      await until(`${end} ends it`, async () => !(await listens()))
    }
    await tab.gone('dialog[open]')
    await tab.click('button', 'New mapping')
    await tab.click('dialog button', 'Learn by touch')
    await tab.find('dialog [data-learning=listening]')
    await play('/touched', 1)
    await play('/touched', 0)
    await tab.find('dialog [data-learned=button]')
    await until('nothing listens', async () => !(await listens()))
    await tab.choose('Action', 'OscSend')
    await tab.enter('target', `127.0.0.1:${peer.port}`)
    await tab.enter('address', '/learned')
    await tab.click('dialog button', 'Show the plan')
    // Letting a button go is no press of it: that is what learning knows, and the event alone does not tell.
    await tab.find('dialog [data-plan]', 'OscArgRange')
    await tab.click('dialog button', 'Apply')
    await tab.gone('dialog[open]')
    await play('/touched', 1)
    await peer.came('/learned')
    await stage.ask('POST', '/v1/undo')
  })

  // SHL-3
  test('a port that fails is red, with its reason, and filtered out of the stream as a problem', async () => {
    await tab.go('')
    await play('/go')
    await tab.find('[role=row]', '/go')
    await applied('A port that another program has.', [{ path: ['bindings', '2'], value: { alias: 'busy', protocol: 'osc', input: { host: '127.0.0.1', port: taken.port } } }])
    await tab.find('[data-device="busy"] [data-failed].bad', 'in use')
    await tab.find('[data-pill="busy"].failed')
    await (await tab.field('Problems only')).click()
    await tab.gone('[role=row]', '/go')
    await tab.find('[role=row].trouble', 'busy')
    assert.deepEqual(await tab.violations(), [])
    await stage.ask('POST', '/v1/undo')
    await tab.gone('[data-device="busy"]')
  })

  // SHL-3
  test('a device is muted, which lasts until the host is restarted', async () => {
    await tab.go('devices')
    await tab.click('[data-binding=tablet] button', 'Mute until restart')
    await tab.find('.notice', 'tablet is muted until the host is restarted')
    await tab.go('')
    await tab.find('[data-device="tablet"] .badge', 'muted until restart')
    const unheard = async () => (await stage.ask('GET', '/v1/status')).ports.find((port) => port.device === 'tablet').unheard
    const before = await unheard()
    await play('/muted')
    await until('it is discarded', async () => (await unheard()) > before)
    await playDesk('/heard')
    await tab.find('[role=row]', '/heard')
    assert.equal((await rows()).some((row) => row.includes('/muted')), false)
    await tab.go('devices')
    await tab.click('[data-binding=tablet] button', 'Unmute')
    await tab.find('.notice', 'tablet is heard again')
    await tab.go('')
    await play('/again')
    await tab.find('[role=row]', '/again')
  })

  // SHL-3
  test('a restart of the host ends that a device is muted', async () => {
    const isMuted = async () => (await stage.ask('GET', '/v1/bindings')).find((one) => one.alias === 'tablet').muted
    await tab.go('devices')
    await tab.click('[data-binding=tablet] button', 'Mute until restart')
    await tab.find('[data-binding=tablet] .badge', 'muted until restart')
    assert.equal(await isMuted(), true)
    await stage.host.end()
    await tab.find('[data-state=lost]')
    await stage.run()
    await tab.find('[data-state=open]')
    await tab.find('[data-binding=tablet] button', 'Mute until restart')
    await tab.gone('[data-binding=tablet] .badge', 'muted until restart')
    assert.equal(await isMuted(), false)
    await until('its port is open', async () => (await stage.ask('GET', '/v1/status')).ports.some((port) => port.device === 'tablet' && port.connected))
    await tab.go('')
    await play('/unmuted')
    await tab.find('[role=row]', '/unmuted')
  })

  test('a host of another version than the page is named', async () => {
    const other = await stage.tab()
    await other.page.evaluateOnNewDocument(() => {
      const asked = globalThis.fetch
      globalThis.fetch = async (url, init) => {
        const answer = await asked(url, init)
        if (String(url) !== '/v1/status') return answer
        return new Response(JSON.stringify({ ...(await answer.json()), version: '0.0.9-older' }), { headers: { 'content-type': 'application/json' } })
      }
    })
    await other.page.goto(stage.origin)
    await other.find('[data-versions]', '0.0.9-older')
    assert.deepEqual(await other.violations(), [])
    assert.deepEqual(await other.wrong(), [])
    await other.page.close()
    await tab.go('')
    await tab.find('[data-pill="tablet"]')
    await tab.gone('[data-versions]')
  })

  test('a stream that was cut goes on by its cursor, with each event once and without a reload', async () => {
    await tab.go('')
    await tab.page.evaluate(() => (globalThis.sameDocument = true))
    await play('/before')
    await tab.find('[role=row]', '/before')
    await stage.ui.end()
    await tab.find('[data-state=lost]')
    await play('/cut')
    const events = async () => (await stage.ask('GET', '/v1/status')).ports.find((port) => port.device === 'tablet').events
    const before = await events()
    await play('/cut2')
    await until('the host has it', async () => (await events()) > before)
    await stage.serve()
    // The server has forgotten every session: another tab signs this browser in again.
    const other = await stage.tab(stage.link)
    await other.find('[data-state=open]')
    await other.page.close()
    await tab.find('[data-state=open]')
    await tab.find('[role=row]', '/cut2')
    await play('/after')
    await tab.find('[role=row]', '/after')
    const shown = await rows()
    for (const address of ['/before', '/cut', '/cut2', '/after']) assert.equal(shown.filter((row) => row.startsWith(`osc ${address} `)).length, 1, address)
    assert.equal(await tab.page.evaluate(() => globalThis.sameDocument), true)
  })
})
