"""Hooks that other plugins and conftest files may implement."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

# Only for types: every pytest run with this plugin installed imports this module.
if TYPE_CHECKING:
    from collections.abc import Iterable

    from pytest_upskill.checks import CheckResult
    from pytest_upskill.compile import Language
    from pytest_upskill.model import Model
    from pytest_upskill.providers import Client
    from pytest_upskill.skill import Case


@pytest.hookspec(firstresult=True)
def pytest_upskill_make_client(model: Model, config: pytest.Config) -> Client | None:
    """Make the client that answers for ``model``, or return None to leave it to others.

    Called once for each chosen model, before the first request. The client's methods run on one
    event loop in a background thread. Under pytest-xdist only the controller asks models, so put
    the hook into a plugin or into the ``conftest.py`` of the rootdir::

        def pytest_upskill_make_client(model, config):
            if model.provider == "acme":
                return AcmeClient(model.name)

    Such a model is chosen as ``--upskill-models acme:some-model``.
    """


@pytest.hookspec(firstresult=True)
def pytest_upskill_claim_check(name: str, value: object) -> bool | None:
    """Say whether ``name``, a key of ``expected`` that is not built in, is a check of this plugin.

    Called for each such key when a case file is read; what no plugin claims is an error of the
    file, and so is a ``ValueError``, whose message stands beside the key's place::

        def pytest_upskill_claim_check(name, value):
            if name != "max_words":
                return None
            if not isinstance(value, int):
                raise ValueError("must be a whole number")
            return True
    """


@pytest.hookspec(firstresult=True)
def pytest_upskill_check(
    name: str, value: object, answer: str, case: Case
) -> CheckResult | bool | None:
    """Check an answer, or return None to leave ``name`` to others.

    Called for each claimed key of the case, once for each answer, in the process that runs the
    item. A `CheckResult` says in its message what was looked for and found; `CheckError` says that
    it cannot be told, so that the run is missing data::

        def pytest_upskill_check(name, value, answer, case):
            if name == "max_words":
                words = len(answer.split())
                message = f"max_words {value}: the answer has {words}"
                return CheckResult(name=name, passed=words <= value, message=message)
    """


@pytest.hookspec
def pytest_upskill_languages() -> Iterable[Language]:  # type: ignore[empty-body]
    """Return languages that ``compile`` and ``run`` may ask for, in a list.

    Called once at the start, so put the hook into a plugin or into the ``conftest.py`` of the
    rootdir.
    """
