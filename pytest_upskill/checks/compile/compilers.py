"""Decides the checks that build or run code, with one toolchain per language and session."""

import threading
from collections.abc import Iterable, Sequence

from pytest_upskill.checks import CheckError, CheckResult
from pytest_upskill.checks.blocks import Block, blocks, choose_units, file_block, relative_path
from pytest_upskill.checks.code import C_FAMILY, CannotCompile, Compile, OfCode, Run, Sandboxed
from pytest_upskill.checks.compile.c_family import Cuda, Gnu
from pytest_upskill.checks.compile.python import Python, PythonRunner
from pytest_upskill.checks.compile.toolchain import Built, Language, Sources
from pytest_upskill.checks.extensions import describe_exception
from pytest_upskill.checks.files import Left, RunsCommand
from pytest_upskill.checks.text import failed
from pytest_upskill.project.messages import listed
from pytest_upskill.sandbox.limits import Level
from pytest_upskill.sandbox.run import Sandbox, SandboxError

NOTHING_LEFT = Left(files={})
_ENDED = "the session has ended"


class Compilers:
    """The compilers and runners of one session; safe to use from any thread.

    Args:
        level: The level of the sandbox.
        languages: Languages of plugins, which may replace built-in ones.

    Attributes:
        languages: All by name.
    """

    def __init__(self, level: Level = "auto", languages: Iterable[Language] = ()) -> None:
        self._requested_level: Level = level
        built_in = (
            Language(name="c", toolchain=Gnu("c")),
            Language(name="cpp", toolchain=Gnu("cpp")),
            Language(name="cuda", toolchain=Cuda()),
            Language(name="python", toolchain=Python(), runner=PythonRunner()),
        )
        self.languages = {language.name: language for language in (*built_in, *languages)}
        self._built: dict[str, Built] = {}
        self._sandbox: Sandbox | None = None
        self._closed = False
        self._lock = threading.Lock()

    def missing(self, check: Sandboxed) -> str | None:
        """Return in one line why this machine cannot decide ``check``, None if it can."""
        if isinstance(check, RunsCommand):
            return self._why_unsafe()
        language = self.languages.get(check.language)
        if isinstance(check, Run):
            if language is None or language.runner is None:
                return f"no runner is known for language {check.language!r}"
            return self._why_unsafe() or language.runner.missing()
        if language is None or language.toolchain is None:
            return f"no compiler is known for language {check.language!r}"
        return language.toolchain.missing(check) or self._missing_header(check, language)

    def decide(
        self, check: Sandboxed, text: str, left: Left = NOTHING_LEFT
    ) -> tuple[CheckResult, ...]:
        """Build or run the code of an answer, or what an agent left.

        Args:
            check: What to build or run, and how.
            text: The answer.
            left: What is in the workspace after the run.

        Returns:
            The check's own result, then one for each of its ``requires``.

        Raises:
            CannotCompile: The check cannot be decided; the message says why in one line.
        """
        if self._closed:
            raise CannotCompile(_ENDED)
        problem = check.problem if isinstance(check, Compile) else None
        if reason := self.missing(check) or problem:
            raise CannotCompile(reason)
        if isinstance(check, RunsCommand):
            try:
                return tuple(check.decide(left, self.open_sandbox()))
            except (CheckError, OSError, SandboxError) as error:
                raise CannotCompile(f"{check.name}: {error}") from None
        language = self.languages[check.language]
        found = _sources(check, language, text, left)
        if isinstance(found, str):
            built, what = None, found
        else:
            built = self._build_or_run(check, language, found)
            what = _finding(built, found)
        required = check.requires if isinstance(check, Compile) else ()
        result = CheckResult(
            name=check.name,
            passed=built is not None and built.passed,
            message=f"{check.name} {language.name}: {what}",
            detail=_cut(built.diagnostics) if built else "",
        )
        if built and built.passed:
            return result, *built.required
        return result, *(failed(each.name, ": the code does not build") for each in required)

    def close(self) -> None:
        """Kill the running programs; their checks stay undecided."""
        with self._lock:
            self._closed = True
            if self._sandbox:
                self._sandbox.close()

    def _missing_header(self, check: Compile, language: Language) -> str | None:
        """Return in one line which header is missing, None if none is."""
        for header in check.headers:
            assert language.toolchain is not None
            smallest = language.toolchain.command(check).smallest
            code = f"#if !__has_include(<{header}>)\n#error it is missing\n#endif\n{smallest}"
            program = Sources(units=(Block(code=code),), files=check.files)
            try:
                built = self._build_or_run(check, language, program)
            except CannotCompile as error:
                return str(error)
            if not built.passed:
                return f"header {header!r} is not installed here: install its library"
        return None

    def _build_or_run(self, check: OfCode, language: Language, sources: Sources) -> Built:
        """Build or run the code, or return the result of the same work in this session."""
        same = repr((check, sources))
        if same in self._built:
            return self._built[same]
        try:
            sandbox = self.open_sandbox()
            if isinstance(check, Run):
                assert language.runner is not None
                built = language.runner.run(sources, check.code, sandbox)
            else:
                assert language.toolchain is not None
                built = language.toolchain.build(sources, check, sandbox)
        except (CannotCompile, SandboxError) as error:
            raise CannotCompile(str(error)) from None
        except Exception as error:  # a plugin's toolchain or runner
            raise CannotCompile(
                f"{check.name} {language.name}: raised {describe_exception(error)}"
            ) from error
        self._built[same] = built
        return built

    def _why_unsafe(self) -> str | None:
        """Return why no answer may be run, None if it may.

        By default, answers run only in a sandbox that hides the user's files and the network.
        """
        try:
            if self._requested_level == "auto" and not self.open_sandbox().hides_files:
                return (
                    "'run' needs a sandbox that hides files and network, and none works here: "
                    "install bubblewrap, or add --upskill-sandbox limits to run answers with all "
                    "of your user's rights"
                )
        except SandboxError as error:
            return str(error)
        return None

    def open_sandbox(self) -> Sandbox:
        """Return the sandbox, which is opened once.

        Raises:
            CannotCompile: The session has ended.
            SandboxError: The requested level does not work on this machine.
        """
        with self._lock:
            if self._sandbox is None:
                if self._closed:
                    raise CannotCompile(_ENDED)
                self._sandbox = Sandbox(self._requested_level)
            return self._sandbox


