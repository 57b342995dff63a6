"""Python files of skills and evals, which pytest would import outside the sandbox."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conftest import Run, WriteSkill

PLACES = (
    "test_a.py",
    "conftest.py",
    "__init__.py",
    "scripts/test_b.py",
    "scripts/conftest.py",
    "scripts/__init__.py",
    "start/pkg/__init__.py",
    "start/pkg/test_c.py",
    "tests/conftest.py",
)


@pytest.fixture
def marks(write_skill: WriteSkill) -> Path:
    """Fill folders with Python files that leave a mark when they are imported."""
    skill = write_skill(
        {"id": "c", "input": "Why?", "workspace": "start", "expected": {"contains": "x"}},
        {"id": "d", "input": "Why?", "expected": {"contains": "x"}},
        name="testing",
    )
    marks = Path("marks").absolute()
    marks.mkdir()
    files = [skill / place for place in PLACES]
    files += [Path("evals/testing") / place for place in ("test_d.py", "conftest.py")]
    for number, file in enumerate(files):
        file.parent.mkdir(parents=True, exist_ok=True)
        mark = f"import pathlib\npathlib.Path({str(marks)!r}, '{number}').touch()\n"
        text = f"{mark}def test_it(): pass\n"
        file.write_text(text, "utf-8")
    Path("tests").mkdir()
    Path("tests/test_own.py").write_text("def test_own(own): assert own\n", "utf-8")
    Path("conftest.py").write_text(
        "import pytest\n@pytest.fixture\ndef own(): return True\n", "utf-8"
    )
    return marks


@pytest.mark.parametrize(
    "args", [[], ["skills"], ["skills/testing", "tests"], ["skills/testing/skill_meta.json"], ["."]]
)
def test_no_python_file_of_a_skill_or_of_evals_is_imported(
    run: Run, marks: Path, args: list[str]
) -> None:
    result = run(
        *args,
        "--upskill-models=offline",
        "-rA",
        "--doctest-modules",
        "-p",
        "no:cacheprovider",
    )

    assert [*marks.iterdir()] == []
    said = result.stdout.str()
    assert ("test_own" in said) is (not args or "tests" in args or "." in args)
    assert "skills/testing/skill_meta.json::d[offline-with_skill]" in said
    line = (
        "upskill: tests of skills, evals and workspaces are not run, as they may be a stranger's: "
    )
    assert said.count(line) == (args != ["skills/testing/skill_meta.json"])


def test_a_file_that_is_named_is_collected(run: Run, marks: Path) -> None:
    result = run("skills/testing/scripts/test_b.py", "--upskill-models=offline")

    result.assert_outcomes(passed=1)
    assert [*marks.iterdir()] != []


def test_without_models_pytest_collects_as_ever(run: Run, marks: Path) -> None:
    Path("evals").rename("others")

    result = run("skills")

    assert result.parseoutcomes()["passed"] >= 3
    assert [*marks.iterdir()] != []


def test_the_rootdir_is_the_users_own_whatever_it_is_called(run: Run, tmp_path: Path) -> None:
    evals = tmp_path / "evals"
    evals.mkdir()
    (evals / "pytest.ini").write_text("[pytest]", "utf-8")
    (evals / "conftest.py").write_text("import pytest\n@pytest.fixture\ndef own(): pass\n", "utf-8")
    (evals / "test_own.py").write_text("def test_own(own): pass\n", "utf-8")

    result = run("--upskill-models=offline", str(evals))

    result.assert_outcomes(passed=1)
