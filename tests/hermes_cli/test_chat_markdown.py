"""Units of markdown as rows of a terminal."""

import io
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.console import Console

from hermes.hermes_cli.terminal.blocks import BlockStream
from hermes.hermes_cli.terminal.markdown import Painter

_STYLE = re.compile(r"\x1b\[[0-9;]*m")


def painter(*, color: bool = False) -> Painter:
    system = "truecolor" if color else None
    return Painter(Console(file=io.StringIO(), force_terminal=True, color_system=system, width=80))


def drawn(text: str, width: int = 80, *, color: bool = False) -> list[str]:
    blocks, paint = BlockStream(), painter(color=color)
    units = blocks.feed(text) + blocks.finish()
    return [row for unit in units for row in paint.unit(unit, width)]


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("# Title\n## Part", ["# Title", "", "## Part"]),
        ("one\ntwo\n\nthree", ["one", "two", "", "three"]),
        ("- a\n- b\n  - c\n1. x\n2. y", ["• a", "• b", "  • c", "", "1. x", "2. y"]),
        ("9. nine\n10. ten", ["9. nine", "10. ten"]),
        ("3. a\n   more", ["3. a", "   more"]),
        ("> said\n> again", ["▌ said", "▌ again"]),
        ("```py\nx = 1\n\n    y\n```\nend", ["```py", "x = 1", "", "    y", "```", "", "end"]),
        ("a <b>bold</b> List<String>", ["a <b>bold</b> List<String>"]),
        ("[text](https://e.org/x)", ["text (https://e.org/x)"]),
        ("[1]: https://e.org/x", ["[1]: https://e.org/x"]),
        ("a\n\n---\n\nb", ["a", "", "─" * 40, "", "b"]),
        ("- a\n\n  ```sh\n  ls\n  ```", ["• a", "  ls"]),
        ("**bold** `code` ~~gone~~", ["bold code gone"]),
    ],
)
def test_each_kind_of_block_is_drawn_without_decoration(text: str, rows: list[str]) -> None:
    assert drawn(text) == rows


def test_a_table_keeps_its_columns_with_wide_characters() -> None:
    rows = drawn("| name | n |\n|:--|--:|\n| 漢字 | 1 |\n| ab | 22 |")
    bodies = [row for row in rows if "漢字" in row or "ab" in row]
    assert [cell_len(row) for row in bodies] == [cell_len(bodies[0])] * 2


def test_words_wrap_at_the_width_and_code_does_not() -> None:
    rows = drawn("word " * 20 + "\n\n```\n" + "x" * 50 + "\n```", 20)
    assert max(len(row) for row in rows[:-3]) <= 20
    assert rows[-2] == "x" * 50


def test_code_is_coloured_as_the_lines_before_it_demand() -> None:
    text = '```py\nx = """\nimport\n"""\nimport os\n```'
    rows = drawn(text, color=True)
    inside, after = rows[2], rows[4]
    assert _STYLE.sub("", inside) == "import"
    assert inside != after.replace(" os", "")
    assert _STYLE.sub("", after) == "import os"


def test_nothing_is_coloured_where_colour_is_unwanted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    console = Console(file=io.StringIO(), force_terminal=True, color_system="truecolor")
    blocks, paint = BlockStream(), Painter(console)
    units = blocks.feed("`code` **bold**\n\n```py\nimport os\n```\n") + blocks.finish()
    styles = _STYLE.findall("".join(row for unit in units for row in paint.unit(unit, 80)))
    assert all(set(style[2:-1].split(";")) <= {"0", "1", "2", "3", "4"} for style in styles)


@settings(max_examples=150, deadline=None)
@given(
    st.lists(st.sampled_from("ab漢🎉 \n#-`|*>1."), max_size=60).map("".join), st.integers(12, 60)
)
def test_unfinished_rows_are_never_wider_than_the_window(text: str, width: int) -> None:
    blocks, paint = BlockStream(), painter()
    blocks.feed(text)
    for unit in blocks.tail():
        for row in paint.unfinished(unit, width):
            assert cell_len(_STYLE.sub("", row)) <= width


def test_an_unknown_language_is_plain_code() -> None:
    assert drawn("```no-such-language\nx\n```") == ["```no-such-language", "x", "```"]
