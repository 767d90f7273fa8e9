"""The council of Conductor beside llm-council-core: both verify the same commits with the same models, and what each makes of
it is compared field by field.

    python compare.py CONDUCTOR FEATURES

The models are one server on this machine, which answers both by what is in the work. Prints a table; the exit code is 1 where
a field differs that is not expected to (`EXPECTED`)."""

import asyncio
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

MODELS = ["vendor-a/one", "vendor-b/two", "vendor-c/three"]

# What differs, and why, by scenario (`*` is any) and field. Each has to differ: where it does not any more, this is to be read
# again.
EXPECTED = {
    ("*", "rubric_scores"): "the peer reads three of the five scores out of its rankings; here they are means of what each review gives",
    ("fail", "blocking_issues"): "the peer looks for them in its chairman's prose; here they are those of the reviews, with places",
    ("one rejects", "verdict"): "the peer goes by its chairman alone; here a critical issue of one review holds a pass back",
    ("one rejects", "exit_code"): "as its verdict",
    ("one rejects", "confidence"): "the peer's is its chairman's own; here it is what the reviews come to",
    ("one rejects", "blocking_issues"): "as of `fail`",
    ("folders", "expanded_paths"): "in folders, the peer takes files of any ending; here those that ADR-034 lists, each once",
    ("folders", "paths_truncated"): "a lock file that is left out is only said here; a binary that is called as a text file leaves the work incomplete",
    ("folders", "expansion_warnings"): "the peer says what it left out in a field of its own, `coverage`",
    ("two are down", "verdict"): "the peer passes with one review of three; here two thirds have to review",
    ("two are down", "exit_code"): "as its verdict",
}


def kind_of(text):
    """Which stage of which council a question is of."""
    if "You are the Chairman" in text:
        return "peer chairman"
    if "You are evaluating different responses" in text:
        return "peer ranking"
    if "You are reviewing code for quality verification" in text:
        return "peer review"
    if "one of several independent reviewers" in text:
        return "review"
    if "Rank them by" in text:
        return "ranking"
    return "chairman"


class Models(BaseHTTPRequestHandler):
    """A server of models that answer by what is in the work: FAULT fails, DOUBT makes them unsure, `one` alone sees ODD,
    DOWN1 and DOWN2 take down so many of them."""

    protocol_version = "HTTP/1.1"
    # Shown reviews have no work in them; what the last work was is remembered here, between the stages of one call.
    work = ""

    def log_message(self, *_):
        pass

    def do_GET(self):
        self.reply(200, {"data": [{"id": model} for model in MODELS]})

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        text = "\n".join(
            part if isinstance(part, str) else json.dumps(part)
            for message in body["messages"]
            for part in [message["content"]]
        )
        kind = kind_of(text)
        if kind.endswith("review"):
            Models.work = text
        number = MODELS.index(body["model"])
        down = 2 if "DOWN2" in Models.work else 1 if "DOWN1" in Models.work else 0
        if number >= len(MODELS) - down:
            return self.reply(503, {"error": {"message": "not today"}})
        answer = self.answer(kind, number, text)
        if not body.get("stream"):
            message = {"role": "assistant", "content": answer}
            choice = {"index": 0, "message": message, "finish_reason": "stop"}
            usage = {"prompt_tokens": 100, "completion_tokens": 50, "total_tokens": 150}
            return self.reply(200, {"id": "x", "model": body["model"], "choices": [choice], "usage": usage})
        events = [
            {"id": "x", "choices": [{"index": 0, "delta": {"role": "assistant", "content": answer}}]},
            {"id": "x", "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}],
             "usage": {"prompt_tokens": 100, "completion_tokens": 50}},
        ]
        stream = "".join(f"data: {json.dumps(event)}\n\n" for event in events) + "data: [DONE]\n\n"
        self.send(200, "text/event-stream", stream.encode())

    def answer(self, kind, number, text):
        fails = "FAULT" in Models.work or ("ODD" in Models.work and number == 0)
        sure = 0.5 if "DOUBT" in Models.work else 0.9
        scores = {"accuracy": 3 if fails else 9, "relevance": 8, "completeness": 8, "conciseness": 8, "clarity": 8}
        if kind == "review":
            issue = {"severity": "critical", "file": "src/fault.rs", "line": 1, "message": "It has the fault."}
            return json.dumps({"verdict": "fail" if fails else "pass", "confidence": sure, "scores": scores,
                               "issues": [issue] if fails else [], "rationale": "I looked at it."})
        if kind == "ranking":
            letters = [chr(ord("A") + at) for at in range(text.count("(review "))]
            return json.dumps({"ranking": letters})
        if kind == "chairman":
            fails = text.count("verdict: fail") > text.count("verdict: pass")
            return json.dumps({"verdict": "fail" if fails else "pass", "confidence": sure,
                               "rationale": "What most of them say.", "dissent": ""})
        if kind == "peer review":
            return "I looked at it.\n\n**REJECTED**" if fails else "I looked at it.\n\n**APPROVED**"
        if kind == "peer ranking":
            labels = [f"Response {letter}" for letter in re.findall(r'<candidate_response id="([A-Z])">', text)]
            evaluations = {label: {**scores, "notes": "as it is"} for label in labels}
            plain = {label: 8 for label in labels}
            block = json.dumps({"ranking": labels, "evaluations": evaluations, "scores": plain})
            return f"As they are.\n\n```json\n{block}\n```"
        fails = "FAULT" in Models.work
        findings = [{"severity": "critical", "description": "It has the fault.", "location": "src/fault.rs:1"}]
        return json.dumps({"verdict": "rejected" if fails else "approved", "confidence": sure,
                           "rationale": "What most of them say.", "findings": findings if fails else []})

    def reply(self, status, value):
        self.send(status, "application/json", json.dumps(value).encode())

    def send(self, status, content_type, body):
        self.send_response(status)
        self.send_header("content-type", content_type)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def git(folder, *arguments):
    environment = {**os.environ, "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null"}
    for role in ["AUTHOR", "COMMITTER"]:
        environment |= {f"GIT_{role}_NAME": "test", f"GIT_{role}_EMAIL": "test@example.com"}
    done = subprocess.run(["git", "-C", folder, *arguments], env=environment, check=True, capture_output=True, text=True)
    return done.stdout.strip()


