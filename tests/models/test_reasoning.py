"""What a model thinks before its answer is kept, counted and shown, and never graded."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pytest_upskill.models.reasoning import split_reasoning
from tests.conftest import QUESTION, Run, WriteSkill, recordings
from tests.loopback import Answer, Loopback, Received, Reply

THOUGHT = 'Is it 37? Draft: ```json\n{"budget": 38, "draft": true}\n``` No, wait.'
ANALYSIS = "<|channel|>analysis<|message|>"
FINAL = "<|channel|>final<|message|>"
CASES = (
    {"id": "text", "input": QUESTION, "expected": {"contains": "37"}},
    {"id": "data", "input": f"{QUESTION} As JSON.", "expected": {"json": {"budget": 37}}},
    {
        "id": "clean",
        "input": f"{QUESTION} Say it.",
        "expected": {"not_contains": ["wait", "think"]},
    },
)


def tagged(reply: Reply, provider: str) -> Reply:
    del provider
    return replace(reply, text=f"<think>\n{THOUGHT}\n</think>\n\n{reply.text}")


def apart(reply: Reply, provider: str) -> Reply:
    if provider == "openai":
        return replace(reply, message={"reasoning_content": THOUGHT})
    thinking = {"type": "thinking", "thinking": THOUGHT, "signature": "c2ln"}
    return replace(reply, content=[thinking, {"type": "text", "text": reply.text}])


def plain(received: Received) -> Reply:
    """Answer with the fact where the request holds it."""
    if "37" not in received.system:
        return Reply(text="No idea.")
    text = '```json\n{"budget": 37}\n```' if "JSON" in received.user else "It is 37."
    return Reply(text=text, usage={"input_tokens": 5, "prompt_tokens": 5})


def thinking(how: Any, provider: str) -> Answer:
    return lambda received: how(plain(received), provider)


def graded(report: Path) -> list[Any]:
    """Return all that a report says of trials, cells and gates, but tokens, cost and times."""
    (entry,) = json.loads(report.read_text("utf-8"))["entries"]
    trials = [
        (
            trial["case"],
            trial["arm"],
            [(run["completion"]["text"], run["checks"]) for run in trial["runs"]],
        )
        for trial in entry["gate"]["cell"]["trials"]
    ]
    figures: Mapping[str, Any] = entry["figures"]
    arms = [figures[f"pass_rate.{arm}"] for arm in ("with", "without")]
    return [trials, figures["verdict"], figures["lift"], arms, entry["gate"]["text"]]


def report_of(run: Run, loopback: Loopback, answer: Answer, provider: str, *more: str) -> list[Any]:
    loopback.answer = answer
    url = loopback.openai_url if provider == "openai" else loopback.url
    run(f"--upskill-models=m={provider}:m@{url}", "--upskill-json=out.json", *more, "skills")
    return graded(Path("out.json"))


@pytest.mark.parametrize(
    ("provider", "how"),
    [("openai", apart), ("anthropic", apart), ("anthropic", tagged)],
)
def test_a_model_that_thinks_aloud_gets_the_verdict_of_one_that_does_not(
    run_once: Run, write_skill: WriteSkill, loopback: Loopback, provider: str, how: Any
) -> None:
    write_skill(*CASES)
    off = "--upskill-cache=off"

    silent = report_of(run_once, loopback, plain, provider, off)
    aloud = report_of(run_once, loopback, thinking(how, provider), provider, off)

    assert aloud == silent
    assert silent[-2] == [1.0, 1 / 3]


def test_reasoning_changes_nothing_live_or_replayed(
    run_once: Run, write_skill: WriteSkill, loopback: Loopback
) -> None:
    write_skill(*CASES)

    silent = report_of(run_once, loopback, plain, "openai", "--upskill-cache=off")
    aloud = report_of(run_once, loopback, thinking(tagged, "openai"), "openai")
    again = report_of(run_once, loopback, plain, "openai", "--upskill-cache=replay")

    assert silent == aloud == again


def test_reasoning_is_kept_and_shown_apart_from_the_answer(
    run: Run, write_skill: WriteSkill, loopback: Loopback
) -> None:
    write_skill()
    loopback.answer = lambda _: Reply(text="<think>a <i>thought</i></think>No idea.")

    run(
        f"--upskill-models=m@{loopback.openai_url}", "--upskill-json=out.json",
        "--upskill-html=out.html", "skills",
    )  # fmt: skip

    (entry, *_) = json.loads(Path("out.json").read_text("utf-8"))["entries"]
    completion = entry["gate"]["cell"]["trials"][0]["runs"][0]["completion"]
    assert (completion["text"], completion["reasoning"]) == ("No idea.", "a <i>thought</i>")
    page = Path("out.html").read_text("utf-8")
    assert "<summary>Reasoning before the answer</summary>\n<pre>a &lt;i&gt;thought&" in page
    assert '"reasoning": [\n  "a <i>thought</i>"' in recordings()[0].read_text("utf-8")


@pytest.mark.parametrize(
    ("text", "reasoning", "answer"),
    [
        ("37", "", "37"),
        ("", "", ""),
        ("<think>a</think>37", "a", "37"),
        ("\n <think>\na\n</think>\n\n37", "a", "37"),
        ("<think></think>37", "", "37"),
        ("<thinking>a</thinking>37", "a", "37"),
        ("<seed:think>a</seed:think>37", "a", "37"),
        ("[THINK]a[/THINK]37", "a", "37"),
        ("a, so b</think>37", "a, so b", "37"),
        ("a[/THINK]37", "a", "37"),
        ("<think>a", "a", ""),
        ("<think>a</think>", "a", ""),
        ("<think>a</think><think>b</think>37", "a\n\nb", "37"),
        ("<think>a<think>b</think>c</think>37", "a<think>b\n\nc", "37"),
        ("<think>a <think> tag</think>37", "a <think> tag", "37"),
        ("<think>a</think> b</think>37", "a\n\nb", "37"),
        ("<think>a</think>```c\nint x;\n```", "a", "```c\nint x;\n```"),
        ("Remove `</think>` first.", "", "Remove `</think>` first."),
        ('x.split("</think>")', "", 'x.split("</think>")'),
        ("Write <think>a</think> before it.", "", "Write <think>a</think> before it."),
        ("It thinks. <thinking>", "", "It thinks. <thinking>"),
        ("<THINK>a</THINK>37", "a", "37"),
        ("<Thinking>a</thinking>37", "a", "37"),
        ("[think]a[/think]37", "a", "37"),
        ("<thought>a</thought>37", "a", "37"),
        ("◁think▷a◁/think▷37", "a", "37"),
        ("a◁/think▷37", "a", "37"),
        ("<|channel>thought\na\n<channel|>37", "a", "37"),
        ("a<channel|>37", "a", "37"),
        (
            "<|START_THINKING|>a<|END_THINKING|><|START_RESPONSE|>37<|END_RESPONSE|>",
            "a",
            "37",
        ),
        (f"{ANALYSIS}a<|end|><|start|>assistant{FINAL}37<|return|>", "a", "37"),
        (f"{ANALYSIS}a<|end|>{ANALYSIS}b<|end|>{FINAL}37", "a\n\nb", "37"),
        (f"a<|end|><|start|>assistant{FINAL}37", "a", "37"),
        (f"{ANALYSIS}is it 37", "is it 37", ""),
        (f"{FINAL}37<|end|>", "", "37"),
        ("It writes `<|channel|>final` first.", "", "It writes `<|channel|>final` first."),
    ],
)
def test_a_text_is_split_into_reasoning_and_answer(text: str, reasoning: str, answer: str) -> None:
    assert split_reasoning(text) == (reasoning, answer)
    assert split_reasoning(answer) == ("", answer)
