"""The file for skill-creator's viewer."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pytest_upskill.report.files.benchmark_json import write_benchmarks
from tests.conftest import Run, WriteSkill
from tests.reporting import cell, counted, report, run, trial


def test_the_viewer_finds_what_it_reads() -> None:
    runs = [run(), run(passed=False, tokens=200, message="contains '37': not in the answer")]
    arms = (
        trial("a", "with_skill", runs),
        trial("a", "without_skill", [run()]),
        trial("a", "old_skill", [run()]),
    )
    written = report(cell(*arms))

    ((file, text),) = write_benchmarks(written, Path("benchmark.json"))

    benchmark = json.loads(text)
    assert file == Path("benchmark.json")
    assert benchmark["metadata"] == {
        "skill_name": "billing",
        "skill_path": "skills/billing",
        "executor_model": "haiku-1",
        "analyzer_model": "",
        "timestamp": "2026-01-02T03:04:05Z",
        "evals_run": [1],
        "runs_per_configuration": 2,
    }
    assert benchmark["runs"][1] == {
        "eval_id": 1,
        "eval_name": "a",
        "configuration": "with_skill",
        "run_number": 2,
        "result": {
            "pass_rate": 0.0,
            "passed": 0,
            "failed": 1,
            "total": 1,
            "time_seconds": 0.5,
            "tokens": 210,
            "tool_calls": 0,
            "errors": 0,
        },
        "expectations": [
            {"text": "contains", "passed": False, "evidence": "contains '37': not in the answer"}
        ],
        "notes": [],
    }
    assert [each["configuration"] for each in benchmark["runs"]] == [
        "with_skill",
        "with_skill",
        "without_skill",
    ]


def test_the_summary_spreads_over_all_runs_and_writes_deltas_as_text() -> None:
    ((_, text),) = write_benchmarks(report(counted([(5, 1)])), Path("b.json"))

    summary = json.loads(text)["run_summary"]
    assert summary["with_skill"]["pass_rate"] == {"mean": 1.0, "stddev": 0.0, "min": 1, "max": 1}
    assert summary["without_skill"]["pass_rate"]["mean"] == pytest.approx(0.2)
    assert summary["without_skill"]["pass_rate"]["stddev"] == pytest.approx(0.4472)
    assert summary["delta"] == {"pass_rate": "+0.80", "time_seconds": "+0.0", "tokens": "+500"}


def test_skills_of_one_name_have_a_file_each(
    run_once: Run, write_skill: WriteSkill, pytester: pytest.Pytester
) -> None:
    write_skill().rename(pytester.mkdir("other") / "billing")
    write_skill()

    run_once("--upskill-models", "offline", "--upskill-benchmark-json", "out/b.json")

    files = sorted((pytester.path / "out").iterdir())
    paths = [json.loads(file.read_text("utf-8"))["metadata"]["skill_path"] for file in files]
    assert [file.name for file in files] == ["b-billing-offline-2.json", "b-billing-offline.json"]
    assert paths == ["skills/billing", "other/billing"]


@pytest.mark.parametrize("name", ["gpu kernels", "GPU-kernels"])
def test_names_that_would_be_one_file_name_are_numbered(name: str) -> None:
    written = report(counted([(5, 1)], skill="gpu-kernels"), counted([(5, 1)], skill=name))

    files = [file.name.lower() for file, _ in write_benchmarks(written, Path("b.json"))]

    assert files == ["b-gpu-kernels-haiku.json", "b-gpu-kernels-haiku-2.json"]


def test_a_cell_in_which_only_the_old_skill_ran_has_no_file() -> None:
    written = report(cell(trial("a", "old_skill", [run()])))

    assert list(write_benchmarks(written, Path("benchmark.json"))) == []
