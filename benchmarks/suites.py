"""Write what is measured: skills with many cases, and as many tests for plain pytest."""

from __future__ import annotations

import json
from pathlib import Path

CASES_PER_SKILL = 20

KERNEL = """\
#include <cuda_fp16.h>
#include <cuda_runtime.h>
// Kernel {number}: no two sources are alike.
__global__ void scale_{number}(const __half2 *__restrict__ in, __half2 *__restrict__ out, int n) {{
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {{
        out[i] = __hmul2(in[i], __float2half2_rn({number}.0f));
    }}
}}
"""


def write_skills(root: Path, trials: int, *, per_skill: int = CASES_PER_SKILL) -> None:
    """Write skills whose cases make ``trials`` trials on one model, two arms each."""
    numbers = range(trials // 2)
    for start in range(0, len(numbers), per_skill):
        cases: list[object] = [
            {
                "id": f"fact-{number}",
                "input": f"What is fact {number}? I heard that it is value-{number}.",
                "expected": {"contains": f"value-{number}"},
            }
            for number in numbers[start : start + per_skill]
        ]
        write_skill(root / "skills" / f"facts-{start // per_skill}", cases)


def write_kernels(root: Path, kernels: int) -> None:
    """Write a skill whose answers are CUDA kernels, all different."""
    cases: list[object] = [
        {
            "id": f"kernel-{number}",
            "input": f"Repeat:\n```cuda\n{KERNEL.format(number=number)}```\n",
            "expected": {"compile": "cuda"},
        }
        for number in range(kernels)
    ]
    write_skill(root / "skills" / "kernels", cases)


def write_skill(folder: Path, cases: list[object]) -> None:
    """Write one skill, of about 500 tokens."""
    folder.mkdir(parents=True)
    text = "Facts are known by their number, and values follow from them.\n" * 33
    (folder / "SKILL.md").write_text(
        f"---\nname: {folder.name}\ndescription: Use when asked for facts.\n---\n\n{text}"
    )
    (folder / "skill_meta.json").write_text(json.dumps({"cases": cases}, indent=1))


def write_plain(root: Path, tests: int) -> None:
    """Write trivial parametrized tests."""
    root.mkdir(parents=True)
    (root / "pytest.ini").write_text("[pytest]\n")
    (root / "test_plain.py").write_text(
        "import pytest\n\n\n"
        f"@pytest.mark.parametrize('number', range({tests}))\n"
        "def test_trivial(number):\n    assert number >= 0\n"
    )
