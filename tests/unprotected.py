"""Remove the protections of docs/security.md one at a time, and run the tests that hold them.

``python -m tests.unprotected [WORD…]`` works on a copy of the package and prints a line for each
protection, or for those whose test, file or level contains a word. A test that still passes
without its protection shows nothing, and makes the exit status 1.
"""

# ruff: noqa: T201, E501 - it is a script, and source code reads best on lines of its own

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from tests.pages import CHECKOUT
from tests.sandbox_programs import LEVELS

FAILS, REFUSED_LEVEL = "fails", "level refused"
_HANGS_S = 120
"""A test that takes longer never ends."""
CONFINING = ("bwrap", "landlock")
LIMITED = (*CONFINING, "limits")
EVERY = (*LIMITED, "off")


class Edit(NamedTuple):
    """Text in a file of the package, and its replacement."""

    file: str
    old: str
    new: str


@dataclass(frozen=True, slots=True)
class Removal:
    """Changes of the package that remove a protection, and the test that must then fail.

    Where two protections stand behind each other, both are removed.
    """

    test: str
    edits: tuple[Edit, ...]
    levels: tuple[str, ...] = ("",)
    """Levels of the sandbox at which the test must fail; "" for a test that has no levels."""


# fmt: off
NO_LANDLOCK = Edit("sandbox/launcher.py", "    _restrict_files(version, writable, readable)\n", "")
NO_FILTER = Edit("sandbox/launcher.py", "    _filter_calls(build_allowlist(os.uname().machine, version))\n", "")
OPEN_NETWORK = Edit("sandbox/confinement.py", '"--unshare-net", ', "")
OPEN_ETC = Edit("sandbox/confinement.py", '"/etc/alternatives"', '"/etc"')
NO_CAPABILITIES_DROPPED = Edit("sandbox/launcher.py", "    _drop_capabilities(capabilities)\n", "")
NO_FILTER_IN_BWRAP = Edit("sandbox/confinement.py", "    if machine not in MACHINES:", "    if machine:")
ALL_FILES = Edit("sandbox/confinement.py", "[*_system_mounts(), *devices]", '[*_system_mounts(), "--bind", "/", "/", *devices]')
NO_TIME_LIMIT = Edit("checks/cpu_limit.py", "_SECONDS, 0.1)", "0)")
NAMESPACES = 'command += ["--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts"]'
NO_NAMESPACES = Edit("sandbox/confinement.py", NAMESPACES, "")
ONLY_THE_NETWORK = Edit("sandbox/confinement.py", NAMESPACES, 'command += ["--unshare-net"]')
OUTLIVES_ITS_PARENT = Edit("sandbox/confinement.py", ', "--die-with-parent"', "")
NO_OWN_USER = Edit("sandbox/run.py", 'as_own_user = own_user_command(home.root, [home.root / "tmp"]) if self.own_user else []', "as_own_user: list[str] = []")
WRITABLE_TMP = Edit("sandbox/launcher.py", '    _allow(ruleset, "/dev/null"', '    _allow(ruleset, "/tmp", _WRITE_FILE | 1 << 8, rights)\n    _allow(ruleset, "/dev/null"')
INHERITED = Edit("sandbox/run.py", "    return {\n", "    return dict(os.environ) | {\n")
NO_TCP_RULE = Edit("sandbox/launcher.py", "(rights, 3, 3)", "(rights, 0, 3)")
NO_PIPE = Edit("sandbox/launcher.py", "select.select([0, wakeup]", "select.select([wakeup]")
NO_KILL = Edit("sandbox/launcher.py", "        _kill_descendants()\n", "        pass\n")
NO_GROUP_KILL = Edit("sandbox/run.py", "                process.wait(_GRACE_S)\n            _kill_group(process.pid)\n", "                process.wait(_GRACE_S)\n")
NO_TIME = Edit("sandbox/run.py", "deadline = time.monotonic() + limits.wall_s", "deadline = time.monotonic() + 30")
WRITABLE_PROC = Edit("sandbox/confinement.py", '    yield from ("--remount-ro", "/proc")\n', "")
SANDBOX = (
    Removal("test_no_setting_of_the_kernel_can_be_written", (WRITABLE_PROC, NO_OWN_USER), ("bwrap",)),
    Removal("test_no_setting_of_the_kernel_can_be_written", (NO_LANDLOCK, NO_FILTER, NO_OWN_USER), ("landlock",)),
    Removal("test_the_environment_is_built_from_nothing", (INHERITED,), EVERY),
    Removal("test_files_of_the_machine_are_hidden_where_the_level_says_so", (OPEN_ETC,), CONFINING),
    Removal("test_the_environment_of_the_session_is_hidden_where_the_level_says_so", (Edit("sandbox/confinement.py", '"--unshare-pid", ', ""), Edit("sandbox/confinement.py", ', "--cap-drop", "ALL"', ""), NO_OWN_USER), ("bwrap",)),
    Removal("test_the_environment_of_the_session_is_hidden_where_the_level_says_so", (NO_LANDLOCK,), ("landlock",)),
    Removal("test_nothing_can_be_written_outside_where_the_level_says_so", (ALL_FILES,), ("bwrap",)),
    Removal("test_no_folder_of_the_system_can_be_written", (Edit("sandbox/confinement.py", ', "--remount-ro", "/"]', "]"),), ("bwrap",)),
    Removal("test_no_folder_of_the_system_can_be_written", (WRITABLE_TMP,), ("landlock",)),
    Removal("test_nothing_can_be_written_outside_where_the_level_says_so", (WRITABLE_TMP,), ("landlock",)),
    Removal("test_the_network_is_closed_where_the_level_says_so", (OPEN_NETWORK, NO_FILTER_IN_BWRAP), ("bwrap",)),
    Removal("test_the_network_is_closed_where_the_level_says_so", (NO_FILTER, NO_TCP_RULE), ("landlock",)),
    Removal("test_system_calls_reach_nothing_outside_of_the_sandbox", (NO_FILTER,), ("landlock",)),
    Removal("test_system_calls_reach_nothing_outside_of_the_sandbox", (NO_LANDLOCK,), ("landlock",)),
    Removal("test_system_calls_reach_nothing_outside_of_the_sandbox", (NO_FILTER_IN_BWRAP,), ("bwrap",)),
    Removal("test_system_calls_reach_nothing_outside_of_the_sandbox", (NO_NAMESPACES, NO_OWN_USER), ("bwrap",)),
    Removal("test_system_calls_of_an_ordinary_user_reach_nothing_either", (NO_FILTER,), ("landlock",)),
    Removal("test_system_calls_of_an_ordinary_user_reach_nothing_either", (NO_FILTER_IN_BWRAP,), ("bwrap",)),
    Removal("test_system_calls_of_an_ordinary_user_reach_nothing_either", (NO_NAMESPACES,), ("bwrap",)),
    Removal("test_system_calls_reach_nothing_outside_of_the_sandbox", (NO_FILTER, NO_CAPABILITIES_DROPPED), ("landlock",)),
    Removal("test_nothing_a_program_starts_outlives_it", (NO_KILL,), ("limits", "off")),
    Removal("test_nothing_a_program_starts_outlives_it", (NO_KILL, NO_GROUP_KILL), ("landlock",)),
    Removal("test_nothing_a_program_starts_outlives_it", (ONLY_THE_NETWORK, OUTLIVES_ITS_PARENT), ("bwrap",)),
    Removal("test_programs_die_with_the_process_that_started_them", (NO_PIPE,), ("landlock", "limits", "off")),
    Removal("test_programs_die_with_the_process_that_started_them", (OUTLIVES_ITS_PARENT,), ("bwrap",)),
    Removal("test_the_wall_clock_ends_a_program_and_its_children", (NO_TIME,), EVERY),
    Removal("test_output_is_cut_and_its_source_killed", (Edit("sandbox/run.py", "if len(output) > limits.output_bytes:", "if False:"),), EVERY),
    Removal("test_cpu_time_is_limited", (Edit("sandbox/limits.py", 'ulimit -t "$1"; ', ""),), LIMITED),
    Removal("test_memory_is_limited", (Edit("sandbox/limits.py", 'ulimit -v "$2"; ', ""),), LIMITED),
    Removal("test_the_size_of_files_is_limited", (Edit("sandbox/limits.py", 'ulimit -f "$3"; ', ""),), LIMITED),
    Removal("test_the_size_of_all_files_together_is_limited", (Edit("sandbox/limits.py", "left_bytes < 0 or left_files < 0", "left_files < 0"), Edit("sandbox/limits.py", "if left_bytes < 0 or start", "if start")), EVERY),
    Removal("test_files_that_no_folder_shows_are_measured", (Edit("sandbox/limits.py", "        yield from _regular(status)\n", "        id(status)\n"),), CONFINING),
    Removal("test_files_that_no_folder_shows_are_measured", (Edit("sandbox/limits.py", '_mapped_files(process, Path(task, "maps").read_bytes())', "()"),), CONFINING),
    Removal("test_files_that_no_folder_shows_are_measured", (Edit("sandbox/limits.py", " or start - self._sent_since > _LONGEST_TRANSFER_S", ""),), CONFINING),
    Removal("test_files_that_no_folder_shows_count_too", (Edit("agents/program_sandbox.py", "Usage(root, sandbox_pid,", "Usage(root, -1,"),)),
    Removal("test_the_number_of_files_is_limited", (Edit("sandbox/limits.py", "left_bytes < 0 or left_files < 0", "left_bytes < 0"),), EVERY),
    Removal("test_files_in_a_folder_that_cannot_be_read_are_measured", (Edit("sandbox/limits.py", "                _make_readable(folder)\n", "                pass\n"),)),
    Removal("test_what_lies_too_deep_to_be_measured_is_too_much", (Edit("sandbox/limits.py", "len(os.fsencode(entry.path)) > _LONGEST_PATH", "len(entry.path) > _LONGEST_PATH"),)),
    Removal("test_the_closer_to_a_limit_the_sooner_usage_is_measured_again", (Edit("sandbox/limits.py", "return min(max(soonest, _SHORTEST_PAUSE_S), _LONGEST_PAUSE_S)", "return _LONGEST_PAUSE_S"),)),
    Removal("test_the_filter_decides_by_call_and_arguments", (Edit("sandbox/seccomp.py", "        ALLOCATE: _FAIL | errno.EOPNOTSUPP,", "        ALLOCATE: _ALLOW,"),)),
    Removal("test_the_number_of_open_files_is_limited", (Edit("sandbox/limits.py", 'ulimit -n "$4"\n', "\n"),), LIMITED),
    Removal("test_the_number_of_processes_is_limited", (Edit("sandbox/limits.py", 'ulimit -u "$5" || ulimit -p "$5"; ', ""),), LIMITED),
    Removal("test_the_number_of_processes_is_limited", (NO_OWN_USER,), LIMITED),
    Removal("test_a_fork_bomb_ends_with_the_wall_clock", (NO_TIME,), ("",)),
    Removal("test_output_cannot_steer_a_terminal", (Edit("sandbox/run.py", 'return _UNPRINTABLE.sub("\\ufffd", text.replace', "return (text.replace"),), EVERY),
)
"""The tables of the sandbox, by level."""
COMPILING = (
    Removal("test_files_of_the_machine_do_not_reach_the_result", (ALL_FILES,), ("bwrap",)),
    Removal("test_files_of_the_machine_do_not_reach_the_result", (NO_LANDLOCK,), ("landlock",)),
    Removal("test_files_of_the_machine_do_not_reach_the_result", (Edit("checks/compile/toolchain.py", "if may_quote and not sandbox.hides_files:", "if False:"),), ("limits",)),
    Removal("test_a_line_of_the_answer_quotes_nothing_from_a_file_of_the_machine", (Edit("checks/compile/toolchain.py", "if may_quote and not sandbox.hides_files:", "if False:"),)),
    Removal("test_a_place_in_a_file_that_the_answer_does_not_have_is_none", (Edit("checks/compile/toolchain.py", '        if (home.root / "src" / match[1]).is_file()\n', ""),)),
    Removal("test_a_bomb_fails_in_bounded_time_and_space", (Edit("checks/compile/compilers.py", "[:MAX_CHARACTERS]", ""),)),
    Removal("test_a_limit_that_is_reached_fails_the_answer", (Edit("sandbox/run.py", '[] if self.level == "off"', "[] if True"),)),
    Removal("test_a_file_name_never_leaves_the_workspace", (Edit("checks/blocks.py", "return match[1] if match else None", "return text.strip()"),), LIMITED),
    Removal("test_a_file_is_never_written_twice_or_through_a_link", (Edit("sandbox/run.py", 'target.open("xb")', 'target.open("wb")'),)),
    Removal("test_a_printed_kernel_is_no_kernel", (Edit("checks/compile/c_family.py", "        if not names:", "        if not names and 'entry function' not in printed:"),)),
    Removal("test_printed_figures_do_not_count", (Edit("checks/compile/c_family.py", "max(found[target][figure], value)", "value"),)),
    Removal("test_a_second_figure_cannot_hide_a_higher_one", (Edit("checks/compile/c_family.py", "max(found[target][figure], value)", "value"),)),
    Removal("test_only_an_instruction_counts_as_one", (Edit("checks/compile/c_family.py", '_COMMENT_OR_STRING.sub(" ", ptx)', "ptx"),)),
    Removal("test_instructions_are_told_apart_from_all_else_in_ptx", (Edit("checks/compile/c_family.py", '_COMMENT_OR_STRING.sub(" ", ptx)', "ptx"),)),
    Removal("test_a_file_that_would_replace_a_header_of_the_toolkit_fails", (Edit("checks/compile/c_family.py", "if shadowed := self._shadowing_file(sources):", "if shadowed := None:"),)),
    Removal("test_a_line_of_diagnostics_stays_one_line", (Edit("sandbox/run.py", 'return _UNPRINTABLE.sub("\\ufffd", text.replace', "return (text.replace"),)),
    Removal("test_diagnostics_cannot_steer_a_terminal", (Edit("sandbox/run.py", 'return _UNPRINTABLE.sub("\\ufffd", text.replace', "return (text.replace"),)),
)
"""What compilers are told and print."""
REFUSED = "test_an_answer_cannot_read_write_connect_or_signal_outside"
ANY_SKIP = Edit("checks/compile/run_tests.py", "        if report.skipped and (not", "        if False and (not")
RUNNING = (
    Removal(REFUSED, (ALL_FILES,), ("bwrap",)),
    Removal(REFUSED, (NO_LANDLOCK,), ("landlock",)),
    Removal(REFUSED, (NO_FILTER,), ("landlock",)),
    Removal("test_a_bomb_fails_in_bounded_time", (Edit("sandbox/run.py", "deadline = time.monotonic() + limits.wall_s", "deadline = time.monotonic() + 16"),)),
    Removal("test_nothing_outlives_a_run_that_starts_its_own_session", (ONLY_THE_NETWORK, OUTLIVES_ITS_PARENT), ("bwrap",)),
    Removal("test_leaving_early_is_not_passing", (Edit("checks/compile/python.py", 'if not reports["done"]:', "if False:"),), LIMITED),
    Removal("test_a_verdict_that_the_answer_writes_does_not_count", (Edit("checks/compile/python.py", "if known != nonce:", "if False:"),)),
    Removal("test_a_verdict_that_the_answer_writes_does_not_count", (Edit("checks/compile/run_tests.py", "if sha256(received).hexdigest() != self._digest:", "if False:"),)),
    Removal("test_a_process_that_the_answer_forks_reports_nothing", (Edit("checks/compile/run_tests.py", "if getpid() == self._process:", "if True:"),)),
    Removal("test_test_code_cannot_be_read_while_the_answer_is_imported", (Edit("checks/compile/python.py", '_RUN_TESTS.read_text("utf-8")', '_RUN_TESTS.read_text("utf-8") + f"#{code}"'),)),
    Removal("test_an_answer_that_replaces_what_tests_rely_on_fails", (Edit("checks/compile/run_tests.py", "            self._refuse_replaced(self._guarded)\n", ""),)),
    Removal("test_an_answer_that_replaces_pytest_fails", (Edit("checks/compile/run_tests.py", "            self._refuse_replaced(self._guarded)\n", ""),)),
    Removal("test_an_answer_that_replaces_pytest_when_called_fails", (Edit("checks/compile/run_tests.py", "        self._refuse_replaced(_FRAMEWORKS)\n", ""),)),
    Removal("test_an_answer_cannot_replace_what_ends_a_failed_test", (Edit("checks/compile/run_tests.py", "from os import _exit, getpid, read, write\n", "from os import getpid, read, write\n\n\ndef _exit(code: int) -> None:\n    os._exit(code)\n"),)),
    Removal("test_an_answer_cannot_replace_what_ends_a_failed_test", (Edit("checks/compile/run_tests.py", '    sys.modules["__main__"] = ModuleType("__main__")', "    pass"),)),
    Removal("test_an_answer_cannot_replace_what_ends_a_failed_test", (Edit("checks/compile/run_tests.py", '"pluggy", "asyncio"})', '"pluggy"})'), Edit("checks/compile/python.py", '    "asyncio": "async ",\n', ""))),
    Removal("test_an_answer_cannot_skip_a_test", (ANY_SKIP,)),
    Removal("test_an_answer_that_replaces_what_tests_import_fails", (Edit("checks/compile/run_tests.py", "            self._refuse_replaced(self._guarded)\n", ""),)),
    Removal("test_tests_inherit_no_mark_that_skips_them_from_an_answer", (ANY_SKIP,)),
    Removal("test_a_mock_that_skips_does_not_pass", (ANY_SKIP,)),
    Removal("test_every_test_that_pytest_finds_must_run", (Edit("checks/compile/python.py", 'reports["found"] - reports["ran"]', 'reports["ran"] - reports["ran"]'),)),
    Removal("test_an_answer_cannot_configure_pytest", (Edit("checks/compile/run_tests.py", '    if "pytest" in modules:\n        _run', '    if "pytest" in modules:\n        _import_answer(files)\n        _run'),)),
    Removal("test_a_file_of_the_answer_cannot_stand_in_for_a_module", (Edit("checks/compile/run_tests.py", "not in sys.stdlib_module_names | _GUARDED", "not in ()"),)),
    Removal("test_code_in_which_no_test_runs_decides_nothing", (Edit("checks/compile/python.py", '        raise CannotCompile("run python: the test code is wrong: nothing ran")', "        return None"),)),
    Removal("test_where_nothing_confines_an_answer_it_is_not_run", (Edit("checks/compile/compilers.py", "needs a sandbox that hides", "runs without a sandbox that hides"),)),
)
"""Answers that are executed."""
CLEAN = Edit("project/messages.py", 'return _AT_START.sub(r"\\1: ", _ANYWHERE.sub("# #", text))', "return text")
RAW = Edit("project/messages.py", "    text = _UNSAFE.sub(", "    _UNSAFE.sub(")
NO_REDACTION = Edit("project/redaction.py", "        return text if self._pattern is None else self._pattern.sub(HIDDEN, text)", "        return text")
NO_REPORTS = Edit("session/outgoing.py", "            _attach_result(report, item)\n            self._clean(report)\n", "            _attach_result(report, item)\n")
TEXTS = (
    Removal("test_nothing_foreign_steers_a_terminal_or_a_runner", (CLEAN,)),
    Removal("test_nothing_foreign_steers_a_terminal_or_a_runner", (RAW,)),
    Removal("test_what_a_hook_raises_or_prints_about_an_answer_steers_nothing_and_shows_no_key", (CLEAN,)),
    Removal("test_what_a_hook_raises_or_prints_about_an_answer_steers_nothing_and_shows_no_key", (NO_REPORTS,)),
    Removal("test_warnings_of_lint_steer_nothing", (CLEAN,)),
    Removal("test_a_folder_whose_name_would_steer_them_is_refused_by_a_safe_name", (CLEAN,)),
    Removal("test_a_skill_whose_name_is_a_command_is_refused", (CLEAN,)),
    Removal("test_an_id_that_makes_a_command_of_a_node_id_is_refused", (CLEAN,)),
    Removal("test_hostile_answers_are_inert_in_junit_xml", (Edit("project/messages.py", '.replace("[[ATTACHMENT|", "[[ATTACHMENT\\\\|")', ""),)),
    Removal("test_no_failure_of_a_server_brings_a_key_to_light", (NO_REDACTION,)),
    Removal("test_agents_probes_of_triggers_and_the_history_bring_no_key_to_light", (NO_REDACTION,)),
    Removal("test_commands_with_a_teacher_bring_no_key_to_light", (NO_REDACTION,)),
    Removal("test_a_host_that_sends_the_key_back_leaves_it_in_no_record_and_no_report", (NO_REDACTION,)),
    Removal("test_a_secret_is_found_in_every_form_in_which_servers_echo_it", (Edit("project/redaction.py", '    forms = "|".join(map(re.escape, sorted(escaped, key=len, reverse=True)))', "    forms = re.escape(character)"),)),
    Removal("test_nothing_that_a_run_leaves_or_prints_holds_a_key", (INHERITED,)),
    Removal("test_a_url_that_cannot_be_read_is_refused_without_its_credentials", (Edit("project/redaction.py", '    rest = re.sub(".*@", f"{HIDDEN}@", rest, flags=re.DOTALL)\n', ""),)),
    Removal("test_two_urls_with_one_label_are_refused_without_their_credentials", (Edit("models/model.py", 'f"{name}@{urlsplit(self.base_url).netloc}"', 'f"{name}@{self.userinfo}@{urlsplit(self.base_url).netloc}"'),)),
    Removal("test_a_key_that_only_the_sdk_knows_is_learned_from_what_it_sends", (Edit("models/call.py", "    endpoint.redactor.learn(", "    id("),)),
    Removal("test_hostile_text_stays_text_in_html", (Edit("report/files/html.py", "autoescape=True", "autoescape=False"),)),
    Removal("test_hostile_text_stays_text_in_markdown", (Edit("report/files/markdown.py", '    return f"{ticks}{pad}{text}{pad}{ticks}"', "    return text"),)),
    Removal("test_values_do_not_show_the_credentials_of_a_url", (Edit("models/model.py", 'userinfo: str = field(default="", repr=False)', 'userinfo: str = field(default="")'),)),
    Removal("test_logs_hold_no_key_wherever_they_come_from", (Edit("session/outgoing.py", "        text = redactor.redact(message)\n", "        text = message\n"),)),
    Removal("test_a_replay_names_the_recordings_that_the_branch_changed", (Edit("answers/changed_recordings.py", "            if not git.is_changed(commit, folder):", "            if True:"),)),
    Removal("test_a_replay_says_that_changes_of_recordings_are_unknown", (Edit("answers/changed_recordings.py", "            problem = problem or str(error)", "            return []"),)),
)
"""Text of others, keys and recordings."""
DATA = (
    Removal("test_a_catastrophic_pattern_cannot_be_decided", (NO_TIME_LIMIT,)),
    Removal("test_a_pattern_in_a_schema_is_limited_too", (NO_TIME_LIMIT,)),
    Removal("test_a_time_limit_that_code_ignores_is_raised_again", (Edit("checks/cpu_limit.py", "_SECONDS, 0.1)", "_SECONDS)"),)),
    Removal("test_aliases_that_multiply_are_shown_in_brief", (Edit("checks/structure.py", "short.maxlevel = 4", "short.maxlevel = 40"),)),
    Removal("test_what_cannot_be_read_fails_with_its_line", (Edit("checks/structure.py", "_MAX_ALIASES = 1000", "_MAX_ALIASES = 10**9"),)),
    Removal("test_what_cannot_be_read_fails_with_its_line", (Edit("checks/structure.py", "_MAX_DEPTH = 100", "_MAX_DEPTH = 10**9"),)),
    Removal("test_no_text_crashes_or_hangs_a_reader", (Edit("cases/source/yaml.py", "    except yaml.MarkedYAMLError as error", "    except KeyError as error"),)),
    Removal("test_a_judgement_that_an_answer_dictates_has_no_evidence", (Edit("grading/judge.py", "    if not occurs(verdict.quote, answer):", "    if False:"),)),
    Removal("test_a_judgement_that_stands_in_the_answer_is_none_however_it_is_quoted", (Edit("grading/judge.py", "copied = _copied(objects, answer)", "copied: list[_JsonObject] = []"),)),
    Removal("test_judgements_that_disagree_or_have_a_key_twice_are_missing_data", (Edit("grading/judge.py", "    if any(each != decided[0] for each in decided):", "    if False:"),)),
    Removal("test_a_reply_that_is_no_judgement_is_missing_data_and_shown", (Edit("grading/judge.py", '"the judge said nothing"', '""'),)),
    Removal("test_an_answer_cannot_write_the_mark_that_ends_it", (Edit("grading/judge.py", "answer_mark=digest_of(answer)", 'answer_mark="mark"'),)),
)
"""Patterns, data and the judge's request."""
AGENTS = (
    Removal("test_from_inside_there_is_no_key_no_network_and_no_file_of_the_host", (OPEN_ETC,), CONFINING),
    Removal("test_from_inside_there_is_no_key_no_network_and_no_file_of_the_host", (INHERITED,), CONFINING),
    Removal("test_a_skill_with_an_odd_name_is_installed_inside_the_home", (Edit("models/request.py", '        return safe.strip(".") or "skill"', "        return self.skill_name"),)),
    Removal("test_nothing_of_the_host_is_inside", (Edit("agents/program_sandbox.py", '[*confinement.mounts(shown, writable, ("--dev", "/dev")), "--remount-ro", "/dev"]', 'confinement.mounts(shown, writable, ("--dev", "/dev"))[:-2]'),)),
    Removal("test_a_program_that_ends_before_its_model_has_answered_is_missing_data", (Edit("agents/program_client.py", "if not proxy.exchanges.has_final_answer:", "if False:"),)),
    Removal("test_a_conversation_with_what_the_host_would_fetch_is_refused", (Edit("agents/request_filter.py", 'if part.get("file_id") or not is_inside or any', "if False and any"),)),
    Removal("test_what_the_host_would_fetch_is_refused_wherever_it_stands", (Edit("agents/request_filter.py", "{rules.conversation_field, *_INSTRUCTIONS} &", "{rules.conversation_field} &"),)),
    Removal("test_a_tool_of_the_host_is_dropped", (Edit("agents/request_filter.py", ' if str(tool.get("type") or "") in rules.tool_types]', "]"),)),
    Removal("test_the_model_is_pinned_and_the_output_limit_clamped", (Edit("agents/request_filter.py", '{"model": model, rules.limit_field: _output', '{"model": body.get("model"), rules.limit_field: _output'),)),
    Removal("test_the_model_of_gemini_is_pinned_although_the_agent_writes_it_in_the_url", (Edit("agents/proxy.py", "{quote(self.request.model.name, safe='')}", "gemini-ultra"),)),
    Removal("test_no_setting_of_the_kernel_can_be_opened_for_writing", (WRITABLE_PROC,)),
    Removal("test_no_namespace_can_be_made_and_no_socket_that_a_namespace_does_not_hold", (Edit("sandbox/confinement.py", '[word for file in filters for word in ("--seccomp", str(file))]', "[]"),)),
    Removal("test_only_the_folders_that_the_docs_name_can_be_written", (Edit("agents/program_sandbox.py", '[*confinement.mounts(shown, writable, ("--dev", "/dev")), "--remount-ro", "/dev"]', 'confinement.mounts(shown, writable, ("--dev", "/dev"))[:-2]'),)),
    Removal("test_an_open_filter_denies_only_what_reaches_beyond_namespaces", (Edit("sandbox/seccomp.py", "_answer(ALLOCATE, machine, _FAIL | errno.EOPNOTSUPP)", "_answer(ALLOCATE, machine, _ALLOW)"),)),
    Removal("test_every_filter_denies_new_namespaces_and_threads_with_files_of_their_own", (Edit("sandbox/seccomp.py", "        (0, _NEW_NAMESPACES, (0,)),\n", ""),)),
    Removal("test_an_open_filter_allows_only_sockets_that_a_namespace_holds", (Edit("sandbox/seccomp.py", '"socket": _FAMILIES, "socketpair": _FAMILIES', '"socket": (), "socketpair": ()'),)),
    Removal("test_no_request_stops_the_event_loop", (Edit("agents/proxy.py", "await asyncio.to_thread(self._prepare, agent.body)", "self._prepare(agent.body)"),)),
    Removal("test_a_request_of_millions_of_lists_is_not_read", (Edit("agents/proxy.py", '    if content.count(b"[") + content.count(b"{") > _MAX_BRACKETS:', "    if False:"),)),
    Removal("test_an_image_counts_as_many_tokens_as_its_vendor_may_charge", (Edit("agents/request_filter.py", "return len(content) + images * _MAX_IMAGE_TOKENS[wire]", "return len(content)"),)),
    Removal("test_a_pdf_is_left_out_because_its_tokens_cannot_be_bounded", (Edit("agents/request_filter.py", "        return _NO_DOCUMENT\n", "        pass\n"),)),
    Removal("test_no_cache_has_a_longer_lifetime_which_costs_more", (Edit("agents/request_filter.py", 'if value.get("cache_control") else', "if False else"),)),
    Removal("test_the_keyring_of_the_session_is_not_inside", (Edit("sandbox/confinement.py", '[word for file in filters for word in ("--seccomp", str(file))]', "[]"),)),
    Removal("test_an_open_filter_denies_only_what_reaches_beyond_namespaces", (Edit("sandbox/seccomp.py", "(_JUMP_IF_LEAST, 0, 1, _X32)", "(_JUMP_IF_LEAST, 0, 1, _ALL_BITS)"),)),
    Removal("test_an_agent_holds_no_more_connections_than_it_may", (Edit("agents/proxy.py", "if len(self._connections) >= _MAX_CONNECTIONS:", "if False:"),)),
    Removal("test_pipes_links_and_odd_names_are_left_out", (Edit("project/files.py", '    | getattr(os, "O_NOFOLLOW", 0)\n', ""),)),
    Removal("test_a_workspace_that_is_too_large_to_record_is_a_miss", (Edit("agents/workspace.py", "if len(files) >= MAX_FILES:", "if False:"),)),
    Removal("test_a_workspace_that_is_too_large_to_record_is_a_miss", (Edit("agents/workspace.py", "        if bytes_left < 0:", "        if False:"),)),
    Removal("test_settings_of_a_repository_run_nothing_outside_the_sandbox", (Edit("agents/workspace.py", "                outcome = self.shell.run(_GIT_STATE)", "                __import__('subprocess').run(['git', '-c', 'safe.directory=*', 'status'], cwd=self.shell.folder)\n                outcome = self.shell.run(_GIT_STATE)"),)),
    Removal("test_a_folder_that_a_command_replaced_by_a_link_leads_nowhere", (Edit("sandbox/confinement.py", "        if path.is_symlink():", "        if False:"),), ("bwrap",)),
    Removal("test_a_folder_that_a_command_replaced_by_a_link_leads_nowhere", (Edit("sandbox/limits.py", "[] if os.path.islink(folder) else [folder]", "[folder]"),), CONFINING),
    Removal("test_no_link_that_a_setup_makes_leads_settings_of_the_program_out_of_its_home", (Edit("agents/program_sandbox.py", "            if not is_inside(path.parent, self.root):", "            if False:"),)),
    Removal("test_no_link_that_a_setup_makes_leads_settings_of_the_program_out_of_its_home", (Edit("agents/program_sandbox.py", "            path.unlink(missing_ok=True)\n", ""),)),
    Removal("test_a_setup_that_fails_is_an_error_before_anything_is_asked", (Edit("agents/workspace.py", "    if outcome.succeeded:\n        return\n    output", "    if outcome:\n        return\n    output"),)),
    Removal("test_no_python_file_of_a_skill_or_of_evals_is_imported", (Edit("session/untrusted_files.py", 'if path.suffix == ".py" and not is_folder and not is_named:', "if False:"),)),
    Removal("test_no_python_file_of_a_skill_or_of_evals_is_imported", (Edit("plugin.py", "    given.file_or_dir = initial_arguments(\n        arguments or found or [str(start)], start, early_config.rootpath\n    )\n", ""),)),
    Removal("test_a_run_that_would_go_on_beyond_a_limit_ends_there", (Edit("agents/exchanges.py", "if len(self.replies) >= turns:", "if False:"),)),
    Removal("test_a_program_with_too_many_processes_ends_there", (Edit("agents/program_sandbox.py", "_threads_below, sandbox_pid) > _MAX_THREADS:", "_threads_below, sandbox_pid) < 0:"),)),
    Removal("test_code_runs_on_a_copy_of_the_workspace_and_a_forged_module_deceives_nothing", (Edit("checks/compile/run_tests.py", "    sys.path += [", "    sys.path[:0] = ["),)),
    Removal("test_a_record_that_no_run_can_have_left_is_refused", (Edit("checks/files.py", "    return (\n        0 < len(name)", "    return True or (\n        0 < len(name)"),)),
)
"""Agents, and the files that they leave."""
NO_KIND = Edit("project/files.py", "    if stat.S_ISREG(os.fstat(opened).st_mode):", "    if opened:")
ANY_LINK = Edit("project/files.py", "    if target != os.path.abspath(path) and leads_out(path.absolute()):", "    if False:")
STATE_FILES = (
    Removal("test_what_is_no_regular_file_of_the_project_is_refused_in_one_line", (NO_KIND,)),
    Removal("test_what_is_no_regular_file_of_the_project_is_refused_in_one_line", (ANY_LINK,)),
    Removal("test_a_baseline_that_is_no_file_stops_the_session_in_one_line", (NO_KIND,)),
    Removal("test_a_baseline_that_is_no_file_stops_the_session_in_one_line", (ANY_LINK,)),
    Removal("test_a_folder_of_recordings_that_leads_out_is_refused", (Edit("session/settings.py", "    if target := leads_out(folder.absolute()):", "    if target := None:"), ANY_LINK)),
    Removal("test_a_skill_that_is_a_repository_itself_runs_no_program_of_its_settings", (Edit("project/git.py", ', "-c", "safe.bareRepository=explicit")', ")"),)),
    Removal("test_nothing_is_written_through_a_link_out_of_the_project", (ANY_LINK,)),
    Removal("test_no_committed_file_costs_a_hundred_megabytes", (Edit("project/files.py", '    if sum(map(data.count, (b",", b"[", b"{"))) > max_values:', "    if False:"),)),
    Removal("test_json_that_would_cost_too_much_is_refused", (Edit("project/files.py", '    if sum(map(data.count, (b",", b"[", b"{"))) > max_values:', "    if False:"),)),
    Removal("test_json_that_would_cost_too_much_is_refused", (Edit("project/files.py", "    if _EXTREME_NUMBER.search(data):", "    if False:"),)),
    Removal("test_json_that_would_cost_too_much_is_refused", (Edit("project/files.py", "        if size > max_bytes:", "        if False:"),)),
)
"""Files of a project that a stranger's pull request may have changed."""
# fmt: on

