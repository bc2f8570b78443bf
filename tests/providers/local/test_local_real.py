"""The real model, asked for real: words, tools, cancelling, crashes, orphans.

The weights are pulled once into the user's cache folder; where that cannot be done for want of a
network these tests are skipped. What half a billion parameters say is judged only where it is
sure.
"""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import psutil
import pytest
import pytest_asyncio

from hermes.agent.cancel import TurnControl
from hermes.agent.conversation import CarriedConversation
from hermes.agent.event_log import EventLog
from hermes.agent.prompt import system_prompt
from hermes.agent.step import DirectExecution
from hermes.agent.turn import TurnRequest, run_turn
from hermes.errors import ProviderConnectionError, ProviderProtocolError, ProviderStatusError
from hermes.events import Delta, TextDelta, ToolFinished, TurnResult
from hermes.messages import ModelRequest, text_message
from hermes.providers.local import LocalProvider, ensure_local
from hermes.tools.base import ToolContext
from hermes.tools.registry import build_toolbox

SOURCE = Path(__file__).parents[3] / "src"

pytestmark = [
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.timeout(600),
    pytest.mark.slow,
]


@pytest.fixture(scope="session")
def cache() -> Path:
    """A home folder that outlives the test run and has the default model."""
    base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "hermes-tests"
    program = "from hermes.hermes_cli.commands.models_pull import command; command()"
    pulled = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "HERMES_HOME": str(base), "PYTHONPATH": str(SOURCE)},
        capture_output=True,
        text=True,
        check=False,
    )
    if "could not be fetched" in pulled.stderr:
        pytest.skip("the local model's weights cannot be had here")
    assert pulled.returncode == 0, pulled.stderr
    return base


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def provider(cache: Path) -> AsyncIterator[LocalProvider]:
    provided = await ensure_local(cache)
    yield provided
    await provided.aclose()


def asking(text: str) -> ModelRequest:
    """A question without tools."""
    return ModelRequest(model="", messages=(text_message("user", text),))


async def answer(provider: LocalProvider, request: ModelRequest) -> str:
    async with provider.stream(request) as deltas:
        return "".join([delta.text async for delta in deltas if isinstance(delta, TextDelta)])


async def turn(provider: LocalProvider, text: str, folder: Path) -> tuple[TurnResult, list[str]]:
    """Answer through the turn loop with the real tools; return the result and the tools used."""
    toolbox = build_toolbox(("default",))
    await toolbox.prepare()
    context = ToolContext(
        session_id="s", turn_id="t", call_id="", workdir=folder, results=folder / "results"
    )
    log = EventLog()
    request = TurnRequest(
        turn_id="t",
        session_id="s",
        user=text_message("user", text),
        system=system_prompt(tools=toolbox.specs, workdir=folder),
    )
    execution = DirectExecution(provider=provider, toolbox=toolbox, context=context)
    result = await run_turn(request, execution, CarriedConversation(), log, TurnControl())
    used = [event.call.name for event in log.since(0) if isinstance(event, ToolFinished)]
    return result, used


async def test_a_greeting_is_answered_without_a_tool(
    provider: LocalProvider, tmp_path: Path
) -> None:
    result, used = await turn(provider, "Hello!", tmp_path)

    assert result.status == "completed"
    assert result.text
    assert used == []
    assert result.model == "local/qwen2.5-coder-0.5b"


async def test_the_capital_of_france_is_known(provider: LocalProvider, tmp_path: Path) -> None:
    result, used = await turn(provider, "What is the capital of France?", tmp_path)

    assert "Paris" in result.text
    assert used == []


async def test_a_file_is_read_with_the_tool_and_its_words_come_back(
    provider: LocalProvider, tmp_path: Path
) -> None:
    (tmp_path / "notes.txt").write_text("The wifi password is tulip-4711.\n")

    result, used = await turn(provider, "Read notes.txt and tell me the wifi password.", tmp_path)

    assert used == ["read_file"]
    assert "tulip-4711" in result.text
    assert [message.role for message in result.messages] == ["assistant", "tool", "assistant"]


async def test_the_time_is_asked_of_the_clock(provider: LocalProvider, tmp_path: Path) -> None:
    result, used = await turn(provider, "What time is it right now?", tmp_path)

    assert used == ["current_time"]
    assert any(character.isdigit() for character in result.text)


async def test_a_stream_that_is_left_stops_the_generation(provider: LocalProvider) -> None:
    question = asking("Count from 1 to 900, one number a line, leave none out.")

    async with provider.stream(question) as deltas:
        heard = [await anext(deltas) for _ in range(3)]

    assert all(isinstance(delta, TextDelta) for delta in heard)
    assert provider.child.pid is not None
    process = psutil.Process(provider.child.pid)
    async with asyncio.timeout(20):
        while await asyncio.to_thread(process.cpu_percent, 0.2) > 5:
            pass


async def test_requests_at_once_wait_for_each_other_and_are_all_answered(
    provider: LocalProvider,
) -> None:
    async with asyncio.timeout(120):
        answers = await asyncio.gather(
            *(answer(provider, asking(f"Say only the word {word}.")) for word in ("red", "blue"))
        )

    assert ["red" in answers[0].lower(), "blue" in answers[1].lower()] == [True, True]


async def test_a_prompt_beyond_the_context_is_refused_with_a_way_out(
    provider: LocalProvider,
) -> None:
    with pytest.raises(ProviderStatusError) as caught:
        await answer(provider, asking("harbour " * 9000))

    assert caught.value.code == "context_length_exceeded"
    assert "start a new chat" in caught.value.message


async def test_the_process_answers_nobody_without_the_key(provider: LocalProvider) -> None:
    async with provider.child.lease() as address, aiohttp.ClientSession() as session:
        url = f"{address.base_url}/v1/chat/completions"
        async with session.post(url, json={"messages": []}) as response:
            assert response.status == 401


async def test_after_a_crash_in_the_middle_of_an_answer_the_next_question_is_answered(
    provider: LocalProvider,
) -> None:
    async def crashing() -> list[Delta]:
        async with provider.stream(asking("Count from 1 to 900.")) as deltas:
            heard = [await anext(deltas)]
            assert provider.child.pid is not None
            os.kill(provider.child.pid, signal.SIGKILL)
            return heard + [delta async for delta in deltas]

    with pytest.raises((ProviderConnectionError, ProviderProtocolError)):
        await crashing()

    assert "Paris" in await answer(provider, asking("What is the capital of France?"))


async def test_a_server_that_is_killed_leaves_no_model_behind(cache: Path) -> None:
    program = (
        "import asyncio, pathlib, sys\n"
        "from hermes.providers.local import ensure_local\n"
        "async def main():\n"
        "    provider = await ensure_local(pathlib.Path(sys.argv[1]))\n"
        "    async with provider.child.lease():\n"
        "        sys.stdout.write(f'{provider.child.pid}\\n')\n"
        "        sys.stdout.flush()\n"
        "        await asyncio.Event().wait()\n"
        "asyncio.run(main())\n"
    )
    server = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", program, str(cache)),
        env={**os.environ, "PYTHONPATH": str(SOURCE)},
        stdout=asyncio.subprocess.PIPE,
    )
    assert server.stdout is not None
    model = psutil.Process(int(await server.stdout.readline()))

    server.kill()
    await server.wait()

    await asyncio.to_thread(psutil.wait_procs, [model], 5)
    assert not model.is_running()
