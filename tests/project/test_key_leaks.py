"""Servers echo keys in every way they can fail; nothing that is written or printed holds one."""

from __future__ import annotations

import base64
import html
import json
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from pytest_upskill.answers.retry import Retries
from pytest_upskill.commands.main import main
from pytest_upskill.models import parse_model
from tests.conftest import Run, WriteSkill
from tests.loopback import Loopback, Received, Reply
from tests.sandbox_programs import LEVELS
from tests.sdk_requests import ask, request_to
from tests.teaching import Depot

USER = "planted-user-name"
PASSWORD = "planted p@ss/w&rd"
KEYS = {
    "bearer": "sk-planted-bearer-0123456789",
    "as-user": "sk-planted-user-0123456789",
    "anthropic": "sk-planted-anthropic-0123456789",
    "openai": "sk-planted-openai-0123456789",
}
BASICS = [
    base64.b64encode(text.encode()).decode()
    for text in (f"{USER}:{PASSWORD}", f"{KEYS['as-user']}:")
]
SECRETS = [
    *(form for each in (USER, PASSWORD, *KEYS.values()) for form in (each, quote(each, safe=""))),
    *(each.rstrip("=") for each in BASICS),
]


def _wrapped(text: str) -> str:
    return "\n   ".join(text[at : at + 7] for at in range(0, len(text), 7))


def _error(said: str, **more: object) -> dict[str, Any]:
    return {"error": {"message": said, **more}}


def _to(place: str, status: int = 302) -> Reply:
    return Reply(status=status, body="", headers={"location": place})


FAILURES: Mapping[str, Callable[[str], Reply]] = {
    "401-json": lambda k: Reply(status=401, body=_error(f"bad key {k}")),
    "401-text": lambda k: Reply(status=401, body=f"bad key {k}", content_type="text/plain"),
    "403-html": lambda k: Reply(
        status=403, body=f"<p>{html.escape(k)}</p>", content_type="text/html"
    ),
    "404-detail": lambda k: Reply(status=404, body={"detail": {"message": k}}),
    "400-key-of-json": lambda k: Reply(status=400, body={"error": {k: k, "message": {k: [k]}}}),
    "402-list": lambda k: Reply(status=402, body=_error("no money", details=[k]) | {"detail": [k]}),
    "429-quota": lambda k: Reply(status=429, body=_error(k, code="insufficient_quota")),
    "500-text": lambda k: Reply(status=500, body=f"Traceback: {k}", content_type="text/plain"),
    "503-list": lambda k: Reply(status=503, body=json.dumps([_error(k)])),
    "chunked": lambda k: Reply(status=400, body=_error(f"no {k} here"), chunked=True),
    "split-over-lines": lambda k: Reply(status=400, body=_error(f"you sent:\n   {_wrapped(k)}")),
    "percent-encoded": lambda k: Reply(status=400, body=_error(f"?key={quote(k, safe='')}")),
    "twice-encoded": lambda k: Reply(status=400, body=_error(quote(quote(k, safe=""), safe=""))),
    "cut-in-two": lambda k: Reply(status=400, body=_error("." * 190 + k)),
    "302-query": lambda k: _to(f"https://login.invalid/?key={quote(k, safe='')}"),
    "307-user": lambda k: _to(f"https://{quote(k, safe='')}:x@login.invalid/", 307),
    "301-path": lambda k: _to(f"https://login.invalid/{quote(k, safe='')}/v1", 301),
    "200-error": lambda k: Reply(body=_error(f"bad key {k}", code=401)),
    "200-text": lambda k: Reply(body=f"hello {k}", content_type="text/plain"),
    "200-broken": lambda k: Reply(body=f'{{"hello": "{k}'),
    "200-list": lambda k: Reply(body=json.dumps([k])),
    "200-choice": lambda k: Reply(body={"choices": [{"error": {"message": k, "code": 502}}]}),
    "200-no-text": lambda k: Reply(body={"choices": [{"message": {k: k}}], "content": [{k: k}]}),
    "answer": lambda k: Reply(text=f"```\n{k}\n```\nYou sent {k}"),
    "answer-wrapped": lambda k: Reply(text=_wrapped(k)),
    "blocks": lambda k: Reply(
        text=k, content=[{"type": "text", "text": k[:9]}, {"type": "text", "text": k[9:]}]
    ),
    "headers": lambda k: Reply(
        headers={"x-request-id": quote(k), "request-id": quote(k), "retry-after": quote(k)}
    ),
    "stop-reason": lambda k: Reply(stop=k, usage={k: k, "input_tokens": k, "prompt_tokens": k}),
    "model": lambda k: Reply(model=f"model-{k}"),
    "refusal": lambda k: Reply(message={"refusal": f"I refuse {k}"}, stop=k),
}


