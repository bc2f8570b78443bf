"""The tools that read, write and patch one text file.

No place is forbidden here; what may be touched is decided before the call.
"""

from hermes.messages import JsonObject, ToolSpec
from hermes.tools.base import FunctionTool, ToolContext, ToolFailure
from hermes.tools.blocking import Stop, run_stoppable
from hermes.tools.file_reading import PAGE_LINES, TextPage, read_page, read_start, read_whole
from hermes.tools.file_writing import locked, replace_file, status_of
from hermes.tools.output import is_binary
from hermes.tools.patching import apply_patch
from hermes.tools.paths import resolve

_UTF8_MARK = b"\xef\xbb\xbf"
_SAMPLE = 2**20


def read_file_tool() -> FunctionTool:
    """Return the tool that reads a text file in pages, as it stands: without line numbers.

    Numbers cost a fifth of the tokens and end up in patches; searching gives them.
    """
    return FunctionTool(spec=_READ, function=_read_file)


def write_file_tool() -> FunctionTool:
    """Return the tool that makes or replaces a file."""
    return FunctionTool(spec=_WRITE, function=_write_file)


def patch_tool() -> FunctionTool:
    """Return the tool that replaces a piece of a file."""
    return FunctionTool(spec=_PATCH, function=_patch)


_PATH = {"type": "string", "minLength": 1}

_READ = ToolSpec(
    name="read_file",
    description="Read a text file, in pages if it is long.",
    parameters={
        "type": "object",
        "properties": {
            "path": _PATH,
            "offset": {"type": "integer", "minimum": 1, "description": "first line (default 1)"},
            "limit": {
                "type": "integer",
                "minimum": 1,
                "description": f"number of lines (default {PAGE_LINES})",
            },
        },
        "required": ["path"],
        "additionalProperties": False,
    },
)

_WRITE = ToolSpec(
    name="write_file",
    description="Write a whole text file: makes it and its folders, or replaces its content.",
    parameters={
        "type": "object",
        "properties": {"path": _PATH, "content": {"type": "string"}},
        "required": ["path", "content"],
        "additionalProperties": False,
    },
)

_PATCH = ToolSpec(
    name="patch",
    description="Replace text in a file. old_string must stand there exactly, in one place only.",
    parameters={
        "type": "object",
        "properties": {
            "path": _PATH,
            "old_string": {"type": "string", "minLength": 1},
            "new_string": {"type": "string"},
            "replace_all": {"type": "boolean", "description": "replace in every place"},
        },
        "required": ["path", "old_string", "new_string"],
        "additionalProperties": False,
    },
)


async def _read_file(arguments: JsonObject, context: ToolContext) -> str:
    shown: str = arguments["path"]
    path = resolve(shown, context)
    first: int = arguments.get("offset", 1)
    count = min(arguments.get("limit", PAGE_LINES), PAGE_LINES)
    page = await run_stoppable(lambda stop: read_page(path, shown, first, count, stop))
    return _show(page)


def _show(page: TextPage) -> str:
    if page.first == 1 and not page.more:
        return page.text if page.last else "[the file is empty]"
    if page.last < page.first:
        return f"[the file ends at line {page.last}]"
    of = f" of {page.total}" if page.total is not None else ""
    rest = f"; next offset {page.last + 1}" if page.more else "; end"
    return f"{page.text}\n[lines {page.first}-{page.last}{of}{rest}]"


async def _write_file(arguments: JsonObject, context: ToolContext) -> str:
    shown: str = arguments["path"]
    content: str = arguments["content"]
    path = resolve(shown, context)

    def write(stop: Stop) -> str:
        with locked(path, shown, stop) as real:
            existed = status_of(real, shown) is not None
            text = content
            mark, crlf = _habits(read_start(real, shown, _SAMPLE)) if existed else (b"", False)
            if crlf and "\r\n" not in text:
                text = text.replace("\n", "\r\n")
            data = mark + text.encode()
            replace_file(real, shown, data, stop)
        done = "Replaced" if existed else "Made"
        kept = " Its CRLF line ends were kept." if crlf else ""
        return f"{done} {shown}: {len(data):,} bytes.{kept}"

    return await run_stoppable(write)


def _habits(data: bytes) -> tuple[bytes, bool]:
    """Return a file's byte order mark and whether its lines end in CRLF."""
    mark = _UTF8_MARK if data.startswith(_UTF8_MARK) else b""
    pairs = data.count(b"\r\n")
    return mark, pairs > 0 and pairs == data.count(b"\n") and not is_binary(data)


async def _patch(arguments: JsonObject, context: ToolContext) -> str:
    shown: str = arguments["path"]
    path = resolve(shown, context)

    def patch(stop: Stop) -> str:
        with locked(path, shown, stop) as real:
            data = read_whole(real, shown)
            if is_binary(data):
                raise ToolFailure(f"{shown} is a binary file, not text.")
            patched = apply_patch(
                data.decode(errors="surrogateescape"),
                arguments["old_string"],
                arguments["new_string"],
                replace_all=arguments.get("replace_all", False),
            )
            stop.check()
            replace_file(real, shown, patched.text.encode(errors="surrogateescape"), stop)
        places = ", ".join(map(str, patched.lines)) + (", ..." if patched.more_lines else "")
        how = "" if patched.exact else " (found but for white space)"
        return f"Patched {shown} at line {places}{how}."

    return await run_stoppable(patch)
