"""Files in the folder of recordings that are none, or that cannot be written."""

from __future__ import annotations

import multiprocessing
import re
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from pytest_upskill.answers.recordings import Cache
from pytest_upskill.models import ToolCall
from tests.answers.one_recording import ANSWER, REQUEST, URL, only_file, recorded

WORKERS = 3


@contextmanager
def full_disk() -> Iterator[None]:
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (16, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"", "not a recording"),
        (b"{", "not a recording"),
        (b"[]", "not a recording"),
        (b"\xff\xfe", "not a recording"),
        (b'{"format": 2}', "not a recording"),
        (b" " * ((1 << 23) + 1), "larger than 8 MiB"),
        (b'{"name": "some other tool"}', "not a recording"),
    ],
)
def test_a_file_that_is_no_recording_is_ignored_with_a_warning_and_replaced(
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
    ("figure", "value", "problem"),
    [
        ("latency_s", "NaN", "a number is out of range"),
        ("latency_s", "-1", "not a recording"),
        ("cost_usd", "Infinity", "a number is out of range"),
        ("input_tokens", "9" * 400, "a number is out of range"),
        ("output_tokens", "-1", "not a recording"),
        ("cache_read_tokens", "1.5", "not a recording"),
        ("attempts", "0", "not a recording"),
        ("stop_reason", '"bored"', "not a recording"),
    ],
)
def test_a_recording_with_an_impossible_figure_is_ignored(
    tmp_path: Path, figure: str, value: str, problem: str
) -> None:
    cache = recorded(tmp_path)
    file = only_file(tmp_path)
    text, changes = re.subn(rf'("{figure}": )[^,\n]*', rf"\g<1>{value}", file.read_text("utf-8"))
    file.write_text(text, "utf-8")

    assert changes == 1
    assert cache.load(REQUEST, URL) is None
    assert list(cache.problems) == [f"{file}: ignored: {problem}"]


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
    assert list(cache.problems) == [f"{file}: ignored: not a regular file"]


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


def test_what_cannot_be_recorded_is_reported_and_loses_no_answer(tmp_path: Path) -> None:
    cache = Cache(tmp_path, "auto")
    call = ToolCall(name="f", arguments={"a": "\ud800"})

    cache.store(REQUEST, URL, replace(ANSWER, tool_calls=(call,)), "someone")

    (problem,) = cache.problems
    assert problem.startswith(f"{tmp_path}: cannot record an answer: ")


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
