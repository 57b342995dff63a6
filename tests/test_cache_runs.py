from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

# Imported before the first inner run: pytester drops what a run imported, and SDKs take a second.
import pytest_upskill.providers.anthropic
import pytest_upskill.providers.openai  # noqa: F401
from tests.conftest import FACT, QUESTION, Run, WriteSkill
from tests.loopback import Loopback, Received, Reply

CASES = [
    {"id": name, "input": f"{QUESTION} ({name})", "expected": {"contains": "37"}}
    for name in ("one", "two")
]


@pytest.fixture
def model(loopback: Loopback) -> str:
    """Serve a model that knows what is in its context."""

    def answer(received: Received) -> Reply:
        return Reply(text="37" if "37" in received.system else "No idea.")

    loopback.answer = answer
    return f"m=openai:small@{loopback.openai_url}"


def rewrite(folder: Path, body: str) -> None:
    file = folder / "SKILL.md"
    file.write_text(file.read_text("utf-8").replace(FACT, body), "utf-8")


def recordings(folder: Path) -> list[Path]:
    return sorted(folder.glob(".upskill/cache/*/*.json"))


def test_a_second_run_sends_nothing_and_ends_alike(
    run: Run, write_skill: WriteSkill, loopback: Loopback, model: str
) -> None:
    write_skill(*CASES)

    first = run("--upskill-models", model, "--upskill-runs", "2", "skills")
    sent = len(loopback.requests)
    second = run("--upskill-models", model, "--upskill-runs", "2", "skills")

    assert sent == 8
    assert len(loopback.requests) == sent
    assert (first.ret, second.ret) == (pytest.ExitCode.OK, pytest.ExitCode.OK)
    first.stdout.fnmatch_lines(["asked for 8 answers: cost n/a"])
    second.stdout.fnmatch_lines(
        [
            "upskill: 4 trials, 8 answers: 8 recorded, 0 to ask for",
            "replayed 8 answers, recorded at cost n/a",
        ]
    )


def test_a_changed_skill_asks_again_only_with_the_skill(
    run_once: Run, write_skill: WriteSkill, loopback: Loopback, model: str
) -> None:
    folder = write_skill(*CASES)
    run_once("--upskill-models", model, "skills")
    loopback.requests.clear()
    rewrite(folder, "It is 37.\n")

    run_once("--upskill-models", model, "skills")

    assert len(loopback.requests) == 2
    assert all("It is 37." in received.system for received in loopback.requests)


def test_refresh_asks_everything_again_and_records_it(
    run_once: Run, write_skill: WriteSkill, loopback: Loopback, model: str
) -> None:
    write_skill()
    run_once("--upskill-models", model, "skills")
    loopback.answer = lambda _: Reply(text="38")

    refreshed = run_once("--upskill-models", model, "--upskill-cache", "refresh", "skills")
    replayed = run_once("--upskill-models", model, "skills")

    assert len(loopback.requests) == 4
    assert refreshed.ret == replayed.ret == pytest.ExitCode.TESTS_FAILED


def test_off_neither_reads_nor_writes(
    run_once: Run,
    write_skill: WriteSkill,
    loopback: Loopback,
    model: str,
    pytester: pytest.Pytester,
) -> None:
    write_skill()

    run_once("--upskill-models", model, "--upskill-cache", "off", "skills")
    run_once("--upskill-models", model, "--upskill-cache", "off", "skills")

    assert len(loopback.requests) == 4
    assert not (pytester.path / ".upskill").exists()


def test_two_labels_of_one_model_are_asked_once(
    run: Run, write_skill: WriteSkill, loopback: Loopback, model: str
) -> None:
    write_skill()

    result = run("--upskill-models", model, "--upskill-models", model.replace("m=", "n="), "skills")

    assert result.ret == pytest.ExitCode.OK
    assert len(loopback.requests) == 2


