"""Options and hooks. Imports nothing but pytest: an unused plugin must cost nothing."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path
from typing import Any, Literal

import pytest

from pytest_upskill import CASE_FILES

_OPTIONS: tuple[tuple[str, type, str, str], ...] = (
    ("base-url", str, "URL", "OpenAI-compatible server for models of no known provider."),
    ("judge", str, "MODEL", "Model that decides the 'judge' statements about answers."),
    ("runs", int, "N", "Runs of each case in each arm (default 1)."),
    (
        "min-pass-rate",
        float,
        "RATE",
        "Share of a case's runs that must pass (default 1.0), and of a skill's cases on a model.",
    ),
    ("min-lift", float, "LIFT", "Fail a skill that lifts a model by less; 0.2 is 20 points."),
    (
        "fail-on",
        str,
        "WORDS",
        "Fail on any of hurts, regression, no-effect, too-few-runs (default: the first two).",
    ),
    (
        "compare",
        str,
        "baseline|REF",
        "Fail a skill that has become worse than its committed baseline, or than at the git ref.",
    ),
    ("changed-since", str, "REF", "Run only skills whose folder changed since the git ref."),
    ("concurrency", int, "N", "Requests in flight at one host (default 20)."),
    ("max-tokens", int, "N", "Output limit of one answer (default 8192)."),
    ("timeout", int, "SECONDS", "Limit of one request (default 120)."),
    ("cache", str, "MODE", "Recordings: auto (default), refresh, replay or off."),
    (
        "cache-dir",
        str,
        "DIR",
        "Where recordings are (default .upskill/cache at the root of the repository).",
    ),
    ("max-cost", float, "USD", "Ask no model once this many dollars could be passed."),
    (
        "sandbox",
        str,
        "LEVEL",
        "What compilers run in: auto (default), bwrap, landlock, limits or off.",
    ),
    ("json", str, "PATH", "Write everything as JSON."),
    ("md", str, "PATH", "Write a summary as Markdown, such as for a pull request's comment."),
    ("html", str, "PATH", "Write a page with charts and answers, in one file."),
    (
        "junit-properties",
        str,
        "WORDS",
        "Repeat JUnit properties under the names that datadog and codecov read.",
    ),
    ("shard", str, "K/N", "Run only the K-th of N shares of the trials; then merge the reports."),
    ("benchmark-json", str, "PATH", "Write skill-creator's benchmark.json."),
)

_SUFFIXES = frozenset({".json", ".jsonl", ".yaml", ".yml"})
"""How the names of files with cases end."""

# By name: pytest takes the types themselves only since 9.2.
_INI_TYPES: dict[type, Literal["int", "float", "string"]] = {
    int: "int",
    float: "float",
    str: "string",
}


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declare the options; each is an ini key too."""
    group = parser.getgroup("upskill", "agent skills: what each is worth, on which model")
    group.addoption(
        "--upskill-models",
        action="append",
        metavar="MODEL[,MODEL...]",
        help="Run the skills' cases on these models, with and without the skill: an alias (haiku, "
        "sonnet, opus), offline, or [label=][provider:]model[@base_url].",
    )
    parser.addini("upskill_models", "As --upskill-models.", type="args", default=[])
    for name, kind, metavar, text in _OPTIONS:
        option, key = f"--upskill-{name}", f"upskill_{name.replace('-', '_')}"
        # Text, also of numbers: argparse would refuse them in five lines without a cure.
        group.addoption(option, metavar=metavar, help=text)
        parser.addini(key, f"As {option}.", type=_INI_TYPES[kind], default=None)
    group.addoption(
        "--upskill-baseline-update",
        action="store_true",
        help="Write what the cases came to into .upskill/baselines, to be committed.",
    )
    group.addoption(
        "--upskill-early-stop",
        action="store_true",
        default=None,
        help="Ask round by round, and no more of a skill on a model once the verdict is clear.",
    )
    parser.addini("upskill_early_stop", "As --upskill-early-stop.", type="bool", default=False)
    group.addoption(
        "--upskill-lint",
        action="store_true",
        help="Look for what is wrong with skills and cases, and ask no model.",
    )
    group.addoption(
        "--upskill-dry-run",
        action="store_true",
        help="Say what would be asked and what it would cost at most, and ask nothing.",
    )
    group.addoption(
        "--upskill-write-schema",
        metavar="PATH",
        help="Write the JSON Schema of skill_meta.json, for editors, and run nothing.",
    )
    group.addoption(
        "--upskill-cache-prune",
        action="store_true",
        help="Delete recordings that no trial refers to, and run nothing; with "
        "--upskill-dry-run, list them.",
    )
    parser.addini(
        "upskill_prices",
        "Own prices, 'label = IN/OUT' or 'label = IN/OUT cached RATE'.",
        type="linelist",
        default=[],
    )
    group.addoption(
        "--upskill-require-compilers",
        action="store_true",
        default=None,
        help="Make a missing compiler an error instead of a skip.",
    )
    parser.addini(
        "upskill_require_compilers", "As --upskill-require-compilers.", type="bool", default=False
    )
    parser.addini(
        "upskill_case_files",
        "Further names of files with cases, such as '*-checks.json' or 'checks/*.yaml'.",
        type="args",
        default=[],
    )
    parser.addini(
        "upskill_max_cases",
        "Cases that a run may have (default 20000).",
        type="int",
        default=20000,
    )
    parser.addini(
        "upskill_aliases", "Names of models, 'name = model'.", type="linelist", default=[]
    )


