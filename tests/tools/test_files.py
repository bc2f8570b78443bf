import asyncio
import os
import socket
import tracemalloc
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from hermes.messages import ToolResult
from hermes.tools.base import ToolContext
from hermes.tools.blocking import Stop
from hermes.tools.file_writing import locked

Run = Callable[..., Awaitable[ToolResult]]


@pytest.mark.asyncio
async def test_a_short_file_is_given_as_it_stands(run: Run, context: ToolContext) -> None:
    (context.workdir / "a.txt").write_text("one\n\ttwo\nlast")

    result = await run("read_file", path="a.txt")

    assert result == ToolResult(call_id="call_1", name="read_file", text="one\n\ttwo\nlast")


@pytest.mark.asyncio
async def test_paths_may_be_relative_absolute_or_of_the_home_folder(
    run: Run, context: ToolContext
) -> None:
    (context.workdir / "a.txt").write_text("here")
    (context.workdir.parent / "b.txt").write_text("there")

    assert (await run("read_file", path="./a.txt")).text == "here"
    assert (await run("read_file", path="../b.txt")).text == "there"
    assert (await run("read_file", path=str(context.workdir / "a.txt"))).text == "here"
    assert (await run("read_file", path="~/b.txt")).text == "there"


@pytest.mark.asyncio
async def test_pages_follow_each_other(run: Run, context: ToolContext) -> None:
    (context.workdir / "a.txt").write_text("".join(f"line {n}\n" for n in range(1, 11)))

    first = await run("read_file", path="a.txt", limit=4)
    second = await run("read_file", path="a.txt", offset=5, limit=4)
    third = await run("read_file", path="a.txt", offset=9, limit=4)
    after = await run("read_file", path="a.txt", offset=11)
    beyond = await run("read_file", path="a.txt", offset=12)

    assert first.text == "line 1\nline 2\nline 3\nline 4\n[lines 1-4 of 10; next offset 5]"
    assert second.text == "line 5\nline 6\nline 7\nline 8\n[lines 5-8 of 10; next offset 9]"
    assert third.text == "line 9\nline 10\n[lines 9-10 of 10; end]"
    assert after.text == "[the file ends at line 10]"
    assert beyond.is_error
    assert beyond.text == "a.txt has only 10 lines."


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"", "[the file is empty]"),
        (b"\n", ""),
        (b"a\r\nb\r\n", "a\nb"),
        (b"\xef\xbb\xbfa\n", "a"),
        ("ä😀\u2028b\n".encode(), "ä😀\u2028b"),
        ("ä😀\nb\n".encode("utf-16"), "ä😀\nb"),
        (b"caf\xe9\n", "caf\ufffd"),
        (b"\xed\xa0\xbd half\n", "\ufffd\ufffd\ufffd half"),
    ],
)
async def test_encodings_and_line_ends_do_no_harm(
    data: bytes, text: str, run: Run, context: ToolContext
) -> None:
    (context.workdir / "a.txt").write_bytes(data)

    result = await run("read_file", path="a.txt")

    assert not result.is_error
    assert result.text == text
    result.text.encode()


@pytest.mark.asyncio
async def test_a_binary_file_is_named(run: Run, context: ToolContext) -> None:
    (context.workdir / "a.png").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 20)

    read = await run("read_file", path="a.png")
    patched = await run("patch", path="a.png", old_string="PNG", new_string="GIF")

    assert read.text == "a.png is a binary file (5,128 bytes), not text."
    assert patched.text == "a.png is a binary file, not text."
    assert read.is_error
    assert patched.is_error


@pytest.mark.asyncio
async def test_a_huge_file_is_paged_in_flat_memory(run: Run, context: ToolContext) -> None:
    path = context.workdir / "huge.log"
    with path.open("wb") as file:
        for start in range(0, 2_000_000, 20_000):
            file.write(
                b"".join(b"line %9d of a long log file\n" % n for n in range(start, start + 20_000))
            )
    tracemalloc.start()
    try:
        first = await run("read_file", path="huge.log", limit=1)
        deep = await run("read_file", path="huge.log", offset=1_900_001, limit=1)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert peak < 8 * 2**20
    assert first.text == "line         0 of a long log file\n[lines 1-1; next offset 2]"
    assert deep.text == (
        "line   1900000 of a long log file\n[lines 1900001-1900001 of 2000000; next offset 1900002]"
    )


@pytest.mark.asyncio
async def test_a_huge_line_is_cut_and_the_next_one_shown(run: Run, context: ToolContext) -> None:
    path = context.workdir / "a.json"
    path.write_text("x" * 30_000_000 + "\nshort\n")
    tracemalloc.start()
    try:
        result = await run("read_file", path="a.json")
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert peak < 8 * 2**20
    assert result.text.startswith("x" * 1000)
    assert result.text.endswith(" [... line cut, it has 30,000,001 bytes ...]\nshort")
    assert len(result.text) < 3000


