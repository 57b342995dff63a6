"""The format of ``skill_meta.json``: these models are its only definition.

Their docstrings, and those of their fields, are the descriptions in the published JSON Schema.
"""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import (
    AfterValidator,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationInfo,
    model_validator,
)

from pytest_upskill.cases.skill import Mark, Trigger, plain_name
from pytest_upskill.cases.skill_meta import values
from pytest_upskill.cases.skill_meta.expected import Entry, Expected, check_expected


class Context(Entry):
    """What is sent along with the input."""

    files: dict[values.Text, str] | None = None
    """Name to text; appended to the prompt, the same with and without the skill."""


class SetupEntry(Entry):
    """What is done in an agent's workspace before it starts."""

    files: values.WorkspaceFiles | None = None
    """Further files, as in `workspace`."""
    commands: values.Texts = Field(default_factory=list)
    """Commands of the shell, in the sandbox and without network; each must succeed."""


class Provenance(Entry):
    """How a generated case was made."""

    teacher: str | None = None
    """The model that proposed it."""
    source: str | None = None
    """The name of the file or task that it was made from."""
    quote: str | None = None
    """The passage of the source that holds the answer."""
    unsourced: bool = False
    """Whether no passage of the source holds the answer."""
    screened: list[str] = Field(default_factory=list)
    """The models that did not always pass without the skill before the case was kept."""


_TRIGGERS = ("should_trigger", "expected_skill")


def _trigger(expected: list[str] | None, info: ValidationInfo) -> Any:
    """Return the trigger of an ``expected_skill``, which must agree with ``should_trigger``."""
    skill = values.Around.of(info).skill
    own = {plain_name(name) for name in skill.names} if skill else set[str]()
    others = tuple(name for name in expected or () if plain_name(name) not in own)
    should, stated = len(others) < len(expected or ()), info.data.get("should_trigger")
    if stated not in (None, should):
        raise ValueError(
            f"contradicts 'should_trigger': {str(stated).lower()}: remove one of the two"
        )
    return Trigger(should=should, others=others, nothing=not expected)


class CaseEntry(Entry):
    """A question to a model and the checks that its answer must pass."""

    model_config = ConfigDict(
        json_schema_extra={"anyOf": [{"required": [key]} for key in ("expected", *_TRIGGERS)]}
    )

    comment_: Annotated[str | list[str] | None, Field(alias="$comment")] = None
    """Notes for readers, as text or as a list of lines: JSON has no comments."""
    id: values.Id | None = None
    """Unique name of the case; by default it is derived from the input."""
    input: Annotated[values.Text, Field(pattern=r"\S")]
    """The user's message."""
    expected: Annotated[
        Expected | None, BeforeValidator(check_expected, json_schema_input_type=Expected)
    ] = None
    """The checks of the answer; may be missing where a trigger is stated."""
    should_trigger: Annotated[bool, Field(default=None)]
    """Whether an agent that sees all skills should choose this one for the input."""
    expected_skill: Annotated[values.Texts | None, AfterValidator(_trigger)] = None
    """Name of the skill that an agent should choose, or several that are right; null for none."""
    context: Context | None = None
    """What is sent along with the input."""
    workspace: values.WorkspaceFiles | None = None
    """What an agent finds in its workspace: a folder, relative to this file, or name to text or to
    `{"source": "path"}`, a copy of a file or folder."""
    files: values.InputFiles | None = None
    """Files of the question: paths, or name to text. A model reads them in its prompt; an agent
    finds them in its workspace, binary ones too."""
    setup: SetupEntry | None = None
    """What is done in an agent's workspace before it starts."""
    git: values.Repository | None = None
    """`true` for a git repository with one commit of the files; a path for that of a git bundle."""
    max_turns: Annotated[int, Field(ge=1, le=200)] | None = None
    """Replies that an agent's model may need for this case; 20 without it."""
    reference: values.Text | None = None
    """An answer known to be right, for the judge alone, with every answer of every arm."""
    statements: dict[Annotated[str, Field(pattern="^[1-9][0-9]*$")], Mark] | None = None
    """Statements of `judge` to exclude from every arm: number, from 1, to `agent` or `vacuous`."""
    min_pass_rate: values.Rate | None = None
    """Share of the runs that must pass; without it, more than half of them."""
    models: values.Texts | None = None
    """Labels of the models this case is for; by default all."""
    tags: values.Texts | None = None
    """Words that select the case, as in `pytest -k slow`."""
    train: bool = False
    """Whether the skill was written or chosen with this case: it runs and guards against
    regressions, but is left out of the lift."""
    provenance: Provenance | None = None
    """How the case was made; notes for readers and for `pytest-upskill refine`."""
    output_file: str | None = None
    """Ignored, as it belongs to `validator`."""
    validator: str | None = None
    """Skips the case: upskill's validators inspect files, and a single answer leaves none."""
    validator_config: dict[str, Any] | None = None
    """Ignored, as it belongs to `validator`."""

    @property
    def trigger(self) -> Trigger | None:
        """Which skill an agent should choose, None if the case does not say."""
        if "expected_skill" in self.model_fields_set:
            trigger: Trigger | Any = self.expected_skill  # made by its validator
            assert isinstance(trigger, Trigger)
            return trigger
        is_stated = "should_trigger" in self.model_fields_set
        return Trigger(should=self.should_trigger) if is_stated else None

    @model_validator(mode="after")
    def _check_purpose(self) -> CaseEntry:
        if self.expected is None and not self.model_fields_set.intersection(_TRIGGERS):
            raise ValueError(
                "nothing to check: add 'expected', or 'should_trigger' or 'expected_skill'"
            )
        return self