def pytest_addhooks(pluginmanager: pytest.PytestPluginManager) -> None:
    """Declare the hooks that other plugins may implement."""
    from pytest_upskill import hookspecs

    pluginmanager.add_hookspecs(hookspecs)


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config: pytest.Config) -> int | None:
    """Write the schema instead of a run; keep in one process what runs no trial."""
    if path := config.getoption("upskill_write_schema"):
        from pytest_upskill.formats.skill_meta.json_schema import write_schema

        return write_schema(config.invocation_params.dir / path)
    if config.getoption("upskill_dry_run") or config.getoption("upskill_cache_prune"):
        config.option.numprocesses = None
        config.option.dist = "no"
        config.option.tx = []
    return None


def pytest_configure(config: pytest.Config) -> None:
    """Register what a run about skills needs; without models and without lint, nothing."""
    config.addinivalue_line(
        "markers",
        "upskill(skill, case, model, arm): on every trial; -m \"upskill(arm='with_skill')\"",
    )
    if _models_chosen(config):
        from pytest_upskill.providers.sdk_import import long_lived

        with long_lived():
            from pytest_upskill.session.start import start
        start(config)
    elif config.getoption("upskill_lint"):
        from pytest_upskill.session.lint_items import CaselessSkills

        config.pluginmanager.register(CaselessSkills(config), "upskill-caseless-skills")
    else:
        _refuse_without_models(config)
        return
    from pytest_upskill.session.grouped_warnings import GROUPED_WARNINGS, GroupedWarnings

    grouped = config.stash[GROUPED_WARNINGS] = GroupedWarnings(config)
    config.pluginmanager.register(grouped, "upskill-grouped-warnings")
    config.pluginmanager.register(NamedFiles(), "upskill-named-files")


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """Collect case files, where models are chosen or the file itself was asked for."""
    known = file_path.name in CASE_FILES
    if not (known or file_path.suffix in _SUFFIXES):
        return None
    asked_for = known and parent.session.isinitpath(file_path)
    lint = parent.config.getoption("upskill_lint")
    if not (asked_for or lint or _models_chosen(parent.config)):
        if known and any((above / "SKILL.md").exists() for above in file_path.parents[:2]):
            from pytest_upskill.session.passed_over import passed_over

            passed_over(parent.config).files += 1
        return None
    from pytest_upskill.session.settings import places_of

    places = places_of(parent.config)
    if not (places.may_hold_cases(file_path) and (asked_for or places.is_case_file(file_path))):
        return None
    if lint:
        from pytest_upskill.session.lint_items import LintFile

        return LintFile.from_parent(parent, path=file_path)
    from pytest_upskill.session.items import SkillFile

    return SkillFile.from_parent(parent, path=file_path)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Hear from a worker of pytest-xdist how many case files it passed over."""
    if files := getattr(node, "workeroutput", {}).get("upskill-passed-over"):
        from pytest_upskill.session.passed_over import passed_over

        passed_over(node.config).files = files


def pytest_collect_directory(path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """Refuse a folder whose name must not be printed, in runs that are about skills."""
    if not (parent.config.getoption("upskill_lint") or _models_chosen(parent.config)):
        return None
    from pytest_upskill.sanitize.safe_text import safe_line

    if safe_line(path.name) == path.name and "::" not in path.name:
        return None
    from pytest_upskill.session.items import UnsafeFolder

    return UnsafeFolder.of(parent, path)


class NamedFiles:
    """Takes what was named on the command line and nobody else takes: it has cases, or an error.

    pytest alone would say that nothing is there.
    """

    @pytest.hookimpl(wrapper=True)
    def pytest_collect_file(
        self, file_path: Path, parent: pytest.Collector
    ) -> Generator[None, list[pytest.Collector], list[pytest.Collector]]:
        """Collect it only if it was asked for."""
        collectors = yield
        if collectors or not parent.session.isinitpath(file_path):
            return collectors
        if file_path.name == "SKILL.md":
            from pytest_upskill.session.items import NamedSkill

            return [NamedSkill.from_parent(parent, path=file_path)]
        if parent.config.getoption("upskill_lint"):
            from pytest_upskill.session.lint_items import LintFile

            return [LintFile.from_parent(parent, path=file_path)]
        from pytest_upskill.session.items import SkillFile

        return [SkillFile.from_parent(parent, path=file_path)]


def _refuse_without_models(config: pytest.Config) -> None:
    """Refuse what can do nothing without models; a mere setting may be there for other runs."""
    for option in ("--upskill-dry-run", "--upskill-cache-prune", "--upskill-baseline-update"):
        if config.getoption(option):
            from pytest_upskill.session.settings import NO_MODELS

            raise pytest.UsageError(f"{option}: {NO_MODELS}")


def _models_chosen(config: pytest.Config) -> bool:
    if config.getoption("upskill_lint"):
        return False
    return bool(config.getoption("upskill_models") or config.getini("upskill_models"))
