"""This plugin's modules are read as they are written, tests as pytest rewrites them."""

from __future__ import annotations

import sys

import pytest

from pytest_upskill.session.as_written import as_written
from tests.conftest import WriteSkill


class _Finder:
    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        del name, path, target


def test_a_hook_is_away_for_as_long_as_it_is_to_be(monkeypatch: pytest.MonkeyPatch) -> None:
    first, hook, last = _Finder(), _Finder(), _Finder()
    monkeypatch.setattr(sys, "meta_path", [first, hook, last])

    with as_written(hook):
        during = [*sys.meta_path]

    assert during == [first, last]
    assert sys.meta_path == [first, hook, last]


def test_a_failed_import_leaves_the_hook_where_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    hook = _Finder()
    monkeypatch.setattr(sys, "meta_path", [hook])

    with pytest.raises(ImportError), as_written(hook):
        raise ImportError

    assert sys.meta_path == [hook]


def test_nothing_is_away_where_there_is_no_hook(monkeypatch: pytest.MonkeyPatch) -> None:
    finders = [_Finder(), _Finder()]
    monkeypatch.setattr(sys, "meta_path", [*finders])

    with as_written(_Finder()):
        assert sys.meta_path == finders

    assert sys.meta_path == finders


@pytest.mark.parametrize("options", [(), ("--assert=plain",), ("-n", "2")])
def test_asserts_of_tests_are_rewritten_and_ours_are_not(
    pytester: pytest.Pytester, write_skill: WriteSkill, options: tuple[str, ...]
) -> None:
    write_skill()
    pytester.makepyfile("""
        import pytest
        from importlib.machinery import SourceFileLoader

        def test_ours():
            import pytest_upskill.session.start, pytest_upskill.session.items, pytest_upskill.cells.cell
            for module in (pytest_upskill.session.start, pytest_upskill.session.items, pytest_upskill.cells.cell):
                if type(module.__loader__) is not SourceFileLoader:
                    pytest.fail(f"{module.__name__} is not as it was written")

        def test_theirs():
            forty_two = 42
            assert forty_two == 43
    """)

    result = pytester.runpytest_subprocess("--upskill-models", "offline", *options)

    result.assert_outcomes(passed=4, failed=1)
    told = "E       assert 42 == 43"
    if "--assert=plain" in options:
        result.stdout.no_fnmatch_line(told)
    else:
        result.stdout.fnmatch_lines([told])
