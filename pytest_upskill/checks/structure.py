"""Checks of structured data in an answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from pytest_upskill.checks.cpu_limit import call_untrusted
from pytest_upskill.checks.paths import NowhereError, equals, follow, shown
from pytest_upskill.checks.result import CheckError, CheckResult, cut, failed, passed


@dataclass(frozen=True, slots=True, kw_only=True)
class ValueAtPath:
    """A check that the answer's data, or one of its files, has a value at a path."""

    name: Literal["json", "toml", "yaml"]
    path: str
    """A path in the syntax of `pytest_upskill.checks.paths`."""
    value: Any
    """The exact value, as JSON; ``9`` equals ``9.0``."""

    def check(self, text: str) -> CheckResult:
        """Compare the value at the path.

        Raises:
            CheckError: Reading the data takes too long.
        """
        try:
            is_equal, what = call_untrusted(f"{self.name} {self.path}", _compare, self, text)
        except ValueError as error:
            return failed(self.name, f" {self.path}: {error}")
        if is_equal:
            return passed(self.name, f" {self.path}: {what}")
        return failed(self.name, f" {self.path}: {what}")


@dataclass(frozen=True, slots=True, kw_only=True)
class JsonSchema:
    """A check that the answer's JSON, a block or the whole answer, is valid under a schema."""

    name: ClassVar[str] = "json_schema"

    schema: Mapping[str, Any]
    """Draft 2020-12, without references to other documents."""

    def check(self, text: str) -> CheckResult:
        """Validate the answer's JSON.

        Raises:
            CheckError: Validating takes too long, or the schema refers to itself without end.
        """
        # Imported late: the Markdown and schema libraries are slow to import, few cases need them.
        from pytest_upskill.checks.documents import read_documents
        from pytest_upskill.checks.schemas import schema_violations

        try:
            value = read_documents("json", text)[-1].value
        except ValueError as error:
            return failed(self.name, f": {error}")
        try:
            violations = call_untrusted(self.name, schema_violations, self.schema, value)
        except RecursionError:
            raise CheckError(
                f"{self.name}: a $ref of the schema refers to itself: fix the schema"
            ) from None
        if not violations:
            return passed(self.name, ": valid")
        more = f" ({len(violations) - 1} more)" if len(violations) > 1 else ""
        detail = "\n".join(cut(violation, 500) for violation in violations)
        return failed(self.name, f": {cut(violations[0], 160)}{more}", detail=detail)


def _compare(check: ValueAtPath, text: str) -> tuple[bool, str]:
    """Return whether a document of the answer has the value, and a phrase that says what it has."""
    from pytest_upskill.checks.documents import read_documents
    from pytest_upskill.checks.yaml_documents import as_yaml_key

    as_key = as_yaml_key if check.name == "yaml" else str
    what = ""
    for document in read_documents(check.name, text):
        try:
            found = follow(document.value, check.path, as_key)
        except NowhereError as error:
            what = f"{error} ({document.place})"
            continue
        if equals(found, check.value):
            return True, f"is {shown(found)} ({document.place})"
        what = f"is {shown(found)}, not {shown(check.value)} ({document.place})"
    return False, what
