from __future__ import annotations

import json
import multiprocessing
import os
import re
import resource
import stat
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from pytest_upskill.completion import Completion, Request
from pytest_upskill.completions.cache import Cache, Mode
from pytest_upskill.model import parse_model

URL = "https://api.anthropic.com"
REQUEST = Request(
    model=parse_model("haiku"),
    frame="Be brief.",
    skill="\n\nThe budget is 37.",
    user="What is\nthe budget?",
    max_tokens=64,
    run=0,
)
ANSWER = Completion(
    text="37\n\u00fcber\tall\u2028\r\n",
    input_tokens=100,
    output_tokens=5,
    cache_read_tokens=80,
    cache_write_tokens=10,
    stop_reason="max_tokens",
    served_model="claude-haiku-5-5",
    request_id="req_1",
    latency_s=1.25,
    attempts=2,
    cost_usd=0.001,
)
WORKERS = 3


def recorded(folder: Path) -> Cache:
    cache = Cache(folder, "auto")
    cache.store(REQUEST, URL, ANSWER, "billing::budget[haiku-with_skill] run 1")
    return cache


def only_file(folder: Path) -> Path:
    (file,) = folder.glob("*/*.json")
    return file


@contextmanager
def full_disk() -> Iterator[None]:
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (16, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)


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
def test_whatever_else_is_sent_is_another_recording(tmp_path: Path, other: Request) -> None:
    cache = recorded(tmp_path)

    assert cache.load(other, URL) is None
    assert not cache.holds(other, URL)


def test_what_is_read_ahead_is_read_from_the_file_only_once(tmp_path: Path) -> None:
    cache = recorded(tmp_path)
    ahead = cache.load_ahead(REQUEST, URL)
    only_file(tmp_path).unlink()

    assert cache.load(REQUEST, URL) == ahead == replace(ANSWER, replayed=True)
    assert cache.load(REQUEST, URL) is None


def test_another_host_is_another_recording(tmp_path: Path) -> None:
    assert recorded(tmp_path).load(REQUEST, "http://127.0.0.1:8080") is None


def test_the_label_is_no_part_of_what_is_asked(tmp_path: Path) -> None:
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


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"", "not a recording"),
        (b"{", "not a recording"),
        (b"[]", "not a recording"),
        (b"\xff\xfe", "not a recording"),
        (b'{"format": 2}', "not a recording"),
        (b" " * ((1 << 26) + 1), "too large for a recording"),
        (b'{"name": "some other tool"}', "not a recording"),
    ],
)
def test_what_is_no_recording_is_ignored_with_a_warning_and_replaced(
    tmp_path: Path, content: bytes, problem: str
) -> None:
    cache = recorded(tmp_path)
    file = only_file(tmp_path)
    file.write_bytes(content)

    assert cache.load(REQUEST, URL) is None
    assert list(cache.problems) == [f"{file}: ignored: {problem}"]

    cache.store(REQUEST, URL, ANSWER, "someone")
    assert cache.load(REQUEST, URL) == replace(ANSWER, replayed=True)


@pytest.mark.parametrize(
    ("figure", "value"),
    [
        ("latency_s", "NaN"),
        ("latency_s", "-1"),
        ("cost_usd", "Infinity"),
        ("input_tokens", "9" * 400),
        ("output_tokens", "-1"),
        ("cache_read_tokens", "1.5"),
        ("attempts", "0"),
        ("stop_reason", '"bored"'),
    ],
)
def test_a_recording_with_an_impossible_figure_is_ignored(
    tmp_path: Path, figure: str, value: str
) -> None:
    cache = recorded(tmp_path)
    file = only_file(tmp_path)
    text, changes = re.subn(rf'("{figure}": )[^,\n]*', rf"\g<1>{value}", file.read_text("utf-8"))
    file.write_text(text, "utf-8")

    assert changes == 1
    assert cache.load(REQUEST, URL) is None
    assert list(cache.problems) == [f"{file}: ignored: not a recording"]


@pytest.mark.parametrize("length", [1, 100, 400, 700])
def test_a_truncated_file_is_ignored(tmp_path: Path, length: int) -> None:
    cache = recorded(tmp_path)
    file = only_file(tmp_path)
    file.write_bytes(file.read_bytes()[:length])

    assert cache.load(REQUEST, URL) is None


def test_a_recording_under_the_name_of_another_is_ignored(tmp_path: Path) -> None:
    other = replace(REQUEST, run=1)
    recorded(tmp_path)
    first = only_file(tmp_path)
    content = first.read_bytes()
    first.unlink()
    cache = Cache(tmp_path, "auto")
    cache.store(other, URL, ANSWER, "someone")
    second = only_file(tmp_path)
    second.write_bytes(content)

    assert cache.load(other, URL) is None
    assert list(cache.problems) == [f"{second}: ignored: a recording of another request"]


