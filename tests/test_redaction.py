"""Redaction: every shape of secret, the structure kept, linear time."""

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hermes import redaction
from hermes.redaction import MASK, excerpt, redact, register_secret

JWT = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.abcDEF_123-456"
PEM = "-----BEGIN RSA PRIVATE KEY-----\nMIIEow+IBAAK/CAQ==\nabc\n-----END RSA PRIVATE KEY-----"


@pytest.fixture(autouse=True)
def _forget_literals(monkeypatch):
    monkeypatch.setattr(redaction, "_literals", ())


@pytest.mark.parametrize(
    "secret",
    [
        "sk-abcdefghijklmnop1234",
        "sk-proj-abc_DEF-0123456789",
        "sk-ant-api03-AbCdEf0123456789-_x",
        "sk-or-v1-0123456789abcdef0123",
        "sk_live_0123456789abcdef",
        "ghp_0123456789abcdefghijABCDEFGHIJ012345",
        "gho_0123456789abcdefghij",
        "github_pat_11ABCDEFG0123456789_abcdef",
        "glpat-0123456789abcdefghij",
        "xoxb-123456789012-abcdefGHIJ",
        "AKIAIOSFODNN7EXAMPLE",
        "ASIAIOSFODNN7EXAMPLE",
        "AIzaSyA-0123456789_abcdefghijklmnopqrstu",
        "gsk_0123456789abcdefghij",
        "xai-0123456789abcdefghij",
        "hf_abcdefghijklmnopqrst",
        "SG.0123456789abcdefgh.0123456789abcdefgh",
        JWT,
    ],
)
@pytest.mark.parametrize("frame", ["{}", "see {} there", '"{}"', "({}).", "http://x/?a={}&b=1"])
def test_a_token_of_a_known_shape_is_masked_wherever_it_stands(secret, frame):
    assert redact(frame.format(secret)) == frame.format(MASK)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("OPENAI_API_KEY=abc", "OPENAI_API_KEY=***"),
        ("X=1\nexport DB_PASSWORD=a&b;c,d)e\nY=2", "X=1\nexport DB_PASSWORD=***\nY=2"),
        ("export FOO_TOKEN='a b c' # x", "export FOO_TOKEN='***' # x"),
        ('MY_SECRET="a\\"b"\nNEXT=1', 'MY_SECRET="***"\nNEXT=1'),
        ("DB_PASSWORD: hunter2\nuser: me", "DB_PASSWORD: ***\nuser: me"),
        ('{"api_key": "abc", "model": "m"}', '{"api_key": "***", "model": "m"}'),
        ("{'apiKey':'abc'}", "{'apiKey':'***'}"),
        ('"{\\"api_key\\": \\"abc\\", \\"n\\": 1}"', '"{\\"api_key\\": \\"***\\", \\"n\\": 1}"'),
        ("x-api-key: abc", "x-api-key: ***"),
        ("aws_secret_access_key = abc/def+", "aws_secret_access_key = ***"),
        ("AWS_ACCESS_KEY_ID=abcdef", "AWS_ACCESS_KEY_ID=***"),
        ("password: pa55, user: me", "password: ***, user: me"),
        ('"token": "abcdef"', '"token": "***"'),
        ("access_token=abc&x=1", "access_token=***&x=1"),
        ("client_secret => 'abc'", "client_secret => '***'"),
        ("Authorization: Bearer a.b", "Authorization: Bearer ***"),
        ("'authorization': 'Basic dXNlcjpw'", "'authorization': 'Basic ***'"),
        ("curl -H 'Bearer abc123def'", "curl -H 'Bearer ***'"),
        ("postgres://me:pa:s@s@db:5432/x", "postgres://me:***@db:5432/x"),
        ("https://abcdefghijklmnopqrst@host/x", "https://***@host/x"),
        ("https://h/v1beta/models?key=abc&alt=sse", "https://h/v1beta/models?key=***&alt=sse"),
        ("https://s3/x?X-Amz-Signature=ab12&y=1", "https://s3/x?X-Amz-Signature=***&y=1"),
        (f"a\n{PEM}\nb", "a\n-----BEGIN RSA PRIVATE KEY-----***\nb"),
        (PEM[:60], "-----BEGIN RSA PRIVATE KEY-----***"),
        (PEM.replace("\n", "\\n"), "-----BEGIN RSA PRIVATE KEY-----***"),
        ("Incorrect API key provided: sk-abcd*****wxyz.", "Incorrect API key provided: ***."),
    ],
)
def test_a_named_secret_is_masked_and_its_surroundings_stay(text, expected):
    assert redact(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "The quick brown fox: it jumps = fun",
        '{"max_tokens": 4096, "total_tokens": 12, "prompt_tokens": 3}',
        "monkey: banana, primary_key=True, sort key: name, key=value",
        "api_key=None, token: null, password = ${DB_PASSWORD}",
        "api_key=os.environ['X'], secret=get_secret('a')",
        "Missing bearer or basic authentication in header",
        "tokens: see the docs",
        "git@github.com:a/b.git and ssh://git@github.com/a/b",
        "task-force disk-usage risk-assessment-of-everything",
        "https://example.org/path?page=2&sort=name#x",
        "sk-short",
        "eyJ is how a token begins",
        "",
    ],
)
def test_plain_text_stays(text):
    assert redact(text) == text


def test_a_registered_secret_is_masked_also_escaped():
    register_secret('p@ss"word/1')
    register_secret('p@ss"word/1-longer')
    register_secret("abc")
    text = 'a p@ss"word/1 b p%40ss%22word%2F1 c "p@ss\\"word/1" d p@ss"word/1-longer e abc'
    assert redact(text) == 'a *** b *** c "***" d *** e abc'


def test_an_excerpt_is_redacted_before_it_is_cut():
    secret = "sk-ant-" + "A1b2" * 20
    text = "x" * 490 + " " + secret + " tail" * 50
    for limit in range(480, 520):
        cut = excerpt(text, limit)
        assert len(cut) <= limit
        assert "sk-" not in cut
        assert "A1b2" not in cut
    assert excerpt(" short ", 10) == "short"


@given(st.text(max_size=40), st.text(max_size=40))
@settings(deadline=None)
def test_a_registered_secret_never_survives(before, after):
    register_secret("s3cr3t-literal")
    assert "s3cr3t-literal" not in redact(before + "s3cr3t-literal" + after)


@given(st.text(max_size=200))
@settings(deadline=None)
def test_redacting_twice_changes_nothing_more(text):
    once = redact(text)
    assert redact(once) == once


HOSTILE = [
    "a",
    "=",
    ":",
    "'",
    '"',
    "\\",
    " ",
    "-",
    "_",
    "://",
    "://a:",
    "@",
    "key=",
    "_KEY=",
    "eyJ",
]
HOSTILE += ['password="', "secret='\\", "token ", "bearer ", "-----BEGIN PRIVATE KEY-----", "sk-"]
HOSTILE += ["eyJaaaaaaaaaa.", "authorization:", "?key=", "SG.", "password: \n", '{"api_key": "x"}']


@pytest.mark.parametrize("unit", HOSTILE)
def test_long_hostile_text_takes_linear_time(unit):
    text = "://" + unit * (400_000 // len(unit))
    start = time.process_time()
    redact(text)
    assert time.process_time() - start < 5
