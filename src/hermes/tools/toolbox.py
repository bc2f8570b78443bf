"""The tools of a turn: finds the one that is called, checks its arguments, bounds its result.

Approval and redaction are not decided here.
"""

import asyncio
import difflib
import logging
from collections.abc import Iterable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from hermes.errors import ToolboxError
from hermes.messages import JsonObject, ToolCall, ToolResult, ToolSpec
from hermes.tools.arguments import ArgumentError, read_arguments, settle_types
from hermes.tools.base import Tool, ToolContext
from hermes.tools.blocking import run_blocking
from hermes.tools.preview import cut_middle
from hermes.tools.results import ResultStore
from hermes.tools.schema_check import Check, compile_check, explain, is_plain

_log = logging.getLogger(__name__)

RESULT_CHARS = 30_000
"""Longest result that the model is shown, in characters."""

TIME_LIMIT = 900.0
"""Seconds after which a tool is ended that has no limit of its own."""


class Toolbox:
    """Tools by name. Safe for any number of turns and calls at a time."""

    def __init__(
        self,
        tools: Iterable[Tool],
        *,
        results: ResultStore | None = None,
        result_chars: int = RESULT_CHARS,
        time_limit: float = TIME_LIMIT,
        time_limits: Mapping[str, float] = MappingProxyType({}),
    ) -> None:
        """Take the tools; ``time_limits`` are seconds by tool name, over ``time_limit``.

        Raises:
            ToolboxError: two tools have one name.
        """
        self._tools: dict[str, Tool] = {}
        for tool in tools:
            if tool.spec.name in self._tools:
                raise ToolboxError(f"Two tools are named {tool.spec.name}.", code="duplicate_tool")
            self._tools[tool.spec.name] = tool
        self._specs = tuple(tool.spec for tool in self._tools.values())
        self._checks: dict[str, Check] = {}
        self._results = results or ResultStore()
        self._result_chars = result_chars
        self._time_limit = time_limit
        self._time_limits = dict(time_limits)

    @property
    def specs(self) -> tuple[ToolSpec, ...]:
        """What the model is told, in the order in which the tools were given."""
        return self._specs

    async def prepare(self) -> None:
        """Compile the schemas that are not plain, in a thread: it takes 0.1 s or more.

        Await it before ``parse`` where tools are not ours; ``run`` does so by itself.
        """
        foreign = [spec for spec in self._specs if not is_plain(spec.parameters)]
        if any(spec.name not in self._checks for spec in foreign):
            await run_blocking(lambda: [self._check(spec) for spec in foreign])

    def parse(self, call: ToolCall) -> dict[str, Any] | ToolResult:
        """Return a call's checked arguments, or the result that tells the model what is wrong."""
        tool = self._tools.get(call.name)
        if tool is None:
            return failure(call, self._unknown(call.name))
        try:
            arguments = read_arguments(call.arguments, tool.spec)
        except ArgumentError as error:
            return failure(call, str(error))
        arguments = settle_types(arguments, tool.spec.parameters)
        violations = self._check(tool.spec)(arguments)
        return failure(call, explain(tool.spec, violations)) if violations else arguments

    async def run(
        self, call: ToolCall, context: ToolContext, arguments: JsonObject | None = None
    ) -> ToolResult:
        """Run a call and return its result, bounded; ``arguments`` are those ``parse`` gave.

        A tool that raises or exceeds its time gives a result with ``is_error``. Cancelling passes
        through to the tool.
        """
        if arguments is None:
            await self.prepare()
            parsed = self.parse(call)
            if isinstance(parsed, ToolResult):
                return parsed
            arguments = parsed
        tool = self._tools.get(call.name)
        if tool is None:
            return failure(call, self._unknown(call.name))
        return await self._bounded(await self._call(tool, call, context, arguments), context)

    async def _call(
        self, tool: Tool, call: ToolCall, context: ToolContext, arguments: JsonObject
    ) -> ToolResult:
        limit = self._time_limits.get(call.name, self._time_limit)
        deadline = asyncio.timeout(limit)
        try:
            async with deadline:
                result = await tool(arguments, context)
            return replace(result, call_id=call.id, name=call.name, text=_sound(result.text))
        except Exception as error:  # noqa: BLE001 - the edge of a tool call
            if isinstance(error, TimeoutError) and deadline.expired():
                return failure(call, f"{call.name} was ended after {limit:g} s without a result.")
            _log.exception("tool %s failed (call %s)", call.name, call.id)
            reason = str(error) or "no reason given"
            return failure(call, f"{call.name} failed: {type(error).__name__}: {reason}")

    async def _bounded(self, result: ToolResult, context: ToolContext) -> ToolResult:
        if len(result.text) <= self._result_chars:
            return result
        return await run_blocking(self._cut, result, context)

    def _cut(self, result: ToolResult, context: ToolContext) -> ToolResult:
        stored_as = result.stored_as
        if not stored_as:
            try:
                stored_as = self._results.keep(context, result.text)
            except OSError:
                _log.exception("the whole result of %s could not be kept", result.name)
        text = cut_middle(result.text, self._result_chars, self._advice(stored_as))
        return replace(result, text=text, stored_as=stored_as)

    def _advice(self, stored_as: str) -> str:
        if not stored_as:
            return "they could not be kept"
        if "read_result" in self._tools:
            return f'read_result(id="{stored_as}") gives the whole'
        return f"the whole is kept as {stored_as}"

    def _check(self, spec: ToolSpec) -> Check:
        check = self._checks.get(spec.name)
        if check is None:
            check = self._checks[spec.name] = compile_check(spec)
        return check

    def _unknown(self, name: str) -> str:
        if not self._tools:
            return f"There is no tool {name!r}; no tools are available."
        near = difflib.get_close_matches(name[:100], self._tools, n=3, cutoff=0.5)
        if near:
            return f"There is no tool {name[:100]!r}. Did you mean {', '.join(near)}?"
        return f"There is no tool {name[:100]!r}. Available: {', '.join(self._tools)}."


def _sound(text: str) -> str:
    """Return the text without halves of surrogate pairs (undecodable file names have them)."""
    return text if text.isascii() else text.encode(errors="replace").decode()


def failure(call: ToolCall, text: str) -> ToolResult:
    """Return a result that tells the model why a call did not succeed."""
    return ToolResult(call_id=call.id, name=call.name, text=text, is_error=True)
