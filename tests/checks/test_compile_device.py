"""CUDA: what else a case may require of the device code that was built."""

from __future__ import annotations

import pytest

from pytest_upskill.checks import CheckResult
from pytest_upskill.checks.code import AtMost, Compile, Instruction
from pytest_upskill.checks.compile import CannotCompile, Compilers
from tests.compiling import fenced

pytestmark = pytest.mark.needs("nvcc")

SHARED = """\
__device__ __noinline__ float pick(float x, int i) {
  float all[64];
  for (int n = 0; n < 64; n++) all[n] = x * n;
  return all[i & 63];
}
namespace ops {
__global__ void stage(float *x) {
  __shared__ float tile[256];
  tile[threadIdx.x] = x[threadIdx.x];
  __syncthreads();
  x[threadIdx.x] = pick(tile[255 - threadIdx.x], threadIdx.x);
}
}
template <int N> __global__ void fill(float *x) { x[threadIdx.x] = N; }
void launch(float *x) { fill<3><<<1, 32>>>(x); }
"""
HOPPER = '__global__ void k() { asm volatile("wgmma.fence.sync.aligned;"); }'
HOST_ERROR = """\
__global__ void k() {}
#ifndef __CUDA_ARCH__
#error only the host sees this
#endif
"""


def build(
    compilers: Compilers, code: str, *requires: AtMost | Instruction, arch: str = "sm_90"
) -> tuple[CheckResult, ...]:
    check = Compile(language="cuda", arch=arch, requires=requires)
    return compilers.decide(check, fenced("cuda", code))


def test_figures_of_ptxas_are_held_against_limits(compilers: Compilers) -> None:
    built, registers, spills, shared, least = build(
        compilers,
        SHARED,
        AtMost(name="max_registers", most=255),
        AtMost(name="max_spill_bytes", most=0),
        AtMost(name="max_shared_bytes", most=1023),
        AtMost(name="max_registers", most=1),
    )

    assert built.passed
    assert built.message.startswith("compile cuda: builds, 2 kernels (")
    assert (registers.name, registers.passed) == ("max_registers", True)
    assert spills.passed
    assert spills.message.endswith(" has 0 spill bytes")
    assert not shared.passed
    assert shared.message == "max_shared_bytes 1023: _ZN3ops5stageEPf has 1024 shared bytes"
    assert not least.passed


def test_spills_are_seen(compilers: Compilers) -> None:
    loads = "".join(f"float a{n} = x[{n}];" for n in range(60))
    stores = "".join(f"x[{n}] = a{n} * a{59 - n};" for n in range(60))
    code = f"__global__ void k(volatile float *x) {{ {loads} {stores} }}"
    check = Compile(
        language="cuda",
        flags=("-maxrregcount=32",),
        requires=(AtMost(name="max_spill_bytes", most=0),),
    )

    _, spills = compilers.decide(check, fenced("cuda", code))

    assert not spills.passed


def test_instructions_are_looked_for_in_the_ptx(compilers: Compilers) -> None:
    _, found, missed = build(
        compilers,
        HOPPER,
        Instruction(text="wgmma.fence"),
        Instruction(text="wgmma.mma_async"),
        arch="sm_90a",
    )

    assert found.passed
    assert found.message == "ptx_contains 'wgmma.fence': in the PTX"
    assert not missed.passed
    assert missed.message == "ptx_contains 'wgmma.mma_async': not in the PTX"


def test_code_that_does_not_build_meets_no_requirement(compilers: Compilers) -> None:
    results = build(compilers, "__global__ void k() { x; }", AtMost(name="max_registers", most=9))
    nothing = compilers.decide(
        Compile(language="cuda", requires=(AtMost(name="max_registers", most=9),)), "Sorry."
    )

    assert [result.passed for result in (*results, *nothing)] == [False] * 4
    assert results[1].message == "max_registers: the code does not build"


def test_the_host_half_is_built_where_the_case_wants_it(compilers: Compilers) -> None:
    (device,) = compilers.decide(Compile(language="cuda"), fenced("cuda", HOST_ERROR))
    (both,) = compilers.decide(Compile(language="cuda", host=True), fenced("cuda", HOST_ERROR))
    (sound,) = compilers.decide(Compile(language="cuda", host=True), fenced("cuda", SHARED))

    assert device.passed
    assert not both.passed
    assert "only the host sees this" in both.message
    assert sound.passed


def test_only_cuda_has_device_code(compilers: Compilers) -> None:
    with pytest.raises(CannotCompile, match="is for cuda only"):
        compilers.decide(Compile(language="c", host=True), fenced("c", "int x;"))
