"""Hooks that other plugins and conftest files may implement."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

# Only for types: every pytest run with this plugin installed imports this module.
if TYPE_CHECKING:
    from pytest_upskill.models import Model
    from pytest_upskill.providers import Client


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
