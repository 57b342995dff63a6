"""The HTML report in a browser: legible, accessible, inert."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, Request

from pytest_upskill.report.files.html import write_html
from tests.browsing import browser, page
from tests.reporting import cell, chosen, counted, report, run, trial

__all__ = ["browser", "page"]

pytestmark = [pytest.mark.slow, pytest.mark.needs("chromium")]

HOSTILE = [
    "<script>document.title = 'owned'</script><img src=x onerror=\"document.title='owned'\">",
    "</pre></details></main><style>* { display: none !important }</style><h2>owned</h2>",
    "\x1b]0;owned\x07\x1b[2J\x1b[31mred",
    "x" * 200_000,
    "\u202eright to left \u2066 override \u05d0\u05d1\u05d2",
    "<svg onload=alert(1)><a href='javascript:alert(1)'>owned</a>",
]


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    text = write_html(
        report(
            counted([(5, 0), (1, 5), (5, 5), (0, 0), (3, 3)]),
            counted([(5, 0), (5, 1)], model="a-model-of-a-rather-long-name"),
            counted([(0, 5), (0, 5)], skill="csv"),
        )
    )
    file = tmp_path_factory.mktemp("page") / "report.html"
    file.write_text(text, "utf-8")
    return file


def heard(page: Page, event: Any) -> list[Any]:
    """Collect what the page tells of."""
    events: list[Any] = []

    # Playwright puts a mark on what it is given, which a built-in method does not take.
    def hear(each: Any) -> None:
        events.append(each)

    page.on(event, hear)
    return events


def fits(page: Page) -> bool:
    """Return whether nothing is wider than the window."""
    return bool(page.evaluate("document.documentElement.scrollWidth <= window.innerWidth"))


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 1280])
def test_the_page_is_legible_without_script(
    browser: Browser, file: Path, width: int, scheme: str
) -> None:
    context = browser.new_context(
        viewport={"width": width, "height": 800},
        color_scheme="dark" if scheme == "dark" else "light",
        java_script_enabled=False,
    )
    page = context.new_page()

    page.goto(file.as_uri())

    assert page.get_by_text("1 of 3 gates failed (hurts 1").is_visible()
    assert page.get_by_role("heading", name="billing on haiku").first.is_visible()
    assert page.get_by_role("rowheader", name="case-2").first.is_visible()
    assert page.get_by_role("cell", name="-80").first.is_visible()
    assert fits(page)
    context.close()


def test_on_a_narrow_screen_no_verdict_is_out_of_sight(page: Page, file: Path) -> None:
    page.set_viewport_size({"width": 360, "height": 800})

    page.goto(file.as_uri())

    wide = "[...document.querySelectorAll('.scroll')].filter((e) => e.scrollWidth > e.clientWidth)"
    assert page.evaluate(f"{wide}.length") == 0


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_stands_out_from_what_is_behind_it(browser: Browser, file: Path, scheme: str) -> None:
    context = browser.new_context(color_scheme="dark" if scheme == "dark" else "light")
    page = context.new_page()

    page.goto(file.as_uri())

    pairs = page.evaluate(
        """() => [...document.querySelectorAll("p, th, td, a, .tag, .soft, dt, dd, summary")].map(
            (element) => {
                let behind = element;
                const clear = (e) => getComputedStyle(e).backgroundColor === "rgba(0, 0, 0, 0)";
                while (clear(behind) && behind.parentElement) behind = behind.parentElement;
                return [getComputedStyle(element).color, getComputedStyle(behind).backgroundColor];
            })"""
    )
    assert min(contrast(*pair) for pair in map(tuple, {tuple(pair) for pair in pairs})) >= 4.5
    context.close()


def test_the_page_asks_for_nothing_and_complains_of_nothing(page: Page, file: Path) -> None:
    requests: list[Request] = heard(page, "request")
    messages = heard(page, "console")

    page.goto(file.as_uri())

    assert [request.url for request in requests] == [file.as_uri()]
    assert not messages


def test_the_keyboard_reaches_an_answer(browser: Browser, file: Path) -> None:
    page = browser.new_page(java_script_enabled=False)
    page.goto(file.as_uri())
    answers = page.locator("details").first
    answers.locator("summary").focus()

    page.keyboard.press("Enter")

    assert answers.locator("pre").first.is_visible()
    page.keyboard.press("Shift+Tab")
    assert page.evaluate("document.activeElement.tagName") in {"A", "DIV"}
    page.close()


@pytest.mark.parametrize("width", [360, 1280])
def test_tables_have_names_for_a_screen_reader(page: Page, file: Path, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 800})

    page.goto(file.as_uri())

    assert page.get_by_role("region", name="cases of billing on haiku").is_visible()
    assert page.get_by_role("columnheader", name="tokens").count() == 3
    assert page.get_by_role("banner").count() == page.get_by_role("main").count() == 1


@pytest.mark.parametrize("width", [360, 1280])
def test_hostile_answers_are_inert(page: Page, tmp_path: Path, width: int) -> None:
    missed = [run(passed=False, text=text, message=text[:200]) for text in HOSTILE]
    file = tmp_path / "report.html"
    file.write_text(
        write_html(
            report(
                cell(
                    trial("hostile", "with_skill", missed, question=HOSTILE[0]),
                    trial("hostile", "without_skill", missed[:1], errors=tuple(HOSTILE)),
                )
            )
        ),
        "utf-8",
    )
    page.set_viewport_size({"width": width, "height": 800})
    dialogs = heard(page, "dialog")

    page.goto(file.as_uri())
    page.locator("summary").first.click()

    assert not dialogs
    title = "billing on haiku: missing data, 1 of 1 case failed with the skill"
    assert page.title() == f"{title} \u2013 pytest-upskill"
    assert (
        page.locator("script, img, iframe, [onload], [onerror], a[href^=javascript]").count() == 0
    )
    assert page.get_by_role("heading", name="owned").count() == 0
    assert page.get_by_text("\\x1b]0;owned\\x07").first.is_visible()
    assert page.get_by_text("\\x202eright to left").first.is_visible()
    assert fits(page)


def contrast(one: str, other: str) -> float:
    """Compute the contrast ratio of WCAG 2 of two colors, each ``rgb(r, g, b)``."""
    darker, lighter = sorted((_luminance(one), _luminance(other)))
    return (lighter + 0.05) / (darker + 0.05)


def _luminance(color: str) -> float:
    channels = [int(part) / 255 for part in color.strip("rgba()").split(",")[:3]]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def test_on_a_narrow_screen_each_cell_is_labelled_by_its_column(page: Page, tmp_path: Path) -> None:
    (tmp_path / "report.html").write_text(write_html(report(chosen([5, 2], [1]))), "utf-8")
    page.set_viewport_size({"width": 500, "height": 800})

    page.goto((tmp_path / "report.html").as_uri())

    labels = page.evaluate(
        """() => [...document.querySelectorAll("[aria-labelledby=triggers] td")].map(
            (cell) => getComputedStyle(cell, "::before").content)"""
    )
    assert [label.strip('" ') for label in labels][:3] == [
        "model",
        "recall [95 %]",
        "false triggers",
    ]
    assert fits(page)
