// An action: a line of text to a UDP target, for every event that a mapping catches.
//
//   action = { type = "{{Type}}", target = "127.0.0.1:9000", text = "pad" }
import { Registrar } from "conductor:feature/action-registrar@0.1.0";
import { Network } from "conductor:feature/udp@0.1.0";

// What a mapping may say. The host shows mistakes in it with their place in the configuration.
const PARAMS = {
  type: "object",
  properties: {
    target: { type: "string", description: "Where to, as host:port." },
    text: { type: "string", description: "What to send before the event's value. Default: nothing." },
  },
  required: ["target"],
  additionalProperties: false,
};

const encoder = new TextEncoder();
const prepared = new Map();
let network;
let next = 0;

// What is opened here is all that the action can ever use.
export function install(ctx) {
  Registrar.open(ctx).register("{{Type}}", JSON.stringify(PARAMS));
  network = Network.open(ctx, "text");
}

export const actions = {
  // Runs when the configuration is read: everything that takes time or can be wrong belongs here.
  prepare(name, params) {
    const { target, text = "", ...others } = JSON.parse(params);
    if (typeof target !== "string" || typeof text !== "string" || Object.keys(others).length > 0) {
      throw { tag: "invalid", val: `${name}: takes "target" and "text", which are texts, and nothing else` };
    }
    prepared.set(next, { target: network.target(target), text });
    return next++;
  },

  // Runs on the event path: quick, and nothing that waits.
  perform(action, event) {
    const { target, text } = prepared.get(action);
    target.send(encoder.encode(`${text} ${event.value}\n`));
  },

  release(action) {
    prepared.delete(action);
  },
};