def test_a_damaged_recording_is_told_and_asked_again(
    run_once: Run,
    write_skill: WriteSkill,
    loopback: Loopback,
    model: str,
    pytester: pytest.Pytester,
) -> None:
    write_skill()
    run_once("--upskill-models", model, "skills")
    damaged = recordings(pytester.path)[0]
    damaged.write_text("<<<<<<< HEAD", "utf-8")

    result = run_once("--upskill-models", model, "skills")

    assert result.ret == pytest.ExitCode.OK
    assert len(loopback.requests) == 3
    result.stdout.fnmatch_lines([f"cache: {damaged}: ignored: not a recording"])


def test_trouble_is_never_recorded(
    run_once: Run,
    write_skill: WriteSkill,
    loopback: Loopback,
    model: str,
    pytester: pytest.Pytester,
) -> None:
    write_skill()
    good = loopback.answer
    loopback.answer = lambda _: Reply(status=400, text="no such parameter")

    bad = run_once("--upskill-models", model, "skills")

    assert bad.ret != pytest.ExitCode.OK
    assert recordings(pytester.path) == []

    loopback.answer = good
    assert run_once("--upskill-models", model, "skills").ret == pytest.ExitCode.OK


def test_offline_answers_are_never_recorded(
    run_once: Run, write_skill: WriteSkill, pytester: pytest.Pytester
) -> None:
    write_skill()

    run_once("--upskill-models", "offline,other=offline", "skills")

    assert not (pytester.path / ".upskill").exists()


def test_a_plugin_s_answers_are_not_recorded_as_those_of_a_vendor_s_model(
    run_once: Run, write_skill: WriteSkill, pytester: pytest.Pytester
) -> None:
    write_skill()
    pytester.makeconftest(
        """
        from pytest_upskill.completion import Completion

        class Canned:
            async def complete(self, request):
                return Completion(text="37", input_tokens=1, output_tokens=1)
            async def aclose(self):
                pass

        def pytest_upskill_make_client(model, config):
            return Canned()
        """
    )

    run_once("--upskill-models", "haiku", "skills")
    assert recordings(pytester.path) == []

    run_once("--upskill-models", "acme:small", "skills")
    assert len(recordings(pytester.path)) == 2


