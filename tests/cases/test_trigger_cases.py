"""Which skill a case expects an agent to take, in our own files and in those of other tools."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_upskill.cases.adapters.choice import CONTRADICTION
from pytest_upskill.cases.load import SkillError, load_skills
from pytest_upskill.cases.skill import Case, Trigger
from pytest_upskill.checks.judge import Judge
from pytest_upskill.checks.text import NotContains
from tests.conftest import WriteSkill
from tests.evals import SAYS_HI, read, read_one, skill

TAKE = Trigger(should=True)
LEAVE = Trigger(should=False)
NOTHING = Trigger(should=False, nothing=True)


@pytest.mark.parametrize("key", ["expected", "expected_output"])
@pytest.mark.parametrize(
    ("answer", "trigger"),
    [
        ("Should NOT activate csv skill \u2014 this is general", LEAVE),
        ("Should activate csv skill and count the rows", TAKE),
        ("Loads the tsv skill and counts the rows", None),
        ("Counts the rows of the csv", None),
    ],
)
def test_the_answer_in_words_says_the_choice_also_beside_assertions(
    key: str, answer: str, trigger: Trigger | None
) -> None:
    case = read_one(assertions=["Says hi"], **{key: answer})

    assert (case.trigger, case.checks) == (trigger, SAYS_HI)


@pytest.mark.parametrize(
    ("entry", "trigger"),
    [
        ({"should_trigger": True}, TAKE),
        ({"should_trigger": False}, LEAVE),
        ({"should_trigger": "no"}, LEAVE),
        ({"should_trigger": "csv"}, TAKE),
        ({"should_trigger": "tsv"}, Trigger(should=False, others=("tsv",))),
        ({"expected_skill": "csv"}, TAKE),
        ({"expected_skill": "tables:CSV"}, TAKE),
        ({"expected_skill": None}, NOTHING),
        ({"expected_skill": "none"}, NOTHING),
        ({"expected_skill": "tsv"}, Trigger(should=False, others=("tsv",))),
        ({"expected_skill": "tsv", "acceptable_skills": ["csv"]},
         Trigger(should=True, others=("tsv",))),
        ({"skills_expected_to_activate": ["tsv", "csv"]}, Trigger(should=True, others=("tsv",))),
        ({"expected_triggers": ["skill: tsv"]}, Trigger(should=False, others=("tsv",))),
        ({"expected_activation": True, "must_not_activate": ["tsv"]}, TAKE),
        ({"expected_activation": False}, LEAVE),
        ({"expected_skill": "csv", "should_trigger": False}, LEAVE),
        ({"forbidden_skills": ["csv"]}, LEAVE),
        ({"must_not_activate": ["csv"], "expected_skill": "tsv"},
         Trigger(should=False, others=("tsv",))),
        ({"expected_route": "tsv"}, Trigger(should=False, others=("tsv",))),
        ({"expected_route": "csv", "must_not_route": ["tsv"]}, TAKE),
        ({"expected_route": "no_route"}, NOTHING),
        ({"must_not_activate": ["tsv"]}, None),
        ({"should_trigger": False, "preferred_skill": "psv"}, LEAVE),
        ({"should_trigger": True, "expected_route": "fast-path"}, TAKE),
        ({"routing": {"target_present": {"expected_selected_skill": "csv"}},
          "routing_context": {"target_skill": "csv"}}, TAKE),
        ({"routing": {"target_present": {"expected_selected_skill": None}}}, NOTHING),
        ({"routing": "by name"}, None),
        ({"should_trigger": None}, None),
        ({}, None),
    ],
)  # fmt: skip
def test_keys_of_other_tools_say_which_skill_to_take(entry: Any, trigger: Trigger | None) -> None:
    case = read_one(assertions=["Says hi"], **entry)

    assert (case.trigger, case.skip) == (trigger, None)


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("read-csv", None),
        ("tables-read-csv", None),
        ("csv-read", "no skill near this file is called 'csv-read'"),
        ("read", "no skill near this file is called 'read'"),
    ],
)
def test_a_name_of_several_words_may_lack_the_group_of_the_skill(
    name: str, reason: str | None
) -> None:
    (case,) = read(
        [{"prompt": "Say hi", "expected_skill": name}], owner=skill("tables-read-csv")
    ).cases

    assert (case.trigger, case.skip) == (None if reason else TAKE, reason)


def test_an_assertion_that_a_skill_is_activated_is_about_the_choice() -> None:
    assertions = ["not_contains:bye", "exit_status:completed", "activation_evidence_contains:csv"]
    case = read_one(assertions=assertions, expected_output="A greeting")

    assert (case.trigger, case.skip) == (TAKE, None)
    assert case.checks == (
        NotContains(text="bye"),
        Judge(statement="The answer fits this: A greeting"),
    )


@pytest.mark.parametrize(
    ("entry", "trigger"),
    [
        ({"type": "should-trigger"}, TAKE),
        ({"type": "should_not_trigger"}, LEAVE),
        ({"type": "should_not_trigger", "should_trigger": True}, TAKE),
        ({"category": "non-trigger"}, LEAVE),
        ({"category": "negative_trigger"}, LEAVE),
        ({"category": "positive-trigger"}, TAKE),
        ({"type": "edge_case"}, None),
    ],
)
def test_the_type_of_a_case_can_say_whether_to_take_it(entry: Any, trigger: Trigger | None) -> None:
    assert read_one(assertions=["Says hi"], **entry).trigger == trigger


def test_keys_that_contradict_each_other_are_a_mistake_in_the_file() -> None:
    good = {"prompt": "Say hi", "should_trigger": True}

    evals = read([good, {"prompt": "Sing", "should_trigger": True, "expected_activation": False}])

    assert [case.skip for case in evals.cases] == [None, f"cannot be read: [1]: {CONTRADICTION}"]
    assert [each.is_hint for each in evals.warnings] == [False]


@pytest.mark.parametrize("entry", [{"should_trigger": True}, {"expected_skill": None}])
def test_a_query_needs_nothing_to_check(entry: Any) -> None:
    case = read_one(**entry)

    assert case.trigger is not None
    assert (case.checks, case.skip, case.is_answered) == ((), None, False)


def test_a_check_that_needs_an_agent_leaves_the_query() -> None:
    case = read_one(should_trigger=True, expected_script="a.py", assertions=["Says hi"])

    assert (case.trigger, case.skip) == (TAKE, None)
    assert case.agent_key == "ran_script"


@pytest.mark.parametrize(
    "document",
    [
        [{"query": "Parse", "should_trigger": True}, {"query": "Sing", "should_trigger": False}],
        {"should_trigger": ["Parse"], "should_not_trigger": ["Sing"]},
        {"trigger_evals": {"should_trigger": ["Parse"], "should_not_trigger": ["Sing"]}},
        {"positive_triggers": ["Parse"], "negative_triggers": ["Sing"]},
        {"trigger_evaluation": {"should_trigger": ["Parse"], "should_not_trigger": ["Sing"]}},
        {"csv": {"should_trigger": ["Parse"]}, "global_should_not_trigger": ["Sing"]},
        {
            "should_trigger": ["Parse"],
            "near_neighbor": [{"text": "Sing", "expected": "It is no question about a table."}],
        },
        {
            "queries": [
                {"query": "Parse", "should_trigger": "csv"},
                {"query": "Sing", "should_trigger": None},
            ]
        },
        {"positive": [{"id": 1, "prompt": "Parse", "expected": "trigger"}], "negative": ["Sing"]},
        {
            "evaluations": [
                {"prompt": "Parse", "should_trigger": True},
                {"prompt": "Sing", "should_trigger": False},
            ]
        },
    ],
)
def test_a_set_of_triggers_is_read_query_by_query(document: Any) -> None:
    take, leave = read(document).cases

    assert (take.input, take.trigger) == ("Parse", TAKE)
    assert leave.input == "Sing"
    assert leave.trigger in (LEAVE, NOTHING)
    assert (take.skip, leave.skip) == (None, None)


def test_a_query_keeps_its_line() -> None:
    text = '{"should_trigger": ["Parse"],\n"should_not_trigger": [\n"Sing"]}'

    assert [case.line for case in read(text).cases] == [1, 3]


def test_a_set_under_the_name_of_a_skill_is_for_it_whatever_words_it_contains() -> None:
    document = {"csv-eval-queries": {"should_trigger": ["Parse"]}, "csv": {"should_trigger": ["A"]}}

    lost, found = read(document, owner=None).cases

    assert lost.skip == "skill: no skill near this file is called 'csv-eval-queries'"
    assert found.trigger == TAKE


def test_in_a_file_of_several_skills_a_query_for_none_of_them_should_trigger_no_skill() -> None:
    entries = [
        {"query": "Parse", "should_trigger": True, "expected_skill": "tsv"},
        {"query": "Sing", "should_trigger": False},
        {"query": "Hum", "should_trigger": True},
    ]

    named, none, lost = read(entries, owner=None).cases

    assert (named.trigger, none.trigger, lost.trigger) == (TAKE, NOTHING, None)
    assert lost.skip == "does not say which skill it tests: add 'skill' (Vally: 'tags.skill')"


@pytest.mark.parametrize(
    ("second", "problem"),
    [
        ({"should_trigger": False}, "contradicts"),
        ({"expected_skill": "parcels"}, "contradicts"),
        ({"expected_skill": "billing"}, "repeats"),
    ],
)
def test_a_query_that_occurs_twice_is_refused(
    write_skill: WriteSkill, second: dict[str, object], problem: str
) -> None:
    folder = write_skill(
        {"id": "one", "input": "Bill Ada.", "should_trigger": True},
        {"id": "two", "input": "Bill Ada.", **second},
        {"id": "bob", "input": "Bill Bob.", "should_trigger": True},
        {"id": "answered", "input": "Bill Ada.", "expected": {"contains": "37"}},
    )

    with pytest.raises(
        SkillError, match=rf"cases\[1\]: {problem} the query of the case in line \d+: remove one, "
    ):
        load_skills(folder / "skill_meta.json")


def test_without_a_question_there_is_no_query() -> None:
    (case,) = read([{"id": "none", "prompt": "", "should_trigger": False}]).cases

    assert case.trigger is None
    assert case.skip


def own_case(write_skill: WriteSkill, **entry: Any) -> Case:
    folder = write_skill({"id": "a", "input": "Bill Ada.", **entry})
    (found,) = load_skills(folder / "skill_meta.json")
    return found.cases[0]


@pytest.mark.parametrize(
    ("entry", "trigger"),
    [
        ({"should_trigger": True}, TAKE),
        ({"should_trigger": False}, LEAVE),
        ({"expected_skill": "billing"}, TAKE),
        ({"expected_skill": None}, NOTHING),
        ({"expected_skill": ["billing", "parcels"]}, Trigger(should=True, others=("parcels",))),
        ({"expected_skill": "parcels", "should_trigger": False},
         Trigger(should=False, others=("parcels",))),
    ],
)  # fmt: skip
def test_our_own_format_says_which_skill_to_take(
    write_skill: WriteSkill, entry: Any, trigger: Trigger
) -> None:
    assert own_case(write_skill, **entry).trigger == trigger


@pytest.mark.parametrize(
    ("entry", "problem"),
    [
        ({}, "cases[0]: nothing to check: add 'expected', or 'should_trigger' or 'expected_skill'"),
        ({"should_trigger": 1}, "cases[0].should_trigger: must be true or false, got 1"),
        ({"should_trigger": None}, "cases[0].should_trigger: must be true or false, got null"),
        ({"expected_skill": 1},
         "cases[0].expected_skill: must be a string or a list of strings, got 1"),
        ({"expected_skill": []}, "cases[0].expected_skill: must not be empty"),
        ({"expected_skill": "parcels", "should_trigger": True},
         "cases[0].expected_skill: contradicts 'should_trigger': true: remove one of the two"),
        ({"should_triger": True, "expected": {"contains": "a"}},
         "cases[0].should_triger: unknown key (did you mean 'should_trigger'?)"),
        ({"skill": "billing", "expected": {"contains": "a"}},
         "cases[0].skill: unknown key (did you mean 'expected_skill'?)"),
    ],
)  # fmt: skip
def test_mistakes_in_triggers_are_reported_with_their_place(
    write_skill: WriteSkill, entry: Any, problem: str
) -> None:
    with pytest.raises(SkillError) as caught:
        own_case(write_skill, **entry)

    assert str(caught.value).endswith(f": {problem}")


@pytest.mark.parametrize(
    ("trigger", "taken", "right"),
    [
        (TAKE, "csv", True),
        (TAKE, None, False),
        (TAKE, "tsv", False),
        (Trigger(should=True, others=("tsv",)), "tsv", True),
        (LEAVE, "csv", False),
        (LEAVE, "tsv", True),
        (LEAVE, None, True),
        (NOTHING, "tsv", False),
        (NOTHING, None, True),
        (Trigger(should=False, others=("tsv",)), "tsv", True),
        (Trigger(should=False, others=("tsv",)), None, False),
    ],
)
def test_a_choice_is_right_if_the_trigger_says_so(
    trigger: Trigger, taken: str | None, right: bool
) -> None:
    assert trigger.is_right(taken, "csv") is right


@pytest.mark.parametrize(
    ("statement", "trigger"),
    [
        ("The csv skill is triggered from the implicit phrasing without the user naming it.", TAKE),
        ("The skill is loaded even when nobody names it", TAKE),
        ("The agent does not read or activate csv/SKILL.md.", LEAVE),
        ("The agent did not invoke the csv skill", LEAVE),
        ("Do not activate csv for this request.", LEAVE),
        ("Activates csv", TAKE),
        ("Routes to csv", TAKE),
        ("Should NOT route to csv: it is one line", LEAVE),
        ("Does not activate.", LEAVE),
        ("Does not activate unless the user asks for a table", LEAVE),
    ],
)
def test_a_sentence_about_a_choice_that_the_case_makes_is_no_statement(
    statement: str, trigger: Trigger
) -> None:
    case = read_one(assertions=[statement, "Says hi"], should_trigger=trigger.should)

    assert [check.statement for check in case.judge_checks] == ["Says hi"]
    assert case.trigger == trigger


@pytest.mark.parametrize(
    "statement",
    [
        "The csv skill is triggered from the phrasing and names the column",
        "The csv skill is triggered from the phrasing, which it quotes",
        "The agent did not invoke the csv skill or run a script",
        "Uses csv",
        "Routes to the reader of csv",
        "Does not trigger a rebuild",
    ],
)
def test_a_sentence_with_another_claim_is_a_statement(statement: str) -> None:
    case = read_one(assertions=[statement], should_trigger=True)

    assert [check.statement for check in case.judge_checks] == [statement]


def test_a_manner_may_be_another_claim_where_nothing_says_the_choice() -> None:
    statements = ["The csv skill is loaded from the cache", "Does not activate, or send, a plan"]

    case = read_one(assertions=statements)

    assert (case.trigger, [check.statement for check in case.judge_checks]) == (None, statements)


def test_a_statement_about_the_answer_may_say_that_the_skill_is_chosen_too() -> None:
    case = read_one(assertions=["Skill activates and produces a table"])

    assert (case.trigger, len(case.checks)) == (TAKE, 1)
