"""Find statements for a judge that are about what an agent did, not about the answer.

The rules here are heuristics with misses and false alarms, so they only point out statements; the
author excludes a statement with a mark in the case file.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from pytest_upskill.formats.skill import Case
from pytest_upskill.formats.statement_marks import Mark

_FILE = (
    r"(?:\S{1,300}\."
    r"(?:csv|docx|html|ipynb|js|json|md|pdf|png|pptx|py|sh|sql|ts|txt|xlsx|ya?ml)\b)"
)
_THING = rf"(?:{_FILE}|(?:files?|folders?|director(?:y|ies)|branch(?:es)?|commits?|workbook)\b)"
_DONE = r"(?:is|are|was|were|has been|have been|gets?)"
_AGENT = re.compile(
    "|".join(
        (
            # Tests and programs that ran
            r"\b(?:all|unit|integration|existing|the) (?:\w+ )?tests? (?:now )?(?:pass|succeed)",
            rf"\btests? {_DONE} (?:run|executed|green|passing)",
            r"\bexit(?:s|ed)? (?:with )?(?:code|status|zero|non-?zero|0|1)\b",
            (
                r"^(?:the agent |claude |it )?(?:runs|ran|executes|executed|invokes|invoked|calls) "
                r"(?:the |a |both |all )?(?:`|(?:bundled )?\S+\.(?:py|sh|js|ts)\b|"
                r"\w+ (?:script|command|tool)\b|"
                r"(?:script|command|tests?|linter|build)\b)"
            ),
            (
                rf"\b(?:script|command|program|build|server) (?:{_DONE} )?(?:successfully )?"
                r"(?:runs?|ran|executed|completes?|starts?|succeeds?)\b"
            ),
            (
                r"^the agent (?:also |actually |then |first )?(?:did not |does not |never )?"
                r"(?:runs?|ran|executes?d?|invokes?d?|calls?|called|reads?|opens?|opened|searche[sd]|"
                r"queries|queried|fetche[sd]|installs?|installed|downloads?|downloaded|modify|"
                r"modifies|modified|edits?|edited|creates?d?|writes?|wrote|saves?d?|deletes?d?) "
            ),
            # Subagents and tools
            r"\b(?:spawns?|spawned|launche[sd]|dispatche[sd]|delegates? to) .*agents?\b",
            r"\bsub-?agents? (?:is|are|was|were|runs?|launched|spawned|dispatched)\b",
            r"^(?:uses|used|calls|called|invokes|invoked) (?:the )?[\w.`-]+ (?:mcp )?tool\b",
            r"\btool calls? (?:is|are|was|were)\b",
            # Files that were made, changed or staged
            (
                rf"^(?:the agent |claude |it )?(?:creates?|created|writes|wrote|saves?|saved|"
                rf"edits|edited|modifies|modified|deletes?d?|updates?d?) (?:\S+ ){{,4}}{_THING}"
            ),
            (
                rf"\b{_THING}`? {_DONE} (?:actually |successfully )?(?:staged|committed|created|"
                r"saved|written|modified|deleted|updated|generated|moved|unchanged|not \w+)"
            ),
            rf"\b{_THING}`? exists?\b",
            r"\b(?:is|are|was|were|being|stays?) (?:un)?staged\b",
            (
                r"^(?:opens|opened|commits|committed|pushes|pushed|merges|merged) (?:a |the |all )?"
                r"(?:pull request|pr\b|branch|changes|commit)"
            ),
        )
    ),
    re.IGNORECASE,
)
_SAYS = re.compile(
    r"\b(?:advis|answer|explain|describ|display|instruct|mention|plan|propos|quot|recommend|say|"
    r"show|state|suggest|tell|warn|includ|example|would|asks?\b|reports? (?:back )?that)",
    re.IGNORECASE,
)
"""Verbs of statements about what an answer says."""
_OR_SAYS = re.compile(
    r"\bor (?:\w+ly )?(?:advis|describ|explain|instruct|mention|outlin|plan|propos|quot|recommend|"
    r"referenc|show|state|suggest|tell|told)",
    re.IGNORECASE,
)
"""Words by which an answer that only explains how also satisfies a statement."""
_ASIDE = re.compile(r"The answer (?:has|fits) this: ")
"""What the reading of evals files puts before a text that describes an answer."""

_SUBJECT = r"(?:the |this |its )?(?:final |whole )?(?:answer|reply|response|output|result|text)"
_PRAISE = (
    r"(?:accurate|appropriate|clear|coherent|complete|comprehensive|concise|correct|good|helpful|"
    r"high[- ]quality|precise|professional|readable|reasonable|relevant|understandable|useful|"
    r"valid|well[- ](?:formatted|organi[sz]ed|structured|written))"
)
_ADVERB = r"(?:(?:clearly|directly|fully|generally|overall|properly|very) )?"
_VACUOUS = re.compile(
    "|".join(
        (
            # Praise without a criterion
            (
                rf"(?:{_SUBJECT} |it )?(?:is|are|should be|must be) {_ADVERB}{_PRAISE}"
                rf"(?:(?:,| and|, and) {_ADVERB}{_PRAISE})*\.?"
            ),
            (
                rf"(?:{_SUBJECT} |it )?{_ADVERB}(?:addresses|answers|responds to|follows) the "
                r"(?:(?:user'?s? |original )?"
                r"(?:question|request|prompt|query|task|instructions?))\.?"
            ),
            (
                r"(?:provides|gives|contains|there is) an? (?:helpful |useful |relevant |correct )?"
                r"(?:answer|reply|response|output)\.?"
            ),
            # Placeholders
            r"\W*(?:todo|tbd|fixme|n/?a|none|statement|expectation|assertion)?\W*\d*\W*",
        )
    ),
    re.IGNORECASE,
)
"""Statements that name no criterion, which every answer can satisfy, or none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A statement that its author may want to exclude."""

    number: int
    """From 1 in the file."""
    statement: str
    mark: Mark
    reason: str


def needs_agent(statement: str) -> bool:
    """Return whether a statement seems to be about what an agent did."""
    return bool(_agent_words(statement))


def _agent_words(statement: str) -> str:
    """Return the words of a statement that seem to be about an agent's work, empty if none."""
    statement = _ASIDE.sub("", statement)
    found = _AGENT.search(statement)
    if found is None or _SAYS.search(statement, 0, found.start()):
        return ""
    denied = re.search(r"\b(?:not|never)\b", found[0], re.IGNORECASE)
    is_about_answer = _OR_SAYS.search(statement, found.end()) and not denied
    return "" if is_about_answer else found[0].strip()


def candidates(case: Case) -> list[Candidate]:
    """Return the statements of a case that no judge should decide, as far as words can tell."""
    suspects = []
    for check in case.judge_checks:
        mark: Mark = "agent"
        if words := _agent_words(check.statement):
            reason = f"{words!r} is an agent's work, which an answer cannot show"
        elif _VACUOUS.fullmatch(check.statement.strip()):
            mark, reason = "vacuous", "it names no criterion: every answer could satisfy it"
        else:
            continue
        suspects.append(
            Candidate(number=check.number, statement=check.statement, mark=mark, reason=reason)
        )
    return suspects