def test_a_folder_in_the_place_of_a_recording_is_ignored(tmp_path: Path) -> None:
    cache = recorded(tmp_path)
    file = only_file(tmp_path)
    file.unlink()
    file.mkdir()

    assert cache.load(REQUEST, URL) is None
    assert list(cache.problems) == [f"{file}: ignored: Is a directory"]


def test_a_full_disk_costs_the_recording_and_leaves_no_part_of_it(tmp_path: Path) -> None:
    cache = Cache(tmp_path, "auto")

    with full_disk():
        cache.store(REQUEST, URL, ANSWER, "someone")
        cache.store(replace(REQUEST, run=1), URL, ANSWER, "someone")

    assert list(cache.problems) == [f"{tmp_path}: cannot write recordings: File too large"]
    assert [file for file in tmp_path.rglob("*") if file.is_file()] == []


def test_a_full_disk_keeps_the_recording_that_was_there(tmp_path: Path) -> None:
    cache = recorded(tmp_path)

    with full_disk():
        cache.store(REQUEST, URL, replace(ANSWER, text="new"), "someone")

    assert cache.load(REQUEST, URL) == replace(ANSWER, replayed=True)


def test_lone_surrogates_neither_break_recording_nor_replaying(tmp_path: Path) -> None:
    cache = Cache(tmp_path, "auto")
    request = replace(REQUEST, user="\ud800?", skill="\udfff")

    cache.store(request, URL, replace(ANSWER, text="a\ud800"), "someone")

    found = cache.load(request, URL)
    assert found is not None
    assert found.text == "a?"


def write_and_read(folder: str) -> list[str]:
    """Write the same recordings as every other process, over and over, and read them meanwhile."""
    cache = Cache(Path(folder), "auto")
    for turn in range(20):
        for run in range(5):
            request = replace(REQUEST, run=run)
            cache.store(request, URL, replace(ANSWER, text=f"{turn}\n" * 2000), "someone")
            found = cache.load(request, URL)
            assert found is not None
            assert len(set(found.text.split())) == 1
    return list(cache.problems)


def test_processes_that_write_at_once_never_show_half_a_recording(tmp_path: Path) -> None:
    with multiprocessing.get_context("spawn").Pool(WORKERS) as pool:
        problems = pool.map(write_and_read, [str(tmp_path)] * WORKERS, chunksize=1)

    assert problems == [[]] * WORKERS
    assert len(list(tmp_path.glob("*/*.json"))) == 5
    assert list(tmp_path.glob("*/*.tmp")) == []


def test_what_has_changed_since_the_recording_is_named(tmp_path: Path) -> None:
    cache = recorded(tmp_path)
    changed = replace(REQUEST, skill="new", user="new")
    subject = "billing::budget[haiku-with_skill] run 1"

    assert cache.changes(subject, changed, URL) == ["skill", "user"]
    assert cache.changes("billing::other[haiku-with_skill] run 1", changed, URL) == []


def test_of_many_stale_recordings_the_nearest_is_compared(tmp_path: Path) -> None:
    cache = recorded(tmp_path)
    subject = "billing::budget[haiku-with_skill] run 1"
    cache.store(replace(REQUEST, skill="old", user="old", max_tokens=1), URL, ANSWER, subject)

    assert cache.changes(subject, replace(REQUEST, user="new"), URL) == ["user"]


def test_recordings_of_no_request_are_unused_but_further_runs_are_kept(tmp_path: Path) -> None:
    cache = recorded(tmp_path)
    cache.store(replace(REQUEST, run=4), URL, ANSWER, "a further run")
    cache.store(replace(REQUEST, skill="old"), URL, ANSWER, "an old skill's")
    (tmp_path / "ab").mkdir(exist_ok=True)
    (tmp_path / "ab" / "notes.json").write_text("{}", "utf-8")

    unused = cache.unused(lambda run: [(replace(REQUEST, run=run), URL)])

    assert [recording.subject for _, recording in unused] == ["an old skill's"]


@pytest.mark.needs("git")
def test_a_folder_that_nobody_chose_hides_itself_from_git(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    Cache(tmp_path / ".upskill" / "cache", "auto", hidden=True).store(REQUEST, URL, ANSWER, "x")
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


def test_whoever_may_read_the_folder_may_read_its_recordings(tmp_path: Path) -> None:
    before = os.umask(0o022)
    try:
        Cache(tmp_path / "cache", "auto").store(REQUEST, URL, ANSWER, "a case")
    finally:
        os.umask(before)

    (file,) = (tmp_path / "cache").glob("*/*.json")
    assert stat.S_IMODE(file.stat().st_mode) == 0o644
