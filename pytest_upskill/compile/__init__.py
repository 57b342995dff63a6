"""Does the code of an answer build? A compiler decides, in a sandbox."""

from __future__ import annotations

import threading
from collections.abc import Sequence

from pytest_upskill.blocks import Block, blocks, choose
from pytest_upskill.checks import CheckResult, Compile
from pytest_upskill.compile.cuda import Cuda
from pytest_upskill.compile.gnu import Gnu
from pytest_upskill.compile.memo import Memo
from pytest_upskill.compile.python import Python
from pytest_upskill.compile.toolchain import Built, CannotCompile, Sources, Toolchain
from pytest_upskill.compile_options import check_arch, check_file, check_flags
from pytest_upskill.languages import canonical
from pytest_upskill.sandbox import Level, Sandbox, SandboxError

__all__ = ["CannotCompile", "Compilers"]

MAX_LINES = 40
MAX_CHARACTERS = 8 << 10
MAX_NAMES = 5
"""How much of the diagnostics and of the files' names a result holds."""

_C_FAMILY = frozenset({"c", "cpp", "cuda"})


class Compilers:
    """The compilers of this machine, for one session; may be called from any thread."""

    def __init__(self, level: Level = "auto") -> None:
        """Choose how they are confined; nothing is looked for before it is needed."""
        self._wanted: Level = level
        self._toolchains: dict[str, Toolchain] = {
            "c": Gnu("c"),
            "cpp": Gnu("cpp"),
            "cuda": Cuda(),
            "python": Python(),
        }
        self._built = Memo[object, Built]()
        self._sandbox: Sandbox | None = None
        self._closed = False
        self._lock = threading.Lock()

    @property
    def level(self) -> Level:
        """The level of the sandbox in use, never ``auto``.

        Raises:
            SandboxError: The level asked for does not work on this machine.
        """
        return self._confine().level

    def missing(self, check: Compile) -> str | None:
        """Tell in one line why ``check`` cannot be decided on this machine, None if it can."""
        toolchain = self._toolchains.get(canonical(check.language) or "")
        if toolchain is None:
            return f"no compiler is known for language {check.language!r}"
        return toolchain.missing(check)

    def build(self, check: Compile, text: str) -> tuple[CheckResult, ...]:
        """Build the code of an answer.

        Args:
            check: What to build and how.
            text: The answer, whatever is in it.

        Returns:
            The check's own result, then one for each thing it requires.

        Raises:
            CannotCompile: The check stays undecided; the message is one line that says why.
        """
        if self._closed:
            raise CannotCompile("the session has ended")
        if reason := self.missing(check) or _bad_options(check):
            raise CannotCompile(reason)
        language = canonical(check.language) or ""
        found = blocks(text)
        units = choose(found, language)
        if not units:
            message = f"compile {language}: no {language} block ({_seen(found)})"
            return _result(False, message), *_unbuilt(check)
        headers = {block.name: block for block in found if _is_header_for(block, units)}
        sources = Sources(units=units, headers=tuple(headers.values()), files=check.files)
        toolchain = self._toolchains[language]
        options = (check.arch, check.flags, check.host, check.requires)
        key = (language, options, units, sources.headers, *check.files.items())
        try:
            sandbox = self._confine()
            built = self._built.get(key, lambda: toolchain.build(sources, check, sandbox))
        except SandboxError as error:
            raise CannotCompile(str(error)) from None
        required = built.required if built.passed else _unbuilt(check)
        return _describe(language, units, built), *required

    def close(self) -> None:
        """Kill the compilers that run: their checks stay undecided."""
        with self._lock:
            self._closed = True
            if self._sandbox:
                self._sandbox.close()

    def _confine(self) -> Sandbox:
        with self._lock:
            self._sandbox = self._sandbox or Sandbox(self._wanted)
            return self._sandbox


def _bad_options(check: Compile) -> str | None:
    language = canonical(check.language) or check.language
    problems = [check_flags(language, check.flags), *map(check_file, check.files)]
    if check.arch is not None:
        problems.append(check_arch(check.arch))
    if language != "cuda" and (check.host or check.requires):
        problems.append(f"'host' and limits on device code are for cuda, not for {language}")
    return next(filter(None, problems), None)


def _is_header_for(block: Block, units: tuple[Block, ...]) -> bool:
    return block.is_header and block.language in _C_FAMILY and block not in units


def _seen(found: tuple[Block, ...]) -> str:
    languages = dict.fromkeys(block.language or "unlabelled" for block in found)
    return f"found: {', '.join(languages)}" if languages else "no code block at all"


def _describe(language: str, units: tuple[Block, ...], built: Built) -> CheckResult:
    named = [unit.name or f"block at answer line {unit.line}" for unit in units]
    where = ", ".join(named[:MAX_NAMES]) + (" …" if len(named) > MAX_NAMES else "")
    finding = f"{built.message} ({where}; {built.compiler})"
    if not all(unit.closed for unit in units):
        finding += "; its fence is never closed: the answer looks cut"
    return _result(built.passed, f"compile {language}: {finding}", _cut(built.diagnostics))


def _result(passed: bool, message: str, detail: str = "") -> CheckResult:
    return CheckResult(name=Compile.name, passed=passed, message=message, detail=detail)


def _unbuilt(check: Compile) -> tuple[CheckResult, ...]:
    return tuple(
        CheckResult(
            name=requirement.name,
            passed=False,
            message=f"{requirement.name}: the code does not build",
        )
        for requirement in check.requires
    )


def _cut(lines: Sequence[str]) -> str:
    text = "\n".join(lines[:MAX_LINES])[:MAX_CHARACTERS]
    return f"{text}\n… ({len(lines)} lines)" if len(lines) > MAX_LINES else text
