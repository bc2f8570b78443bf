"""Server-sent events: the WHATWG rules, any cut of the bytes, bounds."""

import itertools
import tracemalloc

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hermes.sse import (
    MAX_LINE_BYTES,
    MAX_TEXT_CHARS,
    Decoder,
    Event,
    EventTooLargeError,
    encode,
    encode_comment,
    split_text,
)


def message(data: bytes, **fields: object) -> Event:
    return Event(**{"event": "message", "data": data, **fields})


RULES = {
    "one event": (b"data: a\n\n", [message(b"a")]),
    "no space after the colon": (b"data:a\n\n", [message(b"a")]),
    "only one space is removed": (b"data:  a\n\n", [message(b" a")]),
    "a colon in the value": (b"data: a: b\n\n", [message(b"a: b")]),
    "carriage returns": (b"data: a\r\rdata: b\r\r", [message(b"a"), message(b"b")]),
    "CR LF": (b"data: a\r\ndata: b\r\n\r\n", [message(b"a\nb")]),
    "mixed line ends": (b"data: a\r\ndata: b\rdata: c\n\r\n", [message(b"a\nb\nc")]),
    "a byte order mark": (b"\xef\xbb\xbfdata: a\n\n", [message(b"a")]),
    "a second byte order mark is no mark": (
        b"\xef\xbb\xbfdata: a\n\n\xef\xbb\xbfdata: b\n\ndata: c\n\n",
        [message(b"a"), message(b"c")],
    ),
    "several lines": (b"data: a\ndata\ndata: b\n\n", [message(b"a\n\nb")]),
    "empty data is an event": (b"data\n\ndata:\n\n", [message(b""), message(b"")]),
    "no data is no event": (b"event: x\nid: 1\n\ndata: a\n\n", [message(b"a", id="1")]),
    "comments": (b": ping\n\n:\n\ndata: a\n\n", [message(b"a")]),
    "a comment inside": (
        b"event: error\n:HTTP_STATUS/429\ndata: a\n\ndata: b\n\n",
        [Event("error", b"a", comment="HTTP_STATUS/429"), message(b"b")],
    ),
    "a type lasts one event": (
        b"event: x\ndata: a\n\ndata: b\n\n",
        [Event("x", b"a"), message(b"b")],
    ),
    "an empty type is message": (b"event:\ndata: a\n\n", [message(b"a")]),
    "an id lasts": (
        b"id: 7\ndata: a\n\ndata: b\n\nid\ndata: c\n\n",
        [message(b"a", id="7"), message(b"b", id="7"), message(b"c")],
    ),
    "an id with NUL is ignored": (b"id: 1\0\ndata: a\n\n", [message(b"a")]),
    "retry": (b"retry: 1500\ndata: a\n\ndata: b\n\n", [message(b"a", retry=1500), message(b"b")]),
    "retry without data": (b"retry: 10\n\ndata: a\n\n", [message(b"a", retry=10)]),
    "retry takes digits only": (
        b"retry: 1.5\nretry: -1\nretry: \xd9\xa3\nretry:\ndata: a\n\n",
        [message(b"a")],
    ),
    "an absurd retry is ignored": (b"retry: " + b"9" * 5000 + b"\ndata: a\n\n", [message(b"a")]),
    "unknown fields": (b"foo: 1\nDATA: 2\ndata : 3\ndata: a\n\n", [message(b"a")]),
    "U+2028, U+0085 and form feed are text": (
        "data: a\u2028b\u0085c\x0cd\n\n".encode(),
        [message("a\u2028b\u0085c\x0cd".encode())],
    ),
    "blank lines between": (
        b"\n\n\ndata: a\n\n\n\n\ndata: b\n\n\n",
        [message(b"a"), message(b"b")],
    ),
    "an unterminated event waits": (b"data: a\n\ndata: b\n", [message(b"a")]),
}


@pytest.mark.parametrize(("stream", "expected"), RULES.values(), ids=RULES)
def test_a_stream_gives_the_events_of_the_rules_however_it_is_cut(stream, expected):
    for size in (len(stream), 1, 2, 3, 5):
        decoder = Decoder()
        events = []
        for start in range(0, len(stream), size):
            events += decoder.feed(stream[start : start + size])
        assert events == expected, f"cut every {size} bytes"


def test_an_unterminated_last_event_is_offered_separately():
    decoder = Decoder()
    assert decoder.feed(b"id: 3\ndata: a\n\nevent: x\ndata: b") == [message(b"a", id="3")]
    assert decoder.pending() == Event("x", b"b", "3")
    assert decoder.pending() == Event("x", b"b", "3")


@pytest.mark.parametrize("rest", [b"", b": comment", b"event: x\n", b"\xef\xbb"])
def test_nothing_is_pending_without_data(rest):
    decoder = Decoder()
    assert decoder.feed(rest) == []
    assert decoder.pending() is None


def test_a_body_that_is_no_event_stream_is_left_over_whole():
    decoder = Decoder()
    assert decoder.feed(b'{"error":') + decoder.feed(b' "x"}\n') == []
    assert decoder.pending() is None
    assert decoder.leftover == b'{"error": "x"}\n'


def test_text_of_bytes_that_are_not_utf8_has_replacement_characters():
    [event] = Decoder().feed(b"data: a\xffb\n\n")
    assert event.text == "a\ufffdb"


