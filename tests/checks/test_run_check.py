"""The case's test code is run on the answer's code."""

from __future__ import annotations

import pytest

from pytest_upskill.checks.code import Run
from pytest_upskill.checks.compile import CannotCompile, Compilers
from pytest_upskill.sandbox.limits import Level
from tests.compiling import fenced, python, run
from tests.sandbox_programs import every_level

FILES = """
import os, shutil, tempfile
with tempfile.TemporaryDirectory() as t:
    os.mkdir(f"{t}/a")
    with open(f"{t}/a/b", "w") as file:
        file.write("x")
    os.chmod(f"{t}/a/b", 0o600)
    shutil.copytree(f"{t}/a", f"{t}/c")
    assert open(f"{t}/c/b").read() == "x"
"""
ASYNCIO = """
import asyncio
async def exit_code():
    return await (await asyncio.create_subprocess_exec("true")).wait()
assert asyncio.run(exit_code()) == 0
"""
PROCESSES = """
import multiprocessing, subprocess, threading
process = subprocess.Popen(["sleep", "9"])
process.terminate()
assert process.wait() == -15
thread = threading.Thread(target=add, args=(1, 2))
thread.start()
thread.join()
ours, theirs = multiprocessing.Pipe()
multiprocessing.get_context("fork").Process(target=theirs.send, args=(3,)).start()
assert ours.recv() == 3
"""
ADD = "def add(a, b):\n    return a + b"


KINDS_OF_CODE = {
    "import": "from answer import add\nassert add(1, 2) == 3",
    "library": "import unittest.mock, json, decimal\nassert json.dumps(add(1, 2)) == '3'",
    "main": "if __name__ == '__main__':\n    assert add(1, 2) == 3",
    "class": (
        "class TestAdd:\n"
        "    def setup_method(self):\n        self.two = 2\n"
        "    def test_add(self):\n        assert add(1, self.two) == 3"
    ),
    "unittest": (
        "import unittest\n"
        "class Adding(unittest.TestCase):\n"
        "    def setUp(self):\n        self.two = 2\n"
        "    def test_add(self):\n        self.assertEqual(add(1, self.two), 3)\n"
        "if __name__ == '__main__':\n    unittest.main()"
    ),
    "async": (
        "import asyncio\n"
        "async def test_add():\n    await asyncio.sleep(0)\n    assert add(1, 2) == 3"
    ),
    "pytest": (
        "import pytest\n"
        "@pytest.fixture\ndef test_one(tmp_path):\n    return len([tmp_path])\n"
        "@pytest.mark.parametrize('b', [2, 3])\n"
        "def test_add(test_one, b):\n    assert add(test_one, b) == 1 + b\n"
        "def test_mixed():\n    with pytest.raises(TypeError):\n        add(1, '2')"
    ),
}


@pytest.mark.parametrize("code", KINDS_OF_CODE.values(), ids=KINDS_OF_CODE)
def test_an_answer_passes_every_kind_of_test_code(code: str) -> None:
    result = run(python(ADD), code)

    assert result.passed, result


@every_level
@pytest.mark.parametrize(
    "code",
    [
        "assert add(1, 2) == 3",
        "def test_add():\n    assert add(1, 2) == 3",
        FILES,
        ASYNCIO,
        PROCESSES,
    ],
    ids=["names", "functions", "files", "asyncio", "processes"],
)
def test_an_answer_that_works_passes(level: Level, code: str) -> None:
    result = run(python(ADD), code, level)

    assert result.passed, result
    assert result.name == "run"
    assert result.message.startswith("run python: passes (block at answer line 4; Python 3.")


@pytest.mark.parametrize(
    ("answer", "code", "message"),
    [
        (ADD, "x = 1\nassert add(1, 2) == 4", "AssertionError: assert add(1, 2) == 4 ("),
        (ADD, "assert add(1, 2) == 4, 'bad sum'", "AssertionError: bad sum ("),
        (ADD, "def test_it():\n    assert not add(1, 2)", "AssertionError: assert not add(1, 2) ("),
        (ADD, "add(1)", "TypeError: add() missing 1 required positional argument: 'b' ("),
        (ADD, "minus(1, 2)", "NameError: name 'minus' is not defined ("),
        ("def add(a, b:", "add(1, 2)", "SyntaxError: "),
        ("raise ValueError('no')", "assert True", "ValueError: no ("),
        ("import numpy", "assert True", "ModuleNotFoundError: No module named 'numpy' ("),
    ],
)
def test_an_answer_that_does_not_work_says_why(answer: str, code: str, message: str) -> None:
    result = run(python(answer), code)

    assert not result.passed
    assert result.message.startswith(f"run python: {message}")