REMOVALS = (*SANDBOX, *AGENTS, *STATE_FILES, *COMPILING, *RUNNING, *TEXTS, *DATA)


def main(words: list[str]) -> int:
    """Try all removals that match a word; return 1 if a test passes without its protection."""
    useless = 0
    with tempfile.TemporaryDirectory(prefix="unprotected-") as folder:
        for removal in REMOVALS:
            for level in removal.levels:
                where = ", ".join(edit.file for edit in removal.edits)
                line = f"{level or '-':9}{removal.test} ({where})"
                skipped = level in LIMITED and level not in LEVELS
                if skipped or (words and not any(word in line for word in words)):
                    continue
                verdict = _try(removal, level, Path(folder) / "copy")
                useless += verdict not in {FAILS, REFUSED_LEVEL}
                print(f"{verdict:15}{line}", flush=True)
    return 1 if useless else 0


def _try(removal: Removal, level: str, copy: Path) -> str:
    """Run a test on a copy of the project without a protection; return what became of it."""
    shutil.rmtree(copy, ignore_errors=True)
    left_out = shutil.ignore_patterns(".git", ".*_cache", "__pycache__", "node_modules")
    shutil.copytree(CHECKOUT, copy, ignore=left_out)
    for edit in removal.edits:
        source = copy / "pytest_upskill" / edit.file
        text = source.read_text("utf-8")
        if text.count(edit.old) != 1:
            return f"NOT IN {edit.file}"
        source.write_text(text.replace(edit.old, edit.new), "utf-8")
    chosen = f"{removal.test} and {level}" if level else removal.test
    command = [sys.executable, "-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider"]
    try:
        done = subprocess.run(
            [*command, _file_of(removal.test), "-k", chosen],
            cwd=copy,
            capture_output=True,
            text=True,
            check=False,
            timeout=_HANGS_S,
        )
    except subprocess.TimeoutExpired:
        return FAILS
    summary = done.stdout.rstrip().rpartition("\n")[2]
    if " failed" in summary:
        return FAILS
    # The sandbox tests itself: it does not use a level that hides nothing.
    return REFUSED_LEVEL if level and " passed" not in summary else "STILL PASSES"


def _file_of(test: str) -> str:
    defined = re.compile(rf"^def {test}\b", re.MULTILINE)
    files = (CHECKOUT / "tests").rglob("test_*.py")
    (file,) = (file for file in files if defined.search(file.read_text("utf-8")))
    return str(file.relative_to(CHECKOUT))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
