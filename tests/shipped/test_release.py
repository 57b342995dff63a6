"""A release is rehearsed by the steps of its own workflow."""

from __future__ import annotations

import re
import shutil
import tomllib
from email import message_from_bytes
from email.message import Message
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest
import yaml

from tests.git_repository import git
from tests.pages import CHECKOUT, links
from tests.shipped.workflows import shell

JOBS: dict[str, Any] = yaml.safe_load(
    (CHECKOUT / ".github" / "workflows" / "release.yml").read_text("utf-8")
)["jobs"]
PROJECT = tomllib.loads((CHECKOUT / "pyproject.toml").read_text("utf-8"))["project"]
ADDRESS = "https://github.com/owner/pytest-upskill"
TAG = f"v{PROJECT['version']}"

pytestmark = [pytest.mark.slow, pytest.mark.needs("git", "unzip")]


@pytest.fixture(scope="module")
def tagged(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkout as GitHub's runner makes one: nothing but the files that git knows."""
    folder = tmp_path_factory.mktemp("tagged")
    for name in git(
        CHECKOUT, "ls-files", "--cached", "--others", "--exclude-standard"
    ).splitlines():
        if (CHECKOUT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(CHECKOUT / name, folder / name)
    return folder


def build(folder: Path, *, tag: str = TAG, address: str = ADDRESS) -> tuple[int, str]:
    """Run the steps that build, up to the first that fails; return its code and all output."""
    shutil.rmtree(folder / "dist", ignore_errors=True)
    output = ""
    for step in JOBS["build"]["steps"]:
        script = step.get("run", "")
        if not script or script.startswith("pip install "):
            continue
        given = {"UPSKILL_REPOSITORY": address} if "env" in step else {}
        process = shell(script, folder, GITHUB_REF_NAME=tag, **given)
        output += process.stdout
        if process.returncode:
            return process.returncode, output
    return 0, output


@pytest.fixture(scope="module")
def page(tagged: Path) -> Message:
    """The page of the package, as the index gets it."""
    code, output = build(tagged)
    assert code == 0, output
    (wheel,) = (tagged / "dist").glob("*.whl")
    with ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        return message_from_bytes(archive.read(name))


def test_every_link_of_the_page_leads_to_this_version(page: Message) -> None:
    payload = page.get_payload(decode=True)
    assert isinstance(payload, bytes)
    text = payload.decode()

    local = [link for link in links(CHECKOUT / "README.md") if not re.match("https?://|#", link)]

    assert len(local) > 10
    for link in local:
        assert f"({ADDRESS}/blob/{TAG}/{link})" in text
        assert (CHECKOUT / link.partition("#")[0]).exists()
    assert not re.search(r"\]\((?!https?://|#)", text)
    assert f"Repository, {ADDRESS}" in page.get_all("Project-URL", [])


def test_a_tag_that_is_not_the_version_stops_the_release(tagged: Path) -> None:
    code, _ = build(tagged, tag="v99.0")

    assert code != 0


def test_a_release_without_the_repositorys_address_stops(tagged: Path) -> None:
    code, _ = build(tagged, address="")

    assert code != 0


def test_nothing_is_published_before_the_tests_and_each_python_have_passed() -> None:
    published = set(JOBS["publish"]["needs"])
    named = (each.rpartition(" ")[2] for each in PROJECT["classifiers"] if ":: 3." in each)

    assert published == {"tests", "wheel"}
    assert JOBS["tests"]["uses"] == "./.github/workflows/tests.yml"
    assert JOBS["wheel"]["needs"] == "build"
    assert JOBS["wheel"]["strategy"]["matrix"]["python"] == list(named)
