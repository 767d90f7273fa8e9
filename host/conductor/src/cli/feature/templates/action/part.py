"""An action: a line of text to a UDP target, for every event that a mapping catches.

    action = { type = "{{Type}}", target = "127.0.0.1:9000", text = "pad" }
"""

import json

import wit_world.exports
from componentize_py_types import Err
from wit_world.imports.action_registrar import Registrar
from wit_world.imports.types import Error_Invalid
from wit_world.imports.udp import Network

# What a mapping may say. The host shows mistakes in it with their place in the configuration.
PARAMS = {
    "type": "object",
    "properties": {
        "target": {"type": "string", "description": "Where to, as host:port."},
        "text": {"type": "string", "description": "What to send before the event's value. Default: nothing."},
    },
    "required": ["target"],
    "additionalProperties": False,
}

network = None
prepared = {}


def install(ctx):
    """What is opened here is all that the action can ever use."""
    global network
    Registrar.open(ctx).register("{{Type}}", json.dumps(PARAMS))
    network = Network.open(ctx, "text")


class Actions(wit_world.exports.Actions):
    def prepare(self, name, params):
        """Runs when the configuration is read: everything that takes time or can be wrong belongs here."""
        asked = json.loads(params)
        target, text = asked.pop("target", None), asked.pop("text", "")
        if not isinstance(target, str) or not isinstance(text, str) or asked:
            raise Err(Error_Invalid(f'{name}: takes "target" and "text", which are texts, and nothing else'))
        number = max(prepared, default=-1) + 1
        prepared[number] = (network.target(target), text)
        return number

    def perform(self, action, event):
        """Runs on the event path: quick, and nothing that waits."""
        target, text = prepared[action]
        target.send(f"{text} {event.value:g}\n".encode())

    def release(self, action):
        prepared.pop(action, None)
