"""What people ask agents for, done by a script that knows only what MCP serves.

    tasks.py CONDUCTOR PLAYED

Names of tools are the only thing it brings along; which keys there are, and which values they take, it reads from the
schemas and answers that it gets, and fails where they are not there. For each task it prints how many calls it took, and
whether every call was right at once.
"""

import re

import anyio
from hosts import Played, door
from mcp import Client

SHOW = """[[bindings]]
alias = "pads"
matchers = [{ type = "name_contains", value = "Launchpad" }]

[features.osc-output.grants]
udp = ["127.0.0.1:9000"]

[[global_mappings]]
trigger = { type = "Note", note = 37, device = "pads" }
action = { type = "Keystroke", keys = ["x"] }

[[modes]]
name = "Play"

[[modes.mappings]]
name = "copy"
trigger = { type = "Note", note = 36, device = "pads" }
action = { type = "Keystroke", keys = ["c"], modifiers = ["ctrl"] }

[[modes.mappings]]
name = "twice"
trigger = { type = "Note", note = 36, device = "pads" }
action = { type = "Keystroke", keys = ["c"], modifiers = ["ctrl"] }

[[modes]]
name = "Mix"

[[modes.mappings]]
name = "solo"
trigger = { type = "Note", note = 40, device = "pads" }
action = { type = "Keystroke", keys = ["s"] }
"""


class Agent:
    """Counts calls, and those that were wrong."""

    def __init__(self, client):
        self.client, self.calls, self.wrong, self.tools = client, 0, 0, {}

    async def list(self):
        self.tools = {tool.name: tool for tool in (await self.client.list_tools()).tools}

    async def call(self, name, **arguments):
        assert name in self.tools, f"{name} is not listed"
        self.calls += 1
        answer = await self.client.call_tool(name, arguments)
        if answer.is_error:
            self.wrong += 1
            raise AssertionError(f"{name} {arguments}: {answer}")
        return answer.structured_content

    def keys(self, tool, key=None, kind=None):
        """The keys of a tool's arguments; of one of them; of one kind of it."""
        schema = self.tools[tool].input_schema
        found = schema
        if key:
            found = found["properties"][key]
            if "$ref" in found:
                found = schema["$defs"][found["$ref"].rsplit("/", 1)[1]]
        if kind:
            named = [one for one in found["oneOf"] if one["properties"]["type"].get("const") == kind]
            assert named, f"{tool}: no {kind} in {key}"
            found = named[0]
        return found["properties"]

    def took(self, task):
        right = "yes" if not self.wrong else f"no, {self.wrong} wrong"
        print(f"  {task:<52} {self.calls} calls, right at once: {right}")
        self.calls, self.wrong = 0, 0


async def map_a_pad(agent, host):
    modes = await agent.call("conductor_get_modes")
    listed = await agent.call("conductor_list_mappings", mode=modes["active"])
    assert not any(found["mapping"]["trigger"].get("note") == 41 for found in listed["mappings"])
    assert {"keys", "modifiers"} <= agent.keys("conductor_create_mapping", "action", "Keystroke").keys()
    assert "Note" in agent.keys("conductor_create_mapping", "trigger")["type"]["enum"]
    proposed = await agent.call(
        "conductor_create_mapping",
        mode=modes["active"],
        trigger={"type": "Note", "note": 41, "device": "pads"},
        action={"type": "Keystroke", "keys": ["v"], "modifiers": ["ctrl"]},
    )
    # The message for the user is in the answer.
    assert proposed["risk"] and "+trigger" in proposed["diff"] and f"plan apply {proposed['plan']}" in proposed["next"]
    host.conductor("plan", "apply", proposed["plan"], "--yes")
    assert "down v" in host.strikes(41)


