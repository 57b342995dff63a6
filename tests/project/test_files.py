"""Files of a project that a stranger's pull request may have changed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from pytest_upskill.answers.recordings import Cache
from pytest_upskill.answers.resources import WorkError
from pytest_upskill.cases.catalogue import CatalogueError, read_catalogue
from pytest_upskill.cases.judge_labels import load_labels
from pytest_upskill.cases.source.document import BadFile
from pytest_upskill.figures.baseline import BaselineError, read_baseline
from pytest_upskill.project.files import read_file, read_state, write_file
from pytest_upskill.report.files.json import ReportError, read_report
from pytest_upskill.report.history.runs import read_history
from pytest_upskill.teacher.acceptance import KeptLook, Ledger, VersionComparison
from tests.answers.one_recording import REQUEST, URL, only_file, recorded

KINDS = {
    "zero": "a link leads out of the project",
    "pipe": "not a regular file",
    "folder": "not a regular file",
    "outside": "a link leads out of the project",
    "itself": "Too many levels of symbolic links",
}
"""What may be in the place of a file, and why it is refused."""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    (folder / ".git").mkdir(parents=True)
    (tmp_path / "secret").write_text("secret", "utf-8")
    return folder


def place(kind: str, file: Path) -> None:
    """Put something in the place of a state file."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.unlink(missing_ok=True)
    outside = next(above for above in file.parents if (above / ".git").exists()).parent
    targets = {"zero": "/dev/zero", "outside": str(outside / "secret"), "itself": file.name}
    if kind == "pipe":
        os.mkfifo(file)
    elif kind == "folder":
        file.mkdir()
    else:
        file.symlink_to(targets[kind])


def refused(read: Callable[[], object]) -> str:
    """Return the one line with which a reader refuses a file."""
    with pytest.raises((BaselineError, CatalogueError, ReportError, BadFile, WorkError)) as caught:
        read()
    (line,) = str(caught.value).splitlines() or [""]
    return line


@pytest.mark.parametrize(("kind", "reason"), KINDS.items())
def test_what_is_no_regular_file_of_the_project_is_refused_in_one_line(
    project: Path, kind: str, reason: str
) -> None:
    state = project / ".upskill"
    names = "baseline.json", "catalogue.json", "report.json", "judge_labels.json", "looks/a.json"
    for name in names:
        place(kind, state / name)

    for line in (
        refused(lambda: read_baseline(state / "baseline.json")),
        refused(lambda: read_catalogue(state / "catalogue.json")),
        refused(lambda: read_report(state / "report.json")),
        refused(lambda: load_labels(state)),
        refused(lambda: looks_in(state / "looks")),
    ):
        assert reason in line


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_no_regular_file_among_many_is_passed_over(project: Path, kind: str) -> None:
    cache = recorded(project / ".upskill/cache")
    recording = only_file(project / ".upskill/cache")
    place(kind, recording)
    place(kind, project / ".upskill/runs/a.json")

    assert cache.load(REQUEST, URL) is None
    assert len(cache.problems) == 1
    assert len(read_history(project / ".upskill/runs").unreadable) == 1


def test_a_link_that_stays_in_the_project_is_followed(project: Path) -> None:
    (project / "a").write_text("1", "utf-8")
    (project / "b").symlink_to("a")

    assert read_file(project / "b", 10) == b"1"


def test_a_link_above_a_project_or_outside_any_is_followed(project: Path) -> None:
    (project / "a").write_text("1", "utf-8")
    (project.parent / "other").symlink_to("project")

    assert read_file(project.parent / "other/a", 10) == b"1"


@pytest.mark.parametrize("marker", [".git", ".upskill"])
def test_nothing_is_written_through_a_link_out_of_the_project(tmp_path: Path, marker: str) -> None:
    outside = tmp_path / "home"
    outside.mkdir()
    (tmp_path / "project" / marker).mkdir(parents=True)
    (tmp_path / "project/reports").symlink_to(outside)
    (tmp_path / "project/r.json").symlink_to(outside / "victim")

    for name in ("reports/r.json", "reports/new/r.json", "r.json"):
        with pytest.raises(OSError, match="a link leads out of the project, to "):
            write_file(tmp_path / "project" / name, b"x")

    assert list(outside.iterdir()) == []


