"""A new figure is one row in the table of figures, and every report has it."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from pytest_upskill.figures.cell import Cell
from pytest_upskill.figures.presentation import figures
from tests.pages import CHECKOUT
from tests.reporting import chosen, counted, report

ROW = """
    ("cases.hard", "count", "cases that never pass", lambda lift: len(lift.pairs) + 40),
)

_ARM: """
USE = """
import json
from pathlib import Path

from pytest_upskill.report.files.html import write_html
from pytest_upskill.report.files.json import write_json
from pytest_upskill.report.history.terminal import write_csv
from pytest_upskill.report.history.runs import log_run
from pytest_upskill.report.history.runs import read_history
from pytest_upskill.report.junit import gate_properties
from tests.reporting import counted, report

whole = report(counted([(5, 0), (5, 1)]))
print(json.loads(write_json(whole))["entries"][0]["figures"]["cases.hard"])
print(dict(gate_properties(whole.gates[0]))["upskill.cases.hard"])
log_run(whole, Path("runs"))
print("cases_hard" in write_csv(read_history(Path("runs"))))
print("cases that never pass" in write_html(whole))
"""


def test_a_new_figure_is_one_row(tmp_path: Path) -> None:
    for folder in ("pytest_upskill", "tests"):
        shutil.copytree(
            CHECKOUT / folder, tmp_path / folder, ignore=shutil.ignore_patterns("__pycache__")
        )
    table = tmp_path / "pytest_upskill" / "figures" / "presentation.py"
    text = table.read_text("utf-8")
    table.write_text(text.replace("\n)\n\n_ARM: ", ROW, 1), "utf-8")

    done = subprocess.run(
        [sys.executable, "-c", USE], cwd=tmp_path, capture_output=True, text=True, check=False
    )

    assert done.stderr == ""
    assert done.stdout.splitlines() == ["42", "42", "True", "True"]


@pytest.mark.parametrize("cell", [counted([(5, 0)]), chosen([5], [0])])
def test_no_two_figures_have_one_name(cell: Cell) -> None:
    names = [figure.name for figure in figures(report(cell).gates[0])]

    assert len(names) == len({*names})
