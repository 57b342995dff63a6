"""Which fenced blocks an answer has, and which of them are built."""

from __future__ import annotations

import pytest

from pytest_upskill.checks.blocks import Block, blocks, choose_units


def _only(text: str) -> Block:
    (block,) = blocks(text)
    return block


@pytest.mark.parametrize(
    ("info", "language"),
    [
        ("python", "python"),
        ("Py", "python"),
        ("c++", "cpp"),
        ("cpp title=x", "cpp"),
        ("{.cpp #id}", "cpp"),
        ("{python}", "python"),
        ("cu", "cuda"),
        ("cuda-c++", "cuda"),
        ("rust", "rust"),
        ("", ""),
    ],
)
def test_the_first_word_of_the_info_string_is_the_language(info: str, language: str) -> None:
    block = _only(f"```{info}\nx\n```\n")

    assert block.language == language


@pytest.mark.parametrize("label", ["c", "cpp", ""])
@pytest.mark.parametrize("code", ["__global__ void k() {}", "k<<<1, 32>>>(p);"])
def test_a_block_with_a_kernel_is_cuda_whatever_c_it_says_it_is(label: str, code: str) -> None:
    block = _only(f"```{label}\n{code}\n```\n")

    assert block.language == "cuda"


@pytest.mark.parametrize(
    "text",
    [
        "```cuda title=src/a.cu\nx\n```",
        '```cuda file="src/a.cu"\nx\n```',
        "```cuda:src/a.cu\nx\n```",
        "```cuda src/a.cu\nx\n```",
        "```src/a.cu\nx\n```",
        "### `src/a.cu`\n```cuda\nx\n```",
        "2. **File: `src/a.cu`**:\n\n```cuda\nx\n```",
        "```cuda\n// src/a.cu\nx\n```",
        "```cuda\n/* file: ./src/a.cu */\nx\n```",
    ],
)
def test_a_block_is_named_by_its_info_string_the_line_above_or_its_first_comment(text: str) -> None:
    block = _only(text)

    assert (block.language, block.name) == ("cuda", "src/a.cu")


@pytest.mark.parametrize(
    "name",
    [
        "../a.cu",
        "src/../../a.cu",
        "/etc/a.cu",
        "-o.cu",
        "@a.cu",
        "a;b.cu",
        "$(id).cu",
        ".a.cu",
        "a",
    ],
)
def test_a_name_that_is_no_plain_relative_path_is_ignored(name: str) -> None:
    block = _only(f'```cuda title="{name}"\nx\n```')

    assert block.name is None


@pytest.mark.parametrize("line", ["Put this into a.c", "Version 1.5", "3.5", "x" * 500 + ".c"])
def test_a_line_of_prose_above_is_no_name(line: str) -> None:
    block = _only(f"{line}\n```c\nint x;\n```")

    assert block.name is None


@pytest.mark.parametrize(
    ("text", "code", "line"),
    [
        ("a\n\n```c\nint x;\n```\n", "int x;\n", 4),
        ("a\r\n```c\r\nint x;\r\n```\r\n", "int x;\n", 3),
        ("~~~c\nint x;\n~~~", "int x;\n", 2),
        ("> ```c\n> int x;\n> ```", "int x;\n", 2),
        ("1. a\n\n   ```c\n   int x;\n   ```", "int x;\n", 4),
        ("<details>\n```c\nint x;\n```\n</details>", "int x;\n", 3),
        ("````c\n```\n````", "```\n", 2),
    ],
)
def test_code_and_its_line_follow_commonmark(text: str, code: str, line: int) -> None:
    block = _only(text)

    assert (block.code, block.line, block.closed) == (code, line, True)


@pytest.mark.parametrize("text", ["```c\nint x;\n", "```c\nint x;\n~~~", "```c"])
def test_a_fence_without_an_end_is_not_closed(text: str) -> None:
    assert not _only(text).closed


@pytest.mark.parametrize("text", ["", "no code", "    indented code", "`inline`", "<code>x</code>"])
def test_only_a_fence_is_a_block(text: str) -> None:
    assert blocks(text) == ()


def test_the_longest_block_is_built_and_of_equals_the_last() -> None:
    text = (
        "```c\nint a;\n```\n```c\nint bb;\n```\n```c\nint cc;\n```\n```python\nlong = 'longer'\n```"
    )

    chosen = choose_units(blocks(text), "c")

    assert [block.code for block in chosen] == ["int cc;\n"]


def test_all_named_files_are_built_and_of_one_name_the_last() -> None:
    text = (
        "```c title=a.c\nint first_attempt;\n```\n"
        "```c title=b.c\nint b;\n```\n"
        "```c\nint an_example_of_its_use_that_is_longer;\n```\n"
        "```c title=a.c\nint a;\n```\n"
    )

    chosen = choose_units(blocks(text), "c")

    assert {block.name: block.code for block in chosen} == {"a.c": "int a;\n", "b.c": "int b;\n"}


def test_a_correction_of_a_file_counts_though_it_is_shorter() -> None:
    text = "```c title=a.c\nint wrong = wrong;\n```\n```c title=a.c\nint a;\n```\n"

    chosen = choose_units(blocks(text), "c")

    assert [block.code for block in chosen] == ["int a;\n"]


def test_a_header_is_built_only_where_there_is_nothing_else() -> None:
    header = "```cuda title=a.cuh\n__device__ int much_longer_than_the_rest();\n```\n"
    unit = "```cuda\n__global__ void k() {}\n```\n"

    with_unit = choose_units(blocks(header + unit), "cuda")
    alone = choose_units(blocks(header), "cuda")

    assert [block.name for block in with_unit] == [None]
    assert [block.name for block in alone] == ["a.cuh"]


def test_empty_blocks_are_not_built() -> None:
    assert choose_units(blocks("```c\n \n```"), "c") == ()
