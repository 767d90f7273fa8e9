// Deciding: what is said of a plan before it is applied, what it takes to apply one that reaches far, and the steps back and
// forth after it.

import assert from 'node:assert/strict'
import { describe, test } from 'node:test'

import { played } from './played.js'
import { oscInput, until } from './stage.js'

const config = (osc, peer) => `${oscInput('tablet', osc)}
[[modes]]
name = "Play"

[[modes.mappings]]
name = "old"
trigger = { type = "OscMessage", address = "/old" }
action = { type = "OscSend", target = "127.0.0.1:${peer}", address = "/was" }
`

describe('a decision', { concurrency: false }, () => {
  const { stage, tab, peer, play } = played(config)

  /** Has the host propose a change of the mappings, and opens it. */
  const proposed = async (description, number, mapping) => {
    const { id } = await stage.ask('POST', '/v1/plans', { description, changes: [{ path: ['modes', '0', 'mappings', String(number)], value: mapping }] })
    await tab.page.goto(`${stage.origin}/plans/${id}`)
    await tab.find(`[data-plan="${id}"]`)
    return id
  }
  const send = (name, address) => ({ name, trigger: { type: 'OscMessage', address }, action: { type: 'OscSend', target: `127.0.0.1:${peer.port}`, address: '/is' } })

  test('a plan says which of the last events would have done something else, and what', async () => {
    for (const address of ['/go', '/quiet', '/go', '/old']) await play(address)
    await peer.came('/was')
    await until('they are recorded', async () => (await stage.ask('GET', '/v1/status')).events >= 4)
    await proposed('Let go light up.', 1, send('go lights', '/go'))
    await tab.find('[aria-label="Rehearsal"] p', 'Tried on the last 4 events: with it, 2 do something else than before.')
    const rows = await tab.page.evaluate(() => [...document.querySelectorAll('[aria-label="Rehearsal"] tbody tr')].map((row) => [...row.cells].map((cell) => cell.textContent.trim())))
    assert.equal(rows.length, 2)
    for (const [event, was, wouldBe] of rows) {
      assert.match(event, /tablet.*\/go/)
      assert.equal(was, '–')
      assert.match(wouldBe, /go lights/)
    }
    await tab.gone('[aria-label="Rehearsal"] p', 'Not tried')
    assert.deepEqual(await tab.violations(), [])
    await tab.click('button', 'Reject')
    await tab.find('.notice', 'Rejected: Let go light up.')
  })

  test('one that no event met says that nothing would have been different', async () => {
    await proposed('Wait for what never came.', 1, send('never', '/never'))
    await tab.find('[aria-label="Rehearsal"] p', 'Tried on the last 4 events: nothing would have been different.')
    await tab.find('[aria-label="Rehearsal"] p', 'Not tried: never (nothing like its trigger came)')
    await tab.click('button', 'Reject')
    await tab.find('.notice', 'Rejected: Wait for what never came.')
  })

  test('how far a plan reaches is said beside it', async () => {
    await proposed('Type something.', 1, { name: 'types', trigger: { type: 'OscMessage', address: '/type' }, action: { type: 'Text', text: 'ls\n' } })
    await tab.find('[data-plan] .badge', 'new or changed')
    await tab.find('[data-plan] [data-risk]', 'for the first time')
    await tab.find('[data-plan] [data-by]', 'proposed by you, on this computer')
    await tab.find('[data-plan] [data-notes]', 'into whatever application is in front')
    await tab.click('button', 'Reject')
    await tab.find('.notice', 'Rejected: Type something.')
  })

  test('what a plan changes is said before how far it reaches, and a long difference is folded up', async () => {
    const changes = Array.from({ length: 6 }, (_, number) => ({ path: ['modes', '0', 'mappings', String(number + 1)], value: send(`many ${number}`, `/many/${number}`) }))
    const { id } = await stage.ask('POST', '/v1/plans', { description: 'Six at once.', changes })
    await tab.page.goto(`${stage.origin}/plans/${id}`)
    await tab.find(`[data-plan="${id}"] summary`, '6 places are changed')
    const order = await tab.page.evaluate(() => {
      const plan = document.querySelector('[data-plan]')
      const all = [...plan.querySelectorAll('*')]
      return ['h2', '[aria-label="Rehearsal"]', '[data-risk]', '[data-diff]', 'button.primary'].map((part) => all.indexOf(plan.querySelector(part)))
    })
    assert.ok(order.every((place) => place >= 0), String(order))
    assert.deepEqual(order, order.toSorted((one, other) => one - other))
    assert.equal(await tab.page.evaluate(() => document.querySelector('[data-diff] .diff').checkVisibility()), false)
    await tab.click('[data-diff] summary', 'What changes in the file')
    await tab.find('[data-diff] .line.added', '/many/5')
    assert.deepEqual(await tab.violations(), [])
    await tab.click('button', 'Reject')
    await tab.find('.notice', 'Rejected: Six at once.')
  })

  test('a privileged plan is applied with the digits of its id, and by no others', async () => {
    const id = await proposed('Start a program.', 1, { name: 'starts', trigger: { type: 'OscMessage', address: '/start' }, action: { type: 'Shell', command: '/bin/true' } })
    await tab.find('[data-plan] .badge.bad', 'privileged')
    await tab.find('[data-plan] .note', 'starts a program')
    await tab.find('button:disabled', 'Apply')
    await tab.enter('does not apply a privileged plan', id.slice(0, 6) === '000000' ? '111111' : '000000')
    await tab.find('button:disabled', 'Apply')
    assert.deepEqual(await tab.violations(), [])
    await tab.apply()
    await tab.find('.notice', 'Applied: Start a program.')
    assert.match(await stage.config(), /\/bin\/true/)
  })

  test('a step is undone and done again, and each time the file says so', async () => {
    await tab.click('header button:not(:disabled)', 'Undo')
    await tab.find('.notice', 'Undone: Start a program.')
    assert.doesNotMatch(await stage.config(), /\/bin\/true/)
    await tab.click('header button:not(:disabled)', 'Redo')
    await tab.find('.notice', 'Done again: Start a program.')
    assert.match(await stage.config(), /\/bin\/true/)
    await tab.click('header button:not(:disabled)', 'Undo')
    await until('it is undone again', async () => !/\/bin\/true/.test(await stage.config()))
  })

  test('a plan is taken back where it was said that it is applied, as long as no other came after it', async () => {
    const file = async (what) => (await stage.config()).includes(what)
    /** The button of the notice that says that this was applied; `undefined` if there is no such notice. */
    const offered = (description) =>
      tab.page.evaluate((description) => {
        const notice = [...document.querySelectorAll('.notice')].find((one) => one.textContent.includes(`Applied: ${description}`))
        return notice && notice.querySelector('[data-undo-plan]') !== null
      }, description)
    await proposed('First of three.', 1, send('one', '/one'))
    await tab.find('[data-state=open]')
    await tab.click('button', 'Apply')
    await until('it is offered', () => offered('First of three.'))
    assert.deepEqual(await tab.violations(), [])
    const { id } = await stage.ask('POST', '/v1/plans', { description: 'Second of three.', changes: [{ path: ['modes', '0', 'mappings', '2'], value: send('two', '/two') }] })
    await stage.ask('POST', `/v1/plans/${id}/apply`)
    await until('it is not offered any more', async () => (await offered('First of three.')) === false)
    await proposed('Third of three.', 3, send('three', '/three'))
    await tab.find('[data-state=open]')
    await tab.click('button', 'Apply')
    await tab.click('.notice button', 'Undo')
    await tab.find('.notice', 'Undone: Third of three.')
    assert.deepEqual([await file('/three'), await file('/two')], [false, true])
    for (let count = 0; count < 2; count += 1) await stage.ask('POST', '/v1/undo')
    assert.equal(await file('/one'), false)
  })

  test('a plan that is decided elsewhere while it is open is not decided here', async () => {
    const id = await proposed('Twice.', 1, send('twice', '/twice'))
    const other = await stage.tab()
    await other.page.goto(`${stage.origin}/plans/${id}`)
    await other.click('button', 'Apply')
    await other.find('.notice', 'Applied: Twice.')
    await tab.gone('[data-plan] button', 'Apply')
    await tab.find('p', 'No plan waits')
    assert.deepEqual(await other.wrong(), [])
    await other.page.close()
    await play('/twice')
    await peer.came('/is')
    await stage.ask('POST', '/v1/undo')
  })
})
