"""Hooks that other plugins and conftest files may implement."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

# Only for types: every pytest run with this plugin installed imports this module.
if TYPE_CHECKING:
    from collections.abc import Iterable

    from pytest_upskill.cases.skill import Case
    from pytest_upskill.checks import CheckResult
    from pytest_upskill.checks.compile import Language
    from pytest_upskill.models import Client, Model


@pytest.hookspec(firstresult=True)
def pytest_upskill_make_client(model: Model, config: pytest.Config) -> Client | None:
    """Return a client for ``model``, or None to leave the model to other plugins.

    Called once for each chosen model, before the first request. The client's methods run on one
    event loop in a background thread. Under pytest-xdist only the controller sends requests, so put
    the hook into a plugin or into the ``conftest.py`` of the rootdir::

        def pytest_upskill_make_client(model, config):
            if model.provider == "acme":
                return AcmeClient(model.name)

    Choose such a model with ``--upskill-models acme:some-model``. A client whose models may call
    tools has ``accepts_tools = True``: its ``complete`` sends `Request.tools` and `Request.turns`,
    and returns `Completion.tool_calls` and `Completion.assistant_blocks`. Without it, requests with
    tools are not sent. A client that sends ``request.model.parameters`` has
    ``accepts_parameters = True``.

    Args:
        model: The chosen model: ``provider`` and ``name`` are the parts of ``acme:some-model``.
        config: The configuration of the pytest session.
    """


@pytest.hookspec(firstresult=True)
def pytest_upskill_claim_check(name: str, value: object) -> bool | None:
    """Return True if ``name``, an unknown key of ``expected``, is a check of this plugin.

    Called for each unknown key when a case file is read. It is an error in the case file if no
    plugin claims a key. If the value is wrong, raise ``ValueError``: its message is shown with the
    position of the key::

        def pytest_upskill_claim_check(name, value):
            if name != "max_words":
                return None
            if not isinstance(value, int):
                raise ValueError("must be a whole number")
            return True

    Args:
        name: The key.
        value: Its value, as read from JSON.
    """


@pytest.hookspec(firstresult=True)
def pytest_upskill_check(
    name: str, value: object, answer: str, case: Case
) -> CheckResult | bool | None:
    """Return the result of a check on an answer, or None to leave ``name`` to other plugins.

    Called once for each answer and each claimed key of the case, in the process that runs the item.
    The message of a `CheckResult` should state what was expected and what was found. Raise
    `CheckError` if the check cannot be decided; then the run is missing data::

        def pytest_upskill_check(name, value, answer, case):
            if name == "max_words":
                words = len(answer.split())
                message = f"max_words {value}: the answer has {words}"
                return CheckResult(name=name, passed=words <= value, message=message)

    Args:
        name: The claimed key.
        value: Its value, as read from JSON.
        answer: The model's answer, without reasoning. It is untrusted: run nothing from it.
        case: The case that was answered.
    """


@pytest.hookspec
def pytest_upskill_languages() -> Iterable[Language]:  # type: ignore[empty-body]  # a hook
    """Return a list of languages that ``compile`` and ``run`` may use.

    Called once at the start, so put the hook into a plugin or into the ``conftest.py`` of the
    rootdir.
    """
