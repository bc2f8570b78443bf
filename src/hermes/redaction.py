"""Secrets out of text: keys of known shapes, values under telling names, registered literals.

It never cuts on its own before it masks: a cut through a secret would leave a piece that no
rule knows, so ``excerpt`` masks first. It does not decide where redaction is needed.
"""

import json
import re
from urllib.parse import quote

MASK = "***"
"""What stands in place of a secret; no part of the secret is kept."""

MIN_SECRET_CHARS = 6
"""Registered literals shorter than this are ignored: masking them would garble plain words."""

# Every pattern runs in linear time: it starts at a literal, and what follows is one run of a
# character class, or a tempered run that cannot be read in two ways.

_PRIVATE_KEY = re.compile(
    r"-----BEGIN ([A-Z0-9 ]{0,40})PRIVATE KEY( BLOCK)?-----"
    r"(?:(?:(?!-----BEGIN ).)*?-----END [A-Z0-9 ]{0,40}PRIVATE KEY( BLOCK)?-----"
    r"|(?:[A-Za-z0-9+/=\s]|\\[nr])*-{0,5})",
    re.DOTALL,
)

_TOKEN = re.compile(
    r"(?<![A-Za-z0-9])(?:"
    r"sk-[A-Za-z0-9_*-]{8,}"
    r"|(?:sk|rk|pk)_(?:live|test)_[A-Za-z0-9]{8,}"
    r"|gh[pousr]_[A-Za-z0-9]{16,}"
    r"|github_pat_[A-Za-z0-9_]{16,}"
    r"|glpat-[A-Za-z0-9_-]{16,}"
    r"|xox[a-z]-[A-Za-z0-9-]{8,}"
    r"|xapp-[A-Za-z0-9-]{8,}"
    r"|A[KS]IA[0-9A-Z]{12,}"
    r"|AIza[A-Za-z0-9_-]{20,}"
    r"|ya29\.[A-Za-z0-9_-]{16,}"
    r"|(?:gsk|hf|npm|r8|whsec|dop_v1|shpat)_[A-Za-z0-9]{16,}"
    r"|(?:xai|pplx|nvapi|tvly|fw|pypi)-[A-Za-z0-9_-]{16,}"
    r"|SG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}"
    r"|AGE-SECRET-KEY-[A-Z0-9]{16,}"
    r"|(?<![\w-])eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]*)?"
    r")"
)
_TOKEN_HINTS = (
    *(
        "sk-",
        "_live_",
        "_test_",
        "gh",
        "github_pat_",
        "glpat-",
        "xox",
        "xapp-",
        "AKIA",
        "ASIA",
        "AIza",
        "ya29.",
    ),
    *("gsk_", "hf_", "npm_", "r8_", "whsec_", "dop_v1_", "shpat_", "xai-", "pplx-", "nvapi-"),
    *("tvly-", "fw-", "pypi-", "SG.", "AGE-", "eyJ"),
)

_BEARER = re.compile(
    r"(?<!\w)([bB](?i:earer)[ \t]{1,4})"
    r"((?=[A-Za-z._~+/-]*[0-9])[\w.~+/=*-]{6,}|[\w.~+/=*-]{20,})"
)

_AUTHORIZATION = re.compile(
    r"([aA](?i:uthorization)(?:\\{0,4}[\"'])?[ \t]{0,4}[:=][ \t]{0,4}(?:\\{0,4}[\"'])?"
    r"(?:(?i:basic|bearer|token|digest|apikey)[ \t]{1,4})?)([^\s\"'\\,;]+)"
)

_KEY_WORDS = ("api", "secret", "access", "private", "auth", "account", "master", "signing")
_TOKEN_WORDS = ("auth", "access", "refresh", "id", "bearer", "session", "bot", "api", "secret")


def _after(words: tuple[str, ...], tail: str) -> str:
    """A look-behind for each of ``words``, alone and joined, before the ``tail`` just read."""
    return "|".join(rf"(?<={word}{tail})|(?<={word}[_-]{tail})" for word in words)


