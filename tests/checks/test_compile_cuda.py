"""CUDA: the answer's kernels are really built for the architecture."""

from __future__ import annotations

import re

import pytest

from pytest_upskill.checks.code import Compile
from pytest_upskill.checks.compile import CannotCompile, Compilers
from tests.compiling import build

pytestmark = [pytest.mark.slow, pytest.mark.needs("nvcc")]

KERNEL = "__global__ void scale(float *x) { x[threadIdx.x] *= 2; }"


def test_a_kernel_is_built_for_sm_90(compilers: Compilers) -> None:
    code = f"#include <cuda_bf16.h>\n#include <cooperative_groups.h>\n{KERNEL}\n{KERNEL}"

    result = build(compilers, "cuda", code.replace("scale", "other", 1))

    assert result.passed
    assert re.fullmatch(
        r"compile cuda: builds, 2 kernels \(block at answer line 4; nvcc 1\d\.\d+ for sm_90\)",
        result.message,
    )


def test_host_code_and_a_launch_beside_the_kernel_build(compilers: Compilers) -> None:
    host = "#include <vector>\nint main() { float *x; cudaMalloc(&x, 4); scale<<<1, 1>>>(x); }"

    result = build(compilers, "cuda", f"{KERNEL}\n{host}")

    assert result.passed


def test_an_instruction_of_another_architecture_fails(compilers: Compilers) -> None:
    code = '__global__ void k() {\n  asm volatile("wgmma.fence.sync.aligned;");\n}'

    plain = build(compilers, "cuda", code)
    hopper = build(compilers, "cuda", code, arch="sm_90a")

    assert not plain.passed
    assert "assembly: error   : Instruction 'wgmma.fence'" in plain.message
    assert hopper.passed
    assert "for sm_90a" in hopper.message


@pytest.mark.parametrize(
    ("code", "error"),
    [
        ("__global__ void k() {\n  missing();\n}", 'answer line 5: error: identifier "missing"'),
        ("void h();\n__global__ void k() { h(); }", "answer line 5: error: calling a __host__"),
        ('__global__ void k() { asm("foo;"); }', "assembly: error .*'foo'"),
        (
            "__global__ void k(int i, char *p) { __shared__ char s[50000]; s[i] = *p; *p = s[1]; }",
            "uses too much shared data",
        ),
        (
            "__device__ int f();\n__global__ void k(int *p) { *p = f(); }",
            "Unresolved extern function",
        ),
        ('#include "kernels.cuh"\n__global__ void k() {}', "answer line 4: fatal error: kernels"),
        ("#include <cuda_tiles.h>\n__global__ void k() {}", "answer line 4: fatal error: cuda_t"),
    ],
)
def test_an_error_is_reported_at_its_line_of_the_answer(
    compilers: Compilers, code: str, error: str
) -> None:
    result = build(compilers, "cuda", code)

    assert not result.passed
    assert re.search(error, result.message)


@pytest.mark.parametrize(
    "code",
    [
        "int main() { return 0; }",
        "__device__ int f() { return 1; }",
        f"#define __global__\n{KERNEL.replace('threadIdx.x', '0')}",
        "template <typename T> __global__ void k(T *x) { x->nonsense(); }",
        f"#if 0\n{KERNEL}\n#endif",
        f"/* {KERNEL} */",
    ],
    ids=["host only", "device only", "defined away", "never instantiated", "disabled", "comment"],
)
def test_an_answer_without_a_kernel_does_not_pass(compilers: Compilers, code: str) -> None:
    result = build(compilers, "cuda", code)

    assert not result.passed
    assert "no kernel was compiled" in result.message


@pytest.mark.parametrize("name", ["cuda_runtime.h", "include/cuda_fp16.h", "crt/host_config.h"])
def test_a_file_that_would_replace_a_header_of_the_toolkit_fails(
    compilers: Compilers, name: str
) -> None:
    answer = f"```cuda\n{KERNEL}\n```\n```cpp title={name}\n#define __global__\n```\n"

    (result,) = compilers.decide(Compile(language="cuda"), answer)

    assert not result.passed
    assert f"file '{name}' would replace the toolkit's own header" in result.message


def test_several_files_are_built_with_their_headers(compilers: Compilers) -> None:
    answer = (
        '```cuda title=src/a.cu\n#include "load.cuh"\n__global__ void a() { load(); }\n```\n'
        '```cuda title=src/b.cu\n#include "load.cuh"\n__global__ void b() { load(); }\n```\n'
        "```cuda title=src/load.cuh\n__device__ inline void load() {}\n```\n"
        "```cpp title=binding.cpp\n#include <torch/extension.h>\n```\n"
    )

    (result,) = compilers.decide(Compile(language="cuda"), answer)

    assert result.passed
    assert "builds, 2 kernels (src/a.cu, src/b.cu; " in result.message


def test_a_library_that_the_case_does_not_require_is_the_answers_mistake(
    compilers: Compilers,
) -> None:
    result = build(compilers, "cuda", f"#include <torch/all.h>\n{KERNEL}")

    assert not result.passed
    assert "torch/all.h" in result.message


def test_a_header_of_the_case_stands_in_for_a_library(compilers: Compilers) -> None:
    files = {"torch/all.h": "#define TORCH_CHECK(x)\n"}

    result = build(compilers, "cuda", f"#include <torch/all.h>\n{KERNEL}", files=files)

    assert result.passed


def test_an_architecture_nvcc_does_not_know_leaves_the_check_undecided(
    compilers: Compilers,
) -> None:
    with pytest.raises(
        CannotCompile, match=r"cannot build even an empty program here: .*compute_35"
    ):
        build(compilers, "cuda", KERNEL.replace("2", "$"), arch="sm_35")


def test_the_build_says_nothing_of_the_assembler_unless_it_fails(compilers: Compilers) -> None:
    result = build(compilers, "cuda", KERNEL)

    assert result.detail == ""
