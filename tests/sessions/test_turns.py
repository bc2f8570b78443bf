"""One turn at a time per session: in order, cancel-safe, without leftovers."""

import asyncio

import pytest

from hermes.messages import Usage, text_message
from hermes.sessions import MemorySessionStore, Session, SessionLocks

pytestmark = pytest.mark.asyncio


async def settled() -> None:
    """Let every task that can go on do so."""
    for _ in range(10):
        await asyncio.sleep(0)


async def test_the_second_turn_of_a_session_waits_and_sees_the_first_ones_result():
    locks, store = SessionLocks(), MemorySessionStore()
    await store.create(Session(id="s", source="cli"))
    first_runs, go_on = asyncio.Event(), asyncio.Event()
    seen: dict[str, list[str]] = {}

    async def turn(name: str) -> None:
        async with locks.hold("s"):
            seen[name] = [message.text for message in await store.history("s")]
            if name == "first":
                first_runs.set()
                await go_on.wait()
            await store.append_turn("s", [text_message("user", name)], usage=Usage())

    async with asyncio.timeout(20), asyncio.TaskGroup() as tasks:
        tasks.create_task(turn("first"))
        await first_runs.wait()
        tasks.create_task(turn("second"))
        await settled()
        assert seen == {"first": []}
        assert locks.queued("s") == 2
        go_on.set()

    assert seen["second"] == ["first"]
    assert len(locks) == 0


async def test_different_sessions_run_beside_each_other():
    locks = SessionLocks()
    both = asyncio.Barrier(2)

    async def turn(session_id: str) -> None:
        async with locks.hold(session_id):
            await both.wait()

    async with asyncio.timeout(20):
        await asyncio.gather(turn("a"), turn("b"))


async def test_waiting_turns_run_in_the_order_of_asking():
    locks, order = SessionLocks(), []

    async def turn(number: int) -> None:
        async with locks.hold("s"):
            order.append(number)
            await asyncio.sleep(0)

    async with asyncio.timeout(20):
        await asyncio.gather(*map(turn, range(20)))

    assert order == list(range(20))
    assert len(locks) == 0


@pytest.mark.parametrize("cancelled", range(4))
async def test_a_cancelled_turn_waiting_or_running_lets_the_others_go_on(cancelled):
    locks, done, inside = SessionLocks(), [], asyncio.Semaphore(0)

    async def turn(number: int) -> None:
        async with locks.hold("s"):
            await inside.acquire()
            done.append(number)

    tasks = [asyncio.ensure_future(turn(number)) for number in range(4)]
    await settled()
    tasks[cancelled].cancel()
    for _ in range(3):
        inside.release()
    async with asyncio.timeout(20):
        results = await asyncio.gather(*tasks, return_exceptions=True)

    assert done == [number for number in range(4) if number != cancelled]
    assert [type(r).__name__ for r in results].count("CancelledError") == 1
    assert len(locks) == 0


async def test_a_waiter_cancelled_just_as_it_gets_the_lock_hands_it_on():
    locks, done = SessionLocks(), []
    release = asyncio.Event()

    async def holder() -> None:
        async with locks.hold("s"):
            await release.wait()

    async def waiter(name: str) -> None:
        async with locks.hold("s"):
            done.append(name)

    first = asyncio.ensure_future(holder())
    await settled()
    second, third = (asyncio.ensure_future(waiter(name)) for name in ("second", "third"))
    await settled()
    release.set()
    await asyncio.sleep(0)
    second.cancel()
    async with asyncio.timeout(20):
        await asyncio.gather(first, second, third, return_exceptions=True)

    assert "third" in done
    assert len(locks) == 0


async def test_a_turn_that_fails_frees_the_session():
    locks = SessionLocks()

    with pytest.raises(ZeroDivisionError):
        async with locks.hold("s"):
            raise ZeroDivisionError

    assert locks.queued("s") == 0
    assert len(locks) == 0