# A name is matched at its telling end; what stands before it stays as it is. A set of first
# letters comes before the words because the engine skips to it quickly.
_NAMED = re.compile(
    r"([kKtTsSpPcC](?:"
    rf"(?<=[kK])(?i:ey)(?:(?<=_KEY)|(?i:{_after(_KEY_WORDS, 'key')}))(?i:[_-]?id)?"
    r"|(?<=[tT])(?i:oken)(?:(?<=_TOKEN)|(?i:(?<![A-Za-z0-9_]token)"
    rf"|{_after(_TOKEN_WORDS, 'token')}))"
    r"|(?<=[sS])(?i:ecret)"
    r"|(?<=[pP])(?i:assword|asswd|assphrase|(?<=_P)at)"
    r"|(?<=[cC])(?i:redentials?)"
    r"))"
    r"((?:\\{0,4}[\"'])?[ \t]{0,4}(?::|=>?)[ \t]{0,4})"
    r"(?:(\\{0,4}[\"'])((?:(?!\3)(?:\\.|[^\n]))*)|([^\s\"'<>,;&)\]}\\]+))"
)
_ENV_LINE = re.compile(
    r"(?m)^([ \t]{0,8}(?:export[ \t]{1,4})?[A-Z0-9_]{0,60}"
    r"(?:KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIALS?|_PAT|PASSPHRASE)=)([^\s\"'$]\S*)"
)

_QUERY = re.compile(
    r"(?i)([?&](?:key|code|sig|signature|auth|apikey|token|password|secret|x-amz-[a-z-]{1,20}"
    r"|x-goog-[a-z-]{1,20})=)([^\s&#\"'<>\\]+)"
)

_USERINFO = re.compile(r"(?<=://)([^\s/?#@:\"'<>]*)(:[^\s/?#\"'<>]*)?@")

_NO_SECRET = re.compile(
    r"(?i)(?:null|none|nil|true|false|undefined|str|string|\d{1,5}|\*+|\.\.\.|\[?redacted\]?"
    r"|\$.*|<.*|\{.*|%[sd({].*|(?:self|os|config|settings|process|request|args|env)[.\[].*"
    r"|\w{1,80}\(.*)",
    re.DOTALL,
)

_literals: tuple[str, ...] = ()


def register_secret(value: str) -> None:
    """Mask ``value`` everywhere from now on, also as it stands in a URL or in JSON."""
    global _literals  # noqa: PLW0603 - the process has one set of secrets, and every log line needs it
    value = value.strip()
    if len(value) < MIN_SECRET_CHARS:
        return
    forms = {value, quote(value, safe=""), json.dumps(value)[1:-1], *_literals}
    _literals = tuple(sorted(forms, key=len, reverse=True))


def redact(text: str) -> str:
    """Return ``text`` with each secret masked; names, quotes and line ends stay in place."""
    for literal in _literals:
        if literal in text:
            text = text.replace(literal, MASK)
    if "PRIVATE KEY" in text:
        text = _PRIVATE_KEY.sub(rf"-----BEGIN \1PRIVATE KEY\2-----{MASK}", text)
    if any(hint in text for hint in _TOKEN_HINTS):
        text = _TOKEN.sub(MASK, text)
    if ":" in text or "=" in text:
        text = _AUTHORIZATION.sub(rf"\1{MASK}", text)
        text = _ENV_LINE.sub(rf"\1{MASK}", text)
        text = _NAMED.sub(_mask_named, text)
        text = _QUERY.sub(rf"\1{MASK}", text)
    if "://" in text:
        text = _USERINFO.sub(_mask_userinfo, text)
    return _BEARER.sub(rf"\1{MASK}", text)


def excerpt(text: str, max_chars: int) -> str:
    """Return ``text`` redacted, then cut to at most ``max_chars`` characters."""
    text = redact(text).strip()
    return text if len(text) <= max_chars else text[: max_chars - 1].rstrip() + "…"


def _mask_named(match: re.Match[str]) -> str:
    name, between, quotes, quoted, bare = match.groups()
    value = bare if quotes is None else quoted
    if not value or _NO_SECRET.fullmatch(value):
        return match[0]
    return f"{name}{between}{quotes or ''}{MASK}"


def _mask_userinfo(match: re.Match[str]) -> str:
    user, password = match.groups()
    if password is not None:
        return f"{user}:{MASK}@"
    return f"{MASK}@" if len(user) >= 16 else match[0]
