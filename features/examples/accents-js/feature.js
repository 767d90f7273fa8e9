// An action in JavaScript: tells the person how hard a pad was hit.
//
// The exports are the interfaces of the contract, in camel case. A `result` is returned as its value, or
// thrown as its error: { tag: "invalid", val: "why" }.
import { Registrar } from "conductor:feature/action-registrar@0.1.0";
import { Sink } from "conductor:feature/alerts@0.1.0";

const PARAMS = {
  type: "object",
  properties: { word: { type: "string", maxLength: 40, description: "what to call it, such as Snare" } },
  additionalProperties: false,
};

const BAR = "##########";

let alerts;
const uses = new Map();
let next = 0;

export const lifecycle = {
  // Runs once for every instance, and registers what feature.toml declares.
  install(ctx) {
    Registrar.open(ctx).register("Accent", JSON.stringify(PARAMS));
    alerts = Sink.open(ctx);
  },
};

export const actions = {
  // Everything that can be worked out before an event comes: this is called when a configuration is read.
  prepare(name, params) {
    const { word = "Hit", ...others } = JSON.parse(params);
    if (typeof word !== "string" || word.length > 40 || Object.keys(others).length > 0) {
      throw { tag: "invalid", val: `${name}: takes "word", a text of at most 40 characters, and nothing else` };
    }
    uses.set(next, word);
    return next++;
  },

  // Called for every event, on the event path: 20 ms at most, of which this takes a fraction of one.
  perform(action, event) {
    alerts.emit(`${uses.get(action)} ${BAR.slice(0, Math.round(event.unit * 10))} ${event.value}`);
  },

  release(action) {
    uses.delete(action);
  },
};
