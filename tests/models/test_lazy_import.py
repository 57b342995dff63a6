"""Packages that are imported when a name in them is looked up."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

from pytest_upskill.models.lazy_import import lazy_import

PATIENCE_S = 10.0


@pytest.fixture
def sdk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Return the folder of ``sdk.types``, which ``sdk`` imports and uses one module of."""
    types = tmp_path / "sdk" / "types"
    types.mkdir(parents=True)
    (tmp_path / "sdk" / "__init__.py").write_text("from . import types\nfrom .types.small import A")
    (types / "__init__.py").write_text("from .small import A\nfrom .large import B")
    (types / "small.py").write_text("class A: pass")
    (types / "large.py").write_text("class B: pass")
    monkeypatch.syspath_prepend(tmp_path)
    yield types
    for name in [name for name in sys.modules if name.partition(".")[0] == "sdk"]:
        del sys.modules[name]


def ran() -> set[str]:
    return {name.removeprefix("sdk.") for name in sys.modules if name.startswith("sdk.types.")}


@pytest.mark.usefixtures("sdk")
def test_a_package_runs_with_the_first_name_that_is_looked_up_in_it() -> None:
    with lazy_import("sdk.types"):
        imported = import_module("sdk")
    before = ran()

    found = imported.types.B

    assert before == {"types.small"}
    assert found is sys.modules["sdk.types.large"].B
    assert imported.types.A is imported.A


@pytest.mark.usefixtures("sdk")
def test_dir_lists_all_names_of_the_package_and_another_is_an_attribute_error() -> None:
    with lazy_import("sdk.types"):
        imported = import_module("sdk")

    assert {"A", "B", "small", "large"} <= set(dir(imported.types))
    with pytest.raises(AttributeError, match=r"'sdk\.types' has no attribute 'C'"):
        _ = imported.types.C


def test_a_module_of_the_package_may_use_its_names_while_imported(sdk: Path) -> None:
    (sdk / "large.py").write_text("from . import A\nclass B(A): pass")
    with lazy_import("sdk.types"):
        imported = import_module("sdk")

    assert issubclass(imported.types.B, imported.types.A)


def test_an_import_error_is_raised_at_each_use(sdk: Path) -> None:
    (sdk / "large.py").write_text("raise LookupError('no B today')")
    with lazy_import("sdk.types"):
        imported = import_module("sdk")

    for _ in range(2):
        with pytest.raises(LookupError, match="no B today"):
            _ = imported.types.B


def test_threads_that_use_it_at_once_all_find_the_name(sdk: Path) -> None:
    slow = "import time\ntime.sleep(0.2)\nclass B: pass"
    (sdk / "large.py").write_text(slow)
    with lazy_import("sdk.types"):
        imported = import_module("sdk")
    found: list[object] = []
    threads = [threading.Thread(target=lambda: found.append(imported.types.B)) for _ in range(4)]

    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE_S)

    assert found == [imported.types.B] * 4


@pytest.mark.usefixtures("sdk")
def test_other_packages_and_later_imports_run_at_once() -> None:
    with lazy_import("sdk.kinds"):
        import_module("sdk")

    assert ran() == {"types.small", "types.large"}
    assert not any(type(finder).__module__ == lazy_import.__module__ for finder in sys.meta_path)


def test_a_client_does_without_the_classes_of_replies_and_others_may_use_them() -> None:
    script = """
import sys
import pytest_upskill.models.openai
unused = not any(name.startswith("openai.types.responses.response") for name in sys.modules)
import openai
from openai.types.responses import Response
from openai.types.chat import ChatCompletion
assert openai.types.responses.Response is Response
assert openai.types.chat.ChatCompletion is ChatCompletion
print(unused, len(dir(openai.types)), len(dir(openai.types.responses)))
"""
    plain = "import openai; print(len(dir(openai.types)), len(dir(openai.types.responses)))"

    said = [
        subprocess.run([sys.executable, "-c", text], capture_output=True, check=True, text=True)
        for text in (script, plain)
    ]

    assert said[0].stdout == f"True {said[1].stdout}"
