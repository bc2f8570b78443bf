import asyncio
import json
import os
import shutil
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from hermes.messages import ToolCall, ToolResult
from hermes.tools.base import ToolContext
from hermes.tools.registry import ToolOptions, build_toolbox
from hermes.tools.search import Finding, read_ripgrep
from support.children import Children

Run = Callable[..., Awaitable[ToolResult]]
_RIPGREP = shutil.which("rg")
_ENGINES = [
    "",
    pytest.param(
        _RIPGREP, marks=pytest.mark.skipif(not _RIPGREP, reason="ripgrep is not installed")
    ),
]


@pytest.fixture(params=_ENGINES, ids=["own", "ripgrep"])
def search(request: pytest.FixtureRequest, context: ToolContext) -> Run:
    box = build_toolbox(options=ToolOptions(ripgrep=request.param, search_seconds=4.0))

    async def call(**arguments: object) -> ToolResult:
        asked = ToolCall(id="c1", name="search_files", arguments=json.dumps(arguments))
        return await box.run(asked, context)

    return call


@pytest.fixture
def tree(context: ToolContext) -> Path:
    files = {
        "a.py": "import os\ndef alpha():\n    return 'x'\n",
        "b.txt": "alpha beta\n",
        "src/c.py": "class Gamma:\n    alpha = 1\n",
        "src/deep/d.md": "# alpha\n",
        ".hidden/e.py": "alpha\n",
        ".git/config": "alpha\n",
        "node_modules/m/index.js": "alpha\n",
        "__pycache__/x.py": "alpha\n",
    }
    for name, text in files.items():
        path = context.workdir / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (context.workdir / "bin.dat").write_bytes(b"\0\1\2alpha\n")
    os.mkfifo(context.workdir / "pipe")
    (context.workdir / "link.py").symlink_to("a.py")
    (context.workdir / "loop").symlink_to(".")
    return context.workdir


def _files(result: ToolResult) -> set[str]:
    return {line for line in result.text.split("\n") if line and not line.startswith((" ", "["))}


@pytest.mark.asyncio
async def test_matching_lines_are_told_by_file_and_number(search: Run, tree: Path) -> None:
    result = await search(pattern=r"alpha\(|Gamma")

    assert result.text == "a.py\n  2: def alpha():\nsrc/c.py\n  1: class Gamma:"
    assert not result.is_error


@pytest.mark.asyncio
async def test_binary_files_pipes_links_and_histories_are_skipped(search: Run, tree: Path) -> None:
    async with asyncio.timeout(20):
        result = await search(pattern="alpha")

    assert _files(result) == {"a.py", "b.txt", "src/c.py", "src/deep/d.md", ".hidden/e.py"}


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("glob", "files"),
    [
        ("*.py", {"a.py", "src/c.py", ".hidden/e.py"}),
        ("src/*.py", {"src/c.py"}),
        ("src/**", {"src/c.py", "src/deep/d.md"}),
        ("**/*.md", {"src/deep/d.md"}),
        ("*.{md,txt}", {"b.txt", "src/deep/d.md"}),
        ("[ab].*", {"a.py", "b.txt"}),
        ("?.txt", {"b.txt"}),
        ("*.rs", set()),
    ],
)
async def test_a_glob_limits_the_files(glob: str, files: set[str], search: Run, tree: Path) -> None:
    assert _files(await search(pattern="alpha", glob=glob)) == files


@pytest.mark.asyncio
async def test_a_path_limits_the_place_even_within_a_skipped_folder(
    search: Run, tree: Path
) -> None:
    assert _files(await search(pattern="alpha", path="src")) == {"c.py", "deep/d.md"}
    assert _files(await search(pattern="alpha", path="b.txt")) == {"b.txt"}
    assert _files(await search(pattern="alpha", path="node_modules")) == {"m/index.js"}
    assert _files(await search(pattern="alpha", path=str(tree / "src"))) == {"c.py", "deep/d.md"}


@pytest.mark.asyncio
async def test_nothing_found_and_no_such_place_differ(search: Run, tree: Path) -> None:
    nothing = await search(pattern="omega")
    nowhere = await search(pattern="alpha", path="nowhere")

    assert (nothing.text, nothing.is_error) == ("[nothing found]", False)
    assert (nowhere.text, nowhere.is_error) == ("nowhere does not exist.", True)


@pytest.mark.asyncio
@pytest.mark.parametrize("pattern", ["(alpha", "[z-a]", "*alpha", "alpha\\"])
async def test_a_wrong_expression_is_told(pattern: str, search: Run, tree: Path) -> None:
    result = await search(pattern=pattern)

    assert result.is_error
    assert "not a valid regular expression" in result.text


