"""CUDA: an answer cannot print, name or comment its way past what is required of its kernels."""

from __future__ import annotations

import pytest

from pytest_upskill.checks.code import AtMost, Compile, Instruction
from pytest_upskill.checks.compile import Compilers
from pytest_upskill.checks.compile.c_family import (
    check_instruction,
    read_figures,
    without_comments,
)
from tests.compiling import build, fenced

needs_nvcc = pytest.mark.needs("nvcc")

FORGED_ENTRY = "ptxas info    : Compiling entry function 'k' for 'sm_90'"
FORGED_FIGURES = (
    "ptxas info    : Function properties for _Z1kPVf\\n"
    "    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\\n"
    "ptxas info    : Used 1 registers, 0 bytes smem"
)
HUNGRY = (
    "__shared__ float s[64];"
    + "".join(f"float a{n} = x[{n}];" for n in range(60))
    + "".join(f"x[{n}] = a{n} * a{59 - n};" for n in range(60))
    + "s[threadIdx.x & 63] = x[0]; __syncthreads(); x[1] = s[0];"
)


@needs_nvcc
@pytest.mark.parametrize(
    "code",
    [
        f'#pragma message("x\\n{FORGED_ENTRY}")\nint main() {{ return 0; }}',
        f"#warning {FORGED_ENTRY}\n__device__ int f() {{ return 1; }}",
        'extern "C" __device__ int __global__kernel() { return 1; }',
    ],
    ids=["pragma message", "warning", "name"],
)
def test_a_printed_kernel_is_no_kernel(code: str) -> None:
    result = build(Compilers(), "cuda", code)

    assert not result.passed
    assert "no kernel was compiled" in result.message


@needs_nvcc
@pytest.mark.parametrize("host", [False, True], ids=["device", "host"])
def test_printed_figures_do_not_count(host: bool) -> None:
    lines = FORGED_FIGURES.replace("\\n", "\n")
    code = (
        f'#pragma message("x\\n{FORGED_FIGURES}")\n'
        "__global__ void k(volatile float *x) {\n"
        f'  asm volatile(R"(.pragma "x\n{lines}";)");\n  {HUNGRY}\n'
        f'  asm volatile(R"(.pragma "x\n{lines}";)");\n}}'
    )
    check = Compile(
        language="cuda",
        host=host,
        flags=("-maxrregcount=32",),
        requires=(
            AtMost(name="max_registers", most=31),
            AtMost(name="max_spill_bytes", most=0),
            AtMost(name="max_shared_bytes", most=255),
        ),
    )

    built, *figures = Compilers().decide(check, fenced("cuda", code))

    assert built.passed
    assert [result.passed for result in figures] == [False] * 3
    assert figures[0].message == "max_registers 31: _Z1kPVf has 32 registers"
    assert figures[2].message == "max_shared_bytes 255: _Z1kPVf has 256 shared bytes"


@pytest.mark.parametrize(
    "output",
    [
        "Used 200 registers\nUsed 1 registers",
        "Used 1 registers\nUsed 200 registers",
        "x Compiling entry function 'y\nUsed 200 registers, 8 bytes smem\n'",
        "no end of line: ptxas info    : Used 200 registers\n\x1b[ptxas info    : Used 1 registers",
    ],
)
def test_a_second_figure_cannot_hide_a_higher_one(output: str) -> None:
    figures = read_figures(f"Compiling entry function 'k'\n{output}")

    assert max(each["registers"] for each in figures.values()) == 200


@needs_nvcc
def test_only_an_instruction_counts_as_one() -> None:
    code = """
    extern "C" __device__ __noinline__ void mma(float *x) { x[0] = 1; }
    extern "C" __global__ void HGMMA(float *x) {
      asm volatile("// wgmma.mma_async.sync.aligned;\\n");
      asm volatile("/* ; wgmma.mma_async.sync.aligned; */");
      asm volatile(".pragma \\"; wgmma.mma_async.sync.aligned;\\";");
      asm volatile("{ .reg .b32 wgmma, x; mov.b32 wgmma, 1; mov.b32 x, { wgmma }; }");
      asm volatile("wgmma_mma_async_sync: ");
      mma(x);
    }
    """
    wanted = ("wgmma", "mma", "bra.HGMMA", "cp.async", "call.uni")
    check = Compile(
        language="cuda",
        requires=tuple(Instruction(text=text) for text in wanted),
    )

    built, *found = Compilers().decide(check, fenced("cuda", code.replace("{ wgmma }", "wgmma")))

    assert built.passed, built
    assert [result.passed for result in found] == [False] * 4 + [True]


@pytest.mark.parametrize(
    ("ptx", "text", "is_found"),
    [
        ("@%p1 bra.uni $L; @!%p2  add.s32 %r1,\t%r2, 1;", "add.s32", True),
        ("{ .reg .b32 t; mov.b32 t, 1; }", "mov.b32", True),
        (
            "cp.async.bulk.tensor.2d.shared::cluster.global [%r1], [%rd1, {%r2, %r3}], [%r4];",
            "tensor.2d.shared::cluster",
            True,
        ),
        ("mov.u32 %r1, %laneid;", "%laneid", True),
        ("mov.u32 %r1, %ctaid.x;", "%ctaid", True),
        ("mov.u32 %r1, %laneid;", "%lane", False),
        ("mov.u32 %wgmma, 1;", "wgmma", False),
        ('.pragma "a\\"; bar.sync 0; //"', "bar.sync", True),
        ('// "\nbar.sync 0;\n// "', "bar.sync", True),
        ('.pragma "\n bar.sync 0;\n";', "bar.sync", False),
        ("/* // */ bar.sync 0; /* ; bar.arrive; */", "bar.sync", True),
        ("/* // */ bar.sync 0; /* ; bar.arrive; */", "bar.arrive", False),
        (".global .align 8 .u64 t[2] = {wgmma, ret +4};", "wgmma", False),
        (".visible .entry wgmma(\n.param .u64 wgmma_param_0\n)\n.maxntid 8\n{\n}", "wgmma", False),
    ],
)
def test_instructions_are_told_apart_from_all_else_in_ptx(
    ptx: str, text: str, is_found: bool
) -> None:
    result = check_instruction(Instruction(text=text), without_comments(ptx))

    assert result.passed is is_found


@needs_nvcc
@pytest.mark.parametrize(
    ("text", "passed"),
    [
        ("%laneid", True),
        ("ld.global.nc", True),
        ("HGMMA", False),
    ],
)
def test_instructions_and_special_registers_are_found(text: str, passed: bool) -> None:
    code = """
    extern "C" __device__ __noinline__ void HGMMA(float *x) { x[1] *= 2; }
    __global__ void k(const float *__restrict__ in, float *out) {
      unsigned lane;
      asm("mov.u32 %0, %%laneid;" : "=r"(lane));
      out[lane] = __ldg(&in[lane]);
      HGMMA(out);
    }
    """
    check = Compile(language="cuda", requires=(Instruction(text=text),))

    results = Compilers().decide(check, fenced("cuda", code))

    assert [result.passed for result in results] == [True, passed]
