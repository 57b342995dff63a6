"""Which tests hold the promises of docs/security.md."""

# ruff: noqa: E501 - cells of a table are of any length

from __future__ import annotations

ATTACKS: dict[str, dict[str, tuple[str, ...]]] = {
    "The sandbox": {
        "reading keys in the environment": ("test_the_environment_is_built_from_nothing",),
        "reading your files": ("test_files_of_the_machine_are_hidden_where_the_level_says_so",),
        "reading `/proc/PID/environ` of pytest": (
            "test_the_environment_of_the_session_is_hidden_where_the_level_says_so",
        ),
        "writing outside its folder": (
            "test_nothing_can_be_written_outside_where_the_level_says_so",
        ),
        "writing to folders of the system, as `/`, `/dev` and `/proc`": (
            "test_no_folder_of_the_system_can_be_written",
        ),
        "changing modes, times, owners or attributes of files outside its folder": (
            "test_system_calls_reach_nothing_outside_of_the_sandbox",
        ),
        "changing settings of the kernel in `/proc/sys`": (
            "test_no_setting_of_the_kernel_can_be_written",
        ),
        "the network": ("test_the_network_is_closed_where_the_level_says_so",),
        "sockets of other programs on this machine": (
            "test_system_calls_reach_nothing_outside_of_the_sandbox",
        ),
        "signals to other processes; their limits, priorities and memory": (
            "test_system_calls_reach_nothing_outside_of_the_sandbox",
        ),
        "shared memory, message queues, the session's keyring": (
            "test_system_calls_reach_nothing_outside_of_the_sandbox",
        ),
        "what root may do: mounts, devices, BPF, the host's name, the clock": (
            "test_system_calls_reach_nothing_outside_of_the_sandbox",
        ),
        "the same as an ordinary user": (
            "test_system_calls_of_an_ordinary_user_reach_nothing_either",
        ),
        "outliving the program, in another group or session too": (
            "test_nothing_a_program_starts_outlives_it",
        ),
        "outliving pytest when it is killed": (
            "test_programs_die_with_the_process_that_started_them",
        ),
        "endless time": ("test_the_wall_clock_ends_a_program_and_its_children",),
        "gigabytes of output": ("test_output_is_cut_and_its_source_killed",),
        "endless CPU time": ("test_cpu_time_is_limited",),
        "memory of each process": ("test_memory_is_limited",),
        "huge files": ("test_the_size_of_files_is_limited",),
        "the size of all files together, and their number": (
            "test_the_size_of_all_files_together_is_limited",
            "test_the_number_of_files_is_limited",
        ),
        "the same in folders that cannot be read, or are too deep to look into": (
            "test_files_in_a_folder_that_cannot_be_read_are_measured",
            "test_what_lies_too_deep_to_be_measured_is_too_much",
        ),
        "the same written fast, or allocated without writing": (
            "test_the_closer_to_a_limit_the_sooner_usage_is_measured_again",
            "test_the_filter_decides_by_call_and_arguments",
        ),
        "the same in files that are deleted and still open or mapped, or sent to nobody": (
            "test_files_that_no_folder_shows_are_measured",
        ),
        "open files": ("test_the_number_of_open_files_is_limited",),
        "more processes and threads than allowed, as a fork bomb starts them": (
            "test_the_number_of_processes_is_limited",
            "test_a_fork_bomb_ends_with_the_wall_clock",
        ),
        "control characters for your terminal": ("test_output_cannot_steer_a_terminal",),
    },
    "Agents": {
        "commands that look for keys, files of this machine or the network": (
            "test_from_inside_there_is_no_key_no_network_and_no_file_of_the_host",
        ),
        "changing settings of the kernel in `/proc/sys`, also where root runs pytest": (
            "test_no_setting_of_the_kernel_can_be_opened_for_writing",
        ),
        "writing elsewhere than the [docs](agents.md#what-is-and-is-not-isolated) say": (
            "test_only_the_folders_that_the_docs_name_can_be_written",
        ),
        "new namespaces, in which a program is root; sockets other than UNIX, INET, INET6 and NETLINK, such as VSOCK": (
            "test_no_namespace_can_be_made_and_no_socket_that_a_namespace_does_not_hold",
            "test_every_filter_denies_new_namespaces_and_threads_with_files_of_their_own",
            "test_an_open_filter_allows_only_sockets_that_a_namespace_holds",
        ),
        "reading the session's keyring from Claude Code or Codex": (
            "test_the_keyring_of_the_session_is_not_inside",
            "test_an_open_filter_denies_only_what_reaches_beyond_namespaces",
        ),
        "looking into another run": ("test_runs_at_the_same_time_do_not_meet",),
        "a skill whose name is a path": (
            "test_a_skill_with_an_odd_name_is_installed_inside_the_home",
        ),
        "folders in the workspace that are thousands deep": (
            "test_folders_deeper_than_python_can_recurse_do_not_end_the_run",
        ),
        "links, hard links and odd names in the workspace": (
            "test_pipes_links_and_odd_names_are_left_out",
        ),
        "filling the memory with files in `/` or `/dev` of a program's sandbox": (
            "test_nothing_of_the_host_is_inside",
            "test_files_that_no_folder_shows_count_too",
        ),
        "requests that make the host fetch a URL or a stored file, in the conversation or the instructions": (
            "test_a_conversation_with_what_the_host_would_fetch_is_refused",
            "test_what_the_host_would_fetch_is_refused_wherever_it_stands",
        ),
        "requests for tools of the host": ("test_a_tool_of_the_host_is_dropped",),
        "requests for another model, in the body or in the URL": (
            "test_the_model_is_pinned_and_the_output_limit_clamped",
            "test_the_model_of_gemini_is_pinned_although_the_agent_writes_it_in_the_url",
        ),
        "hundreds of thousands of texts in a request": ("test_no_request_stops_the_event_loop",),
        "millions of lists or objects in a request": (
            "test_a_request_of_millions_of_lists_is_not_read",
        ),
        "images and PDFs, which have more tokens than bytes, and caches that are kept longer, which cost more": (
            "test_an_image_counts_as_many_tokens_as_its_vendor_may_charge",
            "test_a_pdf_is_left_out_because_its_tokens_cannot_be_bounded",
            "test_no_cache_has_a_longer_lifetime_which_costs_more",
        ),
        "thousands of connections to the proxy, or large requests on many of them": (
            "test_an_agent_holds_no_more_connections_than_it_may",
        ),
        "a command that kills the agent": (
            "test_a_program_that_ends_before_its_model_has_answered_is_missing_data",
        ),
        "thousands of files, or megabytes": (
            "test_a_workspace_that_is_too_large_to_record_is_a_miss",
        ),
        "a fork bomb in Claude Code or Codex": (
            "test_a_program_with_too_many_processes_ends_there",
        ),
        "never coming to an end": ("test_a_run_that_would_go_on_beyond_a_limit_ends_there",),
        "a forged module such as `json.py` in the workspace": (
            "test_code_runs_on_a_copy_of_the_workspace_and_a_forged_module_deceives_nothing",
        ),
        "settings of a git repository that name programs (`core.fsmonitor`, pagers, hooks)": (
            "test_settings_of_a_repository_run_nothing_outside_the_sandbox",
        ),
        "links in place of the workspace, the home or the settings in it": (
            "test_a_folder_that_a_command_replaced_by_a_link_leads_nowhere",
            "test_no_link_that_a_setup_makes_leads_settings_of_the_program_out_of_its_home",
        ),
        "a setup that looks for the network, or leaves too much": (
            "test_a_setup_that_fails_is_an_error_before_anything_is_asked",
        ),
        "a recording with names outside the workspace, or of absurd size": (
            "test_a_record_that_no_run_can_have_left_is_refused",
        ),
    },
    "Compiling": {
        "`#include`, `.include`, `.incbin`, `#embed` of your files": (
            "test_files_of_the_machine_do_not_reach_the_result",
        ),
        "types, messages, numbers and suggestions in diagnostics that come from such a file": (
            "test_a_line_of_the_answer_quotes_nothing_from_a_file_of_the_machine",
        ),
        "a `#line` that names a file that the answer does not have": (
            "test_a_place_in_a_file_that_the_answer_does_not_have_is_none",
        ),
        "template, constexpr, macro and `#include` bombs": (
            "test_a_bomb_fails_in_bounded_time_and_space",
        ),
        "reaching a limit": ("test_a_limit_that_is_reached_fails_the_answer",),
        "`../../x`, `/tmp/x`, `-o/tmp/x`, `@file` as the name of a file": (
            "test_a_file_name_never_leaves_the_workspace",
        ),
        "symbolic links": ("test_a_file_is_never_written_twice_or_through_a_link",),
        "pretending that a library is missing here, with a header that does not exist or an `#error` that reads like one": (
            "test_a_header_that_does_not_exist_is_the_answers_mistake",
            "test_an_error_that_reads_like_a_missing_header_is_the_answers_mistake",
        ),
        "a file that shadows a header of CUDA": (
            "test_a_file_that_would_replace_a_header_of_the_toolkit_fails",
        ),
        "printing a kernel, as `#pragma message` can": ("test_a_printed_kernel_is_no_kernel",),
        "printing figures of registers, spills or shared memory": (
            "test_printed_figures_do_not_count",
            "test_a_second_figure_cannot_hide_a_higher_one",
        ),
        "comments, strings, labels and names that look like PTX": (
            "test_only_an_instruction_counts_as_one",
            "test_instructions_are_told_apart_from_all_else_in_ptx",
        ),
        "terminal escapes in diagnostics": ("test_diagnostics_cannot_steer_a_terminal",),
    },
    "Running": {
        "reading, writing, sockets of any kind, signals, ptrace": (
            "test_an_answer_cannot_read_write_connect_or_signal_outside",
        ),
        "bombs of time, memory, output, forks, recursion": ("test_a_bomb_fails_in_bounded_time",),
        "a process in a session of its own": (
            "test_nothing_outlives_a_run_that_starts_its_own_session",
        ),
        "`exit(0)`, `os._exit(0)` before the tests are through": (
            "test_leaving_early_is_not_passing",
        ),
        "printing a verdict, writing one to any descriptor, taking the test code away or exchanging it, in a thread or a fork too": (
            "test_a_verdict_that_the_answer_writes_does_not_count",
        ),
        "forking, and going on with the tests in each process": (
            "test_a_process_that_the_answer_forks_reports_nothing",
        ),
        "looking for the test code while the answer is imported: files, command lines, frames, `gc`": (
            "test_test_code_cannot_be_read_while_the_answer_is_imported",
        ),
        "replacing functions or classes of `builtins`, `inspect`, or modules of Python that the tests import, while it is imported": (
            "test_an_answer_that_replaces_what_tests_rely_on_fails",
            "test_an_answer_that_replaces_what_tests_import_fails",
        ),
        "the same with pytest's": ("test_an_answer_that_replaces_pytest_fails",),
        "replacing pytest's or `unittest`'s when it is called": (
            "test_an_answer_that_replaces_pytest_when_called_fails",
        ),
        "replacing what ends a failed test: `os._exit`, functions of this plugin in `__main__`, `asyncio.run`": (
            "test_an_answer_cannot_replace_what_ends_a_failed_test",
        ),
        "skipping the test that calls it, or expecting it to fail": (
            "test_an_answer_cannot_skip_a_test",
        ),
        "a mock that skips, or a class from which tests inherit that they are skipped, where they name neither themselves": (
            "test_a_mock_that_skips_does_not_pass",
            "test_tests_inherit_no_mark_that_skips_them_from_an_answer",
        ),
        "`pytest.exit`": ("test_every_test_that_pytest_finds_must_run",),
        "configuring pytest, by a variable, another folder or an entry point": (
            "test_an_answer_cannot_configure_pytest",
        ),
        "a file called `json.py` or `pytest.py`": (
            "test_a_file_of_the_answer_cannot_stand_in_for_a_module",
        ),
        "test code in which no test runs": ("test_code_in_which_no_test_runs_decides_nothing",),
        "no confinement on this machine": ("test_where_nothing_confines_an_answer_it_is_not_run",),
    },
    "Patterns and data": {
        "a pattern that takes forever on an answer": (
            "test_a_catastrophic_pattern_cannot_be_decided",
        ),
        "the same inside a JSON Schema": ("test_a_pattern_in_a_schema_is_limited_too",),
        "YAML aliases and merge keys that multiply, deep nesting, `!!python` tags": (
            "test_what_cannot_be_read_fails_with_its_line",
        ),
        "aliases that multiply, or refer to themselves, in a value that is shown": (
            "test_aliases_that_multiply_are_shown_in_brief",
        ),
    },
    "Judging": {
        "closing the answer's mark from inside": (
            "test_an_answer_cannot_write_the_mark_that_ends_it",
        ),
        "dictating the judge's reply": (
            "test_a_judgement_that_an_answer_dictates_has_no_evidence",
        ),
        "a judgement in the answer, which the judge quotes beside its own or instead of it": (
            "test_a_judgement_that_stands_in_the_answer_is_none_however_it_is_quoted",
        ),
        "a second judgement, or a second key, in the judge's reply": (
            "test_judgements_that_disagree_or_have_a_key_twice_are_missing_data",
        ),
        "a judge that says something else": (
            "test_a_reply_that_is_no_judgement_is_missing_data_and_shown",
        ),
    },
    "Python files of skills": {
        "a test module, `conftest.py` or `__init__.py` in a skill, a workspace or a folder of evals": (
            "test_no_python_file_of_a_skill_or_of_evals_is_imported",
        ),
    },
    "Files of the project": {
        "a link to a device or out of the project, or a pipe, in the place of a file": (
            "test_what_is_no_regular_file_of_the_project_is_refused_in_one_line",
            "test_a_baseline_that_is_no_file_stops_the_session_in_one_line",
        ),
        "a folder of recordings or reports that is such a link": (
            "test_a_folder_of_recordings_that_leads_out_is_refused",
            "test_nothing_is_written_through_a_link_out_of_the_project",
        ),
        "a skill's folder that is a git repository too, whose settings name programs": (
            "test_a_skill_that_is_a_repository_itself_runs_no_program_of_its_settings",
        ),
        "a million values, deep nesting, long texts": (
            "test_no_committed_file_costs_a_hundred_megabytes",
        ),
        "numbers that cannot be calculated with": (
            "test_json_that_would_cost_too_much_is_refused",
        ),
    },
    "Recordings": {
        "an edited recording, committed or not": (
            "test_a_replay_names_the_recordings_that_the_branch_changed",
        ),
        "a clone in which git cannot tell what changed": (
            "test_a_replay_says_that_changes_of_recordings_are_unknown",
        ),
    },
    "Foreign text": {
        "commands to a CI runner in answers, judgements, output of programs, errors, names": (
            "test_nothing_foreign_steers_a_terminal_or_a_runner",
        ),
        "the same in tracebacks and captured output of hooks": (
            "test_what_a_hook_raises_or_prints_about_an_answer_steers_nothing_and_shows_no_key",
        ),
        "the same in warnings and in findings of lint": ("test_warnings_of_lint_steer_nothing",),
        "the same in Markdown, HTML and JUnit XML": (
            "test_nothing_foreign_steers_a_terminal_or_a_runner",
        ),
        "a folder whose name is a command, or has control characters": (
            "test_a_folder_whose_name_would_steer_them_is_refused_by_a_safe_name",
        ),
        "a skill or a case with such a name": (
            "test_a_skill_whose_name_is_a_command_is_refused",
            "test_an_id_that_makes_a_command_of_a_node_id_is_refused",
        ),
        "a line of diagnostics that a strange separator splits": (
            "test_a_line_of_diagnostics_stays_one_line",
        ),
        "files that JUnit readers attach": ("test_hostile_answers_are_inert_in_junit_xml",),
        "HTML and Markdown": (
            "test_hostile_text_stays_text_in_html",
            "test_hostile_text_stays_text_in_markdown",
        ),
    },
    "Keys": {
        "a server that echoes a key in errors, answers, names, ids, redirects, broken replies": (
            "test_no_failure_of_a_server_brings_a_key_to_light",
        ),
        "an echo in another form: encoded, escaped, split": (
            "test_a_secret_is_found_in_every_form_in_which_servers_echo_it",
        ),
        "the same in agents, probes of triggers, judges, the history and its pages": (
            "test_agents_probes_of_triggers_and_the_history_bring_no_key_to_light",
        ),
        "the same in `generate`, `cases` and `refine`": (
            "test_commands_with_a_teacher_bring_no_key_to_light",
        ),
        "answers that look for keys": ("test_nothing_that_a_run_leaves_or_prints_holds_a_key",),
        "a base URL that cannot be read": (
            "test_a_url_that_cannot_be_read_is_refused_without_its_credentials",
        ),
        "two URLs with one label": (
            "test_two_urls_with_one_label_are_refused_without_their_credentials",
        ),
        "a value of ours in a traceback": ("test_values_do_not_show_the_credentials_of_a_url",),
        "credentials that only an SDK finds, such as a gateway's header": (
            "test_a_key_that_only_the_sdk_knows_is_learned_from_what_it_sends",
        ),
        "logs: `--log-level=DEBUG`, `OPENAI_LOG`, `ANTHROPIC_LOG`, those of HTTP": (
            "test_logs_hold_no_key_wherever_they_come_from",
        ),
    },
}
"""By section: the first cell of each row of its table, with the tests."""

OTHERS = (
    "test_programs_die_with_the_process_that_started_them",
    "test_a_host_that_sends_the_key_back_leaves_it_in_no_record_and_no_report",
    "test_what_the_docs_admit_to_be_possible_is_possible",
    "test_a_hostile_answer_gets_nothing_where_the_level_says_so",
    "test_no_text_crashes_or_hangs_a_reader",
    "test_a_time_limit_that_code_ignores_is_raised_again",
)
"""Tests of promises outside of tables."""
