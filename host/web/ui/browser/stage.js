// What the tests in a browser play on: a host in a home of its own, `conductor ui` before it, a browser, and OSC peers.

import { execFile, spawn } from 'node:child_process'
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { request } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'

import puppeteer from 'puppeteer-core'

/** How long anything is waited for, in milliseconds: a machine may be busy. */
const DEADLINE = 30_000
/** The same for a host's first start in a home, which compiles every feature. */
const FIRST_START = 400_000
/** The browsers that the tests know, by what `CONDUCTOR_BROWSER` may name. */
const BROWSERS = {
  chromium: { executablePath: '/usr/bin/chromium', args: ['--no-sandbox', '--lang=en'] },
  firefox: { browser: 'firefox', executablePath: '/usr/bin/firefox-esr', extraPrefsFirefox: { 'intl.accept_languages': 'en' } },
}

function told(variable) {
  const value = process.env[variable]
  if (!value) throw new Error(`${variable} says nothing: \`cargo xtask web --browser\` builds what is tested, and sets it`)
  return value
}

/** Starts the browser that `CONDUCTOR_BROWSER` names, Chromium if it is not set. `firefox` are preferences of Firefox. */
function openBrowser(firefox = {}) {
  const name = process.env['CONDUCTOR_BROWSER'] ?? 'chromium'
  const known = BROWSERS[name]
  if (!known) throw new Error(`CONDUCTOR_BROWSER is ${name}; write ${Object.keys(BROWSERS).join(' or ')}`)
  if (name !== 'firefox') return puppeteer.launch(known)
  return puppeteer.launch({ ...known, extraPrefsFirefox: { ...known.extraPrefsFirefox, ...firefox } })
}