@pytest.mark.asyncio
async def test_a_page_never_needs_cutting(run: Run, context: ToolContext) -> None:
    (context.workdir / "a.txt").write_text("".join(f"{n} {'ä' * 90}\n" for n in range(1, 1001)))
    read, offset = 0, 1

    while offset:
        page = await run("read_file", path="a.txt", offset=offset)
        assert page.stored_as == ""
        assert len(page.text) < 30_000
        read += page.text.count("ä" * 90)
        _, _, rest = page.text.rpartition("next offset ")
        offset = int(rest.rstrip("]")) if "next offset" in page.text else 0

    assert read == 1000


@pytest.mark.asyncio
async def test_what_is_no_regular_file_is_refused_at_once(run: Run, context: ToolContext) -> None:
    os.mkfifo(context.workdir / "pipe")
    (context.workdir / "to_pipe").symlink_to("pipe")
    (context.workdir / "to_zero").symlink_to("/dev/zero")
    (context.workdir / "folder").mkdir()
    with socket.socket(socket.AF_UNIX) as listener:
        os.chdir(context.workdir)
        listener.bind("sock")
        os.chdir("/")
        kinds = {
            "pipe": "a named pipe",
            "to_pipe": "a named pipe",
            "/dev/zero": "a device",
            "/dev/stdin": None,
            "to_zero": "a device",
            "folder": "a folder",
            "sock": "a socket",
        }
        for path, kind in kinds.items():
            async with asyncio.timeout(20):
                results = [
                    await run("read_file", path=path),
                    await run("write_file", path=path, content="x"),
                    await run("patch", path=path, old_string="a", new_string="b"),
                ]
            for result in results:
                assert result.is_error, path
                if kind:
                    assert result.text == f"{path} is {kind}, not a regular file."


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("path", "told"),
    [
        ("zebra", "zebra does not exist."),
        ("notes.tx", "notes.tx does not exist. Near it: notes.txt."),
        ("no/such/file", "no/such/file does not exist, nor does its folder."),
        ("notes.txt/inner", "notes.txt/inner: Not a directory."),
        ("loop", "loop: Too many levels of symbolic links."),
        ("a\0b", "The path holds a NUL character."),
        (" ", "The path is empty."),
        ("x" * 300, "File name too long."),
    ],
)
async def test_a_path_that_leads_nowhere_is_told(
    path: str, told: str, run: Run, context: ToolContext
) -> None:
    (context.workdir / "notes.txt").write_text("x")
    (context.workdir / "loop").symlink_to("loop")

    result = await run("read_file", path=path)

    assert result.is_error
    assert result.text.endswith(told)


@pytest.mark.asyncio
async def test_a_new_file_gets_its_folders_and_the_usual_mode(
    run: Run, context: ToolContext
) -> None:
    mask = os.umask(0o022)
    try:
        result = await run("write_file", path="a/b/c.txt", content="äö\n")
    finally:
        os.umask(mask)

    path = context.workdir / "a/b/c.txt"
    assert result.text == "Made a/b/c.txt: 5 bytes."
    assert path.read_text() == "äö\n"
    assert path.stat().st_mode & 0o777 == 0o644
    assert [entry.name for entry in path.parent.iterdir()] == ["c.txt"]


@pytest.mark.asyncio
async def test_replacing_keeps_mode_links_line_ends_and_mark(
    run: Run, context: ToolContext
) -> None:
    real = context.workdir / "real.sh"
    real.write_bytes(b"\xef\xbb\xbfold\r\nlines\r\n")
    real.chmod(0o750)
    (context.workdir / "link.sh").symlink_to("real.sh")

    result = await run("write_file", path="link.sh", content="new\nlines\n")

    assert result.text == "Replaced link.sh: 15 bytes. Its CRLF line ends were kept."
    assert (context.workdir / "link.sh").is_symlink()
    assert real.read_bytes() == b"\xef\xbb\xbfnew\r\nlines\r\n"
    assert real.stat().st_mode & 0o777 == 0o750


@pytest.mark.asyncio
async def test_a_link_to_nothing_is_written_through(run: Run, context: ToolContext) -> None:
    (context.workdir / "link").symlink_to("later/target")

    await run("write_file", path="link", content="x")

    assert (context.workdir / "later/target").read_text() == "x"
    assert (context.workdir / "link").is_symlink()


@pytest.mark.asyncio
async def test_a_reader_never_sees_half_a_file(run: Run, context: ToolContext) -> None:
    path = context.workdir / "a.txt"
    texts = ["a" * 2_000_000, "b" * 1_000_000]
    path.write_text(texts[0])
    seen: set[int] = set()
    writing = asyncio.ensure_future(
        asyncio.gather(*(run("write_file", path="a.txt", content=texts[n % 2]) for n in range(20)))
    )
    while not writing.done():
        text = await asyncio.to_thread(path.read_text)
        assert text in texts
        seen.add(len(text))

    assert all(not result.is_error for result in writing.result())
    assert [entry.name for entry in context.workdir.iterdir()] == ["a.txt"]


