"""What a session provides to commands that run trials themselves, such as a teacher's."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from pytest_upskill.answers.resources import Host, Resources
from pytest_upskill.cases.skill import Case
from pytest_upskill.checks.extensions import Extensions
from pytest_upskill.grading.grade import Decide
from pytest_upskill.models import Model


class WorkError(Exception):
    """Work that cannot be done as requested; the message is one line with the cure."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Workplace:
    """What a session provides: hosts, resources, settings and extensions by plugins."""

    resources: Resources
    hosts: Callable[[Iterable[Model]], Mapping[Model, Host]]
    """Returns the host of each model, and checks that requests to it can be sent."""
    concurrency: int
    max_tokens: int
    """Maximum output tokens of an answer."""
    extensions: Extensions
    decide: Callable[[Case], Decide]
    """Returns the function that decides the custom checks of a case."""
    judge: Model | None = None
    """Model that decides statements about answers; None if there is none."""
