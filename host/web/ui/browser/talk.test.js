// What goes on around a conversation: another model, a turn that is stopped, a file of it, and its end.

import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'

import { ScriptedModel } from './model.js'
import { played } from './played.js'
import { oscInput, until } from './stage.js'

describe('conversations', { concurrency: false }, () => {
  let model
  const { stage, tab, play } = played(async (osc) => {
    model = await ScriptedModel.open([])
    return `${oscInput('tablet', osc)}
[[modes]]
name = "Play"

[chat]
models = ["first", "second"]
${model.configOf({ first: 'm-1', second: 'm-2' })}`
  })
  before(async () => {
    await tab.page.evaluateOnNewDocument(() => {
      // What is saved, without the window in which a browser asks where to.
      globalThis.saved = []
      const make = URL.createObjectURL.bind(URL)
      const blobs = new Map()
      URL.createObjectURL = (blob) => {
        const url = make(blob)
        blobs.set(url, blob)
        return url
      }
      const click = HTMLAnchorElement.prototype.click
      HTMLAnchorElement.prototype.click = function () {
        if (this.download) void blobs.get(this.href)?.text().then((text) => globalThis.saved.push({ name: this.download, text }))
        else click.call(this)
      }
    })
    await tab.go('chat')
  })
  after(() => model?.close())

  /** Sends a message, once the turn before has ended: nothing is sent while it is under way. */
  const say = async (text) => {
    await tab.find('.log[aria-busy=false]')
    await tab.enter('Your message', text)
    await tab.page.keyboard.press('Enter')
    await tab.find('.said', text)
  }

  test('the model that is chosen is asked, from then on', async () => {
    model.answers.push({ text: 'I am the first.' }, { text: 'I am the second.' }, { text: 'Still the second.' })
    await say('Who are you?')
    await tab.find('.said', 'I am the first.')
    await tab.choose('Model', 'second')
    await say('And now?')
    await tab.find('.said', 'I am the second.')
    await say('And again?')
    await tab.find('.said', 'Still the second.')
    assert.deepEqual(model.asked.map((one) => one.model), ['m-1', 'm-2', 'm-2'])
    assert.match(JSON.stringify(model.asked[1]), /I am the first\./, 'it hears what was said to the other')
  })

  test('an answer is seen while it comes, and a turn is stopped in the midst of it', async () => {
    model.answers.push({ text: 'This is the beginning of ', hold: true })
    await say('Tell me a long story')
    await tab.find('.said', 'This is the beginning of')
    await tab.find('.log[aria-busy=true]')
    assert.deepEqual(await tab.violations(), [])
    await tab.click('button', 'Stop')
    await tab.find('.log .note', 'Stopped.')
    await until('the API is left', () => model.left === 1)
    await tab.gone('button', 'Stop')
    model.answers.push({ text: 'A short one, then.' })
    await say('Never mind')
    await tab.find('.said', 'A short one, then.')
  })

  test('a conversation is saved as a file with all that was said', async () => {
    await tab.click('button', 'Export')
    const [{ name, text }] = await until('the file', () => tab.page.evaluate(() => (globalThis.saved.length > 0 ? globalThis.saved : null)))
    assert.match(name, /^conversation-\d+\.json$/)
    const events = JSON.parse(text)
    const said = events.filter((event) => event.kind === 'message').map((event) => event.text)
    assert.deepEqual(said, ['Who are you?', 'And now?', 'And again?', 'Tell me a long story', 'Never mind'])
    // An answer is kept as it came, piece by piece.
    assert.match(events.map((event) => (event.kind === 'text' ? event.text : '')).join(''), /I am the second\./)
  })

  test('what is deleted is gone, and the next conversation begins with nothing', async () => {
    const title = await (await tab.find('.conversation.open a')).evaluate((one) => one.textContent)
    await tab.click('.conversation.open button', `Delete ${title}`)
    await tab.find('.notice', 'The conversation is deleted')
    await tab.gone('.conversation')
    await tab.gone('.said')
    assert.deepEqual(await stage.ask('GET', '/v1/conversations'), [])
    model.answers.push({ text: 'Hello.' })
    await say('Good morning')
    await tab.find('.said', 'Hello.')
    assert.doesNotMatch(JSON.stringify(model.asked.at(-1)), /Who are you/)
  })

  test('a plan that waits is shown from its beginning, and what is said after it is seen all the same', async () => {
    const isSeen = (part) => until(`${part} is in sight`, () => tab.page.evaluate((part) => {
      const [log, one] = [document.querySelector('.log'), [...document.querySelectorAll(`.log ${part}`)].at(-1)].map((found) => found.getBoundingClientRect())
      return one.top >= log.top - 1 && one.bottom <= log.bottom + 1
    }, part))
    const mapping = { trigger: { type: 'OscMessage', address: '/next' }, action: { type: 'NextMode' } }
    model.answers.push({ call: { tool: 'conductor_create_mapping', args: mapping } }, { text: 'It waits. '.repeat(200) })
    await say('Map /next')
    await tab.find('[data-plan] h2', 'NextMode on OscMessage /next of any device')
    await tab.find('.said', 'It waits.')
    await isSeen('[data-plan] h2')
    model.answers.push({ text: 'Something else, then.' })
    await say('What else is there?')
    await tab.find('.said', 'Something else, then.')
    await isSeen('.said')
    await tab.click('[data-plan] button', 'Reject')
    await tab.find('.log', 'The plan was rejected: Add a mapping to every mode: NextMode on OscMessage /next of any device.')
    assert.deepEqual(await tab.violations(), [])
  })

  // SHL-3
  test('what is plugged in is a live picture, in which an event lights its device, and what is unbound is mapped', async () => {
    model.answers.push({ call: { tool: 'conductor_list_discovered_ports', args: {} } }, { text: 'A tablet is there.' })
    await say('What is plugged in?')
    await tab.find('.said', 'A tablet is there.')
    const row = '[data-artifact=discovery] [data-discovered=tablet]'
    await tab.find(`${row}:not(.lit) .badge`, 'working')
    await play('/here')
    await tab.find(`${row}.lit`)
    await tab.find(row, '1 event')
    assert.deepEqual(await tab.violations(), [])

    const other = await stage.tab()
    await other.unbind('tablet')
    await other.go(new URL(tab.page.url()).pathname.slice(1))
    await other.find(`${row} .badge`, 'unbound')
    await play('/there')
    await other.find(`${row}.lit`)
    await other.click(`${row} button`, 'Map')
    await other.find('dialog code', '/there')
    await other.find('dialog label', 'The name of this device in mappings')
    assert.deepEqual(await other.violations(), [])
    assert.deepEqual(await other.wrong(), [])
    await other.page.close()
  })
})
