"""What the author of a case may ask of a compiler."""

from __future__ import annotations

import pytest

from pytest_upskill.checks.blocks import LANGUAGES, canonical
from pytest_upskill.checks.code import Compile, check_file, check_flags
from pytest_upskill.checks.compile import CannotCompile, Compilers


@pytest.mark.parametrize(
    ("spelling", "language"),
    [
        ("c++", "cpp"),
        ("CU", "cuda"),
        (" py ", "python"),
        ("c", "c"),
        ("rust", None),
        ("toml", None),
    ],
)
def test_a_language_has_one_name(spelling: str, language: str | None) -> None:
    assert canonical(spelling) == language
    assert language is None or language in LANGUAGES


@pytest.mark.parametrize(
    ("language", "flags"),
    [
        ("c", ["-std=c17", "-O2", "-Wall", "-Wextra", "-Werror=shadow", "-pthread"]),
        ("cpp", ["-std=c++20", "-DNDEBUG", "-DSIZE=4", "-UX", "-fno-exceptions", "-march=x86-64"]),
        ("cuda", ["-std=c++17", "--expt-relaxed-constexpr", "--use_fast_math", "-O3", "-rdc=true"]),
        ("python", []),
    ],
)
def test_flags_of_dialect_warnings_and_code_are_allowed(language: str, flags: list[str]) -> None:
    assert check_flags(language, flags) is None


@pytest.mark.parametrize("language", ["c", "cpp", "cuda"])
@pytest.mark.parametrize(
    "flag",
    [
        "-o/tmp/x", "@file", "-fplugin=x.so", "-B/tmp", "-specs=x", "-wrapper", "-Wl,-x", "-Wa,-x",
        "-Wp,-x", "-I/etc", "-include", "/etc/passwd", "-Xcompiler", "-ccbin=/tmp/x", "-dumpdir",
        "-fdump-tree-all", "-fprofile-use=/x", "-DX=$(id)", "-DX='", "-E", "-S", "-run", "", "-",
        "-std=c++17\n-o", "--compiler-bindir=/x", "-Xptxas", "-mllvm", "-fopt-info=x",
        "-arch=sm_70",
    ],
)  # fmt: skip
def test_flags_that_read_write_or_run_are_refused(language: str, flag: str) -> None:
    problem = check_flags(language, [flag])

    assert problem is not None
    assert "\n" not in problem
    assert "is not allowed" in problem


def test_python_takes_no_flags() -> None:
    assert check_flags("python", ["-O"]) == "flag '-O': python takes no flags"


@pytest.mark.parametrize(
    ("arch", "fine"),
    [("sm_90", True), ("sm_90a", True), ("sm_120f", True), ("sm90", False), ("native", False),
     ("compute_90", False), ("sm_90 -o x", False), ("", False)],
)  # fmt: skip
def test_an_architecture_is_a_real_one(arch: str, fine: bool) -> None:
    assert (Compile(language="cuda", arch=arch).problem is None) is fine


@pytest.mark.parametrize(
    ("name", "fine"),
    [("a.h", True), ("torch/all.h", True), ("../a.h", False), ("/a.h", False), ("a b.h", False),
     ("./a.h", False), ("a\\b.h", False), ("", False), ("a//b.h", False), (".a", False)],
)  # fmt: skip
def test_a_file_of_the_case_has_a_plain_relative_name(name: str, fine: bool) -> None:
    assert (check_file(name) is None) is fine


@pytest.mark.parametrize(
    "check",
    [
        Compile(language="c", flags=("-o/tmp/x",)),
        pytest.param(Compile(language="cuda", arch="native"), marks=pytest.mark.needs("nvcc")),
        Compile(language="c", files={"../a.h": ""}),
    ],
)
@pytest.mark.needs("gcc")
def test_bad_options_leave_the_check_undecided(check: Compile) -> None:
    with pytest.raises(CannotCompile, match=r"is not allowed|bad (arch|header)"):
        Compilers().decide(check, "```c\nint x;\n```")
