"""The Python that runs this process, as programs in a sandbox start it."""

from __future__ import annotations

import sys
from pathlib import Path

PYTHON = Path(sys.executable).resolve()
"""Not the link in a virtual environment, whose folder a sandbox may not show."""

PYTHON_FOLDERS = tuple(
    dict.fromkeys(Path(prefix).resolve() for prefix in (sys.base_prefix, sys.base_exec_prefix))
)
"""The folders that it needs to read."""