@pytest.mark.parametrize(
    "code",
    [
        "class TestAdd:\n    def test_add(self):\n        assert add(1, 2) == 4",
        (
            "class Adding(unittest.TestCase):\n    def test_add(self):\n"
            "        self.assertEqual(add(1, 2), 4)"
        ),
        (
            "class Adding(unittest.TestCase):\n    def test_add(self):\n"
            "        with self.subTest():\n            self.assertEqual(add(1, 2), 4)"
        ),
        (
            "class Adding(unittest.IsolatedAsyncioTestCase):\n    async def test_add(self):\n"
            "        self.assertEqual(add(1, 2), 4)"
        ),
        "async def test_add():\n    assert add(1, 2) == 4",
        "@pytest.mark.parametrize('c', [3, 4])\ndef test_add(c):\n    assert add(1, 2) == c",
        "@pytest.fixture\ndef four():\n    assert add(1, 2) == 4\ndef test_add(four):\n    pass",
        "def tearDownModule():\n    assert add(1, 2) == 4\ndef test_add():\n    pass",
    ],
    ids=[
        "class",
        "unittest",
        "subtest",
        "async unittest",
        "async",
        "pytest",
        "fixture",
        "teardown",
    ],
)
def test_every_kind_of_test_can_fail(code: str) -> None:
    result = run(python(ADD), f"import pytest, unittest\n{code}")

    assert not result.passed
    assert "AssertionError: " in result.message


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("class TestA:\n    def __init__(self): pass\n    def test_add(self): pass", "nothing ran"),
        ("def check():\n    assert add(1, 2) == 4", "no test function and no statement that"),
        ("x = 1", "no test function and no statement that could fail"),
        ("assert add(1,", "the test code is wrong: it is not Python: "),
        ("import pytest\n@pytest.mark.skip\ndef test_add():\n    pass", "nothing ran"),
        ("import pytest\npytest.importorskip('nowhere')\ndef test_add():\n    pass", "nothing ran"),
        ("import pytest\ndef test_add():\n    pytest.skip('later')", "nothing ran"),
        (("import unittest\n@unittest.skip('later')\nclass T(unittest.TestCase):\n"
         "    def test_add(self): pass"), "nothing ran"),
    ],
)  # fmt: skip
def test_code_in_which_no_test_runs_decides_nothing(code: str, reason: str) -> None:
    with pytest.raises(CannotCompile, match=reason):
        run(python(ADD), code)


def test_the_answers_own_tests_are_not_the_cases() -> None:
    answer = f"{ADD}\ndef test_own():\n    assert False\nclass TestOwn:\n    test_x = test_own"

    assert run(python(answer), "def test_add():\n    assert add(1, 2) == 3").passed


def test_a_traceback_names_lines_of_answer_and_test() -> None:
    result = run(python("def half(n):\n    return 1 / n"), "\nhalf(0)")

    without_marks = [line for line in result.detail.splitlines() if line.strip(" ~^")]
    assert without_marks == [
        "Traceback (most recent call last):",
        "  test line 2, in <module>",
        "    half(0)",
        "  answer line 5, in half",
        "    return 1 / n",
        "ZeroDivisionError: division by zero",
    ]


def test_the_files_of_an_answer_can_import_each_other() -> None:
    answer = (
        "```python title=shop/prices.py\nPRICE = 3\n```\n"
        "```python title=cart.py\nfrom shop.prices import PRICE\n"
        "def total(n):\n    return n * PRICE\n```\n"
    )

    result = run(answer, "from cart import total\nimport shop.prices\nassert total(2) == 6")

    assert result.passed, result


def test_a_main_block_of_the_answer_is_not_run() -> None:
    assert run(python(f"{ADD}\nif __name__ == '__main__':\n    input()"), "add(1, 2)").passed


def test_an_answer_without_code_fails() -> None:
    assert (
        run("Sorry.", "assert True").message == "run python: no python block (no code block at all)"
    )


@every_level
@pytest.mark.parametrize(
    "code",
    [
        "import sys; sys.exit()",
        "import os; os._exit(0)",
        "import atexit, os; print('passes'); os.kill(os.getpid(), 9)",
        "raise SystemExit(0)",
        "import os\nif os.fork(): os._exit(0)\nraise SystemExit",
    ],
)
def test_leaving_early_is_not_passing(level: Level, code: str) -> None:
    assert not run(python(code), "assert add(1, 2) == 3", level).passed


def test_leaving_early_in_a_call_is_not_passing() -> None:
    result = run(python("def add(a, b):\n    raise SystemExit(0)"), "assert add(1, 2) == 3")

    assert not result.passed
    assert "exits with 0 before the end of the test code" in result.message


def test_a_language_without_a_runner_is_reported() -> None:
    check = Run(language="c", code="x")

    assert Compilers().missing(check) == "no runner is known for language 'c'"
    with pytest.raises(CannotCompile, match="no runner is known"):
        Compilers().decide(check, fenced("c", "int x;"))
