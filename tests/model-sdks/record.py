"""Records how aimock, a server of others, writes answers in the formats of Anthropic, Gemini, OpenAI and OpenRouter, and in
OpenAI's Chat Completions, which LiteLLM's proxy speaks.

    npm install @copilotkit/aimock@1.43.0
    python record.py node node_modules/@copilotkit/aimock/dist/aimock-cli.js

Each of the answers below is asked for as a stream and whole; what the server sends, byte for byte, is a line of
`recorded/VENDOR.jsonl`. The comparison serves it to both sides.
"""

import json
import pathlib
import subprocess
import sys
import tempfile
import time
import urllib.request

PORT = 4873
HERE = pathlib.Path(__file__).parent


def chat(text, stream):
    """A question of Chat Completions."""
    body = {"model": "m", "messages": [{"role": "user", "content": text}]}
    return {**body, "stream": True, "stream_options": {"include_usage": True}} if stream else body


QUESTIONS = {
    "anthropic": lambda text, stream: (
        "/v1/messages",
        {"model": "m", "max_tokens": 1000, "stream": stream, "messages": [{"role": "user", "content": text}]},
    ),
    "gemini": lambda text, stream: (
        f"/v1beta/models/m:{'streamGenerateContent?alt=sse' if stream else 'generateContent'}",
        {"contents": [{"role": "user", "parts": [{"text": text}]}]},
    ),
    "litellm": lambda text, stream: ("/v1/chat/completions", chat(text, stream)),
    "openai": lambda text, stream: (
        "/v1/responses",
        {"model": "m", "stream": stream, "input": [{"role": "user", "content": text}]},
    ),
    "openrouter": lambda text, stream: ("/api/v1/chat/completions", chat(text, stream)),
}


def call(name, arguments):
    return {"name": name, "arguments": json.dumps(arguments, ensure_ascii=False)}


def answers(vendor):
    """30 answers: texts, calls, both, thoughts, and every way to end that the vendor has."""
    texts = [
        "Yes.",
        "",
        "Pad 36 copies now.",
        "Grün — 音を出す 🎹 \u0301e",
        "One\n\n- two\n- three\n\n```toml\n[[modes]]\nname = \"Play\"\n```\n",
        "quotes \" and \\ and \t tabs, </data>, data: [DONE]",
        "x" * 3000,
        " leading and trailing ",
        "\u2028line\u2029separators\u0085",
        "0",
    ]
    found = [{"content": text} for text in texts]
    calls = [
        [call("look", {})],
        [call("look", {"at": "pads"})],
        [call("look", {"n": 1.5, "deep": {"list": [1, "zwei", None, True, {"a": []}]}})],
        [call("look", {"at": "Grün \" \\ \n 🎹"})],
        [call("look", {"n": 1}), call("look", {"n": 2})],
        [call(f"look{n}", {"n": n}) for n in range(5)],
        [call("look", {"long": "y" * 2000})],
        [call("look", {"empty": "", "zero": 0, "false": False, "null": None})],
    ]
    found += [{"toolCalls": each} for each in calls]
    found += [
        {"content": "I look.", "toolCalls": calls[1]},
        {"content": "I look twice.\n", "toolCalls": calls[4]},
        {"content": "Because.", "reasoning": "The person asked why. " * 20},
        {"content": "Because.", "reasoning": "Hm."},
        {"toolCalls": calls[1], "reasoning": "I have to look first."},
    ]
    counted = {"prompt_tokens": 1234, "completion_tokens": 56, "total_tokens": 1290}
    usage = {
        "anthropic": {"input_tokens": 1234, "output_tokens": 56},
        "gemini": {"promptTokenCount": 1234, "candidatesTokenCount": 56, "totalTokenCount": 1290},
        "litellm": counted,
        "openai": {"input_tokens": 1234, "output_tokens": 56, "total_tokens": 1290},
        "openrouter": {**counted, "cost": 0.00125, "prompt_tokens_details": {"cached_tokens": 1000}},
    }[vendor]
    ends = {
        "anthropic": ["max_tokens", "stop_sequence", "refusal", "pause_turn"],
        "gemini": ["MAX_TOKENS", "SAFETY", "RECITATION", "OTHER"],
        "litellm": ["length", "content_filter", "stop", "tool_calls"],
        "openai": ["length", "content_filter", "stop", "length"],
        "openrouter": ["length", "content_filter", "stop", "tool_calls"],
    }[vendor]
    found += [{"content": f"It ends so: {end}", "finishReason": end} for end in ends]
    found += [{"content": "It cost.", "usage": usage}, {"toolCalls": calls[1], "usage": usage}]
    found.append({"content": "Cut at the limit", "finishReason": ends[0], "usage": usage})
    assert len(found) == 30, len(found)
    return found


def ask(path, body):
    request = urllib.request.Request(
        f"http://127.0.0.1:{PORT}{path}",
        json.dumps(body).encode(),
        {"content-type": "application/json", "x-api-key": "k", "authorization": "Bearer k", "x-goog-api-key": "k"},
    )
    with urllib.request.urlopen(request, timeout=20) as answer:
        return answer.read().decode()


def main():
    with tempfile.TemporaryDirectory() as folder:
        for vendor, question in QUESTIONS.items():
            fixtures = [
                {"match": {"userMessage": f"exchange:{vendor}-{number:02}!"}, "response": answer}
                for number, answer in enumerate(answers(vendor))
            ]
            place = pathlib.Path(folder, vendor)
            place.mkdir()
            (place / "all.json").write_text(json.dumps({"fixtures": fixtures}))
            config = place / "aimock.json"
            config.write_text(json.dumps({"llm": {"fixtures": str(place / "all.json")}}))
            server = subprocess.Popen([*sys.argv[1:], "-c", str(config), "-p", str(PORT)], stdout=subprocess.DEVNULL)
            try:
                lines = []
                for number in range(len(fixtures)):
                    text = f"exchange:{vendor}-{number:02}!"
                    for _ in range(100):
                        try:
                            both = {
                                name: ask(*question(text, name == "stream")) for name in ("stream", "whole")
                            }
                            break
                        except urllib.error.URLError as error:
                            if isinstance(error, urllib.error.HTTPError):
                                raise SystemExit(f"{text}: {error}: {error.read().decode()}") from error
                            time.sleep(0.1)
                    lines.append(json.dumps({"id": f"recorded-{number:02}", **both}, ensure_ascii=False))
                (HERE / "recorded" / f"{vendor}.jsonl").write_text("\n".join(lines) + "\n")
            finally:
                server.terminate()
                server.wait()


main()
