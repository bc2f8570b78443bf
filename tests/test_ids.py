"""Which foreign ids may name a session."""

import pytest

from hermes.ids import is_safe_id


@pytest.mark.parametrize("text", ["s\udcff", "\ud800"])
def test_an_id_of_broken_utf8_is_not_safe(text: str) -> None:
    assert not is_safe_id(text)


def test_an_id_in_any_script_is_safe() -> None:
    assert is_safe_id("beszélgetés-会話-😀")