/** Waits until this is true, and gives what it gave. */
export async function until(what, check, deadline = DEADLINE) {
  const end = Date.now() + deadline
  for (;;) {
    const found = await check()
    if (found) return found
    if (Date.now() > end) throw new Error(`it did not come to be: ${what}`)
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
}

/** A program that runs, with the lines that it has printed. */
export class Program {
  /** `env` are variables beside those of this process. */
  constructor(program, args, env = {}) {
    this.lines = []
    this.child = spawn(program, args, { env: { ...process.env, NO_COLOR: '1', ...env }, stdio: ['pipe', 'pipe', 'pipe'] })
    for (const stream of [this.child.stdout, this.child.stderr]) {
      let rest = ''
      stream.setEncoding('utf8').on('data', (text) => {
        const lines = (rest + text).split('\n')
        rest = lines.pop() ?? ''
        this.lines.push(...lines)
      })
    }
  }

  async line(what) {
    return until(`a line of ${what}`, () => {
      if (this.child.exitCode !== null) throw new Error(`it has ended:\n${this.lines.join('\n')}`)
      return this.lines.find((line) => what.test(line))
    }, FIRST_START)
  }

  async end() {
    if (this.child.exitCode !== null || this.child.signalCode !== null) return
    this.child.kill('SIGTERM')
    await once(this.child, 'exit')
  }
}

/** A UDP port, and the OSC messages that came to it. */
export class OscPeer {
  received = []

  static async open() {
    const peer = new OscPeer()
    await peer.open()
    return peer
  }

  async open() {
    this.socket = createSocket('udp4')
    this.socket.on('message', (bytes) => this.received.push(bytes))
    this.socket.bind(0, '127.0.0.1')
    await once(this.socket, 'listening')
    this.port = this.socket.address().port
  }

  /** Sends a message with one float argument. */
  send(port, address, value) {
    const text = (word) => Buffer.concat([Buffer.from(word), Buffer.alloc(4 - (Buffer.byteLength(word) % 4))])
    const argument = Buffer.alloc(4)
    argument.writeFloatBE(value)
    return promisify(this.socket.send.bind(this.socket))(Buffer.concat([text(address), text(',f'), argument]), port, '127.0.0.1')
  }

  /** How many messages with this address came so far. */
  count(address) {
    return this.received.filter((bytes) => bytes.toString('latin1').startsWith(`${address}\0`)).length
  }

  /** Waits until a message with this address came. */
  came(address) {
    return until(address, () => this.count(address) > 0)
  }

  close() {
    this.socket?.close()
  }
}

/** A free UDP port. */
export async function freePort() {
  const peer = await OscPeer.open()
  peer.close()
  return peer.port
}

/** A binding, as the configuration has it, of what is heard by OSC at this port. */
export const oscInput = (alias, port) => `
[[bindings]]
alias = "${alias}"
protocol = "osc"
input = { host = "127.0.0.1", port = ${port} }
`

/** What Firefox reports as an error when a host or a page ends: what the page makes of the first is what is tested. */
const LOST_STREAM = /^Error: (Firefox can.t establish a connection to the server at|The connection to) ws:/

/** A host, its shell and browsers. */
export class Stage {
  browsers = []

  /** A stage that has started. */
  static async start(config, env) {
    const stage = new Stage()
    await stage.start(config, env)
    return stage
  }

  /** `config` makes the configuration, of the port at which the host is to hear OSC; `env` are variables of the host's. */
  async start(config, env = {}) {
    this.env = env
    this.home = await mkdtemp(join(tmpdir(), 'conductor-shell-'))
    this.osc = await freePort()
    await writeFile(join(this.home, 'config.toml'), await config(this.osc))
    try {
      await this.run()
      await this.serve()
      this.browser = await this.#open()
    } catch (error) {
      await this.end()
      throw error
    }
  }

  /** Starts the host. */
  async run() {
    this.host = new Program(told('CONDUCTOR_BIN'), ['--home', this.home, 'run'], this.env)
    await this.host.line(/ready: /)
  }

  /** Starts the shell's server, at the port that it had before if it had one. */
  async serve() {
    const port = this.origin ? ['--port', new URL(this.origin).port] : []
    this.ui = new Program(told('CONDUCTOR_BIN'), ['--home', this.home, 'ui', '--no-open', ...port])
    this.link = await this.ui.line(/^http:\/\/127\.0\.0\.1:/)
    this.origin = new URL(this.link).origin
  }

  /** Another link to sign in with. */
  async another() {
    const before = this.ui.lines.length
    this.ui.child.stdin.write('\n')
    return until('another link', () => this.ui.lines.slice(before).find((line) => line.startsWith(this.origin)))
  }

  /** Runs a command to its end, and gives what it printed. */
  async conductor(...args) {
    const { stdout } = await promisify(execFile)(told('CONDUCTOR_BIN'), ['--home', this.home, ...args], { env: { ...process.env, NO_COLOR: '1' } })
    return stdout
  }

  /** What the file of the configuration holds. */
  config() {
    return readFile(join(this.home, 'config.toml'), 'utf8')
  }

  /** Asks the host at its socket, as a client that is no browser. */
  async ask(method, path, body) {
    const headers = { 'content-type': 'application/json' }
    const asked = request({ socketPath: join(this.home, 'conductor.sock'), method, path, headers })
    asked.end(body === undefined ? undefined : JSON.stringify(body))
    const [answer] = await once(asked, 'response')
    let text = ''
    for await (const piece of answer.setEncoding('utf8')) text += piece
    if (answer.statusCode !== 200) throw new Error(`${method} ${path}: ${answer.statusCode} ${text}`)
    return text ? JSON.parse(text) : null
  }

  async #open(firefox) {
    const browser = await openBrowser(firefox)
    this.browsers.push(browser)
    return browser
  }

  /** A signed-in tab of a person who has chosen `light` or `dark` in the whole system. */
  async tabIn(scheme) {
    // Firefox knows the system's scheme from its start on.
    const browser = await this.#open({ 'layout.css.prefers-color-scheme.content-override': scheme === 'dark' ? 0 : 1 })
    const tab = await this.tab(await this.another(), browser)
    if (tab.page.browser().protocol !== 'webDriverBiDi') await tab.page.emulateMediaFeatures([{ name: 'prefers-color-scheme', value: scheme }])
    const is = await tab.page.evaluate((scheme) => matchMedia(`(prefers-color-scheme: ${scheme})`).matches, scheme)
    if (!is) throw new Error(`this browser does not show ${scheme} colours`)
    return tab
  }

  /** A tab of its own. */
  async tab(address, browser = this.browser) {
    const tab = new Tab(this)
    await tab.open(address, browser)
    return tab
  }

  async end() {
    await Promise.all(this.browsers.splice(0).map((browser) => browser.close()))
    await this.ui?.end()
    await this.host?.end()
    if (this.home) await rm(this.home, { recursive: true, force: true })
  }
}

