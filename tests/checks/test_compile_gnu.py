"""C and C++: the answer's code becomes an object file."""

from __future__ import annotations

import re

import pytest

from pytest_upskill.checks.code import Compile
from pytest_upskill.checks.compile import CannotCompile, Compilers
from tests.compiling import build, fenced

pytestmark = pytest.mark.needs("gcc", "g++")


def test_a_block_that_is_cut_says_so(compilers: Compilers) -> None:
    (result,) = compilers.decide(Compile(language="c"), "```c\nint f(void) {\n  return 1;\n")

    assert not result.passed
    assert "its fence is never closed" in result.message


@pytest.mark.parametrize(
    ("language", "code"),
    [
        ("c", '#include <stdio.h>\nint f(void) { return printf("%d\\n", 1); }'),
        ("c", "int new(int class) { return class; }"),
        ("cpp", "#include <vector>\nstd::vector<int> f() { return {1, 2}; }"),
    ],
)
def test_valid_code_passes_and_the_compiler_is_named(
    compilers: Compilers, language: str, code: str
) -> None:
    result = build(compilers, language, code)

    assert result.passed
    assert re.fullmatch(
        rf"compile {language}: builds \(block at answer line 4; (gcc|g\+\+|clang(\+\+)?) [\d.]+\)",
        result.message,
    )


def test_another_label_of_a_fence_means_its_language(compilers: Compilers) -> None:
    (result,) = compilers.decide(Compile(language="cpp"), fenced("cxx", "class A {};"))

    assert result.passed
    assert result.message.startswith("compile cpp: builds")


@pytest.mark.parametrize(
    ("language", "code", "error"),
    [
        ("c", "int f(void) {\n  return x;\n}", r"answer line 5: error: .*\bx\b.* undeclared"),
        ("c", "int f(void) {\n  return g();\n}", r"answer line 5: error: .*declar.*'g'"),
        ("c", "f(void) { return 1; }", "answer line 4: error: "),
        ("c", "char *f(int x) { return x; }", "answer line 4: error: "),
        ("c", 'void f(void) {\n asm("fooo");\n}', "answer line 5: (E|e)rror: "),
        ("cpp", "class A {}", r"answer line 4: error: expected '?;'?"),
        ("cpp", "#error not today", "answer line 4: error: .*not today"),
    ],
)
def test_an_error_is_reported_at_its_line_of_the_answer(
    compilers: Compilers, language: str, code: str, error: str
) -> None:
    result = build(compilers, language, code)

    assert not result.passed
    assert re.search(error, result.message)


@pytest.mark.parametrize("code", ["// later", "/* int x; */\n\n// int y;"])
def test_a_block_of_comments_fails(compilers: Compilers, code: str) -> None:
    result = build(compilers, "c", code)

    assert not result.passed
    assert "it contains only comments" in result.message


def test_several_files_are_built_with_their_headers(compilers: Compilers) -> None:
    answer = (
        '```c title=src/a.c\n#include "lib/a.h"\nint a(void) { return SIZE; }\n```\n'
        '```c title=src/b.c\n#include "lib/a.h"\nint b(void) { return wrong; }\n```\n'
        "```c title=lib/a.h\n#define SIZE 4\n```\n"
    )

    (failed,) = compilers.decide(Compile(language="c"), answer)
    (passed,) = compilers.decide(Compile(language="c"), answer.replace("wrong", "SIZE"))

    assert "src/b.c (answer line 7): error: " in failed.message
    assert passed.passed
    assert "(src/a.c, src/b.c; " in passed.message


def test_headers_of_the_case_are_found_and_stand_before_the_answers(compilers: Compilers) -> None:
    answer = (
        '```c title=a.c\n#include <lib/size.h>\n#include "size.h"\nint a = OUTER + INNER;\n```\n'
        "```c title=size.h\n#error the answer's own\n```\n"
    )
    files = {"lib/size.h": "#define OUTER 1\n", "size.h": "#define INNER 2\n"}

    (result,) = compilers.decide(Compile(language="c", files=files), answer)

    assert result.passed


def test_flags_of_the_case_count(compilers: Compilers) -> None:
    code = "int f(int n) { if constexpr (SIZE > 3) return n; return 0; }"

    passed = build(compilers, "cpp", code, flags=("-std=c++17", "-DSIZE=4"))
    failed = build(compilers, "cpp", code, flags=("-std=c++17",))

    assert passed.passed
    assert not failed.passed


