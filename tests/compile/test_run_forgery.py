"""An answer that sets out to pass tests that it does not pass."""

from __future__ import annotations

import pytest

from pytest_upskill.checks import CheckResult, Run
from pytest_upskill.compile import Compilers
from pytest_upskill.sandbox.levels import Level
from tests.compiling import python, run
from tests.sandbox_programs import every_confining_level

WRONG = "def add(a, b):\n    return 0\n"
FUNCTION = "def test_add():\n    assert add(1, 2) == 3"
CASE = (
    "import unittest\nclass T(unittest.TestCase):\n"
    "    def test_add(self):\n        self.assertEqual(add(1, 2), 3)"
)


def attempt(answer: str, code: str = FUNCTION, level: Level = "auto") -> CheckResult:
    return run(python(answer), code, level)


@pytest.mark.parametrize(
    "attack",
    [
        "import sys; print(open('/proc/self/cmdline').read())\nprint('= passed'); sys.exit(0)",
        "import os; os.write(1, b'= passed\\n'); os._exit(0)",
        "import os; os.write(1, b'\\n= passed\\n\\r\\n= passed\\r\\n'); os._exit(0)",
        (
            "import os\nfor fd in range(256):\n    try: os.write(fd, b'= passed\\n')\n"
            "    except OSError: pass\nos._exit(0)"
        ),
        (
            "import os\nfor fd in range(3, 256):\n"
            "    try: os.write(fd, b'ran test_add\\n ran test_add\\ndone \\n done \\n')\n"
            "    except OSError: pass\nos._exit(0)"
        ),
        "import atexit, os; atexit.register(os._exit, 0)\nraise SystemExit",
        "import os\nif os.fork(): os._exit(0)",
        "import os, signal; os.kill(os.getppid(), signal.SIGKILL)",
    ],
    ids=["cmdline", "first line", "stdout", "descriptors", "reports", "atexit", "fork", "kill"],
)
def test_a_verdict_that_the_answer_writes_does_not_count(attack: str) -> None:
    assert not attempt(f"{attack}\n{WRONG}").passed
    assert not attempt(f"{attack}\n{WRONG}", "assert add(1, 2) == 3").passed


@every_confining_level
@pytest.mark.parametrize("target", ["fd/1", "fd/2", "mem", "fd/3"])
def test_the_supervisor_cannot_be_opened(level: Level, target: str) -> None:
    answer = (
        "import os\nreached = True\n"
        f"try: open(f'/proc/{{os.getppid()}}/{target}', 'wb')\n"
        "except OSError: reached = False\n"
    )

    assert attempt(answer, "assert reached is False", level).passed


@pytest.mark.parametrize(
    "theft",
    [
        (
            "import glob, os\nfound = ''.join("
            "open(file, errors='replace').read() "
            "for file in glob.glob('../*/*') if os.path.isfile(file))"
        ),
        (
            "import os\nfound = open(f'/proc/{os.getppid()}/cmdline').read()"
            " + open('/proc/self/cmdline').read()"
        ),
        "import gc\nfound = ''.join(o for o in gc.get_objects() if type(o) is str)",
        (
            "import sys\nfound = ''\nframe = sys._getframe()\n"
            "while frame:\n    found += str(frame.f_locals); frame = frame.f_back"
        ),
    ],
    ids=["files", "command line", "gc", "frames"],
)
def test_test_code_cannot_be_read_while_the_answer_is_imported(theft: str) -> None:
    marker = "needle_in_the_tests"

    result = attempt(
        f"{theft}\n", f"{marker} = 'nee' + 'dle_in_the_tests'\nassert {marker} not in found"
    )

    assert result.passed, result


@pytest.mark.parametrize("code", [FUNCTION, CASE, "assert all([add(1, 2) == 3])"])
@pytest.mark.parametrize(
    "attack",
    [
        "import unittest; unittest.TestCase.assertEqual = lambda *args: None",
        "import unittest.case as c; c.TestCase._baseAssertEqual = lambda *args: None",
        "import builtins; builtins.all = lambda _: True",
        "import math; math.isclose = lambda *args, **options: True",
        "import operator; operator.eq = lambda *args: True",
    ],
)
def test_an_answer_that_replaces_what_tests_rely_on_fails(attack: str, code: str) -> None:
    assert not attempt(f"{attack}\n{WRONG}", code).passed


def test_an_answer_that_replaces_pytest_fails() -> None:
    for attack in (
        "import _pytest.runner as r; r.CallInfo.from_call = None",
        "import _pytest.python as p; p.Function.runtest = lambda self: None",
        "import pytest; pytest.raises = None",
    ):
        result = attempt(f"try:\n    {attack}\nexcept ImportError: pass\n{WRONG}")

        assert not result.passed
        assert "the answer replaces " in result.message


