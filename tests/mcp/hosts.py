"""Hosts for the official Python client, and the ways to them.

A script that imports this is called with CONDUCTOR and PLAYED: the program, and a host whose controller and desktop are
simulated.
"""

import contextlib
import json
import logging
import os
import pathlib
import queue
import shutil
import subprocess
import sys
import tempfile
import threading
import time

import anyio
import httpx2
import mcp_types as types
from mcp.client.stdio import StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.message import SessionMessage

# What a client that is closed has to say of its own end is no news.
logging.getLogger("mcp").setLevel(logging.CRITICAL)
CONDUCTOR, PLAYED = sys.argv[1:]
SHOW = """[[bindings]]
alias = "pads"
matchers = [{ type = "name_contains", value = "Launchpad" }]

[[global_mappings]]
trigger = { type = "Note", note = 37, device = "pads" }
action = { type = "Keystroke", keys = ["x"] }

[[modes]]
name = "Play"
"""


class Host:
    """A host in a home of its own."""

    command = [CONDUCTOR, "run", "--http", "0", "--home"]

    def __init__(self, elicitation=None, show=SHOW):
        self.home = pathlib.Path(tempfile.mkdtemp(prefix="cond-mcp-"))
        more = f'\n[mcp]\nelicitation = "{elicitation}"\n' if elicitation else ""
        (self.home / "config.toml").write_text(show + more)

    def __enter__(self):
        self.log = open(self.home / "log", "w+")
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": self.log}
        self.process = subprocess.Popen([*self.command, str(self.home)], text=True, **pipes)
        self.wait_until_ready()
        self.url = json.loads((self.home / "api.json").read_text())["mcp"]
        return self

    def wait_until_ready(self):
        while "ready:" not in (self.home / "log").read_text():
            assert self.process.poll() is None, (self.home / "log").read_text()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(0.02)

    def __exit__(self, *_):
        self.process.terminate()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
        self.log.close()
        shutil.rmtree(self.home, ignore_errors=True)

    def conductor(self, *arguments, fails=False):
        command = [CONDUCTOR, "--home", str(self.home), *arguments]
        done = subprocess.run(command, capture_output=True, text=True, env=os.environ | {"NO_COLOR": "1"})
        assert (done.returncode != 0) == fails, f"{arguments}: {done.stdout}{done.stderr}"
        return done.stdout + done.stderr

    def config(self):
        return (self.home / "config.toml").read_text()

    def presses(self):
        """What a press of pad 36 does, by the rules of the file."""
        script = self.home / "press.txt"
        script.write_text("0ms pads note-on 36 100\n")
        return self.conductor("simulate", str(script))


class Played(Host):
    """A host whose controller is played on from here, and whose desktop tells what is done on it."""

    command = [PLAYED]

    def wait_until_ready(self):
        self.lines = queue.Queue()
        threading.Thread(target=lambda: [self.lines.put(line.strip()) for line in self.process.stdout], daemon=True).start()
        assert self.lines.get(timeout=30) == "ready", (self.home / "log").read_text()

    def strikes(self, note):
        """What keys do for a pad, down and up. Pad 37 is struck after it: its key comes last, in any case."""
        for pad in (note, 37):
            self.process.stdin.write(f"90 {pad:02x} 64\n")
        self.process.stdin.flush()
        struck = []
        while "up x" not in struck:
            struck.append(self.lines.get(timeout=10))
        return [line for line in struck if line not in ("down x", "up x")]

    def has_seen(self, event):
        """Waits until an event is on record, which it is soon after it was played."""
        deadline = time.monotonic() + 10
        while event not in self.conductor("tool", "call", "conductor_get_captured_events", "{}"):
            assert time.monotonic() < deadline, f"no {event} came"


@contextlib.asynccontextmanager
async def unix(path):
    """A transport over the Unix socket: one message a line."""
    to_client, read = anyio.create_memory_object_stream(16)
    write, from_client = anyio.create_memory_object_stream(16)
    async with await anyio.connect_unix(path) as stream, anyio.create_task_group() as group:

        async def receive():
            pending = b""
            with contextlib.suppress(anyio.EndOfStream, anyio.ClosedResourceError, anyio.BrokenResourceError):
                while True:
                    *lines, pending = (pending + await stream.receive()).split(b"\n")
                    for line in lines:
                        await to_client.send(SessionMessage(types.jsonrpc_message_adapter.validate_json(line)))
            await to_client.aclose()

        async def send():
            async for message in from_client:
                text = message.message.model_dump_json(by_alias=True, exclude_unset=True)
                await stream.send(text.encode() + b"\n")

        group.start_soon(receive)
        group.start_soon(send)
        try:
            yield read, write
        finally:
            group.cancel_scope.cancel()


@contextlib.asynccontextmanager
async def http(host):
    token = (host.home / "mcp.token").read_text()
    async with httpx2.AsyncClient(headers={"authorization": f"Bearer {token}"}, timeout=30) as client:
        async with streamable_http_client(host.url, http_client=client) as streams:
            yield streams


def door(host, name):
    if name == "stdio":
        return StdioServerParameters(command=CONDUCTOR, args=["--home", str(host.home), "mcp"])
    return http(host) if name == "http" else unix(str(host.home / "mcp.sock"))


def text(result):
    return " ".join(block.text for block in result.content if block.type == "text")