class Gate(Entry):
    """What the skill must reach on every model."""

    min_lift: Annotated[float, Field(ge=-1, le=1)] | None = None
    """Pass rate with the skill minus without it."""
    min_mean_pass_rate: values.Rate | None = None
    """Mean pass rate of the cases with the skill."""
    min_recall: values.Rate | None = None
    """Share of the queries that should trigger the skill for which an agent chooses it."""
    max_false_triggers: values.Rate | None = None
    """Share of the queries that should not trigger the skill for which an agent chooses it."""


class Defaults(Entry):
    """Values for every case that does not set its own."""

    min_pass_rate: values.Rate | None = None
    """Share of the runs that must pass; without it, more than half of them."""


def _check_number(value: object) -> object:
    if value == []:
        raise ValueError("contains no cases: add one, with 'input' and 'expected'")
    return value


_Cases = Annotated[list[CaseEntry], Field(min_length=1), BeforeValidator(_check_number)]


class CaseFile(Entry):
    """Test cases of an agent skill."""

    model_config = ConfigDict(
        json_schema_extra={
            "oneOf": [{"properties": {key: True}, "required": [key]} for key in ("cases", "tests")]
        }
    )

    schema_: Annotated[str | None, Field(alias="$schema")] = None
    """Where editors find the schema of this file."""
    comment_: Annotated[str | list[str] | None, Field(alias="$comment")] = None
    """Notes for readers, as text or as a list of lines: JSON has no comments."""
    metadata: dict[str, Any] | None = None
    """Ignored: upskill records here how it generated the skill."""
    gate: Gate = Field(default_factory=Gate)
    """What the skill must reach on every model."""
    defaults: Defaults = Field(default_factory=Defaults)
    """Values for every case that does not set its own."""
    cases: _Cases = Field(default_factory=list)
    """The test cases."""
    tests: _Cases = Field(default_factory=list)
    """The test cases, as upskill calls them."""

    @model_validator(mode="after")
    def _check_cases(self) -> CaseFile:
        if ("cases" in self.model_fields_set) == ("tests" in self.model_fields_set):
            raise ValueError("must have one list of cases, 'cases' or 'tests'")
        return self
