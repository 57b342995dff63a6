"""Write again what is made from the code: two schemas, the tables of docs/formats.md, the pictures.

``python -m tests.shipped.generate`` does it; tests fail while something is out of date.
"""

from __future__ import annotations

from tests.cases.adapters.test_formats_page import as_declared
from tests.pages import CHECKOUT
from tests.shipped import pictures, schemas


def main() -> None:
    """Write all of them."""
    for name, text in (
        ("pytest_upskill/cases/skill_meta/skill_meta.schema.json", schemas.case_schema()),
        ("pytest_upskill/report/files/report.schema.json", schemas.report_schema()),
    ):
        (CHECKOUT / name).write_text(text, "utf-8")
    formats = CHECKOUT / "docs" / "formats.md"
    formats.write_text(as_declared(formats.read_text("utf-8")), "utf-8")
    pictures.main()


if __name__ == "__main__":
    main()
