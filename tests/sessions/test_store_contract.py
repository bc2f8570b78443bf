"""What every session store promises, run on memory, SQLite and PostgreSQL."""

import asyncio

import pytest

from hermes.errors import SessionError
from hermes.messages import Usage, text_message
from hermes.sessions import Session
from support.conversations import COST, TURN, new, say

pytestmark = pytest.mark.asyncio


async def test_a_new_session_gets_an_id_and_times_and_is_found_again(store):
    created = await new(store, title="First", model="m", system_prompt="Be brief.", user_id="u")

    assert created.id.startswith("ses_")
    assert created.started_at == created.last_active > 1_700_000_000
    assert await store.get(created.id) == created
    assert (created.title, created.message_count, created.usage) == ("First", 0, Usage())


async def test_a_taken_id_is_refused_and_the_first_session_stays(store):
    first = await new(store, "mine", title="First")

    with pytest.raises(SessionError) as refused:
        await new(store, "mine", title="Second")

    assert refused.value.code == "session_exists"
    assert await store.get("mine") == first


async def test_a_new_session_cannot_claim_messages_it_does_not_have(store):
    created = await new(store, message_count=9, tool_call_count=9, usage=COST, preview="x")

    assert (created.message_count, created.tool_call_count) == (0, 0)
    assert (created.usage, created.preview) == (Usage(), "")


async def test_a_turn_comes_back_as_it_was_said(store):
    session = await new(store)

    count = await store.append_turn(session.id, TURN, usage=COST, model="m2")

    assert count == 4
    assert await store.history(session.id) == TURN


async def test_the_head_grows_with_each_turn(store):
    session = await new(store, model="m1")
    await store.append_turn(session.id, TURN, usage=COST, model="m2")
    await store.append_turn(session.id, TURN[:1], usage=COST)

    head = await store.get(session.id)
    assert head is not None
    assert (head.message_count, head.tool_call_count, head.model) == (5, 1, "m2")
    assert head.usage == COST + COST
    assert head.preview == "Read the file, please."
    assert head.last_active > session.last_active
    assert head.started_at == session.started_at


async def test_a_turn_without_messages_still_counts_what_it_cost(store):
    session = await new(store)

    assert await store.append_turn(session.id, (), usage=COST, model="m") == 0

    head = await store.get(session.id)
    assert head is not None
    assert (head.usage, head.message_count) == (COST, 0)


async def test_the_preview_is_the_start_of_the_users_first_words_on_one_line(store):
    session = await new(store)
    await say(store, session.id, "one\n\ttwo  " + "x" * 500, "later")

    head = await store.get(session.id)
    assert head is not None
    assert head.preview == "one two " + "x" * 71 + "…"


async def test_usage_is_summed_by_model_and_from_a_time_on(store):
    session = await new(store)
    await store.append_turn(session.id, TURN, usage=COST, model="a")
    middle = await store.get(session.id)
    assert middle is not None
    await store.append_turn(session.id, TURN, usage=COST, model="a")
    await store.append_turn(session.id, TURN, usage=Usage(input=1), model="b")

    assert await store.usage_by_model() == {"a": COST + COST, "b": Usage(input=1)}
    later = await store.usage_by_model(since=middle.last_active + 1e-6)
    assert later == {"a": COST, "b": Usage(input=1)}
    assert await store.usage_by_model(since=middle.last_active + 3600) == {}


@pytest.mark.parametrize(
    "operation",
    [
        lambda store: store.history("nobody"),
        lambda store: store.page("nobody", limit=5),
        lambda store: store.append_turn("nobody", TURN, usage=Usage()),
        lambda store: store.update("nobody", title="x"),
        lambda store: store.fork("nobody"),
    ],
)
async def test_an_unknown_session_is_said_to_be_unknown(store, operation):
    with pytest.raises(SessionError) as refused:
        await operation(store)

    assert refused.value.code == "session_not_found"
    assert await store.get("nobody") is None
    assert await store.delete("nobody") is False


