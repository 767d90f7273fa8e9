// A host in which a feature is tried: ports are simulated, datagrams are recorded instead of sent, and the clock moves only
// when a test moves it. `conductor feature test` says where the host and the package are.
import { spawn } from "node:child_process";
import { createInterface } from "node:readline";

/**
 * Starts a host with the feature installed; it ends with the test `t`.
 *
 * `grants` and `config` are TOML: what stands under [features.NAME.grants], and the configuration without the feature.
 */
export async function install(t, { grants = "", config = "", outputs = [], http = [] } = {}) {
  const { CONDUCTOR_BIN: program, CONDUCTOR_FEATURE_PACKAGE: file } = process.env;
  if (!program || !file) throw new Error("run the tests with `conductor feature test`, which builds the package");
  const host = spawn(program, ["feature", "harness", file], { stdio: ["pipe", "pipe", "inherit"] });
  t.after(() => host.stdin.end());
  const feature = new Feature(host);
  await feature.ask({ do: "install", grants, config, outputs, http });
  return feature;
}

/** An installed feature, in a running host. What does not work is thrown, in the host's words. */
class Feature {
  #host;
  #answers;

  constructor(host) {
    this.#host = host;
    this.#answers = createInterface({ input: host.stdout })[Symbol.asyncIterator]();
  }

  /** Asks the host one thing. */
  async ask(request) {
    this.#host.stdin.write(`${JSON.stringify(request)}\n`);
    const { value, done } = await this.#answers.next();
    if (done) throw new Error("the host has ended");
    const { ok, error } = JSON.parse(value);
    if (error !== undefined) throw new Error(error);
    return ok;
  }

  /** The result of a tool. */
  async call(tool, args) {
    return (await this.ask({ do: "call", tool, args })).result;
  }

  /** Prepares an action, as a mapping with these parameters would; gives its number. */
  prepare(action, params) {
    return this.ask({ do: "prepare", action, params });
  }

  /** Performs a prepared action for one event, such as "pads note-on 36 100". */
  perform(prepared, event) {
    return this.ask({ do: "perform", prepared, event });
  }

  /** Plays events through the configuration's rules, one a line, such as "+20ms pads note-off 36". */
  play(script) {
    return this.ask({ do: "play", script });
  }

  /** Moves the clock. */
  advance(milliseconds) {
    return this.ask({ do: "advance", milliseconds });
  }

  /** Everything that came of it so far: sent, midi, asked, said, failures, plans, traps, tasks, mode, report. */
  seen() {
    return this.ask({ do: "seen" });
  }

  /** Asks until `is` gives true, for ten seconds at most: for what goes on beside calls. */
  async until(what, is) {
    const deadline = Date.now() + 10_000;
    while (!(await is(await this.seen()))) {
      if (Date.now() > deadline) throw new Error(`not within 10 s: ${what}: ${JSON.stringify(await this.seen())}`);
      await new Promise((wake) => setTimeout(wake, 5));
    }
  }
}
