"""The tool that finds text in files, or files by name.

The work is done by another process (ripgrep, or one of ours), so it can be ended at any point.
"""

import json
import logging
import shutil
import sys
from asyncio import timeout
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hermes.messages import JsonObject, ToolSpec
from hermes.tools import search_worker
from hermes.tools.base import FunctionTool, ToolContext, ToolFailure
from hermes.tools.blocking import run_blocking
from hermes.tools.paths import resolve
from hermes.tools.preview import head_of, tail_of
from hermes.tools.process_group import open_group

_log = logging.getLogger(__name__)

MAX_FINDINGS = 100
"""Findings given when the model names no limit."""

_HARD_LIMIT = 1000
_ANSWER_CHARS = 24_000
_LINE_CHARS = 300
_CONTEXT_CHARS = 100
_MAX_RECORD = 4 * 2**20
_MAX_COMPLAINTS = 20
_GLOB_SIGNS = "*?[{"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A file, or a line in it; ``start`` is where the match begins in ``text``."""

    path: str
    line: int = 0
    text: str = ""
    start: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class _Query:
    mode: str
    pattern: str
    glob: str
    root: Path
    limit: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _Engine:
    """A command that searches, and how to read a line of its output."""

    command: tuple[str, ...]
    read: Callable[[str, Path], Finding | None]


def search_files_tool(*, ripgrep: str | None = None, time_limit: float = 60.0) -> FunctionTool:
    """Return the tool; ``ripgrep`` names the program, by default the one on the path, if any.

    An empty name uses our own search only.
    """

    async def search_files(arguments: JsonObject, context: ToolContext) -> str:
        query = _query(arguments, context)
        if not await run_blocking(query.root.exists):
            raise ToolFailure(f"{arguments.get('path', '.')} does not exist.")
        program = ripgrep
        if program is None:
            search_path = context.environment.get("PATH")
            program = await run_blocking(shutil.which, "rg", path=search_path) or ""
        engine = _engine(query, program)
        lines: list[str] = []
        note = await _collect(engine, query, context, time_limit, lines)
        return "\n".join([*lines, *([note] if note else [])]) or "[nothing found]"

    return FunctionTool(spec=_SPEC, function=search_files)


_SPEC = ToolSpec(
    name="search_files",
    description=(
        "Search text in files (mode content: pattern is a regular expression) or files by name "
        "(mode files: pattern is a glob). Skips binary files, .git, node_modules and caches."
    ),
    parameters={
        "type": "object",
        "properties": {
            "pattern": {"type": "string", "minLength": 1},
            "path": {"type": "string", "description": "folder or file (default: workdir)"},
            "glob": {"type": "string", "description": "only these files, e.g. *.py"},
            "mode": {"type": "string", "enum": ["content", "files"]},
            "limit": {"type": "integer", "minimum": 1, "maximum": _HARD_LIMIT},
        },
        "required": ["pattern"],
        "additionalProperties": False,
    },
)


def _query(arguments: JsonObject, context: ToolContext) -> _Query:
    mode: str = arguments.get("mode", "content")
    pattern: str = arguments["pattern"]
    glob: str = arguments.get("glob", "")
    if "\0" in pattern + glob:
        raise ToolFailure("The pattern holds a NUL character.")
    if len(pattern) + len(glob) > 10_000:
        raise ToolFailure("The pattern is too long (more than 10,000 characters).")
    if mode == "files" and not any(sign in pattern for sign in _GLOB_SIGNS):
        pattern = f"*{pattern}*" if "/" not in pattern else f"**/*{pattern.lstrip('/')}*"
    root = resolve(arguments.get("path", "."), context)
    limit: int = arguments.get("limit", MAX_FINDINGS)
    return _Query(mode=mode, pattern=pattern, glob=glob, root=root, limit=limit)


def _engine(query: _Query, ripgrep: str) -> _Engine:
    if query.mode == "content" and ripgrep:
        return _Engine(command=_ripgrep_command(query, ripgrep), read=read_ripgrep)
    request = {
        "mode": query.mode,
        "pattern": query.pattern,
        "glob": query.glob,
        "root": str(query.root),
    }
    worker = search_worker.__file__
    return _Engine(
        command=(sys.executable, "-I", "-S", worker, json.dumps(request)), read=read_worker
    )


def _ripgrep_command(query: _Query, ripgrep: str) -> tuple[str, ...]:
    skipped = [f"--glob=!**/{name}/" for name in sorted(search_worker.SKIPPED)]
    only = [f"--glob={query.glob}"] if query.glob else []
    return (
        ripgrep,
        "--json",
        "--no-config",
        "--hidden",
        "--no-ignore",
        "--sort=path",
        *only,
        *skipped,
        f"--regexp={query.pattern}",
        "--",
        str(query.root),
    )


def read_worker(line: str, _root: Path) -> Finding | None:
    """Read one line of our own search.

    Raises:
        ToolFailure: the line tells of an error.
    """
    record: Mapping[str, Any] = json.loads(line)
    if "error" in record:
        raise ToolFailure(record["error"])
    return Finding(
        path=record["path"],
        line=record.get("line", 0),
        text=record.get("text", ""),
        start=record.get("start", 0),
    )


def read_ripgrep(line: str, root: Path) -> Finding | None:
    """Read one line of ``rg --json``; only matches in readable names and lines are findings."""
    record: Mapping[str, Any] = json.loads(line)
    if record.get("type") != "match":
        return None
    data = record["data"]
    if "text" not in data["path"] or "text" not in data["lines"]:
        return None
    text: str = data["lines"]["text"].rstrip("\r\n")
    offset: int = data["submatches"][0]["start"] if data["submatches"] else 0
    path = Path(data["path"]["text"])
    below = path.name if path == root else str(path.relative_to(root))
    start = len(text.encode()[:offset].decode(errors="replace"))
    return Finding(path=below, line=data["line_number"] or 0, text=text, start=start)


async def _collect(
    engine: _Engine, query: _Query, context: ToolContext, time_limit: float, lines: list[str]
) -> str:
    """Add the answer's lines to ``lines``; return a note when the search was not finished."""
    room = _ANSWER_CHARS
    count = 0
    path = ""
    try:
        async with (
            timeout(time_limit),
            aclosing(_findings(engine, query.root, context)) as findings,
        ):
            async for finding in findings:
                if count == query.limit or room < 0:
                    return f"[more than {count} found; narrow the pattern, path or glob]"
                count += 1
                new = [finding.path] if finding.path != path else []
                path = finding.path
                if finding.line:
                    new.append(f"  {finding.line}: {_excerpt(finding)}")
                lines += new
                room -= sum(len(line) + 1 for line in new)
    except TimeoutError:
        return f"[stopped after {time_limit:g} s; narrow the path or simplify the pattern]"
    except OSError as error:
        raise ToolFailure(f"The search could not be run: {error.strerror}.") from error
    return ""