@pytest.mark.asyncio
async def test_a_limit_ends_the_search_and_says_so(
    search: Run, context: ToolContext, children: Children
) -> None:
    (context.workdir / "a.txt").write_text("hit\n" * 100_000)

    few = await search(pattern="hit", limit=3)
    usual = await search(pattern="hit")
    all_of_them = await search(pattern="hit", path="a.txt", limit=1000)

    assert few.text == (
        "a.txt\n  1: hit\n  2: hit\n  3: hit\n[more than 3 found; narrow the pattern, path or glob]"
    )
    assert usual.text.count("hit\n") == 100
    assert len(all_of_them.text) < 30_000
    assert children() == []


@pytest.mark.asyncio
async def test_a_huge_line_is_shown_around_the_match(search: Run, context: ToolContext) -> None:
    (context.workdir / "a.json").write_text("ä" * 5000 + "needle" + "z" * 5000 + "\nshort needle\n")

    result = await search(pattern="needle")

    lines = result.text.split("\n")
    assert lines[0] == "a.json"
    assert lines[1] == f"  1: …{'ä' * 100}needle{'z' * 194}…"
    assert lines[2] == "  2: short needle"


@pytest.mark.asyncio
async def test_stray_bytes_and_unicode_are_found_around(search: Run, context: ToolContext) -> None:
    (context.workdir / "ü.txt").write_text("日本 😀 ok\n")

    assert (await search(pattern="本 .")).text == "ü.txt\n  1: 日本 😀 ok"


@pytest.mark.asyncio
async def test_a_name_that_is_no_text_harms_nobody(search: Run, context: ToolContext) -> None:
    Path(os.fsdecode(os.fsencode(context.workdir) + b"/caf\xe9.txt")).write_text("needle\n")
    (context.workdir / "plain.txt").write_text("needle\n")

    found = await search(pattern="needle")
    named = await search(pattern="*.txt", mode="files")

    assert "plain.txt\n  1: needle" in found.text
    assert "plain.txt" in named.text
    found.text.encode()
    named.text.encode()


@pytest.mark.asyncio
async def test_files_are_found_by_glob_or_part_of_the_name(search: Run, tree: Path) -> None:
    assert _files(await search(pattern="*.py", mode="files")) == {
        "a.py",
        "src/c.py",
        ".hidden/e.py",
    }
    assert _files(await search(pattern="src/**/*.md", mode="files")) == {"src/deep/d.md"}
    assert _files(await search(pattern="hidden/e", mode="files")) == {".hidden/e.py"}
    assert _files(await search(pattern="d.m", mode="files")) == {"src/deep/d.md"}
    assert _files(await search(pattern="*", glob="*.txt", mode="files")) == {"b.txt"}


@pytest.mark.asyncio
async def test_an_expression_that_never_ends_is_stopped_and_blocks_nobody(
    context: ToolContext, children: Children
) -> None:
    (context.workdir / "a.txt").write_text("found first\n" + "a" * 60 + "!\n")
    box = build_toolbox(options=ToolOptions(ripgrep="", search_seconds=1.0))
    call = ToolCall(id="c1", name="search_files", arguments=json.dumps({"pattern": "first|(a+)+$"}))
    turns = 0
    searching = asyncio.ensure_future(box.run(call, context))
    async with asyncio.timeout(20):
        while not searching.done():
            turns += 1
            await asyncio.sleep(0)

    assert searching.result().text == (
        "a.txt\n  1: found first\n[stopped after 1 s; narrow the path or simplify the pattern]"
    )
    assert turns > 1000
    assert children() == []


@pytest.mark.asyncio
async def test_cancelling_ends_the_search_program(context: ToolContext, children: Children) -> None:
    (context.workdir / "a.txt").write_text("a" * 60 + "!\n")
    box = build_toolbox(options=ToolOptions(ripgrep=""))
    call = ToolCall(id="c1", name="search_files", arguments='{"pattern": "(a+)+$"}')
    searching = asyncio.ensure_future(box.run(call, context))
    async with asyncio.timeout(20):
        await asyncio.to_thread(_wait_for_a_child, children)
        searching.cancel()
        with pytest.raises(asyncio.CancelledError):
            await searching

    assert children() == []


def _wait_for_a_child(children: Children) -> None:
    while not children():
        pass


def _match(**changes: object) -> str:
    data = {
        "path": {"text": "/srv/src/a.py"},
        "lines": {"text": "äö alpha\n"},
        "line_number": 7,
        "absolute_offset": 0,
        "submatches": [{"match": {"text": "alpha"}, "start": 5, "end": 10}],
    }
    return json.dumps({"type": "match", "data": data | changes})


def test_the_output_of_ripgrep_is_read() -> None:
    root = Path("/srv")

    assert read_ripgrep(_match(), root) == Finding(
        path="src/a.py", line=7, text="äö alpha", start=3
    )
    assert read_ripgrep(_match(), Path("/srv/src/a.py")) == Finding(
        path="a.py", line=7, text="äö alpha", start=3
    )
    assert read_ripgrep(_match(lines={"bytes": "/w=="}), root) is None
    assert read_ripgrep('{"type":"begin","data":{"path":{"text":"/srv/a"}}}', root) is None
    assert read_ripgrep('{"type":"summary","data":{}}', root) is None
