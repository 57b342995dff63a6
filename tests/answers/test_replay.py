"""``--upskill-cache replay``: nothing is sent, and what is missing or stale fails."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.conftest import Run, WriteSkill
from tests.git_repository import commit_all, git
from tests.loopback import Loopback

pytestmark = pytest.mark.usefixtures("skill")


def test_replay_needs_no_key_and_sends_nothing(
    run: Run, loopback: Loopback, model: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    del model
    monkeypatch.setenv("ANTHROPIC_BASE_URL", loopback.url)
    monkeypatch.setenv("ANTHROPIC_API_KEY", "a-key")
    recorded = ("--upskill-models", "haiku", "--upskill-cache-dir", "recordings", "skills")
    run(*recorded)
    assert len(loopback.requests) == 2
    monkeypatch.delenv("ANTHROPIC_API_KEY")

    result = run(*recorded, "--upskill-cache", "replay")

    assert result.ret == pytest.ExitCode.OK
    assert len(loopback.requests) == 2
    result.stdout.fnmatch_lines(["replayed 2 answers: *"])


def test_keys_that_cannot_be_told_apart_do_not_prevent_a_replay(
    run_once: Run, model: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = "n=openai:small@http://127.0.0.1:9/v1"
    run_once("--upskill-models", model, "skills")
    monkeypatch.setenv("UPSKILL_API_KEY", "a-key")

    result = run_once("--upskill-models", f"{model},{other}", "--upskill-cache", "replay", "skills")

    result.stdout.fnmatch_lines(["*n-with_skill*", "no recording*"])


def test_replay_fails_where_a_recording_is_missing_and_says_how_to_make_it(
    run: Run, loopback: Loopback, model: str
) -> None:
    result = run("--upskill-models", model, "--upskill-cache", "replay", "skills")

    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert loopback.requests == []
    result.assert_outcomes(errors=1, skipped=1)
    result.stdout.fnmatch_lines(["upskill: 2 trials, 2 answers: 0 recorded, 2 missing, $0"])
    # The cause is the same in both arms, so the command is printed once.
    (line,) = (line for line in result.outlines if line.startswith("no recording in "))
    assert f"--upskill-models {model} --upskill-cache auto skills" in line


def test_the_suggested_command_records_the_answers(
    run_once: Run, loopback: Loopback, model: str, pytester: pytest.Pytester
) -> None:
    pytester.makeini("[pytest]\nupskill_cache = replay\n")
    missing = run_once("--upskill-models", model, "--upskill-cache-dir", "rec", "skills")
    (line,) = (line for line in missing.outlines if line.startswith("no recording in "))
    command = line.partition("does): pytest ")[2].split()

    assert pytester.runpytest_inprocess(*command).ret == pytest.ExitCode.OK
    assert len(loopback.requests) == 2
    assert run_once(*command, "--upskill-cache", "replay").ret == pytest.ExitCode.OK
    assert len(loopback.requests) == 2


def test_the_command_that_records_shows_no_password(run_once: Run) -> None:
    result = run_once(
        "--upskill-models", "m=small@http://me:s3cret@127.0.0.1:9/v1", "--upskill-cache", "replay"
    )

    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert "a maintainer does): pytest" in result.stdout.str()
    assert "s3cret" not in result.stdout.str()


@pytest.mark.parametrize(
    ("change", "named", "stale"),
    [("skill", "skill", 1), ("case", "question", 2), ("limit", "max_tokens", 2)],
)
def test_replay_fails_on_what_is_stale_and_names_what_has_changed(
    run_once: Run, write_skill: WriteSkill, model: str, change: str, named: str, stale: int
) -> None:
    run_once("--upskill-models", model, "skills")
    args = ["--upskill-max-tokens", "9"] if change == "limit" else []
    if change == "skill":
        write_skill(body="It is 37.\n")
    if change == "case":
        write_skill({"id": "budget", "input": "What?", "expected": {"contains": "37"}})

    result = run_once("--upskill-models", model, "--upskill-cache", "replay", *args, "skills")

    assert result.ret == pytest.ExitCode.TESTS_FAILED
    (line,) = (line for line in result.outlines if line.startswith("stale recording"))
    assert line.startswith(f"stale recording ({named} changed since) in ")
    repeated = "1 more with the same cause" in result.stdout.str()
    assert repeated == (stale == 2)


def test_replay_names_the_host_that_the_recordings_are_from(run_once: Run, model: str) -> None:
    run_once("--upskill-models", model, "skills")
    url = model.partition("@")[2]
    elsewhere = model.replace(url, "http://127.0.0.1:1/v1")

    result = run_once("--upskill-models", elsewhere, "--upskill-cache", "replay", "skills")

    result.stdout.fnmatch_lines(
        [f"stale recording (url {url} changed since) in *: ask the same host (*), or record it *"]
    )


@pytest.mark.slow
def test_replay_imports_no_sdk_and_needs_none(
    run_once: Run, model: str, pytester: pytest.Pytester
) -> None:
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


@pytest.fixture
def recorded(run_once: Run, model: str, pytester: pytest.Pytester) -> tuple[str, ...]:
    """Commit recordings, and return the arguments that replay them."""
    args = ("--upskill-models", model, "--upskill-cache-dir", "recordings", "skills")
    run_once(*args)
    (pytester.path / ".gitignore").write_text(".pytest_cache\n__pycache__\n")
    commit_all(pytester.path)
    git(pytester.path, "remote", "add", "origin", "elsewhere")
    git(pytester.path, "update-ref", "refs/remotes/origin/main", "HEAD")
    return (*args, "--upskill-cache", "replay")


def test_a_replay_of_what_the_branch_did_not_change_says_nothing_of_it(
    run_once: Run, recorded: tuple[str, ...]
) -> None:
    result = run_once(*recorded)

    assert result.ret == pytest.ExitCode.OK
    result.stdout.no_fnmatch_line("*recordings*changed*")


@pytest.mark.parametrize("committed", [True, False])
def test_a_replay_names_the_recordings_that_the_branch_changed(
    run_once: Run, recorded: tuple[str, ...], pytester: pytest.Pytester, committed: bool
) -> None:
    first, second = sorted(pytester.path.glob("recordings/*/*.json"))
    first.write_text(
        first.read_text("utf-8").replace('"text": [', '"text": ["It is 37.",'), "utf-8"
    )
    second.rename(second.with_name("other.json"))
    if committed:
        commit_all(pytester.path)

    result = run_once(*recorded, "-q", *(f"--upskill-{name}=r.{name}" for name in ("md", "html")))

    said = "recordings changed since origin/main (2 edited or deleted)"
    result.stdout.fnmatch_lines(
        [f"{said}: review them like code (git diff --stat ??????? -- recordings)"]
    )
    for name in ("md", "html"):
        assert said in pytester.path.joinpath(f"r.{name}").read_text("utf-8")


def test_a_run_that_could_request_names_the_changed_recordings_that_it_used(
    run_once: Run, recorded: tuple[str, ...], pytester: pytest.Pytester
) -> None:
    for file in pytester.path.glob("recordings/*/*.json"):
        file.write_text(file.read_text("utf-8") + "\n", "utf-8")
    live = (*recorded[:-2], "--upskill-compare=origin/main")

    replayed = run_once(*live)
    requested = run_once(*live, "--upskill-cache=refresh")

    replayed.stdout.fnmatch_lines(["recordings changed since origin/main (2 edited or deleted): *"])
    requested.stdout.no_fnmatch_line("recordings changed *")


def test_recordings_that_are_only_new_are_named_by_a_command_that_lists_them(
    run_once: Run, recorded: tuple[str, ...], pytester: pytest.Pytester
) -> None:
    first, _ = sorted(pytester.path.glob("recordings/*/*.json"))
    first.with_name("draft.json").write_bytes(first.read_bytes())

    result = run_once(*recorded)

    result.stdout.fnmatch_lines(
        ["recordings changed * (all of them new): *(git status --short recordings)"]
    )


def test_a_replay_says_that_changes_of_recordings_are_unknown(
    run_once: Run, recorded: tuple[str, ...], pytester: pytest.Pytester
) -> None:
    git(pytester.path, "update-ref", "-d", "refs/remotes/origin/main")

    result = run_once(*recorded)

    assert result.ret == pytest.ExitCode.OK
    result.stdout.fnmatch_lines(
        ["recordings: cannot tell which of them this branch changed: no commit is called *"]
    )


def test_a_replay_needs_no_git(
    run_once: Run, recorded: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/nowhere")

    result = run_once(*recorded)

    assert result.ret == pytest.ExitCode.OK
    result.stdout.no_fnmatch_line("*recordings*changed*")


def test_the_target_of_a_pull_request_is_what_recordings_are_compared_with(
    run_once: Run,
    recorded: tuple[str, ...],
    pytester: pytest.Pytester,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    first, _ = sorted(pytester.path.glob("recordings/*/*.json"))
    first.write_text(first.read_text("utf-8") + "\n", "utf-8")
    git(pytester.path, "update-ref", "refs/remotes/origin/release", "HEAD")
    commit_all(pytester.path)
    git(pytester.path, "update-ref", "refs/remotes/origin/main", "HEAD")
    monkeypatch.setenv("GITHUB_BASE_REF", "release")

    result = run_once(*recorded)

    result.stdout.fnmatch_lines(
        ["recordings changed since origin/release (1 edited or deleted): *"]
    )


def test_replay_from_a_folder_that_does_not_exist_says_so(
    run_once: Run, write_skill: WriteSkill, model: str
) -> None:
    write_skill()

    result = run_once(
        "--upskill-models",
        model,
        "--upskill-cache=replay",
        "--upskill-cache-dir=recrodings",
        "skills",
    )

    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(
        ["no recording in recrodings, which does not exist: correct --upskill-cache-dir, *"]
    )
