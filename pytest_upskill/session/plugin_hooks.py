"""Languages and checks that other plugins add through hooks."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from pytest_upskill.cases.skill import Case
from pytest_upskill.checks import CheckError, CheckResult
from pytest_upskill.checks.blocks import RUNNABLE
from pytest_upskill.checks.extensions import Custom, Extensions, describe_exception
from pytest_upskill.checks.result import MAX_MESSAGE, cut
from pytest_upskill.models import clean

if TYPE_CHECKING:
    from pluggy import HookRelay

    from pytest_upskill.checks.compile import Language


def languages_of(config: pytest.Config) -> tuple[Language, ...]:
    """Return the languages of plugins and of the rootdir's ``conftest.py``.

    Raises:
        pytest.UsageError: A plugin's hook raises an error or does not return a list.
    """
    hook = "the hook pytest_upskill_languages"
    try:
        lists = config.hook.pytest_upskill_languages()
    except Exception as error:  # noqa: BLE001  a plugin's
        raise pytest.UsageError(
            f"{hook} raised {describe_exception(error)}: fix the plugin"
        ) from None
    for languages in lists:
        if not isinstance(languages, (list, tuple)):
            returned = type(languages).__name__
            raise pytest.UsageError(f"{hook} returned {returned}: return a list of languages")
    return tuple(language for languages in lists for language in languages)


def extensions_of(hook: HookRelay, languages: Iterable[Language]) -> Extensions:
    """Return the languages and checks that plugins add to a case file.

    Args:
        hook: Hooks that apply to the case file.
        languages: Languages of plugins.
    """

    def claims(name: str, value: object) -> bool:
        return bool(hook.pytest_upskill_claim_check(name=name, value=value))

    runnable = set(RUNNABLE)
    spellings = {}
    for language in languages:
        # A plugin's language replaces the built-in one of its name.
        runnable.discard(language.name)
        if language.runner is not None:
            runnable.add(language.name)
        spellings.update(dict.fromkeys(language.spellings, language.name))
    return Extensions(languages=spellings, runnable=frozenset(runnable), claims=claims)


def decider(hook: HookRelay, case: Case) -> Callable[[Custom, str], CheckResult]:
    """Return a function that decides a case's custom checks through the plugins' hook.

    The function raises `CheckError` if the hook fails or returns no bool and no `CheckResult`.

    Args:
        hook: Hooks that apply to the case file.
        case: The case, which the hook receives.
    """

    def decide(check: Custom, text: str) -> CheckResult:
        try:
            result = hook.pytest_upskill_check(
                name=check.name, value=check.value, answer=text, case=case
            )
        except CheckError as error:
            raise CheckError(clean(str(error))) from error
        except (Exception, pytest.fail.Exception) as error:  # a plugin's
            raise CheckError(
                f"{check.name}: pytest_upskill_check raised {describe_exception(error)}"
            ) from error
        if isinstance(result, bool):
            outcome = "holds" if result else "does not hold"
            message = cut(f"{check.name} {check.value!r}: {outcome}", MAX_MESSAGE)
            return CheckResult(name=check.name, passed=result, message=message)
        if isinstance(result, CheckResult):
            message = cut(str(result.message), MAX_MESSAGE)
            return replace(result, message=message, detail=clean(str(result.detail)))
        raise CheckError(
            f"{check.name}: pytest_upskill_check returned {type(result).__name__}: "
            "return a bool or a CheckResult"
        )

    return decide
