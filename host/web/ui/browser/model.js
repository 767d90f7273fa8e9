// A model behind a server on this computer that speaks Chat Completions: what it answers is written down before.

import { once } from 'node:events'
import { createServer } from 'node:http'

/** What every answer says that it took. */
const USAGE = { prompt_tokens: 1200, completion_tokens: 34 }

/** The server. */
export class ScriptedModel {
  /**
   * `answers` are what it says, one after the other: `{ text, call: { tool, args } }`, each of which may be missing; with
   * `hold` it says the text and does not end. `listed` are the models that it says there are.
   */
  static async open(answers, listed = ['m']) {
    const model = new ScriptedModel()
    model.answers = [...answers]
    model.listed = listed
    model.asked = []
    // The `Authorization` of each request; `null` if it had none.
    model.keys = []
    // How many of the answers that it held were left by the host.
    model.left = 0
    model.server = createServer((request, response) => void model.#answer(request, response))
    model.server.listen(0, '127.0.0.1')
    await once(model.server, 'listening')
    model.port = model.server.address().port
    return model
  }

  async #answer(request, response) {
    let body = ''
    for await (const piece of request.setEncoding('utf8')) body += piece
    this.keys.push(request.headers.authorization ?? null)
    if (request.method === 'GET') {
      return response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify({ data: this.listed.map((id) => ({ id })) }))
    }
    this.asked.push(JSON.parse(body))
    const answer = this.answers.shift()
    if (!answer) return response.writeHead(500).end('{"error":{"message":"nothing more is written down","type":"error","code":null}}')
    response.writeHead(200, { 'content-type': 'text/event-stream', connection: 'close' })
    const say = (data) => response.write(`data: ${JSON.stringify(data)}\n\n`)
    const delta = (delta) => say({ choices: [{ index: 0, delta }] })
    // Word by word, as models do.
    for (const word of answer.text?.match(/\S+\s*/g) ?? []) delta({ content: word })
    if (answer.hold) return response.once('close', () => (this.left += 1))
    const { call } = answer
    if (call) {
      const said = { index: 0, id: `call-${this.asked.length}`, type: 'function', function: { name: call.tool, arguments: JSON.stringify(call.args) } }
      delta({ tool_calls: [said] })
    }
    say({ choices: [{ index: 0, delta: {}, finish_reason: call ? 'tool_calls' : 'stop' }] })
    say({ choices: [], usage: USAGE })
    response.end('data: [DONE]\n\n')
  }

  /** Where its API is. */
  get url() {
    return `http://127.0.0.1:${this.port}/v1`
  }

  /** What configures models, by their names, as what the API calls each; and what they need. */
  configOf(names) {
    const models = Object.entries(names).map(([name, model]) => `
[models.${name}]
provider = "openai-compatible"
model = "${model}"
url = "${this.url}"
`)
    return `${models.join('')}
[features.openai-compatible.grants]
http = ["127.0.0.1:${this.port}"]
`
  }

  /** The same for one model. */
  get config() {
    return this.configOf({ scripted: 'm' })
  }

  close() {
    this.server.closeAllConnections()
    this.server.close()
  }
}
