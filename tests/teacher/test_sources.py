"""Sources of a teacher: documents and traces of agents, redacted and cut by rules."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest

from pytest_upskill.answers.resources import WorkError
from pytest_upskill.teacher.sources import events_of, read_sources, redact, source_of


def lines(rows: Iterable[Mapping[str, Any]]) -> str:
    return "\n".join(map(json.dumps, rows))


def said(kind: str, content: object, **more: Any) -> dict[str, Any]:
    return {"type": kind, "message": {"role": kind, "content": content}, **more}


def result(text: str, *, is_error: bool) -> dict[str, Any]:
    return said("user", [{"type": "tool_result", "is_error": is_error, "content": text}])


def test_a_session_of_claude_code_keeps_what_the_user_said_and_loses_the_middle_of_the_rest() -> (
    None
):
    rows = [
        said("user", "Build a kernel for H100."),
        said("user", "<system-reminder>", isMeta=True),
        said("assistant", "Subagent.", isSidechain=True),
        {"type": "summary", "summary": "Kernels"},
    ]
    for number in range(200):
        call = {"type": "tool_use", "name": "Bash", "input": {"command": "nvcc " + "y" * 200}}
        rows.append(said("assistant", [{"type": "text", "text": "Trying. " + "x" * 300}, call]))
        key = f"export KEY=sk-ant-api03-{'a' * 40}" if number == 5 else ""
        rows.append(result("log line " * 200 + key, is_error=number % 20 == 0))
    rows.append(said("user", "No: H100 is compute capability 9.0, fix build.toml."))

    source = source_of("trace.jsonl", lines(rows))

    assert source.kind == "a Claude Code session"
    assert len(source.text) <= 48_000 < source.characters
    assert source.text.startswith("[user] Build a kernel for H100.")
    assert source.text.endswith("[user] No: H100 is compute capability 9.0, fix build.toml.")
    assert source.text.count("[error]") == 10
    assert source.text.count("[result]") < 100
    assert "Subagent" not in source.text
    assert "system-reminder" not in source.text
    assert "sk-ant" not in source.text
    assert source.removed == {"key": 1}


def test_a_rollout_of_codex_is_read() -> None:
    items = [
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Do it"}]},
        {"type": "message", "role": "user", "content": "<environment_context>\n/home/me"},
        {"type": "reasoning", "summary": []},
        {"type": "function_call", "name": "shell", "arguments": '{"command":["ls"]}'},
        {"type": "function_call_output", "output": "error: no such file"},
        {"type": "message", "role": "developer", "content": "hidden"},
    ]
    rows: list[dict[str, Any]] = [{"type": "session_meta", "payload": {"id": "1"}}]
    rows += [{"type": "response_item", "payload": item} for item in items]

    kind, events = events_of(lines(rows) + '\n{"type": "torn')

    assert kind == "a Codex rollout"
    assert [(event.kind, event.text) for event in events] == [
        ("user", "Do it"),
        ("call", '{"command":["ls"]}'),
        ("result", "error: no such file"),
    ]


def test_a_document_is_cut_at_its_headings_the_last_section_first() -> None:
    text = "".join(f"# Part {number}\n{'x' * 1000}\n" for number in range(100))

    source = source_of("doc.md", text, budget=10_000)

    assert "# Part 99" in source.text
    assert "# Part 10\n" not in source.text
    sent = f"doc.md: text, {len(text):,} characters; {len(source.text):,} will be sent"
    assert str(source) == sent


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        (f"sk-ant-api03-{'a' * 40}", "key"),
        (f"ghp_{'a' * 36}", "key"),
        ("AKIAIOSFODNN7EXAMPLE", "key"),
        (f"hf_{'b' * 34}", "key"),
        (f"eyJ{'a' * 20}.{'b' * 20}.{'c' * 20}", "token"),
        ("Authorization: Bearer abcdefghijklmnop1234", "token"),
        ("-----BEGIN RSA PRIVATE KEY-----\nabc\n-----END RSA PRIVATE KEY-----", "private key"),
        ("db_password = 'hunter2hunter2'", "password"),
        ('{\\"password\\": \\"hunter2hunter2\\"}', "password"),
        ("CLIENT_SECRET=0123456789abcdef", "password"),
        ("postgres://bob:hunter2hunter2@db.example/x", "credential in a URL"),
        ("Write to bob.smith@example.co.uk, please", "e-mail address"),
    ],
)
def test_secrets_are_removed(text: str, kind: str) -> None:
    clean, removed = redact(f"Before. {text} After.")

    assert removed == {kind: 1}
    assert f"[{kind} removed]" in clean
    assert clean.startswith("Before. ")
    assert clean.endswith(" After.") or kind == "password"


@pytest.mark.parametrize(
    "text",
    [
        "The token limit is 4096 tokens.",
        "max_tokens: 8192",
        "Set `password` in the form.",
        "def f(secret: str) -> None: ...",
        "Use @pytest.fixture and a@b.",
    ],
)
def test_plain_text_stays(text: str) -> None:
    assert redact(text)[0] == text


def test_several_sources_share_the_budget(tmp_path: Path) -> None:
    skill = tmp_path / "csv"
    skill.mkdir()
    (skill / "SKILL.md").write_text("x" * 9000, "utf-8")
    (tmp_path / "a.md").write_text("y" * 9000, "utf-8")

    one, other = read_sources([skill, tmp_path / "a.md"], budget=8000)

    assert len(one.text) <= 4000
    assert (one.name, other.name) == ("csv", "a.md")
    assert "characters left out]" in other.text


def test_a_source_that_is_not_text_is_refused_with_the_cure(tmp_path: Path) -> None:
    (tmp_path / "a.pdf").write_bytes(b"%PDF-1.7\n\xff\xfe")
    (tmp_path / "empty.md").write_text(" \n", "utf-8")

    for name, problem in (
        ("a.pdf", "holds no UTF-8 text: convert it to Markdown first"),
        ("empty.md", "holds no UTF-8 text"),
        ("none.md", "No such file or directory"),
        ("", "No such file or directory: .*SKILL.md"),
    ):
        with pytest.raises((WorkError, OSError), match=problem):
            read_sources([tmp_path / name])
