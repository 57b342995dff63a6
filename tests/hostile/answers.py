"""All hostile answers, and honest ones: each attack in each language that can try it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from pytest_upskill.checks.code import Compile, OfCode, Run
from tests.hostile.attacks import BOMBS, DECEITS, HARMS, START, THEFTS
from tests.hostile.sources import BUILD_BOMBS, HONEST, INCLUDES, PARSE_BOMBS

Kind = Literal["honest", "theft", "harm", "deceit", "bomb"]
SECRET = "sk_planted_7d1f"


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer, and what should come of it."""

    name: str
    kind: Kind
    check: OfCode
    code: str

    @property
    def text(self) -> str:
        """What a model would reply."""
        return f"```{self.check.language}\n{self.code}\n```\n"


def answers(targets: Mapping[str, object], languages: Iterable[str]) -> Iterator[Answer]:
    """Make all answers, as attacks times the languages that they are possible in.

    Args:
        targets: What the attacks are aimed at, as `targets` makes them.
        languages: Those of C, C++ and CUDA that can be compiled here.
    """
    yield from _executed(targets)
    for name, code in PARSE_BOMBS.items():
        yield Answer(f"parse {name}", "bomb", Compile(language="python"), code)
    for language in ("python", *languages):
        for code in HONEST[language]:
            yield Answer(f"{language} honestly", "honest", Compile(language=language), code)
    for language in languages:
        yield from _compiled(language, targets)


def _executed(targets: Mapping[str, object]) -> Iterator[Answer]:
    stolen = Run(language="python", code=f"assert {SECRET!r} in str(loot)")
    for name, attack in THEFTS.items():
        yield Answer(f"steal {name}", "theft", stolen, f"{START}loot = {_aim(attack, targets)}")
    done = Run(language="python", code="assert done")
    for name, attack in HARMS.items():
        yield Answer(f"harm {name}", "harm", done, f"{START}{_aim(attack, targets)}\ndone = True")
    works = Run(language="python", code="assert works() == 3")
    for name, code in DECEITS.items():
        yield Answer(f"deceive by {name}", "deceit", works, code)
        tested = Run(language="python", code="def test_it():\n    assert works() == 3")
        yield Answer(f"deceive a test by {name}", "deceit", tested, code)
    for name, code in BOMBS.items():
        yield Answer(f"bomb of {name}", "bomb", works, code)
    for code in HONEST["run"]:
        honest = Run(language="python", code="assert honest")
        yield Answer("run honestly", "honest", honest, f"{code}\nhonest = True")


def _compiled(language: str, targets: Mapping[str, object]) -> Iterator[Answer]:
    check = Compile(language=language)
    kernel = "\n__global__ void k() {{}}" if language == "cuda" else ""
    for name, code in INCLUDES.items():
        yield Answer(f"{language} {name}", "theft", check, _aim(code + kernel, targets))
    for name, code in BUILD_BOMBS.items():
        # CUDA is slow, and C has neither templates nor constexpr.
        if language == "cpp" or (language == "c" and name not in {"templates", "constexpr"}):
            yield Answer(f"{language} bomb of {name}", "bomb", check, _aim(code, targets))


def _aim(attack: str, targets: Mapping[str, object]) -> str:
    return attack.format_map(targets)