const axe = await readFile(new URL('../node_modules/axe-core/axe.min.js', import.meta.url), 'utf8')

/**
 * A tab of the browser, in which everything that goes wrong is kept. Elements are named by what a person sees: their role's
 * selector and their text.
 */
export class Tab {
  troubles = []

  constructor(stage) {
    this.stage = stage
  }

  async open(address = this.stage.origin, browser = this.stage.browser) {
    const page = await browser.newPage()
    this.page = page
    await page.setViewport({ width: 1360, height: 900 })
    await page.evaluateOnNewDocument(() => {
      globalThis.refusals = []
      addEventListener('securitypolicyviolation', (event) => globalThis.refusals.push(`${event.violatedDirective} ${event.blockedURI}`))
    })
    page.on('pageerror', (error) => {
      if (!LOST_STREAM.test(String(error))) this.troubles.push(String(error))
    })
    page.on('console', (message) => {
      if (/content security policy/i.test(message.text())) this.troubles.push(message.text())
    })
    page.on('request', (asked) => {
      // What a page has in itself comes from nowhere else; the policy says what of it is used.
      if (!asked.url().startsWith(this.stage.origin) && !/^(blob|data):/.test(asked.url())) this.troubles.push(`it asked ${asked.url()}`)
    })
    page.on('dialog', (dialog) => {
      this.troubles.push(`a script ran: ${dialog.message()}`)
      void dialog.dismiss()
    })
    await page.goto(address)
  }

  /** Opens a page of the shell anew, and waits for its stream. */
  async go(page) {
    await this.page.goto(`${this.stage.origin}/${page}`)
    await this.find('[data-state=open]')
  }

  /** Shows a device as if it had no binding: what is unbound comes by MIDI otherwise, which not every machine has. */
  async unbind(device) {
    await this.page.evaluateOnNewDocument((device) => {
      const asked = globalThis.fetch
      globalThis.fetch = async (url, init) => {
        const answer = await asked(url, init)
        if (String(url) !== '/v1/status') return answer
        const status = await answer.json()
        for (const port of status.ports) if (port.device === device) Object.assign(port, { binding: null, bindings: [] })
        status.bindings = status.bindings.filter((binding) => binding.alias !== device)
        return new Response(JSON.stringify(status), { headers: { 'content-type': 'application/json' } })
      }
    }, device)
  }

  /** Waits for an element with this text within, and gives it. */
  async find(selector, text = '') {
    return this.#shown(this.#find(selector, text))
  }

