"""The tool calls of one step: run together, bounded, their results in the order of the calls.

It does not decide whether the turn goes on.
"""

import asyncio
import time
from collections.abc import Callable, Sequence

from hermes.agent.execution import Execution
from hermes.agent.transcript import unrun
from hermes.events import ToolFinished, ToolOutcomes, ToolStarted, TurnEvent
from hermes.messages import ToolCall, ToolResult


class ToolRound:
    """Runs one step's calls; ``results`` fills up as they end, also when the round is cancelled."""

    def __init__(
        self, execution: Execution, emit: Callable[[TurnEvent], None], *, parallel: int
    ) -> None:
        self._execution = execution
        self._emit = emit
        self._parallel = max(1, parallel)
        self.results: dict[str, ToolResult] = {}
        self._stopped: set[str] = set()

    async def run(self, calls: Sequence[ToolCall]) -> None:
        """Run every call once; cancelling ends those that run."""
        if len(calls) == 1:
            await self._run_one(calls[0])
            return
        gate = asyncio.Semaphore(self._parallel)

        async def gated(call: ToolCall) -> None:
            async with gate:
                await self._run_one(call)

        async with asyncio.TaskGroup() as group:
            for call in calls:
                group.create_task(gated(call))

    async def _run_one(self, call: ToolCall) -> None:
        arguments = await self._execution.parse(call)
        if isinstance(arguments, ToolResult):
            self._emit(ToolStarted(call=call, arguments={}))
            self._finish(call, arguments, 0.0)
            return
        self._emit(ToolStarted(call=call, arguments=arguments))
        started = time.monotonic()
        try:
            result = await self._execution.tool_call(call, arguments)
        except asyncio.CancelledError:
            stopped = unrun(call, "Stopped before it finished; what it did until then is unknown.")
            self._stopped.add(call.id)
            self._finish(call, stopped, time.monotonic() - started)
            raise
        self._finish(call, result, time.monotonic() - started)

    def _finish(self, call: ToolCall, result: ToolResult, seconds: float) -> None:
        self.results[call.id] = result
        self._emit(ToolFinished(call=call, result=result, seconds=seconds))

    def ordered(self, calls: Sequence[ToolCall]) -> list[ToolResult]:
        """Return one result for each call, in order; a call that never began says so."""
        return [
            self.results.get(call.id) or unrun(call, "Not run: the turn was stopped before it.")
            for call in calls
        ]

    def outcomes(self, calls: Sequence[ToolCall]) -> ToolOutcomes:
        """Count what became of the calls; one that was stopped neither succeeded nor failed."""
        ended = [r for call_id, r in self.results.items() if call_id not in self._stopped]
        failed = sum(result.is_error for result in ended)
        return ToolOutcomes(attempted=len(calls), succeeded=len(ended) - failed, failed=failed)
