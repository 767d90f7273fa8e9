"""A tool: what a MIDI note is called, and how it sounds."""

import json

import wit_world.exports
from componentize_py_types import Err
from wit_world.imports.tool_registrar import Registrar
from wit_world.imports.types import Error_Invalid

NAMES = ["C", "C#", "D", "D#", "E", "F", "F#", "G", "G#", "A", "A#", "B"]

# What the tool takes. Models read the descriptions.
INPUT = {
    "type": "object",
    "properties": {
        "note": {"type": "integer", "minimum": 0, "maximum": 127, "description": "The note's number; 60 is middle C."},
    },
    "required": ["note"],
    "additionalProperties": False,
}

# What it gives.
OUTPUT = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "description": "Such as C4."},
        "frequency": {"type": "number", "description": "In Hz, with A4 at 440."},
    },
    "required": ["name", "frequency"],
}


def install(ctx):
    """Registers the tool that feature.toml declares."""
    Registrar.open(ctx).register("{{snake}}", json.dumps(INPUT), json.dumps(OUTPUT))


class ReadOnlyTools(wit_world.exports.ReadOnlyTools):
    def call(self, name, args, call, host):
        """The host has seen to it that `args` is a JSON object. What it says is for the tool to check.

        `call` says whether the answer is still wanted and takes progress; `host` shows ports, mode, configuration and events.
        """
        note = json.loads(args).get("note")
        if not isinstance(note, int) or not 0 <= note <= 127:
            raise Err(Error_Invalid(f"{name}: {note} is no MIDI note; they go from 0 to 127"))
        frequency = round(440 * 2 ** ((note - 69) / 12), 2)
        return json.dumps({"name": f"{NAMES[note % 12]}{note // 12 - 1}", "frequency": frequency})
