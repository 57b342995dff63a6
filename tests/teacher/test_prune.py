"""``--upskill-cache-prune`` keeps what a teacher's command continues from."""

from __future__ import annotations

import shutil

from tests.conftest import Run
from tests.teaching import FIX, Depot


def test_answers_of_a_session_stay_until_its_folder_is_deleted(depot: Depot, run_once: Run) -> None:
    depot.teach = lambda _, __: FIX
    assert depot.refine("--max-answers=100", "--steps=1") == 75
    url = depot.loopback.openai_url
    (names,) = (depot.folder / ".upskill" / "drafts").glob("*/answers.txt")
    names.write_text("2e3100\n" + names.read_text("ascii"), "ascii")  # a digest, not a number
    prune = (f"--upskill-models=s=openai:student@{url}", "--upskill-cache-prune", "skills")

    run_once(*prune).stdout.fnmatch_lines(["upskill: 0 recordings in *"])
    asked = len(depot.loopback.requests)
    assert depot.refine("--steps=1") == 0
    assert depot.decision()["asked"] == len(depot.loopback.requests) - asked

    shutil.rmtree(depot.folder / ".upskill" / "drafts")
    assert "0 recordings" not in run_once(*prune).stdout.str()
