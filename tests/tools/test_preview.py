import pytest

from hermes.messages import ToolResult
from hermes.redaction import redact
from hermes.tools.preview import cut_middle, head_of, preview, tail_of

SECRET = "sk-proj-" + "Q7x9Lm2p" * 6
SECRETS = [
    SECRET,
    f"Authorization: Bearer {'Zq8w' * 10}",
    f"password={'hunter2hunter2'}",
    "-----BEGIN PRIVATE KEY-----\n"
    + "\n".join(["MIIEvQ" + "aB3d" * 14] * 40)
    + "\n-----END PRIVATE KEY-----",
]


def _result(text: str) -> ToolResult:
    return ToolResult(call_id="c1", name="terminal", text=text)


def test_a_short_result_is_its_own_preview() -> None:
    assert preview(_result("short")) == "short"


@pytest.mark.parametrize("limit", [0, 1, 3, 10, 500])
def test_a_preview_is_never_longer_than_its_limit(limit: int) -> None:
    assert len(preview(_result("word " * 1000), limit)) <= limit


def test_a_preview_keeps_both_ends() -> None:
    shown = preview(_result("begin " + "x " * 1000 + "[exit code 2; 0.1 s]"))

    assert shown.startswith("begin ")
    assert shown.endswith("[exit code 2; 0.1 s]")


@pytest.mark.parametrize("before", range(250, 520, 7))
def test_a_preview_shows_no_part_of_a_secret_at_its_cut(before: int) -> None:
    text = "x" * (before - 1) + " " + SECRET + " " + "y" * 2000

    shown = preview(_result(text))

    assert not any(SECRET[at : at + 6] in shown for at in range(3, len(SECRET) - 6))


@pytest.mark.parametrize("secret", SECRETS)
@pytest.mark.parametrize("shift", [20, 33, 44, 52, 61, 75, 800, 1500])
@pytest.mark.parametrize("separator", [" ", "\n"])
def test_no_cut_leaves_a_part_of_a_secret_that_redaction_would_miss(
    secret: str, shift: int, separator: str
) -> None:
    limit = 10_000
    at = limit // 2 - shift
    text = "a" * (at - 1) + separator + secret + separator + "b" * 30_000
    mirrored = "b" * 30_000 + separator + secret + separator + "a" * (at - 1)

    for whole in (text, mirrored):
        cut = redact(cut_middle(whole, limit))
        assert len(cut) <= limit + 100
        kept = [line for line in secret.split("\n") if "-----" not in line]
        body = kept[len(kept) // 2].rpartition(" ")[2].rpartition("=")[2]
        pieces = {body[i : i + 8] for i in range(8, len(body) - 8)} or {body}
        assert not any(piece in cut for piece in pieces)


def test_head_and_tail_fall_on_line_ends_where_one_is_near() -> None:
    text = "\n".join(f"line {number}" for number in range(1000))

    assert head_of(text, 1000).endswith("\n")
    assert tail_of(text, 1000).startswith("line ")
    assert text.startswith(head_of(text, 1000))
    assert text.endswith(tail_of(text, 1000))


def test_the_mark_tells_how_much_was_left_out() -> None:
    cut = cut_middle("x" * 50_000, 1000, "ask for it")

    head, _, rest = cut.partition("\n[... ")
    count, _, rest = rest.partition(" characters left out; ask for it ...]\n")
    assert len(head) + int(count.replace(",", "")) + len(rest) == 50_000
    assert len(cut) <= 1000
