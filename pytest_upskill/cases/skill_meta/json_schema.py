"""The JSON Schema of ``skill_meta.json`` for editors, a file beside this one."""

import sys
from importlib.resources import files
from pathlib import Path


def write_schema(path: Path) -> int:
    """Write the schema to a file; return 0, or 4 if the file cannot be written."""
    try:
        path.write_bytes(files(__package__).joinpath("skill_meta.schema.json").read_bytes())
    except OSError as error:
        sys.stderr.write(f"ERROR: --upskill-write-schema: {path}: {error.strerror}\n")
        return 4
    return 0
