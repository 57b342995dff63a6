"""What is imported before it is needed: nothing."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import WriteSkill
from tests.pages import CHECKOUT

pytestmark = pytest.mark.slow

REPORT_MODULES = """
import json, sys

def pytest_unconfigure():
    with open("modules.json", "w") as file:
        json.dump(sorted(sys.modules), file)
"""


def test_the_entry_point_imports_nothing_but_pytest() -> None:
    script = (
        "import sys, pytest; before = set(sys.modules);"
        "import pytest_upskill.plugin; print(*sorted(set(sys.modules) - before))"
    )

    process = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )

    assert process.stdout.split() == [
        "pytest_upskill",
        "pytest_upskill.plugin",
        "pytest_upskill.session",
        "pytest_upskill.session.options",
    ]


def test_pytest_names_a_missing_path_where_only_the_package_is_installed() -> None:
    script = """if True:
        import sys, pytest
        sys.modules |= dict.fromkeys(["execnet", "genai_prices", "xdist"])
        sys.exit(pytest.main(["--disable-plugin-autoload", "-p", "pytest_upskill.plugin", "no"]))
    """

    process = subprocess.run(
        [sys.executable, "-c", script], cwd=CHECKOUT, capture_output=True, text=True, check=False
    )

    assert process.stderr == "ERROR: file or directory not found: no\n\n"


def test_a_teachers_command_runs_in_a_project_whose_warnings_are_errors(
    pytester: pytest.Pytester, write_skill: WriteSkill
) -> None:
    skill = write_skill()
    pytester.makeini("[pytest]\nfilterwarnings = error")

    process = subprocess.run(
        [sys.executable, "-m", "pytest_upskill", "refine", str(skill), "--dry-run"],
        capture_output=True,
        text=True,
        check=False,
    )

    assert process.returncode == 4
    assert process.stderr.startswith("refused: only 1 of 1 cases are held out")


def test_a_run_without_models_imports_and_writes_nothing(
    pytester: pytest.Pytester, write_skill: WriteSkill
) -> None:
    write_skill()
    pytester.makeconftest(REPORT_MODULES)
    pytester.makepyfile("def test_something() -> None: pass")
    before = {path.name for path in pytester.path.iterdir()}

    result = _run(pytester, ".")

    result.assert_outcomes(passed=1)
    result.stdout.no_fnmatch_line("*upskill:*")
    assert _modules(pytester, "pytest_upskill") == {
        "pytest_upskill",
        "pytest_upskill.plugin",
        "pytest_upskill.hookspecs",
        "pytest_upskill.session",
        "pytest_upskill.session.options",
    }
    written = {path.name for path in pytester.path.iterdir()} - before
    assert written == {"modules.json", "stdout", "stderr"}


def test_a_run_on_offline_imports_no_sdk_price_list_compiler_judge_or_report(
    pytester: pytest.Pytester, write_skill: WriteSkill
) -> None:
    write_skill()
    pytester.makeconftest(REPORT_MODULES)

    result = _run(pytester, "--upskill-models", "offline", "skills")

    result.assert_outcomes(passed=3)
    assert _modules(pytester, "pytest_upskill.models.offline")
    assert not _modules(pytester, "anthropic", "openai", "genai_prices", "anyio", "httpx2")
    names = (
        "checks/compile",
        "sandbox/run",
        "grading/judge",
        "report/files/json",
    )
    for name in names:
        assert [*(CHECKOUT / "pytest_upskill").glob(f"{name}*")]
        assert not _modules(pytester, f"pytest_upskill.{name.replace('/', '.')}")


def test_pytest_rewrites_nothing_but_the_entry_point(
    pytester: pytest.Pytester, write_skill: WriteSkill
) -> None:
    write_skill()
    pytester.makeconftest("""if True:
        import json, sys

        def pytest_unconfigure():
            modules = (each for each in sys.modules.values() if "pytest_upskill." in str(each))
            rewritten = (each for each in modules if "Rewriting" in str(type(each.__loader__)))
            with open("modules.json", "w") as file:
                json.dump(sorted(each.__name__ for each in rewritten), file)
    """)

    _run(pytester, "--upskill-models", "offline", "skills").assert_outcomes(passed=3)

    assert _modules(pytester, "pytest_upskill") == {
        "pytest_upskill.plugin",
        "pytest_upskill.hookspecs",
        "pytest_upskill.session",
        "pytest_upskill.session.options",
    }


def test_at_its_end_the_process_searches_for_no_garbage(
    pytester: pytest.Pytester, write_skill: WriteSkill
) -> None:
    write_skill()
    pytester.makeconftest("""if True:
        import atexit, gc, json

        def write():
            with open("frozen.json", "w") as file:
                json.dump(gc.get_freeze_count(), file)

        atexit.register(write)
    """)

    _run(pytester, "--upskill-models", "offline", "skills").assert_outcomes(passed=3)

    assert json.loads(Path(pytester.path, "frozen.json").read_text("utf-8")) > 10_000


def _run(pytester: pytest.Pytester, *args: str) -> pytest.RunResult:
    without = ("-p", "no:cacheprovider", "-p", "no:anyio")
    return pytester.run(sys.executable, "-B", "-m", "pytest", *without, *args)


def _modules(pytester: pytest.Pytester, *packages: str) -> set[str]:
    loaded = json.loads(Path(pytester.path, "modules.json").read_text("utf-8"))
    return {name for name in loaded if name.startswith(packages)}