_lines = st.sampled_from(
    [
        b"data: a",
        b"data:" + "é\U0001f600\u2028".encode(),
        b"data: " + b"x" * 40,
        b"data",
        b"event: e",
        b"id: 1",
        b"id",
        b"retry: 5",
        b": c",
        b"",
        b"",
        b"junk",
    ]
)
_ends = st.sampled_from([b"\n", b"\r", b"\r\n"])
_streams = st.builds(
    lambda bom, lines: bom + b"".join(line + end for line, end in lines),
    st.sampled_from([b"", b"\xef\xbb\xbf"]),
    st.lists(st.tuples(_lines, _ends), max_size=30),
)


def _decode(chunks, limit=2**20):
    """Events, whether the limit struck, and the pending event."""
    decoder, events = Decoder(limit), []
    try:
        for chunk in chunks:
            events += decoder.feed(chunk)
        return events, False, decoder.pending()
    except EventTooLargeError:
        return events, True, None


@given(_streams, st.lists(st.integers(min_value=0, max_value=400), max_size=12), st.data())
@settings(deadline=None, max_examples=150)
def test_any_cut_gives_the_same_events(stream, cuts, data):
    limit = data.draw(st.sampled_from([2**20, 30]))
    whole = _decode([stream], limit)
    points = sorted({0, len(stream), *(cut for cut in cuts if cut < len(stream))})
    pieces = [stream[a:b] for a, b in itertools.pairwise(points)]
    assert _decode(pieces, limit) == whole
    assert _decode([stream[i : i + 1] for i in range(len(stream))], limit) == whole


@given(st.binary(max_size=300))
@settings(deadline=None)
def test_no_bytes_break_the_decoder(junk):
    whole = _decode([junk])
    assert _decode([junk[i : i + 1] for i in range(len(junk))]) == whole


@given(
    st.text(st.characters(exclude_categories=["Cs"]), max_size=200),
    st.text(st.characters(exclude_characters="\r\n\0", exclude_categories=["Cs"]), max_size=20),
    st.text(st.characters(exclude_characters="\r\n\0", exclude_categories=["Cs"]), max_size=20),
)
@settings(deadline=None)
def test_what_is_encoded_is_decoded_again(data, event, last_id):
    [decoded] = Decoder().feed(encode(data, event=event, id=last_id))
    wanted = data.replace("\r\n", "\n").replace("\r", "\n")
    assert decoded == Event(event or "message", wanted.encode(), last_id)


def test_bytes_that_look_like_line_ends_in_text_stay_on_one_line():
    assert encode("a\u2028b\x85c") == "data: a\u2028b\x85c\n\n".encode()
    assert encode(b"a\r\nb\rc\nd") == b"data: a\ndata: b\ndata: c\ndata: d\n\n"


def test_the_encoder_never_makes_a_line_beyond_its_limit():
    fits = b"x" * (MAX_LINE_BYTES - len("data: "))
    assert max(map(len, encode(fits).split(b"\n"))) == MAX_LINE_BYTES
    with pytest.raises(EventTooLargeError) as refused:
        encode(fits + b"x")
    assert refused.value.code == "event_too_large"
    assert len(encode(b"\n".join([fits] * 3))) > 3 * MAX_LINE_BYTES
    assert encode(fits + b"x", max_line_bytes=2**20).startswith(b"data: xxx")


@pytest.mark.parametrize("field", [{"event": "a\nb"}, {"id": "a\rb"}, {"id": "a\0"}])
def test_a_field_that_would_break_the_frame_is_refused(field):
    with pytest.raises(ValueError):
        encode(b"x", **field)


def test_a_comment_is_one_line_and_no_event():
    assert encode_comment("keep\nalive") == b": keep alive\n\n"
    assert Decoder().feed(encode_comment()) == []


def test_split_text_keeps_every_character_and_fits_a_line():
    text = "\x00\U0001f600" * MAX_TEXT_CHARS
    pieces = split_text(text)
    assert "".join(pieces) == text
    assert max(map(len, pieces)) == MAX_TEXT_CHARS
    assert split_text("") == [""]


def test_an_event_of_600_kilobytes_is_taken_and_one_beyond_the_limit_is_an_error():
    big = b"data: " + b"x" * 600_000 + b"\n\n"
    assert [len(event.data) for event in Decoder().feed(big)] == [600_000]
    decoder = Decoder(max_event_bytes=1000)
    assert decoder.feed(b"data: a\n\n" + big) == [message(b"a")]
    with pytest.raises(EventTooLargeError):
        decoder.feed(b"")
    with pytest.raises(EventTooLargeError):
        decoder.pending()


def test_memory_stays_flat_on_a_line_of_100_megabytes():
    chunk = b"x" * 65536
    decoder = Decoder(max_event_bytes=2**20)
    decoder.feed(b"data: ")
    tracemalloc.start()
    try:
        refused = sum(_is_refused(decoder, chunk) for _ in range(1600))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert refused == 1600 - 15
    assert peak < 4 * 2**20


def _is_refused(decoder, chunk):
    try:
        decoder.feed(chunk)
    except EventTooLargeError:
        return True
    return False


def test_a_long_event_in_small_chunks_takes_linear_work():
    decoder = Decoder()
    decoder.feed(b"data: ")
    for _ in range(50_000):
        assert decoder.feed(b"abcdefgh") == []
    [event] = decoder.feed(b"\n\n")
    assert len(event.data) == 400_000