async def test_a_page_is_a_part_of_the_history_with_the_total(store):
    session = await new(store)
    await say(store, session.id, *"abcdefghij")

    async def texts(**where: int | bool) -> tuple[str, int]:
        rows, total = await store.page(session.id, **where)
        assert all(row.session_id == session.id for row in rows)
        return "".join(row.message.text for row in rows), total

    assert await texts(limit=3) == ("abc", 10)
    assert await texts(limit=3, offset=8) == ("ij", 10)
    assert await texts(limit=3, newest_first=True) == ("jih", 10)
    assert await texts(limit=3, offset=8, newest_first=True) == ("ba", 10)
    assert await texts(limit=0) == ("", 10)
    assert await texts(limit=-1) == ("", 10)
    assert await texts(limit=2, offset=-5) == ("ab", 10)
    assert await texts(limit=2, offset=99) == ("", 10)
    assert await texts(limit=10**30, offset=9) == ("j", 10)
    assert await texts(limit=1, offset=10**30) == ("", 10)


async def test_positions_count_from_zero_over_all_turns(store):
    session = await new(store)
    await say(store, session.id, "a", "b")
    await say(store, session.id, "c")

    rows, _total = await store.page(session.id, limit=10)

    assert [row.position for row in rows] == [0, 1, 2]
    assert rows[0].created_at == rows[1].created_at < rows[2].created_at


async def test_sessions_are_listed_by_last_activity_and_say_if_more_follow(store):
    for name in "abc":
        await new(store, name)
    await say(store, "a", "hello")

    async def ids(**where: int | bool | str) -> tuple[str, bool]:
        found, more = await store.list(**where)
        return "".join(session.id for session in found), more

    assert await ids() == ("acb", False)
    assert await ids(limit=2) == ("ac", True)
    assert await ids(limit=2, offset=1) == ("cb", False)
    assert await ids(limit=3) == ("acb", False)
    assert await ids(limit=0) == ("", True)
    assert await ids(limit=5, offset=-3) == ("acb", False)
    assert await ids(limit=5, offset=50) == ("", False)
    assert await ids(limit=10**30) == ("acb", False)


async def test_a_list_can_be_of_one_source_or_without_children(store):
    await store.create(Session(id="api", source="api_server"))
    await new(store, "top")
    await new(store, "child", parent_id="top")

    assert [s.id for s in (await store.list(source="api_server"))[0]] == ["api"]
    assert [s.id for s in (await store.list(include_children=False))[0]] == ["top", "api"]


async def test_a_title_changes_alone_and_need_not_be_unique(store):
    await new(store, "a", title="Same")
    b = await new(store, "b")

    changed = await store.update("b", title="Same")

    assert changed == await store.get("b")
    assert (changed.title, changed.ended_at, changed.last_active) == ("Same", None, b.last_active)
    assert (await store.update("b", title="")).title == ""


async def test_an_end_reason_ends_a_session_and_the_next_turn_reopens_it(store):
    await new(store, "a", title="Kept")

    ended = await store.update("a", end_reason="branched")
    assert (ended.end_reason, ended.title) == ("branched", "Kept")
    assert ended.ended_at is not None
    assert ended.ended_at > ended.started_at

    await say(store, "a", "still here")
    head = await store.get("a")
    assert head is not None
    assert (head.ended_at, head.end_reason) == (None, "")


async def test_a_fork_has_the_same_past_and_its_own_future(store):
    await new(store, "a", title="Talk", model="m", system_prompt="Be brief.")
    await store.append_turn("a", TURN, usage=COST)
    await store.update("a", end_reason="branched")

    child = await store.fork("a", new_id="b", title="Other talk")
    await say(store, "b", "only here")

    assert (child.id, child.parent_id, child.title) == ("b", "a", "Other talk")
    assert (child.model, child.system_prompt, child.source) == ("m", "Be brief.", "cli")
    assert (child.message_count, child.tool_call_count) == (4, 1)
    assert (child.usage, child.ended_at, child.end_reason) == (Usage(), None, "")
    assert await store.history("a") == TURN
    assert await store.history("b") == (*TURN, text_message("user", "only here"))
    assert [s.id for s in (await store.list())[0]] == ["b", "a"]