def test_a_linked_upskill_folder_is_not_written_to(tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "project").mkdir()
    (tmp_path / "project/.upskill").symlink_to("../home")

    with pytest.raises(OSError, match="a link leads out of the project, to "):
        write_file(tmp_path / "project/.upskill/cache/a.json", b"x")


def test_an_error_of_writing_names_the_file_that_was_asked_for(tmp_path: Path) -> None:
    with pytest.raises(IsADirectoryError) as caught:
        write_file(tmp_path, b"x")

    assert str(caught.value) == f"[Errno 21] Is a directory: '{tmp_path}'"


def test_a_device_that_the_user_names_is_written_to() -> None:
    read, write = os.pipe()
    write_file(Path(f"/dev/fd/{write}"), b"report")
    os.close(write)

    assert os.read(read, 100) == b"report"
    os.close(read)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[" + "1," * 200_000 + "1]", "more than 100,000 values"),
        (f'"{"a" * (9 << 20)}"', "larger than 8 MiB"),
        ('{"a": [1, 10000000000000000000]}', "a number is out of range"),
        ('{"a": -10000000000000000}', "a number is out of range"),
        ('{"a": 1e300}', "a number is out of range"),
        ('[{"b": Infinity}]', "a number is out of range"),
    ],
)
def test_json_that_would_cost_too_much_is_refused(tmp_path: Path, text: str, problem: str) -> None:
    (tmp_path / "a.json").write_text(text, "utf-8")

    with pytest.raises(OSError, match=problem):
        read_state(tmp_path / "a.json")


@pytest.mark.parametrize(
    "text", ['"e12345 10000000000000000000 NaN"', '{"a": 0.30000000000000004}', "[999999999999999]"]
)
def test_numbers_in_texts_and_usual_ones_are_read(tmp_path: Path, text: str) -> None:
    (tmp_path / "a.json").write_text(text, "utf-8")

    assert read_state(tmp_path / "a.json") == text.encode()


MEASURE = """
import resource, sys
from pathlib import Path
from tests.project.test_files import read_everything
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
for file in sys.argv[1:]:
    read_everything(Path(file))
    print(file, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""
"""Reads files, and prints after each by how many KiB the memory has been larger than at first."""


def looks_in(folder: Path) -> list[KeptLook]:
    """Read the looks in a folder at the question x."""
    asked = VersionComparison(old="", new="", students=(), questions=("x",), checks="", runs=1)
    return Ledger(folder, Cache(folder / "cache", "auto")).looks(asked)


def read_everything(file: Path) -> None:
    """Read a file as each kind of state."""
    for read in (
        lambda: read_report(file),
        lambda: read_baseline(file),
        lambda: read_catalogue(file),
        lambda: load_labels(file.parent),
        lambda: looks_in(file.parent),
    ):
        with suppress(BaselineError, CatalogueError, ReportError, BadFile, WorkError):
            read()


LARGE = {
    "empty lists": "[" + "[]," * 2_000_000 + "[]]",
    "numbers": "[" + "1," * 4_000_000 + "1]",
    "objects": '{"format": 1, "sessions": [' + "{}," * 400_000 + "{}]}",
    "a long text": json.dumps("a" * ((8 << 20) - 100) + "\U0001f600", ensure_ascii=False),
    "brackets": "[" * (8 << 20),
    "looks": '{"format": 1, "entries": [' + '{"cell": 1},' * 90_000 + "{}]}",
    "values below the limit": "[" * 90 + "[1]," * 28_000 + "1" + "]" * 90,
}


# In one process, which takes longer to start than to read most of them.
@pytest.mark.slow
def test_no_committed_file_costs_a_hundred_megabytes(tmp_path: Path) -> None:
    files = [tmp_path / f"{name}/b/judge_labels.json" for name in LARGE]
    for file, text in zip(files, LARGE.values(), strict=True):
        file.parent.mkdir(parents=True)
        file.write_text(text, "utf-8")

    measured = subprocess.run(
        [sys.executable, "-c", MEASURE, *files], capture_output=True, text=True, check=True
    )

    most = [int(line.rpartition(" ")[2]) for line in measured.stdout.splitlines()]
    assert len(most) == len(LARGE)
    assert max(most) < 100_000, measured.stdout