async def long_press_beside_a_press(agent, host):
    listed = await agent.call("conductor_list_mappings", mode="Mix")
    press = next(found for found in listed["mappings"] if found["mapping"]["name"] == "solo")
    # The schema tells what keeps a press from firing with its long press.
    assert "long press" in agent.keys("conductor_create_mapping")["defer"]["description"]
    assert "mode" in agent.keys("conductor_create_mapping", "action", "ModeChange")
    assert {"path", "value"} <= agent.tools["conductor_batch_changes"].input_schema["$defs"]["BatchChange"]["properties"].keys()
    proposed = await agent.call(
        "conductor_create_mapping",
        mode="Mix",
        trigger={"type": "LongPress", "note": 40, "device": "pads"},
        action={"type": "ModeChange", "mode": "Play"},
    )
    host.conductor("plan", "apply", proposed["plan"], "--yes")
    proposed = await agent.call("conductor_update_mapping", place=press["place"], defer=True)
    host.conductor("plan", "apply", proposed["plan"], "--yes")
    assert "defer = true" in host.config() and 'type = "LongPress"' in host.config()


async def bind_a_port(agent, host):
    group = next(
        name
        for name, tools in re.findall(r"(\S+) \(([^)]*)\)", agent.tools["conductor_open_tools"].description)
        if "list_discovered_ports" in tools
    )
    await agent.call("conductor_open_tools", group=group)
    await agent.list()
    ports = (await agent.call("conductor_list_discovered_ports", unbound=True))["ports"]
    port = next(port for port in ports if port["name"] == "Keystation")
    suggested = await agent.call("conductor_suggest_binding", port=port["device"])
    # The next tool is the one that the answer names.
    tool = re.search(r"conductor_\w+", suggested["next"]).group()
    given = {"alias": suggested["alias"], "matchers": suggested["matchers"][:1]}
    proposed = await agent.call(tool, **given)
    host.conductor("plan", "apply", proposed["plan"], "--yes")
    assert f'alias = "{suggested["alias"]}"' in host.config()


async def why_nothing(agent, host):
    host.strikes(40)
    host.has_seen("note-on 40")
    captured = (await agent.call("conductor_get_captured_events"))["events"]
    struck = next(event for event in reversed(captured) if "note-on 40" in event["event"])
    explained = await agent.call("conductor_explain_event", device=struck["device"], event=struck["event"])
    assert any("Mix" in one["why"] for one in explained["rules"]), explained


async def fader_to_osc(agent, host):
    described = await agent.call("conductor_list_actions", type="OscSend")
    keys = described["actions"][0]["keys"]["properties"]
    scaled = re.search(r"(\{\w+\}) the same scaled to 0\.0-1\.0", keys["address"]["description"]).group(1)
    assert "cc" in agent.keys("conductor_create_mapping", "trigger")
    proposed = await agent.call(
        "conductor_create_mapping",
        trigger={"type": "CC", "cc": 7, "device": "pads"},
        action={"type": "OscSend", "target": "127.0.0.1:9000", "address": "/fader", "args": [scaled]},
    )
    host.conductor("plan", "apply", proposed["plan"], "--yes")
    assert '"{unit}"' in host.config()


async def clean_up(agent, host):
    listed = await agent.call("conductor_list_mappings")
    (places,) = listed["same_trigger"]
    by_place = {found["place"]: found["mapping"] for found in listed["mappings"]}
    kept, *same = [place for place in places if by_place[place]["action"] == by_place[places[0]]["action"]]
    assert kept and same, listed
    proposed = await agent.call("conductor_delete_mapping", place=same[0])
    host.conductor("plan", "apply", proposed["plan"], "--yes")
    assert "twice" not in host.config()
    return proposed


async def undo(agent, host, proposed):
    # No tool takes anything back: a person does, and the answer says how.
    command = re.search(r"conductor (undo)", proposed["next"]).group(1)
    host.conductor(command, "--yes")
    assert "twice" in host.config()


async def main():
    for name in ("stdio", "http"):
        with Played(show=SHOW) as host:
            async with Client(door(host, name), mode="legacy" if name == "stdio" else "auto") as client:
                agent = Agent(client)
                await agent.list()
                for what, task in [
                    ("map a pad", map_a_pad),
                    ("long press switches the mode, short press stays", long_press_beside_a_press),
                    ("bind an unbound port", bind_a_port),
                    ("why does a pad do nothing", why_nothing),
                    ("fader to OSC with scaling", fader_to_osc),
                ]:
                    await task(agent, host)
                    agent.took(f"{name}: {what}")
                proposed = await clean_up(agent, host)
                agent.took(f"{name}: clean up duplicates")
                await undo(agent, host, proposed)
                agent.took(f"{name}: undo")


anyio.run(main)
print("the tasks of an agent: all done")
