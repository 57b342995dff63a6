"""Builds of the code in answers, while further requests are in flight."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256

from pytest_upskill.answers.progress import InFlight
from pytest_upskill.checks import CheckResult
from pytest_upskill.checks.code import Sandboxed
from pytest_upskill.checks.compile import CannotCompile, Compilers
from pytest_upskill.checks.files import Left
from pytest_upskill.grading.grade import Answer, left_by
from pytest_upskill.models import Completion
from pytest_upskill.sandbox.limits import cores
from pytest_upskill.trials.trial import Trial

Compiled = tuple[tuple[CheckResult, ...], ...]
"""The results of each check of a case that a program decides."""


class Builds:
    """Runs the checks that compile or run an answer, one at a time for each core.

    Used on one event loop.

    Args:
        compilers: The compilers and runners.
        activity: The record of builds in progress.
    """

    def __init__(self, compilers: Compilers, activity: InFlight) -> None:
        self._compilers = compilers
        self._activity = activity
        self._tasks: dict[tuple[str, str, bytes], asyncio.Task[Compiled]] = {}
        self._threads = ThreadPoolExecutor(cores(), thread_name_prefix="upskill-compile")

    async def answer(
        self, trial: Trial, checks: Sequence[Sandboxed], completion: Completion
    ) -> Answer:
        """Return the answer with the results of its compilers; equal answers share one build."""
        left = left_by(trial.case, completion)
        content = repr((completion.text, sorted(left.all_files, key=lambda file: file.name)))
        digest = sha256(content.encode("utf-8", "surrogatepass")).digest()
        key = str(trial.skill.case_file), trial.case.id, digest
        if key not in self._tasks:
            decided = self._decide(checks, completion.text, left)
            self._tasks[key] = asyncio.create_task(decided)
        try:
            return Answer(completion=completion, sandboxed=await self._tasks[key])
        except CannotCompile as error:
            return Answer(completion=completion, error=str(error))

    def close(self) -> None:
        """Kill running compilers and start no more."""
        self._compilers.close()
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def _decide(self, checks: Sequence[Sandboxed], text: str, left: Left) -> Compiled:
        loop = asyncio.get_running_loop()
        builds = [
            loop.run_in_executor(self._threads, self._run, check, text, left) for check in checks
        ]
        return tuple(await asyncio.gather(*builds))

    def _run(self, check: Sandboxed, text: str, left: Left) -> tuple[CheckResult, ...]:
        with self._activity.doing(check.name):
            return self._compilers.decide(check, text, left)
