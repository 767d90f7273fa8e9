// A tool in JavaScript: which chord do these notes make?
//
// The exports are the interfaces of the contract, in camel case. A `result` is returned as its value, or
// thrown as its error: { tag: "invalid", val: "why" }.
import { Registrar } from "conductor:feature/tool-registrar@0.1.0";

const NAMES = ["C", "C#", "D", "D#", "E", "F", "F#", "G", "G#", "A", "A#", "B"];

const CHORDS = {
  "0,4,7": "",
  "0,3,7": "m",
  "0,3,6": "dim",
  "0,4,8": "aug",
  "0,4,7,11": "maj7",
  "0,4,7,10": "7",
  "0,3,7,10": "m7",
};

const INPUT = {
  type: "object",
  properties: {
    notes: { type: "array", items: { type: "integer", minimum: 0, maximum: 127 }, description: "MIDI notes; 60 is middle C" },
  },
  required: ["notes"],
};

export const lifecycle = {
  // Runs once for every instance, and registers what feature.toml declares.
  install(ctx) {
    Registrar.open(ctx).register("chord_name", JSON.stringify(INPUT), JSON.stringify({ type: "string" }));
  },
};

export const readOnlyTools = {
  // The host has seen to it that `args` is a JSON object. What it says is for the tool to check.
  call(name, args, _invoked, _state) {
    const { notes } = JSON.parse(args);
    if (!Array.isArray(notes) || !notes.every((note) => Number.isInteger(note) && note >= 0 && note <= 127)) {
      throw { tag: "invalid", val: `${name}: "notes" is a list of MIDI notes, 0 to 127` };
    }
    const tones = [...new Set(notes.map((note) => note % 12))];
    for (const root of tones) {
      const above = tones.map((tone) => (tone - root + 12) % 12).sort((a, b) => a - b);
      const kind = CHORDS[above.join(",")];
      if (kind !== undefined) return JSON.stringify(NAMES[root] + kind);
    }
    return JSON.stringify("no chord that I know");
  },
};
