"""Recordings: which request finds which, how they are written, and which are unused."""

from __future__ import annotations

import json
import os
import stat
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from pytest_upskill.answers.recordings import Cache, Mode
from pytest_upskill.models import Request, parse_model
from tests.answers.one_recording import ANSWER, REQUEST, URL, only_file, recorded


def test_a_recording_gives_back_the_whole_completion_marked_as_replayed(tmp_path: Path) -> None:
    recorded(tmp_path)

    assert Cache(tmp_path, "auto").load(REQUEST, URL) == replace(ANSWER, replayed=True)


@pytest.mark.parametrize(
    "other",
    [
        replace(REQUEST, frame="Be long."),
        replace(REQUEST, skill=""),
        replace(REQUEST, skill="\n\nThe budget is 38."),
        replace(REQUEST, user="What is the budget?"),
        replace(REQUEST, max_tokens=65),
        replace(REQUEST, run=1),
        replace(REQUEST, model=parse_model("sonnet")),
        replace(REQUEST, model=parse_model("openai:claude-haiku-5-5")),
    ],
)
def test_a_request_that_differs_has_another_recording(tmp_path: Path, other: Request) -> None:
    cache = recorded(tmp_path)

    assert cache.load(other, URL) is None
    assert not cache.holds(other, URL)


def test_another_host_is_another_recording(tmp_path: Path) -> None:
    assert recorded(tmp_path).load(REQUEST, "http://127.0.0.1:8080") is None


def test_the_label_is_not_part_of_the_request(tmp_path: Path) -> None:
    relabelled = replace(REQUEST, model=parse_model("small=claude-haiku-5-5"))

    assert recorded(tmp_path).load(relabelled, URL) is not None


def test_the_file_is_readable_and_names_whose_answer_it_is(tmp_path: Path) -> None:
    recorded(tmp_path)

    text = only_file(tmp_path).read_text("utf-8")
    recording = json.loads(text)

    assert recording["subject"] == "billing::budget[haiku-with_skill] run 1"
    assert recording["request"]["user"] == ["What is", "the budget?"]
    assert "\n  \u0022\u00fcber\\tall\u2028\\r\u0022,\n" in text
    assert "The budget is 37." not in text


@pytest.mark.parametrize(
    ("mode", "reads", "writes"),
    [
        ("auto", True, True),
        ("refresh", False, True),
        ("replay", True, False),
        ("off", False, False),
    ],
)
def test_a_mode_says_whether_to_read_and_to_write(
    tmp_path: Path, *, mode: Mode, reads: bool, writes: bool
) -> None:
    recorded(tmp_path / "old")
    cache = Cache(tmp_path / "old", mode)
    new = Cache(tmp_path / "new", mode)

    new.store(REQUEST, URL, ANSWER, "someone")

    assert cache.holds(REQUEST, URL) is reads
    assert (cache.load(REQUEST, URL) is not None) is reads
    assert (tmp_path / "new").exists() is writes


def test_what_has_changed_since_the_recording_is_named(tmp_path: Path) -> None:
    cache = recorded(tmp_path)
    changed = replace(REQUEST, skill="new", user="new")
    subject = "billing::budget[haiku-with_skill] run 1"

    assert cache.changed_fields(subject, changed, URL) == ["skill", "question"]
    assert cache.changed_fields("billing::other[haiku-with_skill] run 1", changed, URL) == []


def test_of_many_stale_recordings_the_nearest_is_compared(tmp_path: Path) -> None:
    cache = recorded(tmp_path)
    subject = "billing::budget[haiku-with_skill] run 1"
    cache.store(replace(REQUEST, skill="old", user="old", max_tokens=1), URL, ANSWER, subject)

    assert cache.changed_fields(subject, replace(REQUEST, user="new"), URL) == ["question"]


def test_recordings_of_no_request_are_unused_but_further_runs_are_kept(tmp_path: Path) -> None:
    cache = recorded(tmp_path)
    cache.store(replace(REQUEST, run=4), URL, ANSWER, "a further run")
    cache.store(replace(REQUEST, skill="old"), URL, ANSWER, "an old skill's")
    (tmp_path / "ab").mkdir(exist_ok=True)
    (tmp_path / "ab" / "notes.json").write_text("{}", "utf-8")

    unused = cache.unused(lambda run: [(replace(REQUEST, run=run), URL)])

    assert [recording.subject for _, recording in unused] == ["an old skill's"]


@pytest.mark.needs("git")
def test_the_default_folder_hides_itself_from_git(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    Cache(tmp_path / ".upskill" / "cache", "auto", ignored_by_git=True).store(
        REQUEST, URL, ANSWER, "x"
    )
    recorded(tmp_path / "recordings")
    (tmp_path / ".upskill" / "baseline.json").write_text("{}", "utf-8")

    status = subprocess.run(
        ["git", "-C", tmp_path, "status", "--porcelain", "--untracked-files=all"],
        check=True,
        capture_output=True,
        text=True,
    )

    recording = only_file(tmp_path / "recordings").relative_to(tmp_path)
    assert status.stdout == f"?? .upskill/baseline.json\n?? {recording}\n"


def test_recordings_can_be_read_by_those_who_can_read_the_folder(tmp_path: Path) -> None:
    before = os.umask(0o022)
    try:
        Cache(tmp_path / "cache", "auto").store(REQUEST, URL, ANSWER, "a case")
    finally:
        os.umask(before)

    (file,) = (tmp_path / "cache").glob("*/*.json")
    assert stat.S_IMODE(file.stat().st_mode) == 0o644
