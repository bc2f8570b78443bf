import pytest

from hermes.tools.base import ToolFailure
from hermes.tools.patching import apply_patch

_CODE = """def first():
    return 1


def second():
    value = 2{blanks}
    return value


def third():
    return 1
""".format(blanks="   ")


def test_the_only_occurrence_is_replaced() -> None:
    patched = apply_patch(_CODE, "def second():", "def other():")

    assert patched.text == _CODE.replace("second", "other")
    assert patched.lines == (5,)
    assert patched.exact


def test_several_occurrences_are_refused_with_their_lines() -> None:
    with pytest.raises(ToolFailure, match=r"occurs 2 times \(lines 2, 11\).*replace_all"):
        apply_patch(_CODE, "return 1", "return 3")


def test_all_occurrences_are_replaced_when_asked() -> None:
    patched = apply_patch(_CODE, "return 1", "return 3", replace_all=True)

    assert patched.text == _CODE.replace("return 1", "return 3")
    assert patched.lines == (2, 11)


def test_many_occurrences_are_not_all_listed() -> None:
    with pytest.raises(ToolFailure, match=r"100 times \(lines 1, 2, 3, 4, 5, \.\.\.\)"):
        apply_patch("a\n" * 100, "a", "b")


def test_text_that_is_absent_is_told_with_the_lines_nearest_to_it() -> None:
    with pytest.raises(ToolFailure) as caught:
        apply_patch(_CODE, "def sekond():\n    nothing", "x")

    assert "does not occur" in str(caught.value)
    assert "5: def second():" in str(caught.value)


def test_text_unlike_anything_is_told_without_candidates() -> None:
    with pytest.raises(ToolFailure, match="Read the file again"):
        apply_patch(_CODE, "@@@@ zzzz @@@@", "x")


@pytest.mark.parametrize(("old", "new", "told"), [("", "x", "empty"), ("a", "a", "the same")])
def test_a_patch_without_sense_is_refused(old: str, new: str, told: str) -> None:
    with pytest.raises(ToolFailure, match=told):
        apply_patch("a", old, new)


def test_white_space_at_line_ends_does_not_matter_when_the_place_is_plain() -> None:
    patched = apply_patch(_CODE, "    value = 2\n    return value", "    return 2")

    assert patched.text == _CODE.replace("    value = 2   \n    return value", "    return 2")
    assert not patched.exact


def test_a_constant_indentation_is_carried_over() -> None:
    old = "value = 2\nreturn value"
    new = "value = 4\nif value:\n    return value\n\nreturn 0"

    patched = apply_patch(_CODE, old, new)

    assert "    value = 4\n    if value:\n        return value\n\n    return 0\n" in patched.text
    assert not patched.exact


def test_an_indentation_too_deep_is_taken_back() -> None:
    patched = apply_patch("a:\n  b\n  c\n", "    b\n    c", "    d\n      e")

    assert patched.text == "a:\n  d\n    e\n"


@pytest.mark.parametrize(
    ("text", "old", "new"),
    [
        ("  a\n    b\n\n  a\n    b\n", "a \n  b ", "x"),  # two places
        ("  a\n      b\n", "a\n  b", "x"),  # the indentation differs by line
        ("    a\n    b\n", "\ta\n\tb", "\tx"),  # tabs are not spaces
        ("  a\n  b\n", "    a\n    b", "x"),  # nothing to take off the new line
    ],
)
def test_a_loose_match_that_is_not_plain_is_refused(text: str, old: str, new: str) -> None:
    with pytest.raises(ToolFailure, match="does not occur"):
        apply_patch(text, old, new)


def test_line_ends_of_the_file_win() -> None:
    assert apply_patch("a\r\nb\r\nc\r\n", "a\nb", "x\ny").text == "x\r\ny\r\nc\r\n"
    loose = apply_patch("a\r\n  b \r\nc\r\n", "  b\n", "  x\n  y\n")
    assert loose.text == "a\r\n  x\r\n  y\r\nc\r\n"
    assert not loose.exact


def test_only_white_space_is_never_matched_loosely() -> None:
    with pytest.raises(ToolFailure, match="does not occur"):
        apply_patch("a\n\nb\n", "   \n  ", "x")


def test_removing_lines_loosely_leaves_no_empty_one() -> None:
    assert apply_patch("a\n  b  \nc\n", "b\n", "").text == "a\nc\n"


def test_a_large_file_without_the_text_is_answered_soon() -> None:
    text = "".join(f"some line number {number} of many\n" for number in range(100_000))

    with pytest.raises(ToolFailure, match="most like its first one"):
        apply_patch(text, "some line number x of many!\nand another", "y")