  /** Adds what one sees to the message of an error. */
  #shown(found) {
    return found.catch(async (error) => {
      throw new Error(`${error.message}; ${await this.#there()}`)
    })
  }

  /** What one sees, for messages. */
  async #there() {
    const there = await this.page.evaluate(() => (document.querySelector('dialog[open]') ?? document.querySelector('main') ?? document.body).innerText)
    return `there is:\n${there.slice(0, 2000)}`
  }

  async #find(selector, text) {
    return until(`${selector} with ${JSON.stringify(text)}`, async () => {
      const handle = await this.page.evaluateHandle(
        (selector, text) => {
          // Over an open dialog nothing else can be reached.
          const within = document.querySelector('dialog[open]') ?? document
          const all = [...within.querySelectorAll(selector)]
          return all.find((one) => `${one.textContent} ${one.getAttribute('aria-label') ?? ''}`.includes(text) && one.getClientRects().length > 0) ?? null
        },
        selector, text,
      )
      return handle.asElement()
    })
  }

  /** Waits for a row of the stream with this text within, and gives its cells' texts and its device's colour. */
  rowWith(text) {
    return until(`a row with ${JSON.stringify(text)}`, () =>
      this.page.evaluate((text) => {
        const row = [...document.querySelectorAll('[role=row][data-kind=event]')].find((one) => one.textContent.includes(text))
        if (!row) return null
        const style = getComputedStyle(row)
        return {
          cells: [...row.querySelectorAll('[role=cell]')].map((cell) => cell.textContent.trim()),
          colours: row.className.match(/device-\d/g),
          looks: [style.borderInlineStartStyle, style.fontStyle],
        }
      }, text),
    )
  }

  /**
   * Clicks what is found, once it may be clicked, lies still and is not covered; once more if the click did not come to it, since
   * a page that is still being filled moves what it has.
   */
  async click(selector, text) {
    await until(`a click on ${selector} with ${JSON.stringify(text ?? '')}`, async () => {
      const element = await this.find(`${selector}:not(:disabled)`, text)
      const isStill = await element.evaluate(async (one) => {
        // At the edge of a small window a notice may lie over it.
        one.scrollIntoView({ block: 'center', behavior: 'instant' })
        const frame = () => new Promise((resolve) => requestAnimationFrame(resolve))
        const place = () => JSON.stringify(one.getBoundingClientRect())
        const before = place()
        await frame()
        await frame()
        const { left, top, width, height } = one.getBoundingClientRect()
        const hit = document.elementFromPoint(left + width / 2, top + height / 2)
        globalThis.wasClicked = false
        one.addEventListener('click', () => (globalThis.wasClicked = true), { capture: true, once: true })
        return place() === before && (one.contains(hit) || (hit?.contains(one) ?? false))
      })
      if (!isStill) return false
      try {
        await element.click()
      } catch {
        // It was exchanged for another meanwhile, or has no place on the page while what is around it is drawn anew.
        return false
      }
      // A page that it leads to has not got the mark.
      return this.page.evaluate(() => globalThis.wasClicked !== false)
    })
  }

  /** Enters a text into the field with this label. */
  async enter(label, text) {
    const field = await (await this.find('label', label)).evaluateHandle((one) => one.control)
    await field.evaluate((one) => (one.value = ''))
    await field.type(text)
  }

  /** Chooses in the list with this label, by the beginning of an option's text. */
  async choose(label, option) {
    await until(`${option} in ${label}`, async () => {
      const found = await (await this.find('label', label)).evaluate((one, option) => {
        const list = one.control
        const wanted = [...list.options].find((one) => one.textContent.startsWith(option))
        if (!wanted) return false
        list.value = wanted.value
        list.dispatchEvent(new Event('change', { bubbles: true }))
        return true
      }, option)
      return found
    })
  }

  /**
   * Presses Tab until an element with this text, or in a label with it, has the focus; Shift and Tab if it only stands before
   * the one that has it now. It is waited for first, because Tab passes over what is disabled and leaves the page: in a
   * Firefox without a window it then goes round the browser's own, and Enter clicks nothing any more.
   */
  async tabTo(text) {
    const look = () =>
      this.page.evaluate((text) => {
        const is = (one) => {
          // What is folded up has much text, which begins with what it is called.
          if (one.matches('summary')) return one.textContent.trim().startsWith(text)
          const named = [one.getAttribute('aria-label'), one.matches('button, a') ? one.textContent : '', ...[...(one.labels ?? [])].map((label) => label.textContent)]
          return named.some((name) => name?.includes(text))
        }
        const now = document.activeElement ?? document.body
        const within = document.querySelector('dialog[open]') ?? document
        const all = [...within.querySelectorAll('a, button, input, select, textarea, summary, [tabindex]')].filter((one) => is(one) && one.checkVisibility() && !one.matches(':disabled'))
        const before = (one) => (now.compareDocumentPosition(one) & Node.DOCUMENT_POSITION_PRECEDING) > 0
        return { any: all.length > 0, there: now !== document.body && is(now), stay: all.length === 1 && all[0] === now, back: all.some(before) && all.every((one) => one === now || before(one)) }
      }, text)
    await this.#shown(until(`${JSON.stringify(text)}, which can have the focus`, async () => (await look()).any))
    // Where the element that had the focus is gone, browsers go on from different places: here it is the page's first link.
    await this.page.evaluate(() => {
      if (document.activeElement === document.body && !document.querySelector('dialog[open]')) document.querySelector('a')?.focus()
    })
    const { stay, back } = await look()
    if (stay) return
    for (let steps = 0; steps < 200; steps += 1) {
      if (back) await this.page.keyboard.down('Shift')
      await this.page.keyboard.press('Tab')
      if (back) await this.page.keyboard.up('Shift')
      if ((await look()).there) return
    }
    throw new Error(`Tab does not reach ${JSON.stringify(text)}; ${await this.#there()}`)
  }

  /** Goes to the element with this text by Tab, as `tabTo` does, and presses Enter. */
  async press(text) {
    await this.tabTo(text)
    await this.page.keyboard.press('Enter')
  }

  /** Goes to a field by Tab, and types this into it. */
  async type(label, text) {
    await this.tabTo(label)
    await this.page.keyboard.type(text)
  }

  /** Goes to a field by Tab, and types this in the place of what is in it. */
  async retype(label, text) {
    const { keyboard } = this.page
    await this.tabTo(label)
    await keyboard.down('Control')
    await keyboard.press('a')
    await keyboard.up('Control')
    await keyboard.type(text)
  }

  /** Goes to a box by Tab, and ticks it. */
  async tick(label) {
    await this.tabTo(label)
    await this.page.keyboard.press(' ')
  }

  /** Waits until a list has this value to choose. */
  async offered(value) {
    await until(`a list with ${value}`, () =>
      this.page.evaluate((value) => {
        const within = document.querySelector('dialog[open]') ?? document
        return [...within.querySelectorAll('option')].some((one) => one.value === value)
      }, value),
    )
  }

  /** The control of the field with this label. */
  async field(label) {
    return (await (await this.find('label', label)).evaluateHandle((one) => one.control)).asElement()
  }

  /** Takes out what a field has. */
  async clear(label) {
    await (await this.field(label)).evaluate((one) => {
      one.value = ''
      one.dispatchEvent(new Event('input', { bubbles: true }))
    })
  }

  /** Closes the dialog by Escape. */
  async escape() {
    await this.page.keyboard.press('Escape')
    await this.gone('dialog[open]')
  }

  /** Applies the plan that is shown, with the digits of its id typed first if they are asked for. */
  async apply() {
    const id = await (await this.find('[data-plan]')).evaluate((one) => one.dataset.plan)
    await this.find('[data-plan] button', 'Apply')
    const isPrivileged = await this.page.evaluate((id) => document.querySelector(`[data-plan="${id}"] input[maxlength]`) !== null, id)
    if (isPrivileged) await this.enter('does not apply a privileged plan', id.slice(0, 6))
    await this.click('[data-plan] button', 'Apply')
  }

  /** Waits until nothing on the page has this text. */
  async gone(selector, text = '') {
    await until(`no ${selector} with ${JSON.stringify(text)}`, () =>
      this.page.evaluate((selector, text) => ![...document.querySelectorAll(selector)].some((one) => one.textContent.includes(text)), selector, text),
    )
  }

  /** What axe finds wrong with the page as it is. */
  async violations() {
    await this.page.evaluate(axe)
    return this.page.evaluate(async () => {
      const { violations } = await globalThis.axe.run(document, { resultTypes: ['violations'] })
      return violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ html, failureSummary }) => `${html} ${failureSummary}`).join('; ')}`)
    })
  }

  /** Everything that went wrong in this tab so far. */
  async wrong() {
    return [...this.troubles, ...(await this.page.evaluate(() => globalThis.refusals))]
  }
}
