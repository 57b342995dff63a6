"""What a run of an agent did can be seen: in its record, on the page, and on the terminal."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.agents.scripted_agent import LOAD, call, following
from tests.agents.test_loop_session import sums  # noqa: F401  a fixture
from tests.conftest import Run
from tests.loopback import Loopback

KEY = "sk-the-real-key-0123456789"
STEPS = (
    LOAD,
    call("bash", command="mkdir a a/__pycache__; git init -q -b new; ln -s / link"),
    call("bash", command="python3 ~/.agents/skills/sums/scripts/total.py 100 25 | tee total.txt"),
    call("bash", command=f"seq 9999; echo {KEY}; touch a/__pycache__/x.pyc; ls no-such-file"),
    "It is written.",
)


@pytest.fixture
def failing(
    run_once: Run,
    sums: Path,  # noqa: F811
    loopback: Loopback,
    monkeypatch: pytest.MonkeyPatch,
) -> pytest.RunResult:
    """Run an agent that passes a wrong number to the skill's script."""
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    loopback.answer = following(STEPS, ["I do not know."])
    model = f"--upskill-models=loop:small@{loopback.openai_url}"
    return run_once(model, str(sums), "--upskill-html=o.html", "--upskill-json=o.json")


@pytest.mark.usefixtures("failing")
def test_the_page_shows_what_failed_and_each_turn_with_its_results() -> None:
    page = Path("o.html").read_text("utf-8")

    turns = re.findall(r"<li><span class=\"soft\">turn \d+</span>.*?</li>", page, re.DOTALL)
    (turn,) = (each for each in turns if "total.py 100 25" in each)
    assert "turn 3" in turn
    assert "$ python3 ~/.agents/skills/sums/scripts/total.py 100 25 | tee total.txt" in turn
    assert '<pre class="result">TOTAL 125' in turn
    assert re.search(r"missed:</span> <bdi>file_contains total.txt", page)
    assert "TOTAL 350" in page
    assert "not looked at: link (a link or no regular file)" in page
    assert "1 more file, of the setup, of programs, or after the first 20" in page
    assert ".git/HEAD" not in page


def test_the_terminal_shows_the_last_three_turns_of_a_failure(failing: pytest.RunResult) -> None:
    failing.stdout.fnmatch_lines(
        [
            "*last steps of the agent in run 1*",
            "turn 3: bash $ python3 ~/.agents/skills/sums/scripts/total.py 100 25 *",
            "  | TOTAL 125",
            "turn 4: bash $ seq 9999; *",
            "  | ls: cannot access 'no-such-file': No such file or directory",
            "turn 5: It is written.",
        ]
    )
    assert "turn 2: bash" not in failing.stdout.str()


@pytest.mark.usefixtures("failing")
def test_a_record_keeps_results_in_bounds_and_without_keys() -> None:
    texts = [file.read_text("utf-8") for file in Path.cwd().glob(".upskill/cache/agent-runs/*/*")]

    (record,) = (json.loads(text) for text in texts if "total.py" in text)

    turns = record["completion"]["agent_run"]["turns"]
    assert [turn["text"] for turn in turns] == ["", "", "", "", "It is written."]
    result = turns[3]["calls"][0]["result"]
    assert result.startswith("1\n2\n3\n")
    assert "bytes left out" in result
    assert result.endswith("[exit status 2]")
    assert len(result.encode()) < 2048
    assert not any(KEY in text for text in (*texts, Path("o.json").read_text("utf-8")))
