"""Read what a refused command says."""

from __future__ import annotations

import pytest


def only_line(result: pytest.RunResult) -> str:
    """Return the one line that a refused command says."""
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    text = result.stdout.str() + result.stderr.str()
    assert "Traceback" not in text
    assert "INTERNALERROR" not in text
    (line,) = (line for line in result.errlines if line)
    return line.removeprefix("ERROR: ")
