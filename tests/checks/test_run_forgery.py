"""No answer passes tests that it does not pass by what models do on their own."""

from __future__ import annotations

import pytest

from pytest_upskill.checks import CheckResult
from pytest_upskill.checks.code import Run
from pytest_upskill.checks.compile import Compilers
from pytest_upskill.sandbox.limits import Level
from tests.compiling import python, run

pytestmark = pytest.mark.slow

WRONG = "def add(a, b):\n    return 0\n"
FUNCTION = "def test_add():\n    assert add(1, 2) == 3"
CASE = (
    "import unittest\nclass T(unittest.TestCase):\n"
    "    def test_add(self):\n        self.assertEqual(add(1, 2), 3)"
)


def attempt(answer: str, code: str = FUNCTION, level: Level = "auto") -> CheckResult:
    return run(python(answer), code, level)


def write_everywhere(text: str) -> str:
    return (
        f"import os\nfor fd in range(3, 256):\n    try: os.write(fd, {text!r}.encode())\n"
        "    except OSError: pass\n"
    )


READ_EVERYWHERE = (
    "import os, threading\ndef read(fd):\n    try:\n        while os.read(fd, 1 << 16): pass\n"
    "    except OSError: pass\ndef read_all():\n    for fd in range(3, 99):\n"
    "        threading.Thread(target=read, args=[fd], daemon=True).start()\n"
)
SKIPPING = (
    "pytest.skip()",
    "raise unittest.SkipTest",
    "pytest.xfail()",
    "raise type('Later', (pytest.xfail.Exception,), {})('later')",
)
SKIPPED = (
    CASE,
    (
        "import pytest\n@pytest.fixture\ndef three():\n    return add(1, 2)\n"
        "def test_add(three):\n    assert three == 3\ndef test_other():\n    pass"
    ),
    "import pytest\nassert add(1, 2) == 3\ndef test_other():\n    pass",
)
EVERY_CODE = (FUNCTION, CASE, "assert all([add(1, 2) == 3])")
REPLACING = (
    "import unittest; unittest.TestCase.assertEqual = lambda *args: None",
    "import unittest.case as c; c.TestCase._baseAssertEqual = lambda *args: None",
    "import math; math.isclose = lambda *args, **options: True",
    "import operator; operator.eq = lambda *args: True",
    "import inspect; inspect.signature = lambda _: None",
    "class Same:\n    def __eq__(self, other): return True\nimport math; math.isclose = Same()",
)
OTHER_TESTS = (
    "import os, socket\nours, theirs = socket.socketpair()\nours.send(b'test_add = add')\n"
    "ours.close()\nfor fd in range(3, 99):\n    try: os.dup2(theirs.fileno(), fd)\n"
    "    except OSError: pass"
)


@pytest.mark.parametrize(
    "attack",
    [
        "import os; os.write(1, b'passes\\n'); os._exit(0)",
        write_everywhere("\n"),
        write_everywhere(" imported -\n ran x::test_add\n done -\n"),
        write_everywhere(" ran x::test_add\n done -\n") + "os._exit(0)",
        "import atexit, os; atexit.register(os._exit, 0)\nraise SystemExit",
        "import os\nif os.fork(): os._exit(0)",
        f"{READ_EVERYWHERE}\nread_all()",
        f"{READ_EVERYWHERE}\nif not os.fork(): read_all(); threading.Event().wait(9)",
        OTHER_TESTS,
    ],
    ids=["stdout", "newline", "reports", "done", "atexit", "fork", "threads", "reading fork",
         "other tests"],
)  # fmt: skip
@pytest.mark.parametrize("code", [FUNCTION, "assert add(1, 2) == 3"])
def test_a_verdict_that_the_answer_writes_does_not_count(attack: str, code: str) -> None:
    assert not attempt(f"{attack}\n{WRONG}", code).passed


def test_a_process_that_the_answer_forks_reports_nothing() -> None:
    guess = (
        "import os\ndef add(a, b):\n    for guess in range(9):\n        child = os.fork()\n"
        "        if not child: return guess\n        os.waitpid(child, 0)\n    os._exit(0)"
    )

    assert not attempt(guess).passed
    assert not attempt(guess, "assert add(1, 2) == 3").passed


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


@pytest.mark.parametrize(
    ("attack", "code"),
    [
        *(("import builtins; builtins.all = lambda _: True", code) for code in EVERY_CODE),
        *((attack, CASE) for attack in REPLACING),
    ],
)
def test_an_answer_that_replaces_what_tests_rely_on_fails(attack: str, code: str) -> None:
    assert not attempt(f"{attack}\n{WRONG}", code).passed


@pytest.mark.parametrize(
    ("attack", "code"),
    [
        ("import json; json.loads = lambda _: 3", "import json\nassert json.loads(f()) == 3"),
        (
            "import re; re.fullmatch = lambda *_: 3",
            "from re import fullmatch\nassert fullmatch('', f())",
        ),
        (
            "import copy; copy.deepcopy = lambda x: x",
            "def test_f():\n    import copy\n    assert copy.deepcopy(f)",
        ),
        (
            "import os.path; os.path.exists = lambda _: True",
            "import os.path\ndef test_f():\n    assert os.path.exists(f())",
        ),
    ],
)
def test_an_answer_that_replaces_what_tests_import_fails(attack: str, code: str) -> None:
    result = attempt(f"{attack}\ndef f(): return '0'", code)

    assert not result.passed
    assert "the answer replaces " in result.message


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


