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


def write_catalogue(root: Path, skills: int, queries: int) -> None:
    """Write skills with queries that should trigger them, each an equal share of ``queries``."""
    for skill in range(skills):
        name = f"facts-{skill}"
        cases: list[object] = [
            {
                "id": f"query-{query}",
                "input": f"Ask the skill {name} for fact {query}.",
                "should_trigger": True,
            }
            for query in range(skill, queries, skills)
        ]
        write_skill(root / "skills" / name, cases, _DESCRIPTION.format(name=name))


_DESCRIPTION = (
    "Use when asked for one of the facts that {name} knows, such as their numbers and the values "
    "that follow from them, or to compare two of its facts. Not for the facts of other skills, "
    "however near they are."
)
"""About as long as descriptions are: 200 characters."""


def write_skill(
    folder: Path, cases: list[object], description: str = "Use when asked for facts."
) -> None:
    """Write one skill, of about 500 tokens."""
    folder.mkdir(parents=True)
    text = "Facts are known by their number, and values follow from them.\n" * 33
    (folder / "SKILL.md").write_text(
        f"---\nname: {folder.name}\ndescription: {description}\n---\n\n{text}"
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
