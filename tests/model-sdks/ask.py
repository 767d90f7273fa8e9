"""What the vendors' own SDKs make of answers.

Reads questions, a JSON object a line: `{"vendor", "id", "stream"}`, of Anthropic, Gemini, OpenAI with Responses, and with Chat
Completions of OpenRouter and LiteLLM, whose SDK is OpenAI's; asks the server whose address is the argument; writes
what came as `{"vendor", "id", "stream", "text", "calls", "usage", "stop"}`, in the words that Conductor has for it.
"""

import json
import sys
import warnings

import anthropic
import openai
from google import genai
from google.genai import types

URL = sys.argv[1]
KEY = "sk-of-the-comparison"
SCHEMA = {"type": "object", "properties": {}}
claude = anthropic.Anthropic(api_key=KEY, base_url=URL, max_retries=0)
gpt = openai.OpenAI(api_key=KEY, base_url=f"{URL}/v1", max_retries=0)
gemini = genai.Client(api_key=KEY, http_options={"base_url": URL, "api_version": "v1beta"})
# A reason to end that it does not know.
warnings.simplefilter("ignore")


def told(text, calls, usage, stop):
    if stop == "done" and calls:
        stop = "tools"
    return {"text": text, "calls": calls, "usage": dict(zip(("input", "cached", "output"), usage)), "stop": stop}


def ask_anthropic(text, stream):
    question = {
        "model": "m",
        "max_tokens": 1000,
        "messages": [{"role": "user", "content": text}],
        "tools": [{"name": "look", "description": "Looks.", "input_schema": SCHEMA}],
    }
    if stream:
        with claude.messages.stream(**question) as events:
            message = events.get_final_message()
    else:
        message = claude.messages.create(**question)
    used = message.usage
    cached, written = used.cache_read_input_tokens or 0, used.cache_creation_input_tokens or 0
    stop = {
        "end_turn": "done",
        "stop_sequence": "done",
        "tool_use": "tools",
        "max_tokens": "length",
        "refusal": "filtered",
    }
    return told(
        "".join(block.text for block in message.content if block.type == "text"),
        [[block.name, block.input] for block in message.content if block.type == "tool_use"],
        (used.input_tokens + cached + written, cached, used.output_tokens),
        stop.get(message.stop_reason, message.stop_reason),
    )


def ask_openai(text, stream):
    question = {
        "model": "m",
        "input": text,
        "tools": [{"type": "function", "name": "look", "description": "Looks.", "parameters": SCHEMA, "strict": False}],
    }
    if stream:
        said = ""
        for event in gpt.responses.create(stream=True, **question):
            if event.type in ("response.output_text.delta", "response.refusal.delta"):
                said += event.delta
            if event.type in ("response.completed", "response.incomplete"):
                response = event.response
    else:
        response = gpt.responses.create(**question)
    if response.status == "failed":
        raise RuntimeError("the response failed")
    pieces = [piece for item in response.output if item.type == "message" for piece in item.content]
    whole = "".join(piece.text if piece.type == "output_text" else piece.refusal for piece in pieces)
    if stream:
        assert said == whole, (said, whole)
    stop = {"max_output_tokens": "length", "content_filter": "filtered"}
    why = response.incomplete_details and response.incomplete_details.reason
    ended = "done" if response.status == "completed" else stop.get(why, why or response.status)
    if any(piece.type == "refusal" for piece in pieces):
        ended = "filtered"
    used = response.usage
    cached = used.input_tokens_details.cached_tokens if used.input_tokens_details else 0
    return told(
        whole,
        [[item.name, json.loads(item.arguments)] for item in response.output if item.type == "function_call"],
        (used.input_tokens, cached or 0, used.output_tokens),
        ended,
    )


def ask_chat_completions(text, stream):
    question = {
        "model": "m",
        "messages": [{"role": "user", "content": text}],
        "tools": [{"type": "function", "function": {"name": "look", "description": "Looks.", "parameters": SCHEMA}}],
    }
    said, calls, used, reason = "", {}, None, None
    if stream:
        for chunk in gpt.chat.completions.create(stream=True, stream_options={"include_usage": True}, **question):
            used = chunk.usage or used
            for choice in chunk.choices:
                reason = choice.finish_reason or reason
                said += (choice.delta.content or "") + (choice.delta.refusal or "")
                for call in choice.delta.tool_calls or []:
                    name_and_arguments = calls.setdefault(call.index, ["", ""])
                    name_and_arguments[0] += call.function.name or ""
                    name_and_arguments[1] += call.function.arguments or ""
    else:
        completion = gpt.chat.completions.create(**question)
        used, choice = completion.usage, completion.choices[0]
        reason, said = choice.finish_reason, (choice.message.content or "") + (choice.message.refusal or "")
        for index, call in enumerate(choice.message.tool_calls or []):
            calls[index] = [call.function.name, call.function.arguments]
    stop = {"stop": "done", "tool_calls": "done", "content_filter": "filtered"}
    details = used.prompt_tokens_details
    return told(
        said,
        [[name, json.loads(arguments)] for _, (name, arguments) in sorted(calls.items())],
        (used.prompt_tokens, (details.cached_tokens if details else 0) or 0, used.completion_tokens),
        stop.get(reason, reason),
    )


def ask_gemini(text, stream):
    look = types.FunctionDeclaration(name="look", description="Looks.", parameters_json_schema=SCHEMA)
    config = types.GenerateContentConfig(
        tools=[types.Tool(function_declarations=[look])],
        automatic_function_calling=types.AutomaticFunctionCallingConfig(disable=True),
    )
    question = {"model": "m", "contents": text, "config": config}
    if stream:
        responses = list(gemini.models.generate_content_stream(**question))
    else:
        responses = [gemini.models.generate_content(**question)]
    said, calls, usage, reason = "", [], None, None
    for response in responses:
        usage = response.usage_metadata or usage
        for candidate in response.candidates or []:
            reason = candidate.finish_reason or reason
            for part in (candidate.content and candidate.content.parts) or []:
                if part.function_call:
                    calls.append([part.function_call.name, part.function_call.args or {}])
                elif part.text and not part.thought:
                    said += part.text
    stop = {
        "STOP": "done",
        "FUNCTION_CALL": "done",
        "MAX_TOKENS": "length",
        "SAFETY": "filtered",
        "RECITATION": "filtered",
    }
    return told(
        said,
        calls,
        (
            (usage.prompt_token_count or 0) + (usage.tool_use_prompt_token_count or 0),
            usage.cached_content_token_count or 0,
            (usage.candidates_token_count or 0) + (usage.thoughts_token_count or 0),
        ),
        stop.get(reason.value, reason.value.lower()),
    )


ASK = {
    "anthropic": ask_anthropic,
    "gemini": ask_gemini,
    "litellm": ask_chat_completions,
    "openai": ask_openai,
    "openrouter": ask_chat_completions,
}

for line in sys.stdin:
    asked = json.loads(line)
    try:
        answer = ASK[asked["vendor"]](f"exchange:{asked['vendor']}/{asked['id']}!", asked["stream"])
    except Exception as error:
        answer = {"error": f"{type(error).__name__}: {error}"}
    print(json.dumps({**asked, **answer}), flush=True)
