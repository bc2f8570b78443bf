import asyncio
import os
from collections.abc import Awaitable, Callable
from dataclasses import replace

import pytest

from hermes.messages import ToolResult
from hermes.tools.base import ToolContext, ToolFailure
from hermes.tools.results import ResultStore, remove_session, session_folder

Run = Callable[..., Awaitable[ToolResult]]


def _read_all(store: ResultStore, context: ToolContext, result_id: str, limit: int) -> str:
    text, offset = "", 0
    while True:
        page = store.read(context, result_id, offset, limit)
        text += page.text
        assert page.start == offset
        assert len(page.text) <= limit
        offset = page.end
        if offset >= page.total:
            return text


@pytest.mark.parametrize("limit", [1, 3, 7, 1000])
def test_pages_joined_are_the_whole(limit: int, context: ToolContext) -> None:
    store = ResultStore()
    whole = "äöü€😀 line\n" * 20

    result_id = store.keep(context, whole)

    assert _read_all(store, context, result_id, limit) == whole


@pytest.mark.parametrize("limit", [1, 4, 9, 1000])
def test_pages_of_stray_bytes_lose_nothing(limit: int, context: ToolContext) -> None:
    store = ResultStore()
    data = b"ab\xff\xfe\xe2\x82 caf\xe9 \xf0\x9f\x98\x80 end" * 5
    result_id, file = store.create(context)
    with file:
        file.write(data)

    assert _read_all(store, context, result_id, limit) == data.decode(errors="replace")


def test_files_are_private_whatever_the_mask(context: ToolContext) -> None:
    mask = os.umask(0)
    try:
        ResultStore().keep(context, "x")
    finally:
        os.umask(mask)

    [kept] = context.results.rglob("res_*")
    assert kept.stat().st_mode & 0o777 == 0o600
    assert kept.parent.stat().st_mode & 0o777 == 0o700
    assert context.results.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize(
    "session_id", ["../../escape", "/etc", "a/b", "..", "x" * 5000, "nul\0", "\ud800", "C:\\x", "ä"]
)
def test_no_session_id_leads_out_of_the_folder(session_id: str, context: ToolContext) -> None:
    folder = session_folder(context.results, session_id)

    assert folder.parent == context.results
    assert folder.name.isalnum()
    assert len(folder.name) == 40


def test_no_session_reads_the_results_of_another(context: ToolContext) -> None:
    store = ResultStore()
    result_id = store.keep(context, "private")
    other = replace(context, session_id="ses_2")

    with pytest.raises(ToolFailure, match="No result"):
        store.read(other, result_id, 0, 100)


@pytest.mark.asyncio
@pytest.mark.parametrize(
    "result_id",
    ["", "res_", "../x", "res_0123456789abcdef/..", "res_0123456789abcdeg", "res_" * 500],
)
async def test_what_is_no_id_is_refused(result_id: str, run: Run) -> None:
    result = await run("read_result", id=result_id)

    assert result.is_error
    assert "is not the id of a kept result" in result.text


@pytest.mark.asyncio
async def test_reading_beyond_the_end_is_told(run: Run, context: ToolContext) -> None:
    result_id = await asyncio.to_thread(ResultStore().keep, context, "abc")

    beyond = await run("read_result", id=result_id, offset=100)
    before = await run("read_result", id=result_id, offset=-100)

    assert beyond.text == "[end of the result: it has 3 bytes]"
    assert before.text == "abc\n[bytes 0-3 of 3; end]"


def test_the_oldest_go_when_all_sessions_together_are_too_large(context: ToolContext) -> None:
    store = ResultStore(max_total_bytes=10_000)
    ids: list[tuple[ToolContext, str]] = []
    for number in range(30):
        owner = replace(context, session_id=f"ses_{number % 3}")
        result_id = store.keep(owner, "x" * 1000)
        ids.append((owner, result_id))
        [path] = context.results.rglob(f"{result_id}*")
        os.utime(path, (number, number))

    kept = sorted(int(path.stat().st_mtime) for path in context.results.rglob("res_*"))
    assert sum(path.stat().st_size for path in context.results.rglob("res_*")) <= 11_000
    assert kept == list(range(30 - len(kept), 30))
    with pytest.raises(ToolFailure, match="No result"):
        store.read(*ids[0], 0, 10)
    assert store.read(*ids[-1], 0, 10).text == "x" * 10


def test_removing_a_session_leaves_the_others(context: ToolContext) -> None:
    store = ResultStore()
    other = replace(context, session_id="ses_2")
    store.keep(context, "a")
    kept = store.keep(other, "b")

    remove_session(context.results, context.session_id)
    remove_session(context.results, "never was")

    assert [path.stem for path in context.results.rglob("res_*")] == [kept]


def test_a_planted_link_is_not_written_through(
    context: ToolContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hermes.tools.results.new_id", lambda *_: "res_0123456789abcdef")
    folder = session_folder(context.results, context.session_id)
    folder.mkdir(parents=True)
    victim = context.workdir / "victim"
    victim.write_text("precious")
    (folder / "res_0123456789abcdef.out").symlink_to(victim)

    with pytest.raises(OSError, match="exists"):
        ResultStore().keep(context, "x")

    assert victim.read_text() == "precious"
