"""The labels file, in which a person checks a judge: its format, reading and writing.

``pytest-upskill judge draw`` writes it beside a case file, and ``judge label`` fills in ``holds``.
What the person must not know meanwhile is in a file of its own.
"""

import json
from collections import Counter
from collections.abc import Iterator
from os.path import lexists
from pathlib import Path
from typing import Annotated, Literal, TypeVar, get_args

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from pytest_upskill import KEY_FILE, LABELS_FILE
from pytest_upskill.cases.source.document import BadFile, Document, Problem, translated
from pytest_upskill.cases.source.files import read_text
from pytest_upskill.cases.source.formats import read_json
from pytest_upskill.project.files import MAX_STATE_BYTES, write_file

LabelArm = Literal["with", "without"]
ARMS: tuple[LabelArm, ...] = get_args(LabelArm)


class _Entry(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, defer_build=True)


class StatementLabel(_Entry):
    """Whether a statement holds for an answer, as a person sees it."""

    statement: str
    holds: bool | None
    """None if nobody has decided yet."""
    why: str = ""
    """Notes of the author."""


class LabelledAnswer(_Entry):
    """One answer with its labels; which arm it is from stands in the other file only."""

    id: int
    case: str
    model: str
    """Label of the model."""
    question: str
    text: list[str]
    """Lines of the answer."""
    labels: list[StatementLabel]

    @property
    def full_text(self) -> str:
        """The text of the answer."""
        return "\n".join(self.text)

    @property
    def passed(self) -> bool | None:
        """Whether all statements hold; None as long as a label is missing."""
        holds = [label.holds for label in self.labels]
        return None if None in holds else all(holds)


class KeyEntry(_Entry):
    """What the person who labels an answer must not know about it."""

    arm: LabelArm
    judged: bool
    """Whether the answer passed by the judge."""
    holds: list[bool]
    """What the judge decided about each statement."""
    prompt: str
    """Digest of what the model was asked, without the skill."""
    skill: str
    """Digest of the skill that the model had; empty without."""


Key = dict[Annotated[str, Field(pattern="^[1-9][0-9]*$")], KeyEntry]
"""What the author must not know, by the answer's id."""


class LabelsFile(_Entry):
    """Labels of the answers to the cases of one case file."""

    format: Literal[1]
    case_file: str
    """Name of the case file."""
    drawn: str
    """Date on which the answers were drawn."""
    judge: str
    """Full name of the judge."""
    served: list[str]
    """Model ids that the judge's API returned."""
    prompt: str
    """Digest of the judge's instructions."""
    models: dict[str, str]
    """Full name of each model, by label."""
    cases: dict[str, str]
    """Digest of each case."""
    answers: list[LabelledAnswer]
    cells: dict[str, dict[str, int]]
    """Number of answers from which those of a stratum were drawn, by model."""
    key: Key = Field(default_factory=dict, exclude=True)
    """What the author must not know; it is in `KEY_FILE`."""

    @property
    def labelled(self) -> int:
        """Number of answers whose labels are complete."""
        return sum(answer.passed is not None for answer in self.answers)


def stratum_name(arm: LabelArm, *, judged: bool) -> str:
    """Return the key of a stratum of a model's answers in ``cells``: ``with/true``."""
    return f"{arm}/{str(judged).lower()}"


T = TypeVar("T")


def load_labels(folder: Path) -> LabelsFile | None:
    """Read the labels file in a folder, None if there is none.

    Raises:
        BadFile: It cannot be read or has problems; it lists all of them with their places.
    """
    path = folder / LABELS_FILE
    if not lexists(path):
        return None
    document, labels = _read(LabelsFile, path)
    _, key = _read(Key, folder / KEY_FILE)
    file = labels.model_copy(update={"key": key})
    if problems := [*_answer_problems(document, file)]:
        raise BadFile(problems)
    return file


def _read(kind: type[T], path: Path) -> tuple[Document, T]:
    document = read_json(read_text(path, MAX_STATE_BYTES, cure="draw fewer answers"))
    try:
        return document, TypeAdapter(kind).validate_python(document.value)
    except ValidationError as error:
        raise BadFile(translated(document, error)) from None


def folder_of_labels(case_file: Path) -> Path:
    """Return the folder of a case file's labels: its own, and of a suite the suite."""
    return case_file if case_file.is_dir() else case_file.parent


def labels_beside(case_file: Path) -> LabelsFile | None:
    """Read the labels of a case file's cases, None if there are none.

    Raises:
        BadFile: The labels file cannot be read or has problems.
    """
    file = load_labels(folder_of_labels(case_file))
    return file if file is not None and file.case_file == case_file.name else None


def write_labels(folder: Path, file: LabelsFile) -> Path:
    """Write the labels file into a folder, and return its path.

    Raises:
        OSError: It cannot be written.
    """
    key = {number: entry.model_dump() for number, entry in file.key.items()}
    for name, value in ((KEY_FILE, key), (LABELS_FILE, file.model_dump())):
        text = json.dumps(value, indent=1, ensure_ascii=False)
        write_file(folder / name, f"{text}\n".encode(), mode=0o644)
    return folder / LABELS_FILE


def _answer_problems(document: Document, file: LabelsFile) -> Iterator[Problem]:
    """Find answers that do not fit the other file, or whose case has no digest."""
    ids = Counter(answer.id for answer in file.answers)
    for index, answer in enumerate(file.answers):
        key = file.key.get(str(answer.id))
        fits = key is not None and len(key.holds) == len(answer.labels)
        if not fits or ids[answer.id] > 1 or answer.case not in file.cases:
            what = f"does not fit {KEY_FILE} or 'cases': restore both files from git"
            yield document.problem(("answers", index), what)
