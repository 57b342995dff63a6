"""Read JUnit XML as its consumers do."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from pathlib import Path


def suite(path: Path) -> ET.Element:
    found = ET.parse(path).getroot().find("testsuite")
    assert found is not None
    return found


def cases_of(path: Path) -> dict[str, ET.Element]:
    """Return the test cases by name; names must be unique in the run."""
    found = suite(path).findall("testcase")
    cases = {case.attrib["name"]: case for case in found}
    assert len(cases) == len(found)
    return cases


def properties(element: ET.Element) -> dict[str, str]:
    """Return the properties of a suite or a test case."""
    found = element.findall("properties/property")
    values = {each.attrib["name"]: each.attrib["value"] for each in found}
    assert len(values) == len(found)
    return values
