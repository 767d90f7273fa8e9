// What can be looked up, by keyboard alone: what features do and use, what conversations cost, skills, and what is on record.

import assert from 'node:assert/strict'
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { after, describe, test } from 'node:test'

import { ScriptedModel } from './model.js'
import { played } from './played.js'
import { oscInput, until } from './stage.js'

/** Someone's skill, with what a page must not take for its own. */
const skill = (how) => `---
name: stage-lamp
description: What the lamp of this stage can do. Use it when the lamp is meant.
---

# The lamp

It is lit **${how}**. <img src=x onerror=alert(1)> <script>alert(2)</script> [More](javascript:alert(3))
`

describe('what can be looked up', { concurrency: false }, () => {
  let model
  const { stage, peer, tab, play } = played(async (osc, port) => {
    model = await ScriptedModel.open([])
    return `${oscInput('tablet', osc)}
[[modes]]
name = "Play"

[[modes.mappings]]
name = "go"
trigger = { type = "OscMessage", address = "/go" }
action = { type = "OscSend", target = "127.0.0.1:${port}", address = "/lit" }
${model.config}`
  })
  after(() => model?.close())

  // SHL-1
  test('what a feature does is counted, with its rate, and orders the features', async () => {
    const calls = (feature) =>
      tab.page.evaluate((feature) => {
        const number = (text) => Number(/^[\d.,]+/.exec(text ?? '')?.[0].replaceAll(',', '') ?? 0)
        const cell = document.querySelector(`[data-feature="${feature}"] td:nth-of-type(2)`)
        return { total: number(cell?.firstChild?.textContent), rate: number(cell?.querySelector('[data-rate]')?.textContent) }
      }, feature)
    await tab.go('features')
    await tab.find('[data-feature="osc-output"]')
    const before = (await calls('osc-output')).total
    for (let count = 0; count < 10; count += 1) await play('/go')
    await until('the packets', () => peer.count('/lit') === 10)
    await until('they are counted', async () => (await calls('osc-output')).total >= before + 10)
    await until('a rate', async () => {
      await play('/go')
      return (await calls('osc-output')).rate > 0
    })
    await tab.type('Order by', 'Calls')
    await until('the most called one stands first', async () => {
      const names = await tab.page.evaluate(() => [...document.querySelectorAll('tr[data-feature]')].map((row) => row.dataset.feature))
      const totals = await Promise.all(names.map(async (name) => (await calls(name)).total))
      return totals.every((total, index) => index === 0 || total <= totals[index - 1])
    })
    assert.deepEqual(await tab.violations(), [])
  })

  // SHL-1
  test('what conversations cost is told by model and by day, and grows as they do', async () => {
    const ask = async (said) => {
      model.answers.push({ text: `You said: ${said}` })
      await tab.find('.log[aria-busy=false]')
      await tab.type('Your message', said)
      await tab.page.keyboard.press('Enter')
      await tab.find('.said', `You said: ${said}`)
    }
    await tab.go('chat')
    await ask('hello')
    await tab.press('What conversations cost')
    for (const by of ['model', 'day']) await tab.find(`[data-costs-by=${by}] td`, '1,200 tokens in, 34 out')
    await ask('hello again')
    for (const by of ['model', 'day']) await tab.find(`[data-costs-by=${by}] td`, '2,400 tokens in, 68 out')
    assert.deepEqual(await tab.violations(), [])
  })

  // SHL-1
  test('a skill is read as its file has it, and nothing in it runs', async () => {
    const folder = join(stage.home, 'skills', 'stage-lamp')
    const shown = '[data-skill="stage-lamp"]'
    await mkdir(folder, { recursive: true })
    for (const how of ['slowly', 'at once']) {
      await writeFile(join(folder, 'SKILL.md'), skill(how))
      await tab.go('settings')
      await tab.find(shown, 'What the lamp of this stage can do.')
      await tab.press('stage-lamp')
      await tab.find(`${shown} strong`, how)
      await tab.find(shown, '<img src=x onerror=alert(1)> <script>alert(2)</script>')
      assert.equal(await tab.page.evaluate((shown) => document.querySelectorAll(`${shown} :is(img, script, a[href^=javascript])`).length, shown), 0)
    }
    assert.deepEqual(await tab.violations(), [])
  })

  // SHL-1
  test('what a person did is on record, and found there', async () => {
    await tab.go('devices')
    await tab.find('[data-binding=tablet]')
    await tab.press('Mute until restart tablet')
    await tab.find('[data-binding=tablet] .badge', 'muted until restart')
    await until('the row', async () => (await stage.ask('GET', '/v1/audit?limit=1000')).some((row) => row.what === 'mute'))
    await tab.go('record')
    await tab.find('[data-chain=whole]')
    const rows = () => tab.page.evaluate(() => [...document.querySelectorAll('[data-audit]')].map((row) => row.textContent))
    const all = (await rows()).length
    await tab.type('Search these rows', 'mute')
    await until('fewer rows', async () => {
      const found = await rows()
      return found.length > 0 && found.length < all && found.every((row) => row.includes('mute'))
    })
    await tab.find('[data-audit]', 'tablet')
    await tab.find('[data-audit] .badge.good', 'done')
    assert.deepEqual(await tab.violations(), [])
  })

  // SHL-1
  test('a record out of which a row was taken says where its chain is broken', async () => {
    const rows = await stage.ask('GET', '/v1/audit?limit=1000')
    assert.ok(rows.length >= 3, `${rows.length} rows`)
    const { number } = rows[1]
    const other = await stage.tab(stage.link)
    await other.page.evaluateOnNewDocument((number) => {
      const asked = globalThis.fetch
      globalThis.fetch = async (url, init) => {
        const answer = await asked(url, init)
        if (!String(url).startsWith('/v1/audit')) return answer
        const rows = await answer.json()
        return new Response(JSON.stringify(rows.filter((row) => row.number !== number)), { headers: { 'content-type': 'application/json' } })
      }
    }, number)
    await other.go('record')
    await other.find('[data-chain=broken] .badge.bad')
    await other.find('[data-chain=broken]', String(number - 1))
    assert.deepEqual(await other.violations(), [])
  })
})
