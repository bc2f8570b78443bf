"""What a person types to find a message, as terms, as a full-text query and as a snippet.

Which rows match is for the database to say; only the in-memory store matches here.
"""

import re
import unicodedata
from dataclasses import dataclass
from functools import lru_cache

from hermes.sessions.codec import clean

MAX_TERMS = 32
MAX_TERM_CHARACTERS = 1000
"""A longer term is found nowhere; SQLite takes no pattern of more than 50,000 bytes."""

_BEFORE, _AFTER = 60, 120
_TOKEN = re.compile(r"[^\W_]+")
_PUNCTUATION = str.maketrans(dict.fromkeys("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~", " "))

# Scripts written without spaces, where a word is found inside a run of letters: Thai, Lao, Khmer,
# kana, Han.
_UNSPACED = re.compile(
    "[\u0e00-\u0eff\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """The terms to find, all of them, as typed; without terms nothing is found.

    ``anywhere``: the terms may stand inside a word, as a script without spaces needs it.
    """

    terms: tuple[str, ...]
    anywhere: bool

    @property
    def fts5(self) -> str:
        """The terms as an FTS5 query: each a phrase, so no character has a meaning of its own."""
        return " ".join('"' + term.replace('"', '""') + '"' for term in self.terms)

    @property
    def tsquery(self) -> str:
        """The terms for PostgreSQL's ``to_tsquery``: each quoted, which makes it a phrase.

        ASCII punctuation is spaces, as in the index, so a term cannot end its quotes.
        """
        return " & ".join(f"'{term.translate(_PUNCTUATION)}'" for term in self.terms)

    def matches(self, text: str) -> bool:
        """Whether ``text`` holds all terms, without regard to case and accents."""
        folded = _fold(text)
        return all(_pattern([term], self.anywhere).search(folded) for term in self.terms)

    def snippet(self, text: str) -> str:
        """Return the place around the first term found, every term in it between ``**``."""
        pattern = _pattern(self.terms, self.anywhere)
        first = pattern.search(text) or pattern.search(_fold(text))
        found = first.start() if first else 0
        start, end = max(0, found - _BEFORE), min(len(text), found + _AFTER)
        window = text[start:end]
        pieces: list[str] = ["…"] if start else []
        at = 0
        for match in pattern.finditer(_fold(window)):
            pieces += window[at : match.start()], "**", window[match.start() : match.end()], "**"
            at = match.end()
        pieces.append(window[at:])
        if end < len(text):
            pieces.append("…")
        return "".join(pieces)


def parse(words: str) -> Query:
    """Return the query that any text is; words without a letter or digit are left out."""
    given = (word for word in clean(words).split() if any(map(str.isalnum, word)))
    terms = tuple(dict.fromkeys(given))[:MAX_TERMS]
    if any(len(term) > MAX_TERM_CHARACTERS for term in terms):
        terms = ()
    return Query(terms=terms, anywhere=any(_UNSPACED.search(term) for term in terms))


def _pattern(terms: tuple[str, ...] | list[str], anywhere: bool) -> re.Pattern[str]:
    tokens = [[re.escape(token) for token in _TOKEN.findall(_fold(term))] for term in terms]
    phrases = [r"[\W_]+".join(phrase) for phrase in tokens if phrase]
    whole = "|".join(sorted(phrases, key=len, reverse=True)) or r"(?!)"
    edges = ("", "") if anywhere else (r"(?<![^\W_])", r"(?![^\W_])")
    return re.compile(f"{edges[0]}(?:{whole}){edges[1]}", re.IGNORECASE)


def _fold(text: str) -> str:
    """Return ``text`` without accents, character for character, so that places stay the same."""
    if text.isascii():
        return text
    return "".join(character if character.isascii() else _base(character) for character in text)


@lru_cache(maxsize=4096)
def _base(character: str) -> str:
    parts = unicodedata.normalize("NFD", character)
    accented = len(parts) > 1 and unicodedata.combining(parts[1])
    return parts[0] if accented else character
