"""An agent of others, the official Python client, against a running host.

    agent.py CONDUCTOR PLAYED

starts hosts of its own in throw-away homes, and talks to them over standard input and output, over HTTP and over the
Unix socket, as clients of both revisions. It does what an agent does with "Map pad 36 to copy", up to the plan that a
person applies at the terminal, plays the pad, and has the same agreed to by elicitation. PLAYED is a host whose
controller and desktop are simulated. Exit code 0 when all of it held.
"""

import json

import anyio
import mcp_types as types
from hosts import SHOW, Host, Played, door, text
from mcp import Client

MAPPING = {
    "mode": "Play",
    "trigger": {"type": "Note", "note": 36, "device": "pads"},
    "action": {"type": "Keystroke", "keys": ["c"], "modifiers": ["ctrl"]},
    "description": "copy",
}


def proposal(host, command):
    """The result that a tool prints; the plan is named after it, for people."""
    result, _ = json.JSONDecoder().raw_decode(host.conductor(*command))
    return result


async def look(host, name, mode):
    """List, read, complete, subscribe; and be notified of a plan that another client proposes."""
    heard = []
    arrived = anyio.Event()

    async def handler(message):
        heard.append(getattr(message, "method", None))
        if getattr(message, "method", None) == "notifications/resources/updated":
            arrived.set()

    async with Client(door(host, name), mode=mode, message_handler=handler) as client:
        assert client.server_info.name == "conductor"
        assert "only propose" in client.instructions
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert tools["conductor_get_modes"].annotations.read_only_hint is True
        modes = await client.call_tool("conductor_get_modes", {})
        assert modes.structured_content["modes"][0]["name"] == "Play", modes
        resources = {str(resource.uri) for resource in (await client.list_resources()).resources}
        assert {"conductor://config", "conductor://docs/mappings"} <= resources, resources
        config = await client.read_resource("conductor://config")
        assert config.contents[0].text == host.config()
        assert "skill://conductor-learn/SKILL.md" in resources, resources
        skill = await client.read_resource("skill://conductor-learn/SKILL.md")
        assert skill.contents[0].text.startswith("---\nname: conductor-learn"), skill
        reference = await client.read_resource("skill://conductor-learn/references/evidence.md")
        assert reference.contents[0].text.startswith("# Evidence"), reference
        prompts = {prompt.name for prompt in (await client.list_prompts()).prompts}
        assert "map_control" in prompts
        filled = await client.get_prompt("map_control", {"control": "pad 36", "action": "copy"})
        assert "pad 36" in filled.messages[0].content.text
        reference = types.PromptReference(type="ref/prompt", name="map_control")
        completed = await client.complete(reference, {"name": "mode", "value": "pl"})
        assert completed.completion.values == ["Play"], completed
        wrong = await client.call_tool("conductor_get_mapping", {"place": "modes/9"})
        assert wrong.is_error, wrong

        propose = ["tool", "call", "conductor_create_mapping", json.dumps(MAPPING)]
        if client.protocol_version >= "2026-07-28":
            async with client.listen(resource_subscriptions=["conductor://plans"]) as events:
                proposed = proposal(host, propose)
                with anyio.fail_after(10):
                    async for _ in events:
                        break
        else:
            await client.session.subscribe_resource("conductor://plans")
            proposed = proposal(host, propose)
            with anyio.fail_after(10):
                await arrived.wait()
        host.conductor("plan", "reject", proposed["plan"])
    print(f"  {name}, {mode}: list, call, read, complete, subscribe")


async def map_pad(host, name, mode):
    """"Map pad 36 to copy": from discovery to a plan; a person applies it at the terminal; the pad is struck, and
    copies; it is taken back."""
    assert "ctrl+c" not in host.presses() and host.strikes(36) == []
    async with Client(door(host, name), mode=mode) as client:
        assert json.loads((await client.read_resource("conductor://status")).contents[0].text)["modes"] == ["Play"]
        listed = await client.call_tool("conductor_list_mappings", {"mode": "Play"})
        assert listed.structured_content["mappings"] == []
        proposed = await client.call_tool("conductor_create_mapping", MAPPING)
        plan = proposed.structured_content["plan"]
        assert "waits for a person" in text(proposed) and plan in text(proposed), proposed
        assert host.config() == SHOW, "an agent has only proposed"
        seen = json.loads((await client.read_resource(f"conductor://plans/{plan}")).contents[0].text)
        assert "note = 36" in seen["diff"]
        assert "note = 36" in host.conductor("plan", "show", plan)
        host.conductor("plan", "apply", plan, "--yes")
        assert "Keystroke ctrl+c" in host.presses(), host.presses()
        struck = host.strikes(36)
        assert [line for line in struck if line.startswith("down")] == ["down ctrl", "down c"], struck
        assert sorted(line for line in struck if line.startswith("up")) == ["up c", "up ctrl"], struck
        listed = await client.call_tool("conductor_list_mappings", {"mode": "Play"})
        assert "copy" in json.dumps(listed.structured_content["mappings"][0]), listed
    host.conductor("undo", "--yes")
    assert host.config() == SHOW and "ctrl+c" not in host.presses() and host.strikes(36) == []
    print(f"  {name}, {mode}: a mapping proposed, applied at the terminal, played, and undone")