def _sent(received: Received) -> list[str]:
    """Find the secrets of a request, as a server would."""
    header = received.headers.get("x-api-key") or received.headers["authorization"]
    scheme, _, sent = header.rpartition(" ")
    if scheme != "Basic":
        return [sent]
    return [sent, *filter(None, base64.b64decode(sent).decode().split(":", 1))]


def _echo(received: Received) -> Reply:
    secret = _sent(received)[-1]
    if received.body["model"] == "judge":
        verdict = {"statement": 1, "holds": False, "quote": "", "reason": secret}
        return Reply(text=json.dumps({"verdicts": [verdict]}))
    return FAILURES[received.user](secret)


@pytest.fixture
def written(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, pytester: pytest.Pytester
) -> Callable[[], dict[str, str]]:
    """Read everything that a run left anywhere it could write to."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    # What the workers were handed stays, to be looked at.
    monkeypatch.setattr("pytest_upskill.session.xdist.shutil.rmtree", lambda *_, **__: None)

    def read() -> dict[str, str]:
        files = [*pytester.path.rglob("*"), *tmp_path.rglob("*")]
        return {str(path): path.read_text("utf-8", "replace") for path in files if path.is_file()}

    return read


def _leaks(texts: Mapping[str, str]) -> list[tuple[str, str]]:
    """Find secrets, also those that were cut or broken over lines."""
    parts = ["".join(each.split())[:12] for each in SECRETS]
    squashed = {name: "".join(text.split()) for name, text in texts.items()}
    return [(part, name) for name, text in squashed.items() for part in parts if part in text]


def test_no_failure_of_a_server_brings_a_key_to_light(
    run_once: Run,
    write_skill: WriteSkill,
    loopback: Loopback,
    written: Callable[[], dict[str, str]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Each failure is to be met once by each key: no retries, and no model is given up.
    monkeypatch.setattr(Retries, "_gives_up", lambda *_: True)
    monkeypatch.setattr(Retries, "_final", lambda _, error, __: error)
    for name, value in {
        "UPSKILL_API_KEY": KEYS["bearer"],
        "ANTHROPIC_API_KEY": KEYS["anthropic"],
        "ANTHROPIC_BASE_URL": loopback.url,
        "OPENAI_API_KEY": KEYS["openai"],
        "OPENAI_BASE_URL": loopback.openai_url,
    }.items():
        monkeypatch.setenv(name, value)
    loopback.answer = _echo
    address = loopback.openai_url.removeprefix("http://")
    models = (
        f"bearer=openai:small@http://{address}",
        f"as-user=openai:small-1@http://{KEYS['as-user']}:@{address}",
        f"password=openai:small-2@http://{USER}:{quote(PASSWORD, safe='')}@{address}",
        "anthropic=anthropic:small",
        "openai=openai:small-3",
    )
    cases = [{"id": kind, "input": kind, "expected": {"contains": "x" * 99}} for kind in FAILURES]
    cases.append({"id": "judged", "input": "answer", "expected": {"judge": "It is right."}})
    write_skill(*cases)

    result = run_once(
        *(f"--upskill-models={model}" for model in models),
        "--upskill-judge=openai:judge",
        *(f"--upskill-{name}=out/{name}" for name in ("json", "md", "html")),
        *("--junitxml=out/junit.xml", "--log-file=out/log", "--log-file-level=DEBUG"),
        *("-rA", "-vv", "--tb=long", "--showlocals", "-k", "with_skill", "skills"),
    )

    assert {each.user for each in loopback.requests} >= FAILURES.keys()
    sent = {secret for each in loopback.requests for secret in _sent(each)}
    assert sent >= {*KEYS.values(), USER, PASSWORD, *BASICS}
    texts = written() | {"stdout": result.stdout.str(), "stderr": result.stderr.str()}
    assert {"junit.xml", "json", "md", "html", "log"} <= {Path(name).name for name in texts}
    assert _leaks(texts) == []
    assert "***" in texts["stdout"]


SOME = ("401-json", "200-broken", "302-query", "answer", "blocks", "headers", "model", "refusal")


def _echo_anywhere(received: Received) -> Reply:
    """Fail in the way that the request names, wherever it names it."""
    asked = json.dumps(received.body)
    kind = next((each for each in SOME if f"fail-{each}." in asked), "answer")
    return FAILURES[kind](_sent(received)[-1])


@pytest.mark.skipif(LEVELS == ["limits"], reason="no sandbox for agents on this machine")
def test_agents_probes_of_triggers_and_the_history_bring_no_key_to_light(
    run_once: Run,
    write_skill: WriteSkill,
    loopback: Loopback,
    written: Callable[[], dict[str, str]],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(Retries, "_gives_up", lambda *_: True)
    monkeypatch.setattr(Retries, "_final", lambda _, error, __: error)
    monkeypatch.setenv("UPSKILL_API_KEY", KEYS["bearer"])
    loopback.answer = _echo_anywhere
    expected = {"contains": "You", "judge": "It is right."}
    write_skill(
        *(
            {"id": kind, "input": f"fail-{kind}.", "expected": expected, "should_trigger": True}
            for kind in SOME
        )
    )

    result = run_once(
        f"--upskill-models=loop=loop:small@{loopback.openai_url}",
        f"--upskill-models=m=openai:small@{loopback.openai_url}",
        f"--upskill-judge=openai:judge@{loopback.openai_url}",
        *("--upskill-log-runs", "--upskill-json=out.json", "--upskill-html=out.html"),
        *("-rA", "-vv", "--tb=long", "skills"),
    )
    for command in (
        *(["runs"], ["runs", "--csv"], ["runs", "--csv=out.csv", "--html=runs.html"]),
        *(["list", "-v"], ["judge", "draw", "out.json"], ["report", "out.json"]),
    ):
        main(command)

    said = capsys.readouterr()
    texts = written() | {"stdout": result.stdout.str() + said.out, "stderr": said.err}
    names = {Path(name).name for name in texts}
    assert {"out.json", "out.html", "out.csv", "runs.html"} <= names
    assert any(".upskill/runs/" in name for name in texts)
    assert "***" in texts["stdout"]
    assert _leaks(texts) == []


@pytest.mark.parametrize("kind", ["401-json", "answer"])
@pytest.mark.parametrize("command", ["generate", "cases", "refine"])
def test_commands_with_a_teacher_bring_no_key_to_light(
    depot: Depot,
    command: str,
    kind: str,
    written: Callable[[], dict[str, str]],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(Retries, "_gives_up", lambda *_: True)
    monkeypatch.setenv("UPSKILL_API_KEY", KEYS["bearer"])
    depot.loopback.answer = lambda received: FAILURES[kind](_sent(received)[-1])
    source = depot.folder / "codes.md"
    source.write_text("The code of bay 1 is QX01Z.\n")
    what = ["answer questions about bays"] if command == "generate" else [str(depot.skill)]
    more = [] if command == "refine" else ["--from", str(source), "--yes"]

    status = depot.run(command, *what, *more)

    said = capsys.readouterr()
    assert status != 0
    assert depot.loopback.requests
    assert _leaks(written() | {"stdout": said.out, "stderr": said.err}) == []


@pytest.mark.parametrize(
    "option", ["--upskill-models=m@{}", "--upskill-judge=m@{}", "--upskill-base-url={}"]
)
def test_an_option_with_a_bad_url_is_refused_without_its_credentials(
    run_once: Run, write_skill: WriteSkill, option: str
) -> None:
    write_skill()
    url = f"http://{USER}:{KEYS['as-user']}@host.invalid:port/v1"

    result = run_once("--upskill-models=offline", option.format(url), "skills")

    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert _leaks({"terminal": result.stdout.str() + result.stderr.str()}) == []


def test_two_urls_with_one_label_are_refused_without_their_credentials(
    run_once: Run, write_skill: WriteSkill
) -> None:
    write_skill()
    models = [f"m@http://{USER}:{KEYS['as-user']}@{host}.invalid/v1" for host in "ab"]

    result = run_once(*(f"--upskill-models={model}" for model in models), "skills")

    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(
        ["*'openai:m@a.invalid' and 'openai:m@b.invalid' would both have the label 'm': *"]
    )
    assert _leaks({"terminal": result.stdout.str() + result.stderr.str()}) == []


def test_a_key_that_only_the_sdk_knows_is_learned_from_what_it_sends(
    loopback: Loopback, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_BASE_URL", loopback.url)
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEYS["anthropic"])
    monkeypatch.setenv("ANTHROPIC_CUSTOM_HEADERS", "X-Gateway-Token: planted-gateway-token")
    loopback.answer = lambda received: f"You sent {received.headers['x-gateway-token']}"

    assert ask(request_to(parse_model("anthropic:small"))).text == "You sent ***"
