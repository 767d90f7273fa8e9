"""A background task: every 25 minutes it says that it is time for a break."""

import wit_world.exports
from wit_world.imports.alerts import Sink
from wit_world.imports.task_registrar import Registrar

# In milliseconds.
BETWEEN = 25 * 60 * 1000

alerts = None


def install(ctx):
    """A task has an instance of its own. What is opened here is all that it can use."""
    global alerts
    Registrar.open(ctx).register("reminder")
    alerts = Sink.open(ctx)


class Tasks(wit_world.exports.Tasks):
    def start(self, name, under_way):
        """`wait` gives false when the host wants the task to end. Between two waits it may work for two seconds."""
        while under_way.wait(BETWEEN):
            alerts.emit("Time for a break.")