def test_replay_needs_no_key_and_sends_nothing(
    run: Run,
    write_skill: WriteSkill,
    loopback: Loopback,
    model: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    del model
    write_skill()
    monkeypatch.setenv("ANTHROPIC_BASE_URL", loopback.url)
    monkeypatch.setenv("ANTHROPIC_API_KEY", "a-key")
    recorded = ("--upskill-models", "haiku", "--upskill-cache-dir", "recordings", "skills")
    run(*recorded)
    assert len(loopback.requests) == 2
    monkeypatch.delenv("ANTHROPIC_API_KEY")

    result = run(*recorded, "--upskill-cache", "replay")

    assert result.ret == pytest.ExitCode.OK
    assert len(loopback.requests) == 2
    result.stdout.fnmatch_lines(["replayed 2 answers, recorded at *"])


def test_keys_that_cannot_be_told_apart_do_not_keep_from_replaying(
    run_once: Run,
    write_skill: WriteSkill,
    model: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    write_skill()
    other = "n=openai:small@http://127.0.0.1:9/v1"
    run_once("--upskill-models", model, "skills")
    monkeypatch.setenv("UPSKILL_API_KEY", "a-key")

    result = run_once("--upskill-models", f"{model},{other}", "--upskill-cache", "replay", "skills")

    result.stdout.fnmatch_lines(["*n-with_skill*no recording*"])


def test_replay_fails_where_a_recording_is_missing_and_says_how_to_make_it(
    run: Run, write_skill: WriteSkill, loopback: Loopback, model: str
) -> None:
    write_skill()

    result = run("--upskill-models", model, "--upskill-cache", "replay", "skills")

    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert loopback.requests == []
    result.assert_outcomes(errors=2, skipped=1)
    (line,) = (line for line in result.outlines if line.startswith("billing::budget[m-with_skill]"))
    assert line.startswith("billing::budget[m-with_skill] run 1: no recording in ")
    assert f"--upskill-models {model} --upskill-cache auto skills" in line


def test_replay_fails_where_one_of_several_runs_is_missing(
    run_once: Run, write_skill: WriteSkill, model: str
) -> None:
    write_skill()
    run_once("--upskill-models", model, "skills")

    result = run_once(
        "--upskill-models", model, "--upskill-runs", "2", "--upskill-cache", "replay", "skills"
    )

    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.assert_outcomes(errors=2, skipped=1)


def test_the_command_that_records_does_record(
    run_once: Run,
    write_skill: WriteSkill,
    loopback: Loopback,
    model: str,
    pytester: pytest.Pytester,
) -> None:
    write_skill()
    pytester.makeini("[pytest]\nupskill_cache = replay\n")
    missing = run_once("--upskill-models", model, "--upskill-cache-dir", "rec", "skills")
    (line,) = (
        line for line in missing.outlines if line.startswith("billing::budget[m-with_skill]")
    )
    command = line.partition("record it: pytest ")[2].split()

    assert pytester.runpytest_inprocess(*command).ret == pytest.ExitCode.OK
    assert len(loopback.requests) == 2
    assert run_once(*command, "--upskill-cache", "replay").ret == pytest.ExitCode.OK
    assert len(loopback.requests) == 2


def test_the_command_that_records_shows_no_password(run_once: Run, write_skill: WriteSkill) -> None:
    write_skill()

    result = run_once(
        "--upskill-models", "m=small@http://me:s3cret@127.0.0.1:9/v1", "--upskill-cache", "replay"
    )

    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert "record it: pytest" in result.stdout.str()
    assert "s3cret" not in result.stdout.str()


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ("skill", {"with_skill": "SKILL.md"}),
        ("case", {"with_skill": "the case", "without_skill": "the case"}),
        ("limit", {"with_skill": "--upskill-max-tokens", "without_skill": "--upskill-max-tokens"}),
    ],
)
def test_replay_fails_on_what_is_stale_and_names_what_has_changed(
    run_once: Run, write_skill: WriteSkill, model: str, change: str, named: dict[str, str]
) -> None:
    folder = write_skill()
    run_once("--upskill-models", model, "skills")
    args = ["--upskill-max-tokens", "9"] if change == "limit" else []
    if change == "skill":
        rewrite(folder, "It is 37.\n")
    if change == "case":
        case = {"id": "budget", "input": "What?", "expected": {"contains": "37"}}
        (folder / "skill_meta.json").write_text(json.dumps({"cases": [case]}), "utf-8")

    result = run_once("--upskill-models", model, "--upskill-cache", "replay", *args, "skills")

    assert result.ret == pytest.ExitCode.TESTS_FAILED
    told = [line for line in result.outlines if line.startswith("billing::budget")]
    assert len(told) == len(named)
    for line, (arm, what) in zip(told, named.items(), strict=True):
        start = f"billing::budget[m-{arm}] run 1: stale recording ({what} changed since) in "
        assert line.startswith(start)


def test_replay_imports_no_sdk_and_needs_none(
    run_once: Run, write_skill: WriteSkill, model: str, pytester: pytest.Pytester
) -> None:
    write_skill()
    run_once("--upskill-models", model, "skills")
    pytester.makeconftest(
        """
        import sys

        sys.modules.update(dict.fromkeys(["anthropic", "openai", "genai_prices", "httpx2"]))
        """
    )

    command = [sys.executable, "-m", "pytest", "-p", "no:anyio", "--upskill-models", model]
    for mode in ("auto", "replay"):
        result = subprocess.run(
            [*command, "--upskill-cache", mode, "skills"],
            check=False,
            capture_output=True,
            text=True,
            env=dict(os.environ),
        )

        assert "3 passed" in result.stdout
        assert result.returncode == pytest.ExitCode.OK


