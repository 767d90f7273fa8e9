// A tool: what a MIDI note is called, and how it sounds.
import { Registrar } from "conductor:feature/tool-registrar@0.1.0";

const NAMES = ["C", "C#", "D", "D#", "E", "F", "F#", "G", "G#", "A", "A#", "B"];

// What the tool takes. Models read the descriptions.
const INPUT = {
  type: "object",
  properties: { note: { type: "integer", minimum: 0, maximum: 127, description: "The note's number; 60 is middle C." } },
  required: ["note"],
  additionalProperties: false,
};

// What it gives.
const OUTPUT = {
  type: "object",
  properties: {
    name: { type: "string", description: "Such as C4." },
    frequency: { type: "number", description: "In Hz, with A4 at 440." },
  },
  required: ["name", "frequency"],
};

// Registers the tool that feature.toml declares.
export function install(ctx) {
  Registrar.open(ctx).register("{{snake}}", JSON.stringify(INPUT), JSON.stringify(OUTPUT));
}

export const readOnlyTools = {
  // The host has seen to it that `args` is a JSON object. What it says is for the tool to check. `_call` says whether the
  // answer is still wanted and takes progress; `_host` shows ports, mode, configuration and events.
  call(name, args, _call, _host) {
    const { note } = JSON.parse(args);
    if (!Number.isInteger(note) || note < 0 || note > 127) {
      throw { tag: "invalid", val: `${name}: ${note} is no MIDI note; they go from 0 to 127` };
    }
    const frequency = Math.round(440 * 2 ** ((note - 69) / 12) * 100) / 100;
    return JSON.stringify({ name: `${NAMES[note % 12]}${Math.floor(note / 12) - 1}`, frequency });
  },
};
