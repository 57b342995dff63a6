"""``python -m pytest_upskill``: what is done with reports after their runs."""

from __future__ import annotations

import sys

_USAGE = "usage: python -m pytest_upskill report REPORT.json ...\n"


def main() -> int:
    """Run the command that the first argument names; return its exit code."""
    command, *arguments = sys.argv[1:] or [""]
    if command != "report":
        sys.stderr.write(_USAGE)
        return 4
    from pytest_upskill.report.merge.command import main as report

    return report(arguments)


if __name__ == "__main__":
    sys.exit(main())
