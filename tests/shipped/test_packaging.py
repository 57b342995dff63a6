"""The wheel: what it holds and what it requires; .ci/run installs it and runs a skill."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from email import message_from_bytes
from email.message import Message
from pathlib import Path
from zipfile import ZipFile

import pytest

from tests.pages import CHECKOUT


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build as a release is built: the wheel from the source archive, that from the checkout."""
    folder = tmp_path_factory.mktemp("dist")
    command: list[str | Path] = [sys.executable, "-m", "build", "--no-isolation"]
    command += ["--outdir", folder, CHECKOUT]
    process = subprocess.run(command, text=True, capture_output=True, check=False)
    assert process.returncode == 0, process.stdout + process.stderr
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def metadata(wheel: Path) -> Message:
    with ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        return message_from_bytes(archive.read(name))


@pytest.mark.slow
def test_the_wheel_holds_the_package_and_nothing_else(wheel: Path) -> None:
    package = CHECKOUT / "pytest_upskill"
    files = (path for path in package.rglob("*") if path.is_file() and path.suffix != ".pyc")
    expected = {path.relative_to(CHECKOUT).as_posix() for path in files}

    with ZipFile(wheel) as archive:
        packed = {name for name in archive.namelist() if ".dist-info/" not in name}

    assert packed == expected
    assert "pytest_upskill/py.typed" in packed


def test_the_wheel_brings_the_licence(wheel: Path) -> None:
    with ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith("/licenses/LICENSE"))

        assert archive.read(name) == (CHECKOUT / "LICENSE").read_bytes()


def test_the_wheel_declares_the_plugin_and_the_command(wheel: Path) -> None:
    with ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith("/entry_points.txt"))

        assert archive.read(name).decode() == (
            "[console_scripts]\npytest-upskill = pytest_upskill.commands.main:main\n\n"
            "[pytest11]\nupskill = pytest_upskill.plugin\n"
        )


def test_only_extras_bring_an_sdk_or_a_toolkit(metadata: Message) -> None:
    required = metadata.get_all("Requires-Dist", [])
    always = {line.split(">")[0] for line in required if "extra ==" not in line}

    assert always == {
        *("jinja2", "jsonschema", "markdown-it-py", "markupsafe", "pluggy", "pydantic"),
        *("pydantic-core", "pygments", "pytest", "pyyaml", "referencing", "tenacity", "wcwidth"),
    }
    extras = set(metadata.get_all("Provides-Extra", []))
    clouds = {"azure", "bedrock", "vertex"}
    assert extras == clouds | {"all", "anthropic", "cuda", "dev", "openai", "xdist"}


def test_the_changelog_speaks_of_this_version() -> None:
    project = tomllib.loads((CHECKOUT / "pyproject.toml").read_text("utf-8"))["project"]
    changelog = (CHECKOUT / "CHANGELOG.md").read_text("utf-8")

    assert f"\n## {project['version']}" in changelog
