"""Missing keys and SDKs are found before a run."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from pytest_upskill.models import parse_model
from pytest_upskill.models.clients import missing_sdk
from pytest_upskill.models.keys import missing_key
from tests.sdk_requests import every_sdk


@pytest.mark.parametrize(
    ("spec", "variable"), [("haiku", "ANTHROPIC_API_KEY"), ("gpt-6-luna", "OPENAI_API_KEY")]
)
def test_a_missing_key_is_one_line_that_names_the_variable(
    tmp_path: Path, spec: str, variable: str
) -> None:
    model = parse_model(spec)
    nowhere = {"ANTHROPIC_CONFIG_DIR": str(tmp_path)}

    problem = missing_key(model, nowhere)

    assert problem == f"{spec}: no key for {model.resolved}: set {variable}"
    assert missing_key(model, {**nowhere, variable: " "}) == problem
    assert not missing_key(model, {**nowhere, variable: "k"})


@pytest.mark.parametrize("spec", ["offline", "x@http://127.0.0.1:1/v1", "someplugin:model"])
def test_a_server_that_takes_no_key_needs_none(spec: str) -> None:
    assert not missing_key(parse_model(spec), {})


@pytest.mark.parametrize(
    "environ",
    [
        {"ANTHROPIC_AUTH_TOKEN": "t"},
        {"ANTHROPIC_PROFILE": "dev"},
        {
            "ANTHROPIC_FEDERATION_RULE_ID": "r",
            "ANTHROPIC_ORGANIZATION_ID": "o",
            "ANTHROPIC_IDENTITY_TOKEN_FILE": "/token",
        },
    ],
)
def test_other_credentials_that_the_sdk_finds_are_no_missing_key(
    environ: dict[str, str], tmp_path: Path
) -> None:
    nowhere = {"ANTHROPIC_CONFIG_DIR": str(tmp_path)}

    assert not missing_key(parse_model("haiku"), environ | nowhere)


def test_a_profile_on_disk_is_no_missing_key(tmp_path: Path) -> None:
    (tmp_path / "configs").mkdir()

    assert not missing_key(parse_model("haiku"), {"ANTHROPIC_CONFIG_DIR": str(tmp_path)})


def test_without_a_home_the_key_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_home() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", no_home)

    assert missing_key(parse_model("haiku"), {})


@every_sdk
def test_a_missing_sdk_is_one_line_with_the_command(
    provider: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = parse_model(f"m={provider}:some-model")
    assert not missing_sdk(model)

    monkeypatch.setattr("pytest_upskill.models.keys.find_spec", lambda _: None)

    assert missing_sdk(model) == (
        f"m: needs the {provider} SDK: pip install 'pytest-upskill[{provider}]'"
    )


def test_keys_are_looked_at_without_importing_an_sdk() -> None:
    program = (
        "import sys, pytest_upskill.models.clients as p\n"
        "import pytest_upskill.models.keys as k\n"
        "from pytest_upskill.models import parse_model\n"
        "m = parse_model('haiku'); p.missing_sdk(m); k.missing_key(m, {}); k.endpoints([m], {})\n"
        "print(*{'anthropic', 'openai', 'httpx2', 'anyio'} & set(sys.modules))"
    )

    imported = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )

    assert imported.stdout.strip() == ""