async def test_a_fork_without_a_name_gets_an_id_and_the_title_and_a_taken_id_is_refused(store):
    await new(store, "a", title="Talk")

    child = await store.fork("a")
    assert (child.id[:4], child.title) == ("ses_", "Talk")

    with pytest.raises(SessionError) as refused:
        await store.fork("a", new_id="a")
    assert refused.value.code == "session_exists"
    assert len((await store.list())[0]) == 2


async def test_a_deleted_session_is_gone_from_list_history_search_and_sums(store):
    await new(store, "a")
    await new(store, "b")
    await store.append_turn("a", TURN, usage=COST, model="m")
    await say(store, "b", "another file")
    assert len(await store.search("file")) == 4

    assert await store.delete("a") is True

    assert await store.delete("a") is False
    assert await store.get("a") is None
    assert [s.id for s in (await store.list())[0]] == ["b"]
    assert [hit.session_id for hit in await store.search("file")] == ["b"]
    assert await store.usage_by_model() == {"": Usage()}
    await new(store, "a")
    assert await store.history("a") == ()


async def test_an_unfinished_turn_is_kept_apart_until_the_whole_turn_takes_its_place(store):
    await new(store, "a")
    await say(store, "a", "earlier")
    before = await store.get("a")

    await store.save_unfinished("a", TURN[:1])
    await store.save_unfinished("a", TURN[:3])

    assert await store.unfinished("a") == TURN[:3]
    assert [m.text for m in await store.history("a")] == ["earlier"]
    assert await store.get("a") == before
    assert await store.search("file") == ()
    await store.append_turn("a", TURN, usage=COST)
    assert await store.unfinished("a") == ()
    assert (await store.history("a"))[1:] == TURN


async def test_an_unfinished_turn_needs_no_session_and_belongs_to_its_id_alone(store):
    await new(store, "other")
    await store.save_unfinished("new\0\ud800", TURN[:3])

    assert await store.unfinished("new\ufffd\ufffd") == TURN[:3]
    assert await store.unfinished("other") == ()
    assert await store.get("new\ufffd\ufffd") is None
    await say(store, "other", "hello")
    with pytest.raises(SessionError):
        await say(store, "new\0\ud800", "hello")
    assert await store.unfinished("new\0\ud800") == TURN[:3]


async def test_a_deleted_session_leaves_no_unfinished_turn(store):
    await new(store, "a")
    for session_id, existed in (("a", True), ("never made", False)):
        await store.save_unfinished(session_id, TURN[:3])
        assert await store.delete(session_id) is existed
        assert await store.unfinished(session_id) == ()


async def test_fifty_turns_at_once_on_different_sessions_are_all_kept(store):
    for number in range(50):
        await new(store, f"s{number}")

    async def work(number: int) -> None:
        await say(store, f"s{number}", f"question {number}", f"answer {number}")

    async with asyncio.timeout(20):
        await asyncio.gather(*map(work, range(50)))

    for number in range(50):
        texts = [m.text for m in await store.history(f"s{number}")]
        assert texts == [f"question {number}", f"answer {number}"]


async def test_fifty_turns_at_once_on_one_session_stay_whole_and_in_sequence(store):
    await new(store, "a")

    async def work(number: int) -> int:
        return await say(store, "a", *(f"{number}.{part}" for part in range(4)))

    async with asyncio.timeout(20):
        counts = await asyncio.gather(*map(work, range(50)))

    rows, total = await store.page("a", limit=500)
    assert sorted(counts) == list(range(4, 201, 4))
    assert total == 200
    assert [row.position for row in rows] == list(range(200))
    for start in range(0, 200, 4):
        turn = [row.message.text.split(".") for row in rows[start : start + 4]]
        assert {number for number, _ in turn} == {turn[0][0]}
        assert [part for _, part in turn] == ["0", "1", "2", "3"]


async def test_one_of_many_writes_failing_leaves_the_others_alone(store):
    await new(store, "a")

    async def work(number: int) -> object:
        target = "a" if number % 2 else "nobody"
        try:
            return await say(store, target, f"t{number}")
        except SessionError as error:
            return error.code

    results = await asyncio.gather(*map(work, range(40)))

    assert results.count("session_not_found") == 20
    assert len(await store.history("a")) == 20


async def test_closing_twice_is_harmless(store):
    await new(store, "a")
    await store.aclose()
    await store.aclose()
