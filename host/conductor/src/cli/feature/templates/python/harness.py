"""A host in which a feature is tried: ports are simulated, datagrams are recorded instead of sent, and the clock moves only
when a test moves it. `conductor feature test` says where the host and the package are.
"""

import json
import os
import subprocess
import time


class Failure(Exception):
    """Why something did not work, in the host's words."""


class Feature:
    """An installed feature, in a running host; `with` ends the host.

    `grants` and `config` are TOML: what stands under [features.NAME.grants], and the configuration without the feature.
    """

    def __init__(self, grants="", config="", outputs=(), http=()):
        try:
            program, package = os.environ["CONDUCTOR_BIN"], os.environ["CONDUCTOR_FEATURE_PACKAGE"]
        except KeyError:
            raise Failure("run the tests with `conductor feature test`, which builds the package") from None
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        self._host = subprocess.Popen([program, "feature", "harness", package], text=True, **pipes)
        try:
            self.ask(do="install", grants=grants, config=config, outputs=list(outputs), http=list(http))
        except BaseException:
            self.close()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        """Ends the host."""
        self._host.stdin.close()
        self._host.wait(timeout=10)
        self._host.stdout.close()

    def ask(self, **request):
        """Asks the host one thing."""
        self._host.stdin.write(json.dumps(request) + "\n")
        self._host.stdin.flush()
        line = self._host.stdout.readline()
        if not line:
            raise Failure("the host has ended")
        answer = json.loads(line)
        if "error" in answer:
            raise Failure(answer["error"])
        return answer["ok"]

    def call(self, tool, **args):
        """The result of a tool."""
        return self.ask(do="call", tool=tool, args=args)["result"]

    def prepare(self, action, **params):
        """Prepares an action, as a mapping with these parameters would; gives its number."""
        return self.ask(do="prepare", action=action, params=params)

    def perform(self, prepared, event):
        """Performs a prepared action for one event, such as "pads note-on 36 100"."""
        return self.ask(do="perform", prepared=prepared, event=event)

    def play(self, script):
        """Plays events through the configuration's rules, one a line, such as "+20ms pads note-off 36"."""
        return self.ask(do="play", script=script)

    def advance(self, milliseconds):
        """Moves the clock."""
        return self.ask(do="advance", milliseconds=milliseconds)

    def seen(self):
        """Everything that came of it so far: sent, midi, asked, said, failures, plans, traps, tasks, mode, report."""
        return self.ask(do="seen")

    def until(self, what, is_so):
        """Asks until `is_so` gives true, for ten seconds at most: for what goes on beside calls."""
        deadline = time.monotonic() + 10
        while not is_so(self.seen()):
            if time.monotonic() > deadline:
                raise Failure(f"not within 10 s: {what}: {self.seen()}")
            time.sleep(0.005)