async def _findings(
    engine: _Engine, root: Path, context: ToolContext
) -> AsyncGenerator[Finding, None]:
    async with open_group(
        engine.command, workdir=context.workdir, environment=context.environment
    ) as group:
        rest = b""
        complaints: list[str] = []
        while data := await group.read():
            rest += data
            *records, rest = rest.split(b"\n")
            for record in records:
                line = record.decode(errors="replace")
                if not line.startswith("{"):
                    complaints.append(line)
                elif (finding := engine.read(line, root)) is not None:
                    yield finding
            if len(rest) > _MAX_RECORD:
                raise ToolFailure("A matching line is too long to show.")
        _judge(await group.wait(), complaints)


def _judge(exit_code: int, complaints: list[str]) -> None:
    """Raise ``ToolFailure`` unless the search was made; unreadable files do not count."""
    text = "\n".join(complaints[:_MAX_COMPLAINTS])
    if "regex parse error" in text or "PCRE2" in text:
        raise ToolFailure(f"The pattern is not a valid regular expression: {text}")
    if exit_code not in (0, 1, 2) or "Traceback" in text:
        _log.error("the search program ended with %d: %s", exit_code, text)
        raise ToolFailure("The search program failed.")


def _excerpt(finding: Finding) -> str:
    """Return the line, or the part of it around the match."""
    text, start = finding.text, finding.start
    if len(text) <= _LINE_CHARS:
        return text
    if start <= _CONTEXT_CHARS:
        return head_of(text, _LINE_CHARS) + "…"
    before = tail_of(text[:start], _CONTEXT_CHARS)
    after = head_of(text[start:], _LINE_CHARS - _CONTEXT_CHARS)
    return f"…{before}{after}" + ("…" if start + len(after) < len(text) else "")
