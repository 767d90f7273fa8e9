"""A tool in Python: the notes of a scale.

The classes are the interfaces of the contract, in camel case. A `result` is returned as its value, or
raised as `Err` with the error.
"""

import json

import wit_world.exports
from componentize_py_types import Err
from wit_world.imports.tool_registrar import Registrar
from wit_world.imports.types import Error_Invalid

STEPS = {
    "major": [0, 2, 4, 5, 7, 9, 11],
    "minor": [0, 2, 3, 5, 7, 8, 10],
    "pentatonic": [0, 2, 4, 7, 9],
}

INPUT = {
    "type": "object",
    "properties": {
        "root": {"type": "integer", "minimum": 0, "maximum": 115, "description": "a MIDI note; 60 is middle C"},
        "scale": {"enum": list(STEPS)},
    },
    "required": ["root", "scale"],
}
OUTPUT = {"type": "array", "items": {"type": "integer"}}


class Lifecycle(wit_world.exports.Lifecycle):
    def install(self, ctx):
        """Runs once for every instance, and registers what feature.toml declares."""
        Registrar.open(ctx).register("scale_notes", json.dumps(INPUT), json.dumps(OUTPUT))


class ReadOnlyTools(wit_world.exports.ReadOnlyTools):
    def call(self, name, args, invoked, state):
        """The host has seen to it that `args` is a JSON object. What it says is for the tool to check."""
        asked = json.loads(args)
        root, steps = asked.get("root"), STEPS.get(asked.get("scale"))
        if not isinstance(root, int) or not 0 <= root <= 115:
            raise Err(Error_Invalid(f'{name}: "root" is a MIDI note, 0 to 115'))
        if steps is None:
            raise Err(Error_Invalid(f'{name}: "scale" is one of {", ".join(STEPS)}'))
        return json.dumps([root + step for step in steps])