# What is verified: its name, the files of the commit, and the request.
SCENARIOS = [
    ("pass", {"src/a.rs": "fn a() {}\n"}, {"target_paths": ["src"]}),
    ("fail", {"src/fault.rs": "fn a() {} // FAULT\n"}, {"target_paths": ["src"]}),
    ("low confidence", {"src/a.rs": "fn a() {} // DOUBT\n"}, {"target_paths": ["src"]}),
    ("one rejects", {"src/fault.rs": "fn a() {} // ODD\n"}, {"target_paths": ["src"]}),
    ("folders", {
        "docs/b.md": "b\n", "docs/a.md": "a\n", "docs/two words.md": "c\n", "docs/sub/d.toml": "d = 1\n",
        "docs/package-lock.json": "{}\n", "docs/logo.png": "\0", "docs/Makefile": "all:\n", "docs/binary.rs": "\0\0",
        "docs/data.xyz": "x\n",
    }, {"target_paths": ["docs/", "docs/a.md"], "rubric_focus": "Security"}),
    ("one is down", {"src/a.rs": "fn a() {} // DOWN1\n"}, {"target_paths": ["src"]}),
    ("two are down", {"src/a.rs": "fn a() {} // DOWN2\n"}, {"target_paths": ["src"]}),
    ("nothing there", {"src/a.rs": "fn a() {}\n"}, {"target_paths": ["nowhere"]}),
]


def repository(folder, files):
    folder.mkdir(parents=True)
    git(folder, "init", "--quiet")
    for path, text in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--message=one")
    return git(folder, "rev-parse", "HEAD")


def peers(folder, commit, request):
    """What llm-council-core makes of it: in a process of its own, since it looks for a repository once."""
    words = [sys.executable, __file__, "--peer", str(folder), commit, json.dumps(request)]
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True)
    if done.returncode != 0:
        return {"error": done.stderr.strip().splitlines()[-1]}, []
    result = json.loads(done.stdout.splitlines()[-1])
    location = pathlib.Path(result["transcript_location"])
    return result, sorted(file.name for file in location.iterdir())


def peer(folder, commit, request):
    """The same, in that process."""
    from llm_council.verification import api
    from llm_council.verification.transcript import create_transcript_store

    asked = api.VerifyRequest(snapshot_id=commit, tier="high", **json.loads(request))
    store = create_transcript_store(pathlib.Path(folder) / ".peer")
    print(json.dumps(asyncio.run(api.run_verification(asked, store)), default=str))


class Host:
    """A host of Conductor with a council over the models."""

    def __init__(self, conductor, features, folder, home, port):
        self.conductor, self.home = conductor, home
        self.environment = {**os.environ, "CONDUCTOR_FEATURES": str(features)}
        models = "".join(
            f"[models.m{number}]\nprovider = 'openai-compatible'\nmodel = '{model}'\nurl = 'http://127.0.0.1:{port}/v1'\n\n"
            for number, model in enumerate(MODELS)
        )
        home.mkdir(exist_ok=True)
        (home / "config.toml").write_text(
            f"[[modes]]\nname = 'Play'\n\n{models}[features.openai-compatible.grants]\nhttp = ['127.0.0.1:{port}']\n\n"
            f"[features.council.grants]\nmodels = ['m0', 'm1', 'm2']\nmodel_tokens = 400000\n"
            f"git = [{{ purpose = 'work', path = '{folder}' }}]\n"
            f"files = [{{ purpose = 'transcripts', path = '{folder}', write = true }}]\n"
        )
        self.log = open(home / "log", "w")
        self.process = subprocess.Popen(self.command("run"), env=self.environment, stdout=self.log, stderr=self.log)
        deadline = time.monotonic() + 120
        while self.run("status").returncode != 0:
            if time.monotonic() > deadline or self.process.poll() is not None:
                raise SystemExit("the host did not start:\n" + (home / "log").read_text())
            time.sleep(0.2)

    def command(self, *words):
        return [self.conductor, "--home", str(self.home), *words]

    def run(self, *words):
        return subprocess.run(self.command(*words), env=self.environment, capture_output=True, text=True)

    def verify(self, commit, request):
        body = json.dumps({"snapshot_id": commit, **request})
        done = self.run("council", "verify", "--args", body, "--json")
        if not done.stdout.strip():
            return {"error": done.stderr.strip(), "exit_code": done.returncode}
        return json.loads(done.stdout)

    def stop(self):
        self.process.terminate()
        self.process.wait()


