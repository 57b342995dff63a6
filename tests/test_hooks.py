from __future__ import annotations

import pytest

from tests.conftest import Run, WriteSkill

CLIENT = """
    from pytest_upskill.completion import Completion, ProviderError

    class Parrot:
        def __init__(self, name):
            self.name = name

        async def complete(self, request):
            if self.name == "mute":
                raise ProviderError("parrot: it does not speak")
            text = "37" if request.skill else "polly"
            return Completion(
                text=text, input_tokens=5, output_tokens=1, served_model=f"parrot-{self.name}"
            )

        async def aclose(self):
            print("closed", file=open("closed.txt", "a"))

    def pytest_upskill_make_client(model, config):
        assert config.rootpath
        if model.provider == "parrot":
            return Parrot(model.name)
"""


@pytest.fixture(autouse=True)
def _conftest(pytester: pytest.Pytester) -> None:
    pytester.makeconftest(CLIENT)


def test_a_plugin_s_client_answers_for_its_models(run: Run, write_skill: WriteSkill) -> None:
    write_skill()

    result = run("--upskill-models", "parrot:grey", "-v", "skills")

    result.assert_outcomes(passed=3)
    result.stdout.fnmatch_lines(
        ["upskill: grey (parrot:grey); runs: 1", "  grey* 0->100% * 6->6 x1.00"]
    )


def test_a_client_is_made_once_for_a_model_and_closed_at_the_end(
    run: Run, write_skill: WriteSkill, pytester: pytest.Pytester
) -> None:
    write_skill()

    run("--upskill-models", "parrot:grey,parrot:green", "--upskill-runs", "3", "skills")

    assert (pytester.path / "closed.txt").read_text() == "closed\n" * 2


def test_a_plugin_leaves_other_models_to_others(run: Run, write_skill: WriteSkill) -> None:
    write_skill()

    result = run("--upskill-models", "parrot:grey,offline", "skills")

    result.assert_outcomes(passed=6)


def test_what_a_client_raises_is_an_error_of_the_trial(run: Run, write_skill: WriteSkill) -> None:
    write_skill()

    result = run("--upskill-models", "parrot:mute", "skills")

    assert result.parseoutcomes()["errors"] >= 1
    result.stdout.fnmatch_lines(["parrot: it does not speak"])
    result.stdout.no_fnmatch_line("*Traceback*")
