"""A project whose ``conftest.py`` serves models by a client of its own."""

from __future__ import annotations

import pytest

_CANNED = """
from pytest_upskill.models import Completion

class Canned:
    async def complete(self, request):
        return Completion(text="37", input_tokens=1, output_tokens=1)

    async def aclose(self):
        pass

def pytest_upskill_make_client(model, config):
    return Canned()
"""


@pytest.fixture
def canned_client(pytester: pytest.Pytester) -> None:
    """Serve every model by a plugin, whose answers hold the fact of ``write_skill``."""
    pytester.makeconftest(_CANNED)
