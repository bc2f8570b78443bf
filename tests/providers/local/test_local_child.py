"""The model's process: up on demand, up again after a crash, down when idle, never an orphan."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from hermes.errors import LocalModelError
from hermes.providers.local_child import ChildPolicy, LocalChild
from hermes.providers.local_machine import Machine
from hermes.providers.local_process import Address
from providers.local.conftest import FakeModel

pytestmark = pytest.mark.asyncio

GOOD = Machine(has_runtime=True, has_openmp=True, has_avx2=True, free_memory=None)


@asynccontextmanager
async def running(model: FakeModel, policy: ChildPolicy, **options) -> AsyncIterator[LocalChild]:
    options = {"machine": lambda: GOOD, **options}
    child = LocalChild(model.weights, lambda: model.file, policy=policy, **options)
    try:
        async with asyncio.timeout(20):
            yield child
    finally:
        await child.aclose()


async def ended(pid: int) -> bool:
    """Whether the process is gone within five seconds."""
    try:
        process = psutil.Process(pid)
    except psutil.NoSuchProcess:
        return True
    try:
        await asyncio.to_thread(process.wait, 5)
    except psutil.TimeoutExpired:
        return False
    return True


async def test_leases_at_once_share_one_process(
    fake_model: Callable[..., FakeModel], policy: ChildPolicy
) -> None:
    model = fake_model()

    async with running(model, policy) as child, child.lease() as one, child.lease() as other:
        assert one == other
        assert model.pids == [child.pid]


async def test_a_crash_brings_up_a_new_process_by_itself(
    fake_model: Callable[..., FakeModel], policy: ChildPolicy
) -> None:
    warmed: asyncio.Queue[Address] = asyncio.Queue()

    async with running(fake_model(), policy, warm=warmed.put) as child:
        child.start()
        first = await warmed.get()
        crashed = child.pid
        assert crashed is not None
        os.kill(crashed, signal.SIGKILL)
        assert await child.gone(first)
        second = await warmed.get()

        assert second != first
        assert child.pid != crashed


async def test_an_idle_process_is_ended_and_comes_back_on_demand(
    fake_model: Callable[..., FakeModel], policy: ChildPolicy
) -> None:
    model = fake_model()

    async with running(model, replace(policy, idle=0.05)) as child:
        async with child.lease() as first:
            pass
        assert await child.gone(first)
        assert await ended(model.pids[0])
        async with child.lease() as second:
            assert second != first
        assert len(model.pids) == 2


async def test_a_process_in_use_is_not_idle(
    fake_model: Callable[..., FakeModel], policy: ChildPolicy
) -> None:
    async with (
        running(fake_model(), replace(policy, idle=0.05)) as child,
        child.lease() as address,
    ):
        assert not await child.gone(address)


@pytest.mark.parametrize("start", ["die", "babble"])
async def test_a_process_that_never_gets_ready_is_given_up_after_some_attempts(
    fake_model: Callable[..., FakeModel],
    policy: ChildPolicy,
    start: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    model = fake_model(start=start)

    async with running(model, policy) as child:
        with pytest.raises(LocalModelError) as caught:
            async with child.lease():
                pass

    assert caught.value.code == "local_model_failed"
    assert len(model.pids) == policy.attempts
    assert start != "die" or "something native went wrong" in caplog.text


async def test_a_failure_is_tried_anew_on_the_next_demand(
    fake_model: Callable[..., FakeModel], policy: ChildPolicy
) -> None:
    broken = fake_model(start="die")
    files = [broken.file] * policy.attempts
    good = fake_model()
    child = LocalChild(
        good.weights,
        lambda: files.pop() if files else good.file,
        policy=policy,
        machine=lambda: GOOD,
    )

    async with asyncio.timeout(20):
        with pytest.raises(LocalModelError):
            async with child.lease():
                pass
        async with child.lease():
            assert child.pid == good.pids[0]
    await child.aclose()


async def test_silence_at_the_start_has_a_limit_and_the_process_is_ended(
    fake_model: Callable[..., FakeModel], policy: ChildPolicy
) -> None:
    model = fake_model(start="mute")
    limits = replace(policy, ready=1.0, attempts=1)

    async with running(model, limits) as child:
        with pytest.raises(LocalModelError):
            async with child.lease():
                pass

    assert all([await ended(pid) for pid in model.pids])


async def test_a_program_that_is_not_there_is_an_error_and_no_hang(
    fake_model: Callable[..., FakeModel], policy: ChildPolicy
) -> None:
    limits = replace(policy, command=("/nowhere/python",))

    async with running(fake_model(), limits) as child:
        with pytest.raises(LocalModelError, match="No such file"):
            async with child.lease():
                pass


@pytest.mark.parametrize("start", ["ok", "stubborn"])
async def test_closing_ends_the_process_and_refuses_later_leases(
    fake_model: Callable[..., FakeModel], policy: ChildPolicy, start: str
) -> None:
    model = fake_model(start=start)

    async with running(model, policy) as child:
        async with child.lease():
            pass
        await child.aclose()
        await child.aclose()
        assert await ended(model.pids[0])
        with pytest.raises(LocalModelError) as caught:
            async with child.lease():
                pass

    assert caught.value.code == "local_model_closed"


async def test_closing_refuses_those_who_wait(
    fake_model: Callable[..., FakeModel], policy: ChildPolicy
) -> None:
    model = fake_model(start="mute")

    async with running(model, policy) as child:

        async def wait() -> None:
            async with child.lease():
                pass

        waiting = asyncio.ensure_future(wait())
        await asyncio.sleep(0)
        await child.aclose()
        with pytest.raises(LocalModelError) as caught:
            await waiting

    assert caught.value.code == "local_model_closed"


async def test_a_failed_warming_does_no_harm(
    fake_model: Callable[..., FakeModel], policy: ChildPolicy
) -> None:
    async def warm(_address: Address) -> None:
        raise LocalModelError("no")

    model = fake_model()
    async with running(model, policy, warm=warm) as child:
        child.start()
        async with child.lease():
            pass

    assert len(model.pids) == 1


@pytest.mark.parametrize(
    ("lack", "code", "advice"),
    [
        ({"has_runtime": False}, "runtime_missing", 'pip install "hermes[local]"'),
        ({"has_openmp": False}, "library_missing", "apt-get install libgomp1"),
        ({"has_avx2": False}, "cpu_unsupported", "hermes config set"),
        ({"free_memory": 999}, "memory_low", "hermes config set"),
    ],
)
async def test_what_the_machine_lacks_is_named_and_nothing_is_started(
    fake_model: Callable[..., FakeModel],
    policy: ChildPolicy,
    lack: dict[str, object],
    code: str,
    advice: str,
) -> None:
    model = fake_model()

    async with running(model, policy, machine=lambda: replace(GOOD, **lack)) as child:
        with pytest.raises(LocalModelError) as caught:
            async with child.lease():
                pass

    assert caught.value.code == code
    assert advice in caught.value.message
    assert model.pids == []


async def test_missing_weights_are_named_and_found_once_they_are_there(
    fake_model: Callable[..., FakeModel], policy: ChildPolicy
) -> None:
    model = fake_model()
    there: list[Path] = []
    child = LocalChild(
        model.weights,
        lambda: there[0] if there else None,
        policy=policy,
        machine=lambda: GOOD,
    )

    async with asyncio.timeout(20):
        with pytest.raises(LocalModelError) as caught:
            async with child.lease():
                pass
        there.append(model.file)
        async with child.lease():
            assert model.pids == [child.pid]
    await child.aclose()

    assert caught.value.code == "weights_missing"
    assert "hermes models pull tiny" in caught.value.message
