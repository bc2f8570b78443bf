"""Any text as a query: its terms, what they match and how a hit is shown."""

import re

from hypothesis import given
from hypothesis import strategies as st

from hermes.sessions import search


@given(st.text(), st.text())
def test_a_snippet_without_its_marks_is_a_piece_of_the_text(words, text):
    query = search.parse(words)

    shown = query.snippet(text).removeprefix("…").removesuffix("…")

    assert shown.replace("**", "") in text.replace("**", "")


@given(st.text(min_size=1))
def test_a_text_is_found_by_each_of_its_own_words(text):
    for word in text.split():
        query = search.parse(word)
        assert not query.terms or query.matches(text)


def test_words_without_a_letter_or_digit_are_no_terms_and_repeated_words_count_once():
    assert search.parse('one !!! "two" 🎉 one').terms == ("one", '"two"')
    assert len(search.parse(" ".join(map(str, range(100)))).terms) == search.MAX_TERMS


def test_a_word_matches_whole_and_without_regard_to_case_and_accents():
    query = search.parse("Café")

    assert query.matches("the CAFE is open")
    assert query.matches("un café")
    assert not query.matches("cafeteria")
    assert query.snippet("un café, le CAFE") == "un **café**, le **CAFE**"


def test_a_compound_word_matches_its_parts_side_by_side():
    query = search.parse("set-up_guide")

    assert query.matches("the set up guide")
    assert not query.matches("guide set up")


def test_hangul_is_not_taken_apart():
    assert not search.parse("하다").matches("한다")


def test_only_the_place_around_the_first_hit_is_shown():
    text = "x " * 500 + "needle" + " y" * 500

    shown = search.parse("needle").snippet(text)

    assert re.fullmatch(r"…[x ]{60}\*\*needle\*\*[ y]{114}…", shown)
