"""What every session store finds, and which text it takes, on memory, SQLite and PostgreSQL."""

import pytest

from support.conversations import COST, TURN, new, say

pytestmark = pytest.mark.asyncio


async def test_search_finds_messages_with_all_the_words_and_marks_them(store):
    await new(store, "a")
    await store.append_turn("a", TURN, usage=COST)
    await say(store, "a", "the FILE is here")

    hits = {(hit.position, hit.role): hit.snippet for hit in await store.search("File such")}

    assert hits == {
        (2, "tool"): "no **such** **file**",
        (3, "assistant"): "There is no **such** **file**.",
    }
    assert len(await store.search("file")) == 4
    assert len(await store.search("file", limit=1)) == 1
    assert await store.search("file", limit=0) == ()
    assert await store.search("fil") == ()


async def test_search_does_not_look_into_reasoning_or_arguments(store):
    await new(store, "a")
    await store.append_turn("a", TURN, usage=COST)

    assert await store.search("need") == ()
    assert await store.search("path") == ()


async def test_a_long_message_is_shown_around_the_words_found(store):
    await new(store, "a")
    await say(store, "a", "start " * 200 + "needle " + "end " * 200)

    (hit,) = await store.search("needle")

    assert "**needle**" in hit.snippet
    assert hit.snippet.startswith("…")
    assert hit.snippet.endswith("…")
    assert len(hit.snippet) < 200


async def test_words_beside_punctuation_are_found_and_punctuation_in_a_query_is_harmless(store):
    await new(store, "a")
    await say(store, "a", "see https://example.com/docs/setup-guide.html (100% 'quoted' a_b)")

    for words in (
        "example",
        "docs",
        "guide",
        "setup-guide",
        '"setup guide"',
        "100%",
        "quoted",
        "b",
    ):
        assert len(await store.search(words)) == 1, words
    for words in ("guide-setup", "com.example", "'docs_example'"):
        assert await store.search(words) == (), words


async def test_words_of_a_script_without_spaces_are_found_inside_a_run(store):
    await new(store, "a")
    await say(store, "a", "你好世界、今天天气很好 100%", "other")

    (hit,) = await store.search("世界")
    assert hit.snippet == "你好**世界**、今天天气很好 100%"
    assert len(await store.search("世界 天气")) == 1
    assert await store.search("世界 _") == await store.search("世界")
    assert await store.search("世%好") == ()


@pytest.mark.parametrize(
    "words",
    [
        "",
        "   ",
        '"',
        "'",
        "🎉",
        "!!! ??? ()",
        "\0",
        "*",
        "-",
        "\\",
        "%",
        "_",
        "\ud800",
        "\u0301",
    ],
)
async def test_a_query_without_words_finds_nothing(store, words):
    await new(store, "a")
    await say(store, "a", 'hello "world" 🎉 !!! % _ \\ *')

    assert await store.search(words) == ()


@pytest.mark.parametrize(
    "words",
    [
        'hello"',
        "hello AND",
        "NOT hello",
        "hello OR (",
        "NEAR(hello world)",
        "text:hello",
        "hello*",
        "^hello",
        "hello 🎉",
        "hello\0",
        "a'; DROP TABLE sessions; --",
        "hello & | ! <-> :*",
        "\ud83dhello",
        "x" * 100_000,
        "世" * 100_000,
        "世" * 1000,
        "word " * 10_000,
        "²",
    ],
)
async def test_any_text_is_a_valid_query(store, words):
    await new(store, "a")
    await say(store, "a", "hello world")

    found = await store.search(words)

    assert all("hello" in hit.snippet.replace("*", "") for hit in found)
    assert (await store.list())[0][0].id == "a"


async def test_text_that_no_database_takes_is_made_safe(store):
    created = await new(store, "i\ud800d", title="t\0\udfff", system_prompt="\ud83d\ude00")
    await say(store, created.id, "hi \ud83d there \0 end 😀")

    assert created.title == "t\ufffd\ufffd"
    assert created.system_prompt == "😀"
    assert await store.get("i\ud800d") == created.__class__(
        **{
            **{name: getattr(created, name) for name in created.__dataclass_fields__},
            "message_count": 1,
            "preview": "hi \ufffd there \ufffd end 😀",
            "last_active": (await store.list())[0][0].last_active,
        }
    )
    assert [m.text for m in await store.history("i\ud800d")] == ["hi \ufffd there \0 end 😀"]
    assert (await store.search("there"))[0].snippet == "hi \ufffd **there** \ufffd end 😀"


async def test_a_message_of_a_megabyte_is_kept_whole(store):
    await new(store, "a")
    words = " ".join(f"w{number}ü" for number in range(150_000))

    await say(store, "a", words)

    assert (await store.history("a"))[0].text == words
    assert len(await store.search("w7ü")) == 1
