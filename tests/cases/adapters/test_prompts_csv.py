"""Tables of prompts."""

from __future__ import annotations

from tests.cases.adapters.conftest import Measured

TABLE = """\
id,should_trigger,prompt,expected_behavior,notes
columns,true,Which columns of the table are empty?,Names the column price; counts its rows,easy
"weather",false,"What is the weather,\ntoday?",Does not load the skill,
"""


def test_rows_are_queries_and_those_with_behaviors_are_answered_too(measured: Measured) -> None:
    assert measured({"skills/csv/evals/prompts.csv": TABLE}) == {
        "columns with_skill": "skip",  # only a judge can decide its two statements
        "columns without_skill": "skip",
        "columns trigger": "pass",
        "weather trigger": "pass",
    }


def test_a_table_of_data_among_the_cases_is_no_case_file(measured: Measured) -> None:
    data = "text,label\nGreat service,positive\nNever again,negative\n"

    assert measured({"skills/csv/evals/fixtures/cases.csv": data}) == {}
