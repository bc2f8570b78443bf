"""Markdown in pieces."""

import re
from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it.token import Token

from hermes.hermes_cli.terminal.blocks import BlockStream, Unit, parser

_PIECES = st.lists(
    st.sampled_from(
        [
            *("- ", "* ", "1. ", "2) ", "+ ", " - x\n", "# ", "> ", "\n>\n", "---", "==="),
            *("```", "```py", "~~~", "    ", "  ", "\t", "\n", "\n\n", "  \n", "\r\n", "\\"),
            *("| a | b |", "|--|--|", "-|-", "a|b", "a", "word two", "é", "漢字", "🎉"),
            *("**b", "**", "`c`", "<div>", "[x]: /u"),
        ]
    ),
    max_size=30,
).map("".join)


def units(*texts: str) -> list[Unit]:
    blocks = BlockStream()
    found = [unit for text in texts for unit in blocks.feed(text)]
    return found + blocks.finish()


def kinds(text: str) -> list[tuple[str, str, bool]]:
    return [(unit.kind, unit.text, unit.gap) for unit in units(text)]


@settings(max_examples=300, deadline=None)
@given(_PIECES, st.data())
def test_any_split_gives_the_same_units(text: str, data: st.DataObject) -> None:
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=12)))
    bounds = [0, *cuts, len(text)]
    blocks = BlockStream()
    found: list[Unit] = []
    for start, end in pairwise(bounds):
        found += blocks.feed(text[start:end])
        blocks.tail()
    assert found + blocks.finish() == units(text)


@settings(max_examples=300, deadline=None)
@given(_PIECES)
def test_units_say_what_the_whole_document_says(text: str) -> None:
    found: list[str] = []
    for unit in units(text):
        found += _contents(parser().parse(unit.text)) if unit.kind == "markdown" else [unit.text]
    whole = _contents(parser().parse(text.replace("\r", "")))
    assert _words(found) == _words(whole)


def _contents(tokens: list[Token]) -> list[str]:
    """The words of a document, block by block, with a fence's language before its code."""
    found: list[str] = []
    for token in tokens:
        if token.type == "fence":
            found += [token.info.strip().partition(" ")[0], token.content]
        elif token.type in ("inline", "code_block"):
            found.append(token.content)
    return found


def _words(contents: list[str]) -> list[str]:
    return re.findall(r"\S+", "\n".join(contents))


def test_a_block_is_final_when_the_next_one_begins() -> None:
    blocks = BlockStream()
    assert blocks.feed("one\n\ntw") == []
    assert blocks.feed("o\n") == [Unit(kind="markdown", text="one")]
    assert blocks.tail() == [Unit(kind="markdown", text="two", gap=True)]


def test_items_of_a_list_are_units_and_keep_their_distance() -> None:
    assert kinds("- a\n- b\n  - inner\n\n- c\n\nend") == [
        ("markdown", "- a", False),
        ("markdown", "- b\n  - inner", False),
        ("markdown", "- c", True),
        ("markdown", "end", True),
    ]


def test_lines_of_code_are_final_one_by_one() -> None:
    blocks = BlockStream()
    assert [unit.kind for unit in blocks.feed("```py\nx = 1\ny")] == ["fence_open", "code"]
    assert [unit.text for unit in blocks.tail()] == ["y"]
    assert [unit.text for unit in blocks.feed(" = 2\n``")] == ["y = 2"]
    assert blocks.tail() == []
    assert [unit.kind for unit in blocks.feed("`\n")] == ["fence_close"]


def test_an_unclosed_fence_ends_with_the_text() -> None:
    assert [unit.kind for unit in units("```\ncode")] == ["fence_open", "code", "fence_close"]


def test_a_fence_inside_a_longer_fence_is_code() -> None:
    found = kinds("````md\n```py\nx\n```\n````\nend")
    assert [text for kind, text, _ in found if kind == "code"] == ["```py", "x", "```"]
    assert found[-1] == ("markdown", "end", True)


def test_a_table_is_one_unit_however_it_arrives() -> None:
    table = "| a | b |\n|---|---|\n| 1 | 2 |"
    assert [unit.text for unit in units(*table)] == [table]


def test_markers_alone_are_not_shown_yet() -> None:
    for partial in ("#", "- ", "1.", "``", "```py", "|", "> ", "--", "*"):
        blocks = BlockStream()
        blocks.feed(partial)
        assert blocks.tail() == []


def test_what_a_terminal_would_act_upon_is_left_out() -> None:
    assert [unit.text for unit in units("a\x1b]0;title\x07b\x9b31m\r\n")] == ["a]0;titleb31m"]


def test_the_code_before_a_line_is_bounded() -> None:
    lines = "".join(f"value_{number} = {number}\n" for number in range(500))
    last = units(f"```py\n{lines}```\n")[-2]
    assert last.text == "value_499 = 499"
    assert len(last.context) <= 1500
    assert last.context.startswith("value_")