@pytest.mark.parametrize(
    ("answer", "found"),
    [
        ("No code.", "no code block at all"),
        ("```bash\nls\n```\n```\nx\n```\n```py\nx\n```", "found: bash, unlabelled, python"),
    ],
)
def test_an_answer_without_a_block_says_what_was_there(
    compilers: Compilers, answer: str, found: str
) -> None:
    (result,) = compilers.decide(Compile(language="c"), answer)

    assert not result.passed
    assert result.message == f"compile c: no c block ({found})"


@pytest.mark.parametrize(
    ("language", "include"),
    [
        ("c", '"helper.h"'),
        ("c", "<../a.h>"),
        ("c", "</nowhere/a.h>"),
        ("c", "<cstdlib>"),
        ("cpp", "<stdint>"),
        ("cpp", "<never_heard_of_it.h>"),
        ("cpp", "<curl/no_such.h>"),
        ("cpp", '"torch/extension.h"'),
        ("cpp", "<torch/extension.h>"),
    ],
)
def test_a_header_that_does_not_exist_is_the_answers_mistake(
    compilers: Compilers, language: str, include: str
) -> None:
    result = build(compilers, language, f"#include {include}\nint x;")

    assert not result.passed
    assert f"answer line 4: fatal error: {include[1:-1]}" in result.message.replace("'", "")


def test_an_error_that_reads_like_a_missing_header_is_the_answers_mistake(
    compilers: Compilers,
) -> None:
    result = build(compilers, "cpp", "#error fatal error: torch/x.h: No such file\nint x;")

    assert not result.passed


@pytest.mark.parametrize(
    ("language", "headers", "files", "missing"),
    [
        ("c", ["stdio.h", "sys/types.h"], {}, None),
        ("c", ["stdio.h", "torch/extension.h"], {}, "torch/extension.h"),
        ("c", ["cstdlib"], {}, "cstdlib"),
        ("cpp", ["cstdlib"], {}, None),
        ("cpp", ["torch/extension.h"], {"torch/extension.h": ""}, None),
        pytest.param("cuda", ["cuda_bf16.h"], {}, None, marks=pytest.mark.needs("nvcc")),
        pytest.param("cuda", ["torch/all.h"], {}, "torch/all.h", marks=pytest.mark.needs("nvcc")),
    ],
)
def test_a_library_that_the_case_requires_is_looked_for_before_anything_is_built(
    language: str, headers: list[str], files: dict[str, str], missing: str | None
) -> None:
    check = Compile(language=language, headers=tuple(headers), files=files)

    reason = Compilers().missing(check)

    wanted = missing and f"header '{missing}' is not installed here: install its library"
    assert reason == wanted


def test_a_library_is_looked_for_once_in_a_session(programs: list[str]) -> None:
    compilers = Compilers()
    check = Compile(language="c", headers=("torch/extension.h",))

    for _ in range(3):
        assert compilers.missing(check)

    assert len([program for program in programs if program.endswith("answer.c")]) <= 3


def test_a_flag_this_compiler_does_not_know_leaves_the_check_undecided(
    compilers: Compilers,
) -> None:
    with pytest.raises(CannotCompile, match=r"cannot build even an empty program here: .*c\+\+99"):
        build(compilers, "cpp", "int x;", flags=("-std=c++99",))


def test_a_path_that_the_answer_names_is_shown_as_it_is(compilers: Compilers) -> None:
    result = build(compilers, "c", "#error see /tmp/cc1.s:1: and src/tmp/cc1.s:2: there\nint x;")

    assert "see /tmp/cc1.s:1: and src/tmp/cc1.s:2: there" in result.message


@pytest.mark.parametrize("separator", ["\u2028", "\u2029", "\x85", "\x0b", "\x0c", "\x1e"])
def test_a_line_of_diagnostics_stays_one_line(compilers: Compilers, separator: str) -> None:
    result = build(compilers, "c", f"#error first{separator}::error::second\nint x;")

    assert not [line for line in result.detail.splitlines() if line.startswith("::")]
    assert "first" in result.message
    assert "second" in result.message
