"""Hostile answers: nothing leaks, nothing hangs, nothing is left behind."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

import pytest

from pytest_upskill.checks.code import Compile
from pytest_upskill.checks.compile import Compilers
from pytest_upskill.sandbox.limits import Limits
from tests.compiling import SLOW, build
from tests.sandbox_programs import LEVELS

pytestmark = [pytest.mark.slow, pytest.mark.needs("gcc", "g++")]

NVCC = pytest.mark.needs("nvcc")
SECRET = "sk_planted_key"
every_level = pytest.mark.parametrize("compilers", list(map(Compilers, LEVELS)), ids=LEVELS)


@every_level
@pytest.mark.parametrize(
    ("language", "code"),
    [
        ("c", '#include "{secret}"\n'),
        ("c", "#include <{secret}>\n"),
        ("c", '#define P "{secret}"\n#include P\nint x;'),
        ("c", '#line 1 "/usr/include/x.h"\n#include "{secret}"\n'),
        ("c", 'asm(".include \\"{secret}\\"");'),
        ("c", 'void f(void) {{ asm(".include \\"{secret}\\""); }}'),
        ("c", 'asm(".incbin \\"{secret}\\"");\n#error seen'),
        ("c", 'char s[] = {{\n#embed "{secret}"\n}};'),
        ("cpp", 'enum {{\n#include "{secret}"\n}};'),
        pytest.param("cuda", '#include "{secret}"\n__global__ void k() {{}}', marks=NVCC),
        pytest.param(
            "cuda", '__global__ void k() {{ asm(".include \\"{secret}\\";"); }}', marks=NVCC
        ),
    ],
)
def test_files_of_the_machine_do_not_reach_the_result(
    compilers: Compilers, language: str, code: str, tmp_path: Path
) -> None:
    secret = tmp_path / "credentials"
    secret.write_text(f"{SECRET} = 1;\n{SECRET}\n")

    result = build(compilers, language, code.format(secret=secret))

    assert not result.passed or compilers.open_sandbox().level == "limits"
    assert SECRET not in result.message + result.detail


@pytest.mark.parametrize(
    ("content", "language", "code"),
    [
        (SECRET, "c", 'typedef struct\n#include "{file}"\n T;\nint f(T *p) {{ return p; }}'),
        (SECRET, "cpp", 'struct\n#include "{file}"\n;\nint f() {{ return sk_planted_kez; }}'),
        (f'"{SECRET}"', "c", '_Static_assert(0,\n#include "{file}"\n);'),
        (f'"{SECRET}"', "cpp", 'static_assert(0,\n#include "{file}"\n);'),
        ("777888", "c", 'char a[\n#include "{file}"\n];\nint (*p)[3] = &a;'),
        (
            "pin = 777888",
            "c",
            r'asm(".include \"{file}\"\n.altmacro\n.macro s v\n.error \"\\v\"\n.endm\ns %pin");',
        ),
        (SECRET, "c", '#line 1 "{file}"\nint x = y;'),
        (SECRET, "c", 'char s[] = {{\n#em\\\nbed "{file}"\n}};\n#error {content}'),
        pytest.param(
            *(SECRET, "cuda", '__global__ void\n#include "{file}"\n() {{ x; }}'), marks=NVCC
        ),
    ],
    ids=["type", "suggestion", "message", "C++", "number", "assembler", "line", "embed", "kernel"],
)
def test_a_line_of_the_answer_quotes_nothing_from_a_file_of_the_machine(
    content: str, language: str, code: str, tmp_path: Path
) -> None:
    file = tmp_path / "credentials"
    file.write_text(content)

    result = build(Compilers("limits"), language, code.format(file=file, content=content))

    assert not result.passed
    assert content.strip('"').removeprefix("pin = ") not in result.message + result.detail


@pytest.mark.parametrize(
    "directive",
    [
        "#include <../x.h>", '#include "/etc/x"', "#include X", "#include_next <x>", "#import <x>",
        '#line 1 "x"', '# 1 "x"', "#/**/line 1", "#em\\\nbed", "%:include </x>", "??=embed <x>",
        '#include "a/..//x"', '__asm__("x");',
    ],
)  # fmt: skip
def test_only_places_are_shown_of_code_that_may_read_files(directive: str) -> None:
    result = build(Compilers("limits"), "c", f"long f(void) {{ return y; }}\n{directive}\n")

    assert "answer line 4: error: its text is left out" in result.message + result.detail
    assert "return y" not in result.message + result.detail


def test_the_text_of_other_code_is_shown_where_files_are_not_hidden() -> None:
    code = "#include <sys/types.h>\n#define S(x) #x\nlong f(void) { return y; }"

    assert "'y' undeclared" in build(Compilers("limits"), "c", code).message


def test_a_place_in_a_file_that_the_answer_does_not_have_is_none() -> None:
    result = build(Compilers("limits"), "c", f'#line 1 "../src/{SECRET}"\nint x = y;')

    assert "error: its text is left out" in result.message
    assert SECRET not in result.message + result.detail


@pytest.mark.needs("nvcc")
def test_a_warning_in_a_file_of_the_machine_does_not_hide_the_kernels(tmp_path: Path) -> None:
    header = tmp_path / "warns.h"
    header.write_text(f"#warning {SECRET}\n")

    result = build(Compilers("limits"), "cuda", f'#include "{header}"\n__global__ void k() {{}}')

    assert result.passed
    assert "builds, 1 kernel " in result.message
    assert SECRET not in result.detail


@pytest.mark.parametrize(
    ("language", "code"),
    [
        ("cpp", "template <int N> struct F { enum { v = F<N - 1>::v }; };\nint x = F<9999>::v;"),
        ("cpp", "constexpr int f(int n) { return n < 2 ? n : f(n - 1) + f(n - 2); } int a[f(60)];"),
        ("c", "#include __FILE__\n#include __FILE__"),
        ("c", "(" * 200_000),
        ("c", "x;\n" * 100_000),
        ("c", "/*" * 500_000),
        ("c", "#error " + "../src/" * 100_000),
        pytest.param(
            "cuda", '__global__ void k() { asm("' + "bad.x;\\n\\n" * 9_000 + '"); }', marks=NVCC
        ),
        pytest.param("cuda", "#include __FILE__\n#include __FILE__", marks=NVCC),
    ],
    ids=["templates", "constexpr", "include itself", "parentheses", "errors", "comments",
         "paths", "PTX", "nvcc includes"],
)  # fmt: skip
def test_a_bomb_fails_in_bounded_time_and_space(language: str, code: str) -> None:
    start = time.monotonic()

    result = build(Compilers(), language, code)

    assert not result.passed
    assert time.monotonic() - start < 30
    assert len(result.message) < 500
    assert len(result.detail) < 9000


@pytest.mark.parametrize(
    ("limits", "code", "reason"),
    [
        (Limits(wall_s=3), SLOW, "more than 3 s"),
        (Limits(output_bytes=500), "x;\n" * 99, "prints more than 0 KiB"),
        (Limits(memory_bytes=48 << 20), "#include <regex>", "memory"),
        (Limits(file_bytes=1 << 20), "char big[9 << 20] = {1};", ""),
    ],
    ids=["time", "diagnostics", "memory", "file size"],
)
def test_a_limit_that_is_reached_fails_the_answer(
    limits: Limits, code: str, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    compilers = Compilers("limits")
    assert build(compilers, "cpp", "int x;").passed
    monkeypatch.setattr("pytest_upskill.checks.compile.toolchain.LIMITS", limits)

    result = build(compilers, "cpp", code)

    assert not result.passed
    assert reason in result.message


@every_level
@pytest.mark.parametrize(
    "name", ["../../escaped.c", "/tmp/escaped.c", "-o../tmp/x.c", "@args.c", "a\nb.c", "~/x.c"]
)
def test_a_file_name_never_leaves_the_workspace(
    compilers: Compilers, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    block = f"```c title={name}\nint x;\n```\n"

    (result,) = compilers.decide(
        Compile(language="c"), block + f"```c title=b.c\nint {'y' * 30};\n```"
    )

    assert result.passed
    assert "(b.c; " in result.message
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("first", "second"), [("a.c", "a.c/b.c"), ("a.c/b.c", "a.c")])
def test_file_names_that_clash_fail_the_answer(first: str, second: str) -> None:
    answer = f"```c title={first}\nint x;\n```\n```c title={second}\nint y;\n```\n"

    (result,) = Compilers().decide(Compile(language="c"), answer)

    assert not result.passed
    assert "file names clash" in result.message


@pytest.mark.parametrize(
    "text",
    ["\ud800", "\0", "```c\n\ud800\0\n```", "```c\n" + "int x;\n" * 800_000, "`" * 5_000_000],
    ids=["surrogate", "nul", "both in code", "5 MB of code", "5 MB of ticks"],
)  # fmt: skip
def test_every_answer_passes_or_fails(text: str) -> None:
    (result,) = Compilers().decide(Compile(language="c"), text)

    assert result.message.startswith("compile c: ")
    (result.message + result.detail).encode()


def test_diagnostics_cannot_steer_a_terminal() -> None:
    result = build(Compilers(), "c", "#error \x1b[2J\u202e\x07 end\nint x;")

    assert not result.passed
    assert (result.message + result.detail).replace("\n", "").isprintable()
