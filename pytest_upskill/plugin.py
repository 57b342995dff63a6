"""Entry point of the plugin: options and hooks.

Imports only pytest and the table of options, so that an unused plugin costs no time.
"""

import atexit
import gc
import sys
from collections.abc import Generator, Sequence
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from typing import Any

import pytest

from pytest_upskill import CASE_FILES, CASE_SUFFIXES
from pytest_upskill.session.options import OPTIONS, Option

_NOT_COLLECTED = pytest.StashKey[bool]()
"""Set if case files were not collected because no models are chosen."""


class _AsCompiled:
    """Finds the modules of this package as Python does, which pip has compiled.

    pytest rewrites the assertions of all that is installed with a plugin. Where that was not
    cached, as in CI and in most containers, each process would compile the whole package.
    """

    @staticmethod
    def find_spec(name: str, path: Sequence[str] | None, *_: object) -> ModuleSpec | None:
        return PathFinder.find_spec(name, path) if name.startswith("pytest_upskill.") else None


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declare the options and ini keys."""
    for name, options in OPTIONS.items():
        group = parser.getgroup(f"upskill {name}", f"agent skills: {name}")
        for option in options:
            if option.on_command_line:
                group.addoption(option.flag, help=_help(option), **_arguments(option))
            if option.in_ini:
                empty = {"bool": False, "args": [], "linelist": []}
                default = empty.get(option.kind, option.default)
                text = f"As {option.flag}." if option.on_command_line else _help(option)
                parser.addini(option.key, text, type=option.kind, default=default)


def pytest_addhooks(pluginmanager: pytest.PytestPluginManager) -> None:
    """Declare the hooks that other plugins may implement."""
    from pytest_upskill import hookspecs

    pluginmanager.add_hookspecs(hookspecs)


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config: pytest.Config) -> int | None:
    """Write a schema or a catalogue and run nothing; use one process if no trial will run."""
    if path := config.getoption("upskill_write_schema"):
        from pytest_upskill.session.without_tests import write_schema

        return write_schema(config.invocation_params.dir / path)
    if config.getoption("upskill_catalogue_update"):
        from pytest_upskill.session.without_tests import update_catalogue

        return update_catalogue(config)
    if config.getoption("upskill_dry_run") or config.getoption("upskill_cache_prune"):
        config.option.numprocesses = None
        config.option.dist = "no"
        config.option.tx = []
    return None


@pytest.hookimpl(wrapper=True, tryfirst=True, specname="pytest_cmdline_main")
def pytest_cmdline_main_measures(config: pytest.Config) -> Generator[None, object, object]:
    """Refuse to be green if a comparison was asked for, and a pull request's settings run nothing.

    Many options of pytest end without tests, and any of them may be in ``addopts``.
    """
    code = yield
    typed = {str(each).partition("=")[0] for each in config.invocation_params.args}
    asked = sorted(typed & {"--upskill-compare", "--upskill-changed-since"})
    wants_no_test = typed & {"--upskill-dry-run", "--upskill-lint", "--collect-only", "--co"}
    reporting: Any = config.pluginmanager.get_plugin("upskill-reporting")
    has_decided = reporting is not None and reporting.has_decided
    if code or not asked or wants_no_test or has_decided or hasattr(config, "workerinput"):
        return code
    cure = "choose models, and see that no option in addopts ends without tests"
    sys.stderr.write(f"ERROR: {asked[0]}: nothing was compared, as no case ran: {cure}\n")
    from pytest_upskill.report.exit_code import NOT_MEASURED

    return NOT_MEASURED


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_load_initial_conftests(
    early_config: pytest.Config, parser: pytest.Parser, args: list[str]
) -> Generator[None]:
    """Load no ``conftest.py`` of skills and evals, if models are chosen or under lint.

    If pytest then refuses an option with a misspelled name, it prints the one that was meant.
    """
    every = (option for options in OPTIONS.values() for option in options)
    flags = {option.flag for option in every if option.on_command_line}
    for name in (str(arg).partition("=")[0] for arg in args):
        if name.startswith("--upsk") and name not in flags:
            from pytest_upskill.project.messages import did_you_mean

            parser.extra_info[name] = did_you_mean(name, flags).strip(" ()") or "see --help"
    given = early_config.known_args_namespace
    if not (given.upskill_lint or given.upskill_models or early_config.getini("upskill_models")):
        return (yield)
    sys.meta_path.insert(0, _AsCompiled)
    early_config.add_cleanup(lambda: sys.meta_path.remove(_AsCompiled))
    from pytest_upskill.session.untrusted_files import initial_arguments

    arguments, start = given.file_or_dir, early_config.invocation_params.dir
    paths = early_config.getini("testpaths") if start == early_config.rootpath else []
    found = [str(path) for pattern in paths for path in start.glob(pattern)]
    given.file_or_dir = initial_arguments(
        arguments or found or [str(start)], start, early_config.rootpath
    )
    try:
        return (yield)
    finally:
        given.file_or_dir = arguments


def pytest_configure(config: pytest.Config) -> None:
    """Register the plugins of the session; none without models and without lint."""
    config.addinivalue_line(
        "markers",
        "upskill(skill, case, model, arm): on every trial; -m \"upskill(arm='with_skill')\"",
    )
    # What only prints must not fail because of a wrong option.
    if any(config.getoption(option, default=False) for option in ("help", "markers")):
        return
    if _is_active(config):
        from pytest_upskill.session.start import start

        start(config)
        # The memory goes with the process: to search it for garbage takes a sixth of a short run.
        atexit.register(gc.freeze)
        return
    for option in ("--upskill-dry-run", "--upskill-cache-prune", "--upskill-baseline-update"):
        if config.getoption(option):
            from pytest_upskill.session.settings import NO_MODELS

            raise pytest.UsageError(f"{option}: {NO_MODELS}")


def pytest_unconfigure(config: pytest.Config) -> None:
    """Mark on GitHub why pytest has refused to run, if it has."""
    error = sys.exception()
    if isinstance(error, pytest.UsageError) and _is_active(config):
        from pytest_upskill.session.annotations import refusal

        # Without a terminal's reporter, which there may be none of yet.
        sys.stdout.writelines(f"{line}\n" for line in refusal(error))


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """Collect case files if models are chosen, or the file is named on the command line."""
    has_known_name = file_path.name in CASE_FILES
    if not (has_known_name or file_path.suffix in CASE_SUFFIXES):
        return None
    is_argument = has_known_name and parent.session.isinitpath(file_path)
    lint = parent.config.getoption("upskill_lint")
    if not (is_argument or _is_active(parent.config)):
        if has_known_name and any((above / "SKILL.md").exists() for above in file_path.parents[:2]):
            parent.config.stash[_NOT_COLLECTED] = True
        return None
    from pytest_upskill.session.case_files import discovery_of
    from pytest_upskill.session.selection import collector_of

    discovery, is_skill = discovery_of(parent.config), file_path.name == "SKILL.md"
    is_linted = lint and is_skill and not discovery.skill_has_cases(file_path.parent)
    if is_argument or is_linted or discovery.is_case_file(file_path):
        return collector_of(file_path, parent)
    return None


def pytest_collect_directory(path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """Collect strangers' folders without Python, if models are chosen or under lint."""
    if not _is_active(parent.config):
        return None
    from pytest_upskill.session.untrusted_files import StrangersFolder, is_of_strangers

    return StrangersFolder.from_parent(parent, path=path) if is_of_strangers(path, parent) else None


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, exitstatus: int, config: pytest.Config
) -> None:
    """Print how to run the case files if no test was collected, as no models are chosen."""
    has_tests = exitstatus != pytest.ExitCode.NO_TESTS_COLLECTED
    if has_tests or terminalreporter.stats.get("deselected") or _NOT_COLLECTED not in config.stash:
        return
    if config.get_verbosity() > -2:  # noqa: PLR2004  -qq: pytest prints nothing either
        how = "--upskill-models offline runs them"
        terminalreporter.line(f"upskill: no models chosen for case files: {how}", yellow=True)


def _is_active(config: pytest.Config) -> bool:
    """Return whether models are chosen, or skills are linted."""
    given = config.getoption("upskill_lint") or config.getoption("upskill_models")
    return bool(given or config.getini("upskill_models"))


def _help(option: Option) -> str:
    if option.default is None:
        return option.help
    return f"{option.help.removesuffix('.')} (default: {option.default})."


def _arguments(option: Option) -> dict[str, Any]:
    """Return the arguments of ``addoption`` for an option."""
    if option.kind == "bool":
        # None means not given: the ini key decides.
        return {"action": "store_true", "default": None if option.in_ini else False}
    if option.kind == "args":
        return {"action": "append", "metavar": option.metavar, "dest": option.key}
    # Numbers stay text here: argparse would print five lines without a cure.
    return {"metavar": option.metavar}
