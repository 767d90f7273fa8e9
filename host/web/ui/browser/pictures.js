// Makes the pictures of the documentation, docs/pictures, from the real program: an OSC app plays to a host, and the pads of a
// controller that is not there are played on its picture.

import { mkdir, writeFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'

import { animation } from './animation.js'
import { OscPeer, Stage, oscInput } from './stage.js'

const FOLDER = fileURLToPath(new URL('../../../../docs/pictures/', import.meta.url))

const config = (mixer) => (port) => `${oscInput('tablet', port)}
[[modes]]
name = "Play"

[[modes.mappings]]
name = "kick"
trigger = { type = "OscArgRange", address = "/pad/1", min = 0.5, max = 1.0 }
action = { type = "OscSend", target = "127.0.0.1:${mixer}", address = "/drum/kick" }

[[modes.mappings]]
name = "verse light"
trigger = { type = "OscArgRange", address = "/pad/2", min = 0.5, max = 1.0 }
action = { type = "OscSend", target = "127.0.0.1:${mixer}", address = "/light/verse" }

[[modes]]
name = "Mix"

[features.osc-output.grants]
udp = ["127.0.0.1:${mixer}"]
`

/** Rows of pads that are hit, from the lowest, in each column of eight. */
const PLAYED = [[0, 4], [2], [4, 6], [2], [0, 5], [2, 7], [4], [1, 3]]
/** How long each column is seen, in milliseconds. */
const BEAT = 500
/** What an animation may take, in bytes: pages show it beside text. */
const MOST = 400_000

/** Has the pads light up as they are hit, and gives the screenshots of it; each but the first is of what has changed. */
async function played(stage, tab) {
  const { page } = tab
  const hit = (note, event) => stage.ask('POST', '/v1/play', { device: 'grid', event: `${event} ${note} 100` })
  const pad = (note) => `[data-control="note ${note} 0"]`
  /** The least part of the page in which these are, and where it is on the picture. */
  const around = (selectors) =>
    page.evaluate((selectors) => {
      const all = selectors.map((one) => document.querySelector(one).getBoundingClientRect())
      const [left, top] = [Math.floor(Math.min(...all.map((one) => one.left))), Math.floor(Math.min(...all.map((one) => one.top)))]
      const [right, bottom] = [Math.ceil(Math.max(...all.map((one) => one.right))), Math.ceil(Math.max(...all.map((one) => one.bottom)))]
      const picture = document.querySelector('.picture').getBoundingClientRect()
      return { clip: { x: left, y: top, width: right - left, height: bottom - top }, x: left - Math.floor(picture.left), y: top - Math.floor(picture.top) }
    }, selectors)
  const frames = []
  let before = []
  for (const [column, rows] of PLAYED.entries()) {
    const notes = rows.map((row) => 8 * row + column)
    for (const note of notes) await hit(note, 'note-on')
    for (const note of notes) await tab.find(`${pad(note)}[data-lit]`)
    for (const note of before) await tab.find(`${pad(note)}:not([data-lit])`)
    const { clip, x, y } = await around(frames.length === 0 ? ['.picture'] : [...before, ...notes].map(pad))
    frames.push({ png: await page.screenshot({ clip }), x, y })
    for (const note of notes) await hit(note, 'note-off')
    before = notes
  }
  return frames
}

const mixer = await OscPeer.open()
const stage = await Stage.start(config(mixer.port))
try {
  await mkdir(FOLDER, { recursive: true })
  const tab = await stage.tab(stage.link)
  await tab.find('[data-state=open]')
  await tab.page.setViewport({ width: 1280, height: 760, deviceScaleFactor: 1 })
  const play = (address, value) => mixer.send(stage.osc, address, value)
  const take = (name) => tab.page.screenshot({ path: `${FOLDER}${name}.png` })
  for (const [address, value] of [['/fader/1', 0.35], ['/fader/2', 0.8], ['/fader/3', 0.55], ['/pad/2', 1], ['/pad/2', 0], ['/fader/2', 0.7], ['/fader/1', 0.6], ['/pad/1', 1]]) {
    await play(address, value)
    await tab.find('[role=row][data-kind=event]', `${address} ${value}`)
  }
  await tab.find('li, div', '8 events')
  for (const scheme of ['light', 'dark']) {
    await tab.page.emulateMediaFeatures([{ name: 'prefers-color-scheme', value: scheme }])
    await take(`live-${scheme}`)
  }

  const grid = { alias: 'grid', matchers: [{ type: 'name_contains', value: 'APC MINI' }] }
  const { id } = await stage.ask('POST', '/v1/plans', { description: 'A grid of pads.', changes: [{ path: ['bindings', '1'], value: grid }] })
  await stage.ask('POST', `/v1/plans/${id}/apply`)
  await tab.page.setViewport({ width: 1000, height: 1400, deviceScaleFactor: 1 })
  for (const scheme of ['light', 'dark']) {
    await tab.page.emulateMediaFeatures([{ name: 'prefers-color-scheme', value: scheme }])
    await tab.go('?device=grid')
    await tab.find('h2', 'Akai Professional APC mini')
    await tab.find('[data-control="note 0 0"]')
    const made = animation(await played(stage, tab), BEAT)
    if (made.length > MOST) throw new Error(`the animation has ${made.length} bytes, and may have ${MOST}`)
    await writeFile(`${FOLDER}pads-${scheme}.png`, made)
  }
} finally {
  mixer.close()
  await stage.end()
}
