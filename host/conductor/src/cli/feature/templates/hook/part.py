"""A hook: it receives events as they come, and reports notes that are very loud. It observes; it cannot stop what the
events do.
"""

import wit_world.exports
from wit_world.imports import devices
from wit_world.imports.diagnostics import Severity, Sink
from wit_world.imports.hook_registrar import Band, Point, Registrar

# The number that the contract gives to a MIDI note-on.
NOTE_ON = 2
# From this velocity on a note is loud.
LOUD = 120

log = None


def install(ctx):
    """What is opened here is all that the hook can ever use."""
    global log
    Registrar.open(ctx).register(Point.EVENTS, Band.NORMAL)
    log = Sink.open(ctx)


class EventHooks(wit_world.exports.EventHooks):
    def events(self, batch, missed):
        """Events come in batches, off the event path; `missed` counts those that were left out before them."""
        for event in batch:
            if event.kind == NOTE_ON and event.value >= LOUD:
                # Event records hold numbers only; names are asked for.
                device = devices.name(event.device) or ""
                log.emit(Severity.INFO, f"{device} plays note {event.number} at {event.value:g}")
