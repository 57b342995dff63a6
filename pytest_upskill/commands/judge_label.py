"""``pytest-upskill judge label``: one answer at a time, and one key for each label."""

from __future__ import annotations

import shutil
import sys
import textwrap
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from pytest_upskill.cases.judge_labels import LabelledAnswer, LabelsFile, write_labels
from pytest_upskill.commands.command import CommandError, say
from pytest_upskill.project.messages import safe

CANNOT_TELL = "cannot tell"
"""The note of a label that a person has left open on purpose."""

_HELP = "  [y] it holds  [n] it does not  [?] cannot tell  [b] back  [q] save and quit: "
_LABELS = {"y": (True, ""), "n": (False, ""), "?": (None, CANNOT_TELL)}


@contextmanager
def key_presses() -> Iterator[Callable[[], str]]:
    """Yield a function that returns the next key pressed at the terminal, without Enter."""
    if not sys.stdin.isatty():
        raise CommandError("judge label: needs a terminal, as it reads single keys")
    try:
        import termios  # not on Windows, where Enter follows each key
        import tty
    except ImportError:
        yield _key
        return
    before = termios.tcgetattr(sys.stdin)
    tty.setcbreak(sys.stdin)
    try:
        yield _key
    finally:
        termios.tcsetattr(sys.stdin, termios.TCSADRAIN, before)


def _key() -> str:
    """Return the next key in lower case; the end of the input is ``q``."""
    return sys.stdin.read(1).lower() or "q"


def label_answers(file: LabelsFile, path: Path, next_key: Callable[[], str]) -> bool:
    """Ask for each label that nobody has given, and save each; return whether to go on.

    Args:
        file: The labels file; its key is not shown.
        path: Where it is.
        next_key: Returns the next key that is pressed.
    """
    answers = list(file.answers)
    places = [(i, j) for i, answer in enumerate(answers) for j in range(len(answer.labels))]
    at, shown = _next_open(answers, places, 0), -1
    while at < len(places):
        index, number = places[at]
        if index != shown:
            say(*_answer_lines(answers[index], index, len(answers)))
            shown = index
        say(f"Statement {number + 1} of {len(answers[index].labels)}:")
        say(f"  {answers[index].labels[number].statement}")
        match _pressed(next_key):
            case "q":
                say(f"saved; the same command continues: {path}")
                return False
            case "b":
                at = max(0, at - 1)
                continue
            case key:
                holds, why = _LABELS[key]
        labels = list(answers[index].labels)
        labels[number] = labels[number].model_copy(update={"holds": holds, "why": why})
        answers[index] = answers[index].model_copy(update={"labels": labels})
        write_labels(path.parent, file.model_copy(update={"answers": answers}))
        at = _next_open(answers, places, at + 1)
    done = sum(answer.passed is not None for answer in answers)
    say(f"{path}: {done} of {len(answers)} answers labelled", "next: pytest-upskill judge check")
    return True


def _next_open(answers: list[LabelledAnswer], places: list[tuple[int, int]], start: int) -> int:
    """Return the index of the next place that nobody has decided."""
    for at in range(start, len(places)):
        index, number = places[at]
        label = answers[index].labels[number]
        if label.holds is None and label.why != CANNOT_TELL:
            return at
    return len(places)


def _pressed(next_key: Callable[[], str]) -> str:
    """Return the next key that means something."""
    sys.stdout.write(_HELP)
    sys.stdout.flush()
    while (key := next_key()) not in {*_LABELS, "b", "q"}:
        pass
    sys.stdout.write(f"{key}\n")
    return key


def _answer_lines(answer: LabelledAnswer, index: int, count: int) -> Iterator[str]:
    """Yield an answer with its question; code keeps its lines."""
    width = min(100, shutil.get_terminal_size().columns)
    yield f"{'-' * width}"
    yield f"Answer {index + 1} of {count}, case {answer.case}"
    yield ""
    for title, lines in (("Question", answer.question.splitlines()), ("Answer", answer.text)):
        yield f"{title}:"
        is_code = False
        for line in lines:
            is_fence = line.lstrip().startswith(("```", "~~~"))
            is_code ^= is_fence
            plain = is_code or is_fence or line.startswith(("    ", "\t", "|"))
            shown = [line] if plain else textwrap.wrap(line, width - 4) or [""]
            yield from (f"  | {safe(each.expandtabs(4))}" for each in shown)
        yield ""