def compared(theirs, their_files, ours, our_files):
    """Fields with what each says."""
    if "error" in ours or theirs.get("error"):
        yield "error", bool(theirs.get("error")), theirs.get("error"), ours.get("error")
        return
    equal = lambda name: (name, theirs[name] == ours[name], theirs[name], ours[name])
    yield equal("verdict")
    yield equal("exit_code")
    yield "confidence", abs(theirs["confidence"] - ours["confidence"]) < 0.01, theirs["confidence"], ours["confidence"]
    for name in ["expanded_paths", "paths_truncated"]:
        yield equal(name)
    warnings = [len(theirs["expansion_warnings"] or []), len(ours["expansion_warnings"])]
    yield "expansion_warnings", warnings[0] == warnings[1], theirs["expansion_warnings"], ours["expansion_warnings"]
    scores = [sorted(key for key, value in (of["rubric_scores"] or {}).items() if value is not None) for of in (theirs, ours)]
    yield "rubric_scores", scores[0] == scores[1], *scores
    issues = [len(of["blocking_issues"]) for of in (theirs, ours)]
    yield "blocking_issues", issues[0] == issues[1], *issues
    yield "rationale", bool(theirs["rationale"]) == bool(ours["rationale"]), theirs["rationale"], ours["rationale"]
    stages = [{name for name in files if name in STAGES} for files in (their_files, our_files)]
    yield "transcript", stages[0] == stages[1], sorted(stages[0]), sorted(stages[1])
    yield "verification_id", bool(theirs["verification_id"] and ours["verification_id"]), "there", "there"


STAGES = ["request.json", "stage1.json", "stage2.json", "stage3.json", "result.json"]


def main():
    conductor, features = sys.argv[1:3]
    server = ThreadingHTTPServer(("127.0.0.1", 0), Models)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    port = server.server_address[1]
    top = pathlib.Path(tempfile.mkdtemp(prefix="llm-council-"))
    pool = {"models": MODELS, "timeout_seconds": 60}
    config = {"council": {
        "tiers": {"default": "high", "pools": {tier: pool for tier in ["quick", "balanced", "high", "reasoning"]}},
        "gateways": {"default": "openrouter", "providers": {"openrouter": {
            "enabled": True, "base_url": f"http://127.0.0.1:{port}/v1/chat/completions", "api_key": "none"}}},
        "council": {"chairman": MODELS[0], "models": MODELS},
    }}
    (top / "config.yaml").write_text(json.dumps(config))
    os.environ |= {"LLM_COUNCIL_CONFIG": str(top / "config.yaml"), "OPENROUTER_API_KEY": "none", "HOME": str(top),
                   "LLM_COUNCIL_CHAIRMAN": MODELS[0], "LLM_COUNCIL_TELEMETRY": "off"}
    wrong, rows, agree = [], [], 0
    for number, (name, files, request) in enumerate(SCENARIOS):
        folder = top / f"work-{number}"
        commit = repository(folder, files)
        theirs, their_files = peers(folder, commit, request)
        host = Host(conductor, features, folder, top / "home", port)
        try:
            ours = host.verify(commit, request)
        finally:
            host.stop()
        path = folder / ours["transcript_path"] if "transcript_path" in ours else None
        our_files = sorted(file.name for file in path.iterdir()) if path else []
        for field, same, their_value, our_value in compared(theirs, their_files, ours, our_files):
            expected = EXPECTED.get((name, field)) or EXPECTED.get(("*", field))
            agree += same
            rows.append((name, field, "same" if same else "differs", "" if same else expected or "NOT EXPLAINED"))
            if same and expected:
                wrong.append(f"{name}: {field} agrees, and is expected to differ: {expected}")
            if not same and not expected:
                wrong.append(f"{name}: {field}: the peer {their_value!r}, here {our_value!r}")
    print("| scenario | field | | why |\n| --- | --- | --- | --- |")
    for row in rows:
        print("| " + " | ".join(row) + " |")
    print(f"\n{agree} of {len(rows)} fields agree")
    for one in wrong:
        print(one, file=sys.stderr)
    sys.exit(1 if wrong else 0)


if sys.argv[1] == "--peer":
    peer(*sys.argv[2:])
else:
    main()