async def agree(host, name, mode):
    """The same, agreed to, rejected and closed in the window of the agent's program."""
    questions = []
    answers = iter(["apply", "reject", None])

    async def asked(_, params):
        questions.append(params.message)
        answer = next(answers)
        if answer is None:
            return types.ElicitResult(action="decline")
        return types.ElicitResult(action="accept", content={"decision": answer})

    before = host.config()
    async with Client(door(host, name), mode=mode, elicitation_callback=asked) as client:
        applied = await client.call_tool("conductor_create_mapping", MAPPING)
        assert "The user applied the plan" in text(applied) and applied.structured_content["plan"], applied
        assert "note = 36" in questions[0] and "Apply this change" in questions[0], questions
        assert "note = 36" in host.config()
        host.conductor("undo", "--yes")
        rejected = await client.call_tool("conductor_create_mapping", MAPPING)
        assert "The user rejected the plan" in text(rejected), rejected
        waits = await client.call_tool("conductor_create_mapping", MAPPING)
        assert "waits for a person" in text(waits), waits
    assert host.config() == before and len(questions) == 3, questions
    assert waits.structured_content["plan"][:12] in host.conductor("plan", "list")
    host.conductor("plan", "reject", waits.structured_content["plan"])
    rows = json.loads(host.conductor("audit", "list", "--kind", "plan", "--json"))
    assert any(row["what"] == "apply" and row["who"].endswith(" by elicitation") for row in rows), rows
    print(f"  {name}, {mode}: agreed to, rejected and declined by elicitation")


async def never_asked(host, name, mode):
    """Where the configuration does not allow it, no answer of a client's counts, and there is no other door."""

    async def asked(_, __):
        raise AssertionError("nothing may be asked here")

    async with Client(door(host, name), mode=mode, elicitation_callback=asked) as client:
        proposed = await client.call_tool("conductor_create_mapping", MAPPING)
        plan = proposed.structured_content["plan"]
        for tool in ["conductor_apply_plan", "apply_plan", "plan_apply"]:
            try:
                refused = await client.call_tool(tool, {"id": plan, "confirmed": True})
                assert refused.is_error
            except Exception as error:
                assert "there is no tool" in str(error), error
        forged = dict(MAPPING, confirmed=True)
        refused = await client.call_tool("conductor_create_mapping", forged)
        assert refused.is_error, "no argument confirms anything"
        for uri in [f"conductor://plans/{plan}/apply", f"conductor://apply/{plan}"]:
            try:
                await client.read_resource(uri)
                raise AssertionError(uri)
            except Exception as error:
                assert "no resource" in str(error), error
        if client.protocol_version >= "2026-07-28":
            try:
                await client.session.call_tool(
                    "conductor_create_mapping",
                    MAPPING,
                    input_responses={"question_1": types.ElicitResult(action="accept", content={"decision": "apply"})},
                    request_state=plan,
                )
                raise AssertionError("a forged answer was taken")
            except Exception as error:
                assert "no question waits" in str(error), error
    assert host.config() == SHOW
    host.conductor("plan", "reject", plan)
    print(f"  {name}, {mode}: nothing is applied by tool, argument, resource or forged answer")


async def main():
    doors = [(name, mode) for name in ("stdio", "http", "unix") for mode in ("legacy", "auto")]
    with Host() as host:
        for name, mode in doors:
            await look(host, name, mode)
            await never_asked(host, name, mode)
        host.conductor("audit", "verify")
    with Played() as host:
        for name, mode in doors:
            await map_pad(host, name, mode)
        host.conductor("audit", "verify")
    with Host("plans") as host:
        for name, mode in doors:
            await agree(host, name, mode)


anyio.run(main)
print("the official Python client: all held")