def _sources(check: OfCode, language: Language, text: str, left: Left) -> Sources | str:
    """Return what a check builds or runs, or what is missing."""
    is_run = isinstance(check, Run)
    if check.file:
        texts = [file for file in left.files.values() if not file.binary]
        if missing := set(check.file) - {file.name for file in texts}:
            return f"no text file {min(missing)} in the workspace"
        odd = [name for name in check.file if relative_path(name) != name]
        if odd and not is_run:
            return f"no compiler takes the name {odd[0]!r}: rename"
        candidates = tuple(
            file_block(file.name, file.text)
            for file in texts
            if relative_path(file.name) == file.name
        )
        units = tuple(
            block
            for block in candidates
            if block.name in check.file and block.kind in language.spellings
        )
    else:
        candidates = blocks(text)
        units = choose_units(candidates, *language.spellings)
    # A run of files may need none in its language: its test code finds them in the workspace.
    if not units and not (check.file and is_run):
        languages = ", ".join(dict.fromkeys(each.language or "unlabelled" for each in candidates))
        found = f"found: {languages}" if languages else "no code block at all"
        return f"no {language.name} block ({found})"
    headers = {
        block.name: block
        for block in candidates
        if block.is_header and block.language in C_FAMILY and block not in units
    }
    return Sources(
        units=units,
        headers=tuple(headers.values()),
        files=check.files if isinstance(check, Compile) else {},
        workspace=left.all_files if check.file and is_run else (),
    )


MAX_LINES = 40
MAX_CHARACTERS = 8 << 10
MAX_NAMES = 5
"""Maximum lines and characters of diagnostics, and maximum file names, in a result."""


def _finding(built: Built, built_from: Sources) -> str:
    """Return in one line what came out of a build or a test run of code blocks."""
    units = built_from.units
    where = listed([unit.name or f"block at answer line {unit.line}" for unit in units], MAX_NAMES)
    hint = "" if all(each.closed for each in units) else "; its fence is never closed"
    return f"{built.message} ({where}; {built.compiler}){hint}"


def _cut(lines: Sequence[str]) -> str:
    text = "\n".join(lines[:MAX_LINES])[:MAX_CHARACTERS]
    return f"{text}\n… ({len(lines)} lines)" if len(lines) > MAX_LINES else text
