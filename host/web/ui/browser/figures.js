// Measures what shells cost: the host beside none and beside four, in one run, and what a page shows of it.
//
// An OSC app plays at a fixed rate, each event is mapped to a packet, and the time from the one to the other is taken here.
// The same events go to an echo at the same time: what it takes is the machine's, which the browser keeps busy.

import { readFile } from 'node:fs/promises'
import { performance } from 'node:perf_hooks'

import { OscPeer, Program, Stage, oscInput, until } from './stage.js'

/** Events a second, and for how long, in milliseconds. */
const RATE = 1000
const LONG = 8000
/** Rates at which frames are counted. */
const FRAMES_AT = [1000, 5000]
const SHELLS = 4
/** Microseconds of a tick of the processor's clock, as Linux counts them. */
const TICK = 10_000

const config = (mixer) => (port) => `${oscInput('tablet', port)}
[[modes]]
name = "Play"

[[modes.mappings]]
name = "through"
trigger = { type = "OscMessage", address = "/fader/1" }
action = { type = "OscSend", target = "127.0.0.1:${mixer}", address = "/level" }

[features.osc-output.grants]
udp = ["127.0.0.1:${mixer}"]
`

const mixer = await OscPeer.open()
const echoed = await OscPeer.open()
const stage = await Stage.start(config(mixer.port))
const echo = new Program(process.execPath, [new URL('echo.js', import.meta.url).pathname, String(echoed.port)])
const echoPort = Number((await echo.line(/^echo at /)).split(' ').at(-1))

/** Plays to these ports at this rate for as long, and gives when each event was sent to each of them. */
async function play(rate, milliseconds, ports = [stage.osc]) {
  const sent = ports.map(() => [])
  const begun = performance.now()
  for (let count = 0; ; ) {
    const now = performance.now() - begun
    if (now >= milliseconds) return sent
    for (; count < (now * rate) / 1000; count += 1) {
      // Each is the first in turn: the second waits until the first is sent.
      for (let turn = 0; turn < ports.length; turn += 1) {
        const index = (count + turn) % ports.length
        sent[index].push(performance.now())
        await mixer.send(ports[index], '/fader/1', (count % 100) / 100)
      }
    }
    await new Promise((resolve) => setImmediate(resolve))
  }
}

/** Microseconds of processor time that a process took so far. */
async function processor(program) {
  const fields = (await readFile(`/proc/${program.child.pid}/stat`, 'utf8')).split(') ')[1].split(' ')
  return (Number(fields[11]) + Number(fields[12])) * TICK
}

const quantile = (sorted, part) => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))]

/** When each packet comes to this peer from now on. */
function arrivals(peer) {
  const came = []
  peer.socket.removeAllListeners('message')
  peer.socket.on('message', () => came.push(performance.now()))
  return came
}

/** Milliseconds from each event to its packet, in ascending order. */
async function latencies(sent, came) {
  await until('every packet', () => came.length >= sent.length)
  return sent.map((at, index) => came[index] - at).sort((one, other) => one - other)
}

/** Host and echo under the rate: latency in milliseconds, and microseconds of the host's processor time for each event. */
async function measured() {
  const [host, ui] = [await processor(stage.host), await processor(stage.ui)]
  const [came, cameBack] = [arrivals(mixer), arrivals(echoed)]
  const [sent, sentToEcho] = await play(RATE, LONG, [stage.osc, echoPort])
  const [ours, echos] = [await latencies(sent, came), await latencies(sentToEcho, cameBack)]
  return {
    host: ((await processor(stage.host)) - host) / ours.length,
    ui: ((await processor(stage.ui)) - ui) / ours.length,
    median: quantile(ours, 0.5),
    most: quantile(ours, 0.99),
    echoMedian: quantile(echos, 0.5),
    echoMost: quantile(echos, 0.99),
  }
}

/** Frames that a page draws a second while events come at this rate, and its longest frame in milliseconds. */
async function frames(tab, rate) {
  const counted = tab.page.evaluate((milliseconds) => new Promise((resolve) => {
    const begun = performance.now()
    let [count, last, longest] = [0, begun, 0]
    const frame = (now) => {
      count += 1
      longest = Math.max(longest, now - last)
      last = now
      if (now - begun < milliseconds) requestAnimationFrame(frame)
      else resolve({ rate: (count * 1000) / (now - begun), longest })
    }
    requestAnimationFrame(frame)
  }), LONG / 2)
  await play(rate, LONG / 2)
  return counted
}

try {
  // The first calls of a feature are slower, and are not what is measured.
  await play(RATE, 2000)
  const none = await measured()
  const tabs = [await stage.tab(stage.link)]
  while (tabs.length < SHELLS) tabs.push(await stage.tab(stage.origin))
  for (const tab of tabs) await tab.find('[data-state=open]')
  const four = await measured()

  const line = (what, unit, key, digits) =>
    console.log(`${what.padEnd(34)} ${none[key].toFixed(digits).padStart(8)} ${four[key].toFixed(digits).padStart(8)} ${unit.padEnd(3)} ${none[key] > 0 ? `${(four[key] / none[key]).toFixed(2).padStart(5)} times` : ''}`)
  console.log(`\n${RATE} events/s, each mapped to a packet     no shell   ${SHELLS} shells`)
  line('latency, median', 'ms', 'median', 3)
  line('latency, 99 of 100', 'ms', 'most', 3)
  line('the same through an echo, median', 'ms', 'echoMedian', 3)
  line('the same, 99 of 100', 'ms', 'echoMost', 3)
  line('processor time of the host', 'µs', 'host', 0)
  line('processor time of `conductor ui`', 'µs', 'ui', 0)

  const [tab, ...others] = tabs
  for (const other of others) await other.page.close()
  await tab.page.bringToFront()
  for (const rate of FRAMES_AT) {
    const { rate: drawn, longest } = await frames(tab, rate)
    console.log(`frames at ${rate} events/s: ${drawn.toFixed(1)} a second, the longest took ${longest.toFixed(0)} ms`)
  }
  const begun = performance.now()
  await tab.page.goto(stage.origin)
  await tab.find('[data-state=open]')
  await mixer.send(stage.osc, '/fader/1', 0.5)
  await tab.find('[role=row][data-kind=event]', '/fader/1')
  console.log(`from the address to the first event shown: ${(performance.now() - begun).toFixed(0)} ms`)
} finally {
  mixer.close()
  echoed.close()
  await echo.end()
  await stage.end()
}
