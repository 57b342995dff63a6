"""The HTML report: its contents, and that hostile text stays text."""

from __future__ import annotations

import base64
import hashlib
from dataclasses import replace
from html.parser import HTMLParser

import pytest

from pytest_upskill.figures.gate import Gate
from pytest_upskill.report.files.html import MOST_BYTES, write_html
from pytest_upskill.trials.trial import Arm
from tests.reporting import cell, counted, report, run, trial

HOSTILE = (
    "</pre></details><script>alert(1)</script><img src=x onerror=alert(1)>"
    '" onmouseover="alert(1)" {{ 7 * 7 }} {% include "x" %} \x1b[31m\u202e'
)


class Page(HTMLParser):
    """Elements of a page with their attributes, and its text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.styles = ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        if self.cdata_elem == "style":
            self.styles += data
        else:
            self.text += data

    def values(self, attribute: str) -> list[str]:
        return [value for _, attrs in self.elements if (value := attrs.get(attribute)) is not None]

    def tags(self) -> set[str]:
        return {tag for tag, _ in self.elements}


@pytest.fixture(scope="module")
def page() -> Page:
    return Page(
        write_html(
            report(
                counted([(5, 0), (1, 5), (5, 5), (0, 0), (3, 3)]),
                counted([(5, 0), (5, 1)], model="opus"),
                counted([(0, 5), (0, 5)], skill="csv"),
            )
        )
    )


def test_the_page_begins_with_what_came_out_and_what_it_is_about(page: Page) -> None:
    text = " ".join(page.text.split())

    order = [
        "1 of 3 gates failed (hurts 1)",
        "csv on haiku: the skill hurts billing on haiku: ",
        "Measured on 7 cases, 5 runs of each in each arm",
        "Skills and models",
        "billing on haiku ?",
        "csv on haiku \u25bc",
        "Missing runs, cost and versions",
        "How to read this",
    ]
    places = [text.rindex(each) if "on haiku " not in each else text.index(each) for each in order]
    assert places == sorted(places)


def test_a_case_that_was_skipped_is_named() -> None:
    cell = replace(counted([(5, 0)]), skipped=("case-1", "runs-<a>-script"))

    text = Page(write_html(report(cell))).text

    assert "(1 more left out)" in text
    assert "skipped: runs-<a>-script" in text


def test_each_case_has_a_word_for_what_it_shows_of_the_skill(page: Page) -> None:
    for standing in ("worse", "better", "always passes", "never passes", "same"):
        assert standing in page.text


def test_nothing_is_loaded_and_nothing_can_run(page: Page) -> None:
    policy = next(a["content"] for _, a in page.elements if "http-equiv" in a)
    digest = base64.b64encode(hashlib.sha256(page.styles.encode()).digest()).decode()

    assert policy == (
        f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    )
    assert not page.tags() & {"script", "img", "iframe", "object", "form", "link"}
    assert not page.values("style")
    assert not page.values("src")
    assert all(target.startswith("#") for target in page.values("href"))


def test_every_link_leads_to_a_place_on_the_page(page: Page) -> None:
    places = page.values("id")

    assert len(places) == len(set(places))
    assert {target[1:] for target in page.values("href")} <= set(places)
    assert {name for value in page.values("aria-labelledby") for name in value.split()} <= set(
        places
    )


def test_a_section_does_not_repeat_what_its_heading_says() -> None:
    half = counted([(5, 0), (5, 0)])
    skipped = Gate(cell=half, outcome="skipped", text="gate not decided: only 2 of 4 tests ran")
    decided = Gate(cell=half, outcome="passed", text="billing on haiku: it helps")
    both = replace(report(half), gates=(skipped, decided))

    page = Page(write_html(both))

    assert page.text.count("gate not decided: only 2 of 4 tests ran") == 1
    assert "it helps" in page.text
    assert "billing on haiku: it helps" not in page.text


def test_the_same_error_of_several_runs_is_shown_once() -> None:
    lost = trial("a", "with_skill", [run()], errors=("haiku: HTTP 500",) * 3)

    page = Page(write_html(report(cell(lost, trial("a", "without_skill", [run()])))))

    assert "3 missing haiku: HTTP 500" in " ".join(page.text.split())


def test_hostile_text_stays_text_in_html() -> None:
    missed = run(passed=False, text=HOSTILE, message=HOSTILE)
    with_ = trial(HOSTILE, "with_skill", [missed], skill=HOSTILE, model=HOSTILE, question=HOSTILE)
    without = trial(HOSTILE, "without_skill", [run()], errors=(HOSTILE,), model=HOSTILE)

    text = write_html(report(cell(with_, without, path=HOSTILE)))

    page = Page(text)
    assert not page.tags() & {"script", "img"}
    assert not {name for _, attrs in page.elements for name in attrs if name.startswith("on")}
    assert "{{ 7 * 7 }}" in page.text
    assert "\x1b" not in text
    assert "\u202e" not in text


def test_answers_that_are_alike_are_shown_once() -> None:
    runs = [run(text="The same."), run(text="Another."), run(text="The same.")]

    page = Page(write_html(report(cell(trial("a", "with_skill", runs)))))

    assert page.text.count("The same.") == 1
    assert "runs 1, 3: passed" in page.text


def test_the_skill_as_it_was_has_a_place_beside_both_arms() -> None:
    arms = [
        trial("a", "with_skill", [run(), run()]),
        trial("a", "without_skill", [run(passed=False)] * 2),
        trial("a", "old_skill", [run(), run(passed=False, text="It was 36.")]),
    ]

    page = Page(write_html(report(cell(*arms))))

    assert "was 1/2" in page.text
    assert "With the skill as it was" in page.text
    assert "It was 36." in page.text


def test_a_thousand_trials_take_less_than_five_megabytes() -> None:
    answer = "\n".join(f"if (a[{n}] < b && c > d) <{n}>" for n in range(400))
    arms: tuple[Arm, ...] = ("with_skill", "without_skill")
    trials = [
        trial(f"case-{n}", arm, [run(passed=False, text=f"{n} {arm} {answer}")], question="Q" * 300)
        for n in range(500)
        for arm in arms
    ]

    page = write_html(report(cell(*trials)))

    assert len(page.encode()) < MOST_BYTES
    assert "if (a[1] &lt; b" in page


def test_a_run_of_nothing_is_a_page_too() -> None:
    page = Page(write_html(report()))

    assert "No trial ran" in page.text
    assert "table" not in page.tags()
