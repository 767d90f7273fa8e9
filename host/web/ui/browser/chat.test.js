// Talking in the shell: from a typed sentence over a plan and a person's decision to what is sent.

import assert from 'node:assert/strict'
import { after, describe, test } from 'node:test'

import { ScriptedModel } from './model.js'
import { played } from './played.js'
import { oscInput, until } from './stage.js'

const SENTENCE = 'Let /chat light the lamp'

describe('a conversation', { concurrency: false }, () => {
  let model
  const { stage, peer, tab, play } = played(async (osc, port) => {
    const mapping = {
      mode: 'Play', name: 'lamp', trigger: { type: 'OscMessage', address: '/chat' },
      action: { type: 'OscSend', target: `127.0.0.1:${port}`, address: '/lamp' },
    }
    model = await ScriptedModel.open([
      { text: 'I propose **this** mapping. <img src=x onerror=alert(1)>', call: { tool: 'conductor_create_mapping', args: mapping } },
      { text: 'It waits for you.' },
      { call: { tool: 'conductor_list_device_bindings', args: {} } },
      { text: 'The lamp is lit now.' },
    ])
    return `${oscInput('tablet', osc)}
[[modes]]
name = "Play"
${model.config}`
  })
  after(() => model?.close())

  test('a sentence becomes a plan, and once it is applied a packet: by keyboard alone', async () => {
    const { keyboard } = tab.page
    await tab.find('nav a', 'Chat')
    await tab.press('Chat')
    await tab.find('h1', 'Chat')
    await tab.type('Your message', SENTENCE)
    await keyboard.press('Enter')
    await tab.find('.said', SENTENCE)
    // What it says is text and Markdown, and nothing that runs.
    await tab.find('.said strong', 'this')
    await tab.find('.said', '<img src=x onerror=alert(1)>')
    await tab.find('[data-call]', 'conductor_create_mapping')
    await tab.find('[data-plan]', '/lamp')
    await tab.find('.said', 'It waits for you.')
    await tab.find('[role=status]', 'The model has answered.')
    const isSeen = () => tab.page.evaluate(() => {
      const [log, title] = ['.log', '.log [data-plan] h2'].map((one) => document.querySelector(one).getBoundingClientRect())
      return title.top >= log.top && title.bottom <= log.bottom
    })
    await until('what the plan does is in sight', isSeen)
    assert.deepEqual(await tab.violations(), [])
    assert.equal(JSON.stringify(model.asked[0]).includes(SENTENCE), true, 'the model got the sentence')
    await play('/chat')
    await tab.find('.cost', '2,400 tokens in, 68 out')

    await tab.press('Apply')
    await tab.find('.log', 'The plan was applied: Add the mapping "lamp" to mode Play: OscSend /lamp on OscMessage /chat of any device.')
    assert.equal(peer.received.length, 0, 'nothing was sent before it was applied')
    await play('/chat')
    await peer.came('/lamp')
  })

  test('the model hears what became of it, and the conversation is found by what was said', async () => {
    const { keyboard } = tab.page
    await tab.type('Your message', 'Is it lit?')
    await keyboard.press('Enter')
    await tab.find('.said', 'The lamp is lit now.')
    const asked = JSON.stringify(model.asked.at(-1))
    assert.match(asked, /applied/, 'the model gets what the person decided')
    await tab.press('New conversation')
    await tab.gone('.said', 'The lamp is lit now.')
    await tab.type('Search conversations', 'lam')
    await tab.find('.conversation .quiet', SENTENCE)
    await tab.press(SENTENCE)
    await tab.find('.said', 'The lamp is lit now.')
  })

  test('what the model looked at is a live picture, which an event lights', async () => {
    const row = '[data-artifact=topology] [data-topology=tablet]'
    await tab.find(row, `127.0.0.1:${stage.osc}`)
    await tab.find('[data-artifact=topology] td', 'lamp')
    await tab.find(`${row}:not(.lit)`)
    await play('/chat')
    await tab.find(`${row}.lit`)
    assert.deepEqual(await tab.violations(), [])
  })

  test('what is spoken is written down and not sent; without speech in the browser there is no button', async () => {
    const other = await tab.page.browser().newPage()
    await other.evaluateOnNewDocument(() => {
      globalThis.SpeechRecognition = class {
        start() {
          this.onresult({ results: [[{ transcript: 'map the first pad' }]] })
          this.onend()
        }
      }
    })
    await other.goto(`${stage.origin}/chat`)
    const pressed = () => other.evaluate(() => {
      const button = [...document.querySelectorAll('button')].find((one) => one.textContent === 'Speak')
      button?.click()
      return button !== undefined
    })
    await until('the button', pressed)
    await until('the words', () => other.evaluate(() => document.querySelector('textarea')?.value === 'map the first pad'))
    await other.evaluateOnNewDocument(() => {
      delete globalThis.SpeechRecognition
      delete globalThis.webkitSpeechRecognition
    })
    await other.goto(`${stage.origin}/chat`)
    await until('the page', () => other.evaluate(() => document.querySelector('textarea') !== null))
    assert.equal(await pressed(), false)
    await other.close()
    assert.equal(model.asked.length, 4, 'nothing is sent before the person sends it')
  })

  test('a suggestion is made from what is on the stage, and only written down', async () => {
    await play('/unmapped', 0.5)
    await tab.click('.chip', '/unmapped')
    const said = await tab.page.evaluate(() => document.activeElement?.value ?? '')
    assert.match(said, /\/unmapped/)
    assert.equal(model.asked.length, 4, 'nothing is sent before the person sends it')
  })

  test('a model that fails says so, and the conversation goes on', async () => {
    await tab.enter('Your message', 'Once more')
    await tab.page.keyboard.press('Enter')
    await tab.find('.log .note.bad', 'nothing more is written down')
    await tab.find('.log .note', 'Ended by a failure.')
    model.answers.push({ text: 'Here again.' })
    await tab.enter('Your message', 'And now?')
    await tab.page.keyboard.press('Enter')
    await tab.find('.said', 'Here again.')
    assert.deepEqual(await tab.violations(), [])
  })
})
