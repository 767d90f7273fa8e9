// Makes the pictures of the documentation, docs/pictures, from the real program: an OSC app plays to a host.

import { mkdir } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'

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
} finally {
  mixer.close()
  await stage.end()
}