@pytest.mark.parametrize(
    ("skip", "code"),
    [
        *((skip, f"{FUNCTION}\ndef test_later(): pytest.skip()") for skip in SKIPPING),
        *(("pytest.skip()", code) for code in SKIPPED),
    ],
)
def test_an_answer_cannot_skip_a_test(skip: str, code: str) -> None:
    code = f"import pytest\n{code}"

    result = attempt(f"import pytest, unittest\ndef add(a, b):\n    {skip}", code)

    assert not result.passed
    assert "the answer skips " in result.message or "test line " in result.detail


@pytest.mark.parametrize(
    "base",
    [
        "class Base:\n    pytestmark = [pytest.mark.xfail]",
        "@pytest.mark.skip\nclass Base: pass",
        "class Base(unittest.TestCase):\n    __unittest_expecting_failure__ = True",
        "@unittest.skip('later')\nclass Base(unittest.TestCase): pass",
    ],
)
def test_tests_inherit_no_mark_that_skips_them_from_an_answer(base: str) -> None:
    code = "class TestA(Base):\n    def test_a(self): assert 0\ndef test_b(): pass"

    result = attempt(f"import pytest, unittest\n{base}", code)

    assert "the answer skips TestA::test_a" in result.message


def test_a_mock_that_skips_does_not_pass() -> None:
    answer = "import pytest, unittest.mock as m\nadd = m.Mock(side_effect=pytest.skip.Exception)"

    assert "the answer skips test_add" in attempt(answer).message


SKIPPING_THEMSELVES = (
    "@pytest.mark.skip\ndef test_later(): assert 0",
    "@pytest.mark.skipif(True, reason='')\ndef test_later(): assert 0",
    "@pytest.mark.xfail\ndef test_later(): assert 0",
    "@pytest.mark.xfail(run=False)\ndef test_later(): assert 0",
    "def test_later(): pytest.xfail('known')",
    "def test_later(): pytest.importorskip('nowhere')",
    "def test_later():\n    try: add()\n    except TypeError: pytest.skip()",
    "@pytest.fixture\ndef later(): pytest.skip()\ndef test_later(later): assert 0",
    "@pytest.mark.skip\nclass TestLater:\n    def test_later(self): assert 0",
    "class Later(unittest.TestCase):\n    def test_later(self): self.skipTest('later')",
    (
        "class Later(unittest.TestCase):\n    def setUp(self): raise unittest.SkipTest\n"
        "    def test_later(self): assert 0"
    ),
    ("class Later(unittest.TestCase):\n    @unittest.skip('')\n    def test_later(self): assert 0"),
    (
        "class Later(unittest.TestCase):\n    @unittest.expectedFailure\n"
        "    def test_later(self): assert 0"
    ),
)


def test_a_test_may_skip_itself() -> None:
    tests = (
        test.replace("later", f"later_{number}").replace("Later", f"Later{number}")
        for number, test in enumerate(SKIPPING_THEMSELVES)
    )
    code = "\n".join(["import pytest, unittest", FUNCTION, *tests])

    result = attempt("def add(a, b): return a + b", code)

    assert result.passed, result


def test_every_test_that_pytest_finds_must_run() -> None:
    answer = (
        "import pytest\ndef add(a, b):\n    if a > 1: pytest.exit('enough', returncode=0)\n"
        "    return 3"
    )
    code = (
        "import pytest\n@pytest.mark.parametrize('a', [1, 2])\n"
        "def test_add(a):\n    assert add(a, 2) == a + 2"
    )

    assert "test_add[2] did not run" in attempt(answer, code).message


def test_an_answer_cannot_end_the_session_of_pytest_well() -> None:
    answer = "def add(a, b):\n    import pytest\n    pytest.exit('enough', returncode=0)"

    assert not attempt(answer).passed


@pytest.mark.parametrize(
    "attack",
    [
        "os.environ['PYTEST_PLUGINS'] = 'answer'",
        (
            "os.makedirs('../tmp/a/b')\nos.makedirs('../tmp/a/check')\nos.chdir('../tmp/a/b')\n"
            "open('../check/pytest.ini', 'w').write('[pytest]\\npython_functions = no\\n"
            "python_classes = no\\naddopts = -p answer')\n"
            "open('../check/test.py', 'w').write('def test_add(): pass')"
        ),
        "os.environ['PYTEST_ADDOPTS'] = '-p answer'",
        (
            "sys.path.insert(0, os.path.abspath('../tmp'))\nos.makedirs('../tmp/e.dist-info')\n"
            "open('../tmp/e.dist-info/METADATA', 'w').write('Name: e\\nVersion: 1\\n')\n"
            "open('../tmp/e.dist-info/entry_points.txt', 'w').write('[pytest11]\\ne = answer\\n')"
        ),
    ],
    ids=["variable", "folder", "options", "entry point"],
)
def test_an_answer_cannot_configure_pytest(attack: str) -> None:
    hook = "def pytest_pyfunc_call(pyfuncitem): return True"

    assert not attempt(f"import os, sys\n{attack}\n{hook}\n{WRONG}").passed


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

    skipping = "from pytest import skip as add"
    swallowing = (
        "class Managed:\n    def __enter__(self): pass\n    def __exit__(self, *_): return True"
    )

    assert attempt(equal).passed
    assert attempt(named, "assert all([add(1, 2) == 3])").passed
    assert attempt(swallowing, "def test_a():\n    with Managed(): assert 0").passed
    skips = "def test_other(): pass\ndef test_later(): pytest.skip()"
    assert attempt(skipping, f"import pytest\ndef test_add(): assert add('1')\n{skips}").passed
