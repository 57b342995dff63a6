"""``python -m pytest_upskill``, the same as the console script ``pytest-upskill``."""

import sys

from pytest_upskill.commands.main import main

if __name__ == "__main__":
    sys.exit(main())
