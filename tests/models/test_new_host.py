"""A new host is a row; a new provider is a module, a row, and a case of the clients."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.pages import CHECKOUT

HOST = """    KnownHost(
        prefix="acme",
        title="Acme",
        url="https://api.acme.example/v1",
        keys=("ACME_API_KEY",),{wire}
        refuses=("seed",),
    ),
)

BY_PREFIX"""
PROVIDER = '''
class AcmeClient:
    """A client for the models at one endpoint."""

    def __init__(self, endpoint):
        import acme

        self.host = endpoint.host
'''
CASE = """            case "acme":
                from pytest_upskill.models.acme import AcmeClient

                return AcmeClient(endpoint)
            case "offline":
"""
USE = """
from dataclasses import replace

from pytest_upskill.models import parse_model
from pytest_upskill.models.parameters import Parameters
from pytest_upskill.models.clients import make_client, missing_sdk
from pytest_upskill.models.errors import refused_parameter
from pytest_upskill.models.keys import endpoints, missing_key
from pytest_upskill.session import outgoing

model = parse_model("acme:road-1")
print(missing_key(model, {}))
(endpoint,) = endpoints([model], {"ACME_API_KEY": "a-key"}).values()
print(endpoint.url, endpoint.key)
print(refused_parameter(replace(model, parameters=Parameters(seed=1))))
print(missing_sdk(model) or type(make_client(endpoint)).__name__)
print(endpoint.wire in outgoing._SDKS)
"""


def put(file: Path, before: str, after: str) -> None:
    text = file.read_text("utf-8")
    assert before in text
    file.write_text(text.replace(before, after, 1), "utf-8")


@pytest.mark.parametrize("client", ["OpenAIClient", "AcmeClient"])
def test_a_new_host_is_a_row_and_a_new_provider_two_places_more(
    tmp_path: Path, client: str
) -> None:
    package = tmp_path / "pytest_upskill"
    shutil.copytree(
        CHECKOUT / "pytest_upskill", package, ignore=shutil.ignore_patterns("__pycache__")
    )
    hosts, own_wire = package / "models" / "hosts.py", client == "AcmeClient"
    wire = '\n        wire="acme",' if own_wire else ""
    put(hosts, ")\n\nBY_PREFIX", HOST.format(wire=wire))
    if own_wire:
        (tmp_path / "acme.py").write_text("", "utf-8")
        (package / "models" / "acme.py").write_text(PROVIDER, "utf-8")
        put(hosts, 'Literal["anthropic", "openai"]', 'Literal["acme", "anthropic", "openai"]')
        put(package / "models" / "clients.py", '            case "offline":\n', CASE)

    done = subprocess.run(
        [sys.executable, "-c", USE], cwd=tmp_path, capture_output=True, text=True, check=False
    )

    assert done.stderr == ""
    assert done.stdout.splitlines() == [
        "road-1: no key for acme:road-1: set ACME_API_KEY",
        "https://api.acme.example/v1 a-key",
        (
            "--upskill-param: the host of road-1 refuses seed: write LABEL:seed=... for each of "
            "the other models"
        ),
        client,
        "True",
    ]
