// Controllers and synthesizers over real MIDI: the program that CONDUCTOR_INSTRUMENT names plays them.

import { Program, until } from './stage.js'

const PROGRAM = process.env['CONDUCTOR_INSTRUMENT']

/** Why no MIDI can be played here; `false` if it can, as Node's `skip` has it. */
export const NO_MIDI = PROGRAM ? false : 'no MIDI here: `cargo xtask web --browser` brings a JACK server where there can be one'

/** What is plugged in. */
export class Instrument extends Program {
  constructor() {
    super(PROGRAM, [])
  }

  /** Does a line of the program's, and waits until it is done. */
  async #act(line) {
    const done = () => this.lines.filter((line) => line === 'done').length
    const before = done()
    this.child.stdin.write(`${line}\n`)
    await until(line, () => {
      if (this.child.exitCode !== null) throw new Error(this.lines.join('\n'))
      return done() > before
    })
  }

  /** Plugs a controller in. */
  controller(name) {
    return this.#act(`controller ${name}`)
  }

  /** Plugs a synthesizer in. */
  synth(name) {
    return this.#act(`synth ${name}`)
  }

  /** Pulls a controller out. */
  unplug(name) {
    return this.#act(`unplug ${name}`)
  }

  /** Plays bytes, written as `90 24 64`. */
  play(name, bytes) {
    return this.#act(`play ${name}: ${bytes}`)
  }

  /** What a synthesizer has heard so far, message by message. */
  heard(name) {
    const begin = `heard ${name}: `
    return this.lines.filter((line) => line.startsWith(begin)).map((line) => line.slice(begin.length))
  }
}
