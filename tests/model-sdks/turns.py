"""Has answers streamed by OpenAI's own SDK, for `cargo xtask bench`.

The argument is the base URL of a server of Chat Completions. For each line that is read an answer is streamed to its
end; written are the milliseconds that it took, and how many pieces of text it had.
"""

import sys
import time

import openai

client = openai.OpenAI(api_key="sk-of-the-bench", base_url=sys.argv[1], max_retries=0)

for _ in sys.stdin:
    begun = time.perf_counter()
    chunks = client.chat.completions.create(
        model="m",
        messages=[{"role": "user", "content": "Go on."}],
        stream=True,
        stream_options={"include_usage": True},
    )
    pieces = sum(1 for chunk in chunks for choice in chunk.choices if choice.delta.content)
    print((time.perf_counter() - begun) * 1e3, pieces, flush=True)
