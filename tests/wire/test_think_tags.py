"""Reasoning between tags: told apart under any cut, quoted tags left alone."""

import itertools
import time

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from hermes.events import ReasoningDelta, TextDelta
from hermes.wire.think_tags import ThinkFilter


def split(pieces, **options):
    """The joined text and the joined reasoning of a stream."""
    filtered = ThinkFilter(**options)
    deltas = [delta for piece in pieces for delta in filtered.feed(piece)] + filtered.finish()
    text = "".join(x.text for x in deltas if isinstance(x, TextDelta))
    return text, "".join(x.text for x in deltas if isinstance(x, ReasoningDelta))


FENCE = "```html\n<think>quoted</think>\n```\n"

CASES = {
    "no tag": ("a < b and c > d", "a < b and c > d", ""),
    "a tag first": ("<think>plan</think>Answer", "Answer", "plan"),
    "blanks around": ("\n<think>\n plan\n</think>\n\nAnswer\n", "Answer\n", "plan\n"),
    "an empty thought": ("<think>\n\n</think>\n\nAnswer", "Answer", ""),
    "thinking": ("<thinking>plan</thinking>Answer", "Answer", "plan"),
    "reasoning": ("<reasoning>plan</reasoning>Answer", "Answer", "plan"),
    "thought": ("<thought>plan</thought>Answer", "Answer", "plan"),
    "any case": ("<THINK>plan</Think>Answer", "Answer", "plan"),
    "padding": ("<think >plan</think\n>Answer", "Answer", "plan"),
    "later in the text": ("Hi <think>plan</think>there", "Hi there", "plan"),
    "twice": ("<think>a</think>b<think>c</think>d", "bd", "ac"),
    "unterminated": ("Hi <think>never closed", "Hi ", "never closed"),
    "unterminated, cut in its end": ("Hi <think>never</thi", "Hi ", "never</thi"),
    "a stray end first": ("\n</think>\n\nAnswer", "Answer", ""),
    "a stray end later": ("a</think>b", "ab", ""),
    "a start that is none": ("a <thin", "a <thin", ""),
    "another tag": ("<thinker>x</thinker> <b>", "<thinker>x</thinker> <b>", ""),
    "an attribute makes it no tag": ("<think x='1'>y", "<think x='1'>y", ""),
    "only its own end closes it": ("<think>a</thought>b</think>c", "c", "a</thought>b"),
    "a tag inside": ("<think>a<think>b</think>c", "c", "a<think>b"),
    "in backticks": ("the `<think>` tag", "the `<think>` tag", ""),
    "in double backticks": ("``a ` <think>`` b", "``a ` <think>`` b", ""),
    "in a fence": (FENCE + "end", FENCE + "end", ""),
    "after a fence": (FENCE + "<think>x</think>y", FENCE + "y", "x"),
    "a fence within a longer one": ("````\n```\n<think>\n````\n", "````\n```\n<think>\n````\n", ""),
    "an indented fence": ("- a\n  ```\n  <think>\n  ```\n", "- a\n  ```\n  <think>\n  ```\n", ""),
    "a fence on one line": ("```x``` <think>y</think>z", "```x``` z", "y"),
    "an open backtick ends with its line": ("it`s\n<think>x</think>y", "it`s\ny", "x"),
    "a closed span": ("`a` <think>x</think>y", "`a` y", "x"),
    "backticks in the thought": ("<think>```\n</think>a `<think>`", "a `<think>`", "```\n"),
    "only blanks": (" \n ", " \n ", ""),
    "nothing": ("", "", ""),
}


@pytest.mark.parametrize(("stream", "text", "reasoning"), CASES.values(), ids=CASES)
def test_text_and_reasoning_are_told_apart_however_the_stream_is_cut(stream, text, reasoning):
    for size in (max(len(stream), 1), 1, 2, 3, 7):
        pieces = [stream[i : i + size] for i in range(0, len(stream), size)]
        assert split(pieces) == (text, reasoning), f"cut every {size}"


def test_a_template_that_opened_the_tag_makes_the_start_reasoning():
    assert split(["pl", "an</thi", "nk>\n", "Answer"], inside=True) == ("Answer", "plan")


def test_the_parts_of_one_call_come_in_order_and_merged():
    filtered = ThinkFilter()
    assert filtered.feed("a<think>b</think>c</think>d") == [
        TextDelta("a"),
        ReasoningDelta("b"),
        TextDelta("cd"),
    ]


def test_only_what_may_start_a_tag_is_held_back():
    filtered = ThinkFilter()
    steps = ["a", "b <", "t", "o", "d <think", ">x", "y</", "th", "z", "</think>w"]
    seen = ["".join(delta.text for delta in filtered.feed(step)) for step in steps]
    assert seen == ["a", "b ", "", "<to", "d ", "x", "y", "", "</thz", "w"]
    assert filtered.finish() == []


_bits = st.lists(
    st.sampled_from(
        [
            "<think>",
            "</think>",
            "<Thought>",
            "</thought>",
            "<",
            "</",
            "th",
            "ink>",
            "a",
            " ",
            "\n",
            "`",
            "``",
            "```",
            "\n```\n",
            "<b>",
            "é😀",
        ]
    ),
    max_size=25,
)


@given(_bits, st.lists(st.integers(0, 120), max_size=10))
@settings(deadline=None, max_examples=200)
@example(["```", "\n```\n", "<think>"], [3, 4, 5])
def test_any_cut_gives_the_same_text_and_reasoning(bits, cuts):
    stream = "".join(bits)
    points = sorted({0, len(stream), *(cut for cut in cuts if cut < len(stream))})
    pieces = [stream[a:b] for a, b in itertools.pairwise(points)]
    whole = split([stream])
    assert split(pieces) == whole
    assert split(list(stream)) == whole


@given(_bits)
@settings(deadline=None)
def test_nothing_is_lost_but_tags_and_blanks(bits):
    stream = "".join(bit for bit in bits if "<" not in bit and "ink" not in bit and bit != "th")
    assert split([stream]) == (stream, "")


def test_long_streams_take_linear_time():
    for unit in ("<", "`", "<think", "</think", "a `b` ", "<think>x</think>"):
        filtered = ThinkFilter()
        start = time.process_time()
        filtered.feed(unit * (100_000 // len(unit)))
        filtered.finish()
        assert time.process_time() - start < 5