def test_recorded_figures_are_reported_and_marked(
    run_once: Run,
    write_skill: WriteSkill,
    loopback: Loopback,
    model: str,
    pytester: pytest.Pytester,
) -> None:
    write_skill()
    pytester.makeini("[pytest]\nupskill_prices = m = 1/2\n")
    loopback.replies.append(Reply(status=503, headers={"retry-after-ms": "1"}))
    args = ("--upskill-models", model, "--junitxml", "out.xml", "skills")

    asked = run_once(*args)
    first = (pytester.path / "out.xml").read_text("utf-8")
    run_once(*args)
    second = (pytester.path / "out.xml").read_text("utf-8")

    asked.stdout.fnmatch_lines(["asked for 2 answers: $0.0001; 1 requests were retried"])
    for figure in ('"upskill.cost_usd" value="0.000025"', '"upskill.attempts" value="2"'):
        assert figure in first
        assert figure in second
    assert first.count('"upskill.replayed" value="0"') == 2
    assert second.count('"upskill.replayed" value="1"') == 2


def test_prune_deletes_what_no_trial_refers_to_and_asks_nothing(
    run_once: Run,
    write_skill: WriteSkill,
    loopback: Loopback,
    model: str,
    pytester: pytest.Pytester,
) -> None:
    folder = write_skill()
    run_once("--upskill-models", model, "--upskill-runs", "2", "skills")
    before = recordings(pytester.path)
    foreign = before[0].parent / "notes.json"
    foreign.write_text("{}", "utf-8")
    rewrite(folder, "It is 37.\n")
    loopback.requests.clear()

    prune = ("--upskill-models", model, "--upskill-cache-prune", "skills")
    listed = run_once(*prune, "--upskill-dry-run")
    untouched = recordings(pytester.path)
    pruned = run_once(*prune)

    assert loopback.requests == []
    assert foreign.exists()
    assert len(untouched) == 5
    assert len(recordings(pytester.path)) == 3
    for result, word in ((listed, "would be deleted"), (pruned, "deleted")):
        assert result.ret == pytest.ExitCode.OK
        result.stdout.fnmatch_lines(
            [
                "*.json: billing::budget?m-with_skill? run ?, 20*",
                f"upskill: 2 recordings in * {word}",
            ]
        )


@pytest.mark.parametrize(
    "selection",
    [
        ("skills", "-k", "one"),
        ("skills", "-m", "upskill(arm='with_skill')"),
        ("skills/billing/skill_meta.json::one",),
        ("skills", "--deselect", "skills/billing/skill_meta.json::one"),
        (".",),
    ],
)
def test_prune_refuses_where_it_cannot_see_all_trials(
    run_once: Run,
    write_skill: WriteSkill,
    model: str,
    pytester: pytest.Pytester,
    selection: tuple[str, ...],
) -> None:
    write_skill(*CASES)
    run_once("--upskill-models", model, "skills")
    broken = pytester.mkdir("broken")
    (broken / "skill_meta.json").write_text("{", "utf-8")
    more = () if selection[0] != "." else ("--continue-on-collection-errors",)

    result = run_once("--upskill-models", model, "--upskill-cache-prune", *selection, *more)

    assert len(recordings(pytester.path)) == 4
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: --upskill-cache-prune: *recordings in use would go too*"])


def test_a_cache_folder_that_is_a_file_is_refused(
    run_once: Run, write_skill: WriteSkill, pytester: pytest.Pytester
) -> None:
    write_skill()
    (pytester.path / "notes").write_text("", "utf-8")

    result = run_once("--upskill-models", "offline", "--upskill-cache-dir", "notes", "skills")

    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: --upskill-cache-dir: */notes is not a folder*"])