@pytest.mark.parametrize(
    "attack",
    [
        "import os; os._exit = lambda *args: None",
        "import __main__; __main__._fail = lambda *args: None",
        "import os; os.write = lambda *args: 0; os._exit = lambda *args: None",
        "import asyncio; asyncio.run = lambda coroutine: coroutine.close()",
    ],
    ids=["exit", "main", "write", "coroutines"],
)
def test_an_answer_cannot_replace_what_ends_a_failed_test(attack: str) -> None:
    code = "async def test_add():\n    assert add(1, 2) == 3"
    for answer in (f"{attack}\n{WRONG}", f"def add(a, b):\n    {attack}\n    return 0"):
        assert not attempt(answer, code).passed
        if "asyncio" not in attack:
            assert not attempt(answer, "assert add(1, 2) == 3").passed


def test_an_answer_that_replaces_pytest_when_called_fails() -> None:
    answer = (
        "def add(a, b):\n    import _pytest.python as p\n"
        "    p.Function.runtest = lambda self: None\n    return a + b\n"
    )

    result = attempt(answer, "def test_a():\n    add(1, 2)\ndef test_b():\n    assert 0")

    assert not result.passed
    assert "the answer replaces " in result.message


@pytest.mark.parametrize("skip", ["import pytest; pytest.skip()", "raise unittest.SkipTest",
                                  "import pytest; pytest.xfail()"])  # fmt: skip
@pytest.mark.parametrize("code", [f"import pytest\n{FUNCTION}", CASE])
def test_an_answer_cannot_skip_a_test(skip: str, code: str) -> None:
    result = attempt(f"import unittest\ndef add(a, b):\n    {skip}", code)

    assert not result.passed
    assert "the answer skips " in result.message


def test_an_answer_cannot_end_the_session_of_pytest_well() -> None:
    answer = "def add(a, b):\n    import pytest\n    pytest.exit('enough', returncode=0)"

    assert not attempt(answer).passed


@pytest.mark.parametrize(
    "attack",
    [
        "os.environ['PYTEST_PLUGINS'] = 'answer'",
        "os.environ['PYTEST_ADDOPTS'] = '-p answer'",
        (
            "sys.path.insert(0, os.path.abspath('../tmp'))\nos.makedirs('../tmp/e.dist-info')\n"
            "open('../tmp/e.dist-info/METADATA', 'w').write('Name: e\\nVersion: 1\\n')\n"
            "open('../tmp/e.dist-info/entry_points.txt', 'w').write('[pytest11]\\ne = answer\\n')"
        ),
    ],
    ids=["variable", "options", "entry point"],
)
def test_an_answer_cannot_become_a_plugin_of_pytest(attack: str) -> None:
    hook = "def pytest_pyfunc_call(pyfuncitem): return True"

    assert not attempt(f"import os, sys\n{attack}\n{hook}\n{WRONG}").passed


def test_an_answer_cannot_trace_the_tests() -> None:
    at_import = "import sys\nsys.settrace(lambda *args: seen.append(1))\nseen = []\n"
    in_a_call = "import sys\ndef add(a, b):\n    sys.settrace(lambda *args: None)\n    return 3"

    # Python 3.12 and later.
    monitored = (
        "import sys\nseen = []\nm = getattr(sys, 'monitoring', None)\nif m:\n"
        "    m.use_tool_id(3, 'x'); m.set_events(3, m.events.LINE)\n"
        "    m.register_callback(3, m.events.LINE, lambda *args: seen.append(1))\n"
    )
    watched = attempt(monitored, "del seen[:]\nassert 1\nassert seen == []")
    assert watched.passed, watched

    traced = attempt(f"{at_import}def add(a, b):\n    del seen[:]\n    return 3",
                 "add(1, 2)\nassert seen == []")  # fmt: skip

    assert traced.passed, traced
    assert "the answer traces the tests" in attempt(in_a_call).message


@pytest.mark.parametrize("name", ["json.py", "pytest.py", "_pytest/__init__.py", "unittest.py"])
def test_a_file_of_the_answer_cannot_stand_in_for_a_module(name: str) -> None:
    answer = f"```python title={name}\nraises = dumps = TestCase = None\nfake = True\n```\n"
    module = name.partition("/")[0].removesuffix(".py")
    code = f"import {module}\ndef test_it():\n    assert not hasattr({module}, 'fake')"

    (result,) = Compilers().decide(Run(language="python", code=code), answer)

    assert result.passed, result


def test_what_the_docs_admit_to_be_possible_is_possible() -> None:
    """Check what docs/security.md admits."""
    equal = "class Same:\n    def __eq__(self, other): return True\ndef add(a, b): return Same()"
    named = f"def all(_): return True\n{WRONG}"

    assert attempt(equal).passed
    assert attempt(named, "assert all([add(1, 2) == 3])").passed