@pytest.mark.asyncio
@pytest.mark.skipif(os.geteuid() != 0, reason="only root may give files away")
async def test_replacing_keeps_the_owner(run: Run, context: ToolContext) -> None:
    path = context.workdir / "a.txt"
    path.write_text("x")
    os.chown(path, 1234, 2345)

    await run("write_file", path="a.txt", content="y")

    assert (path.stat().st_uid, path.stat().st_gid) == (1234, 2345)


@pytest.mark.asyncio
async def test_what_may_not_be_changed_is_told(
    run: Run, context: ToolContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = context.workdir / "a.txt"
    path.write_text("old")
    # The tests may run as root, whom no mode stops.
    monkeypatch.setattr("hermes.tools.file_writing.os.access", lambda *_: False)

    written = await run("write_file", path="a.txt", content="new")
    patched = await run("patch", path="a.txt", old_string="old", new_string="new")

    assert written.text == patched.text == "a.txt is read-only."
    assert written.is_error
    assert patched.is_error
    assert path.read_text() == "old"


@pytest.mark.asyncio
async def test_a_system_file_refuses_in_words(run: Run) -> None:
    result = await run("write_file", path="/proc/version", content="x")
    folder = await run("write_file", path="/proc/nothing/here", content="x")

    assert result.is_error
    assert result.text.startswith("/proc/version")
    assert folder.is_error
    assert folder.text.startswith("/proc/nothing/here: ")


@pytest.mark.asyncio
async def test_a_file_in_a_folder_that_takes_no_other_is_written_in_place(
    run: Run, context: ToolContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = context.workdir / "a.txt"
    path.write_text("old and longer")

    def refuse(_self: Path, _target: Path) -> Path:
        raise OSError(16, "Device or resource busy")

    monkeypatch.setattr(Path, "replace", refuse)
    result = await run("write_file", path="a.txt", content="new")

    assert result.text == "Replaced a.txt: 3 bytes."
    assert path.read_text() == "new"
    assert [entry.name for entry in context.workdir.iterdir()] == ["a.txt"]


@pytest.mark.asyncio
async def test_patches_of_one_file_by_many_names_lose_nothing(
    run: Run, context: ToolContext
) -> None:
    path = context.workdir / "a.txt"
    path.write_text("".join(f"<{n}>\n" for n in range(40)))
    (context.workdir / "link").symlink_to("a.txt")
    (context.workdir / "inner").mkdir()
    names = ["a.txt", "link", "inner/../a.txt", str(path)]

    async with asyncio.timeout(20):
        results = await asyncio.gather(
            *(
                run("patch", path=names[n % 4], old_string=f"<{n}>", new_string=f"[{n}]")
                for n in range(40)
            )
        )

    assert all(not result.is_error for result in results)
    assert path.read_text() == "".join(f"[{n}]\n" for n in range(40))


@pytest.mark.asyncio
async def test_a_cancelled_change_does_not_happen_later(run: Run, context: ToolContext) -> None:
    path = context.workdir / "a.txt"
    path.write_text("old")
    holder = locked(path, "a.txt", Stop())
    await asyncio.to_thread(holder.__enter__)
    try:
        waiting = [
            asyncio.ensure_future(run("write_file", path="a.txt", content="new")),
            asyncio.ensure_future(run("patch", path="a.txt", old_string="old", new_string="new")),
        ]
        for _ in range(100):
            await asyncio.sleep(0)
        for task in waiting:
            task.cancel()
        async with asyncio.timeout(20):
            await asyncio.wait(waiting)
    finally:
        holder.__exit__(None, None, None)

    assert all(task.cancelled() for task in waiting)
    after = await run("read_file", path="a.txt")
    assert after.text == "old"
    assert [entry.name for entry in context.workdir.iterdir()] == ["a.txt"]


@pytest.mark.asyncio
async def test_patching_keeps_bytes_that_are_not_text_and_the_line_ends(
    run: Run, context: ToolContext
) -> None:
    path = context.workdir / "a.txt"
    path.write_bytes(b"caf\xe9\r\nold\r\nline\r\nmixed\n")
    path.chmod(0o600)

    result = await run("patch", path="a.txt", old_string="old\nline", new_string="new\nlines\nä")

    assert result.text == "Patched a.txt at line 2."
    assert path.read_bytes() == b"caf\xe9\r\nnew\r\nlines\r\n\xc3\xa4\r\nmixed\n"
    assert path.stat().st_mode & 0o777 == 0o600


@pytest.mark.asyncio
async def test_a_file_too_large_to_patch_is_told(run: Run, context: ToolContext) -> None:
    with (context.workdir / "big").open("wb") as file:
        file.truncate(17 * 2**20)

    result = await run("patch", path="big", old_string="a", new_string="b")

    assert result.text == "big is larger than 16 MB."
    assert result.is_error
