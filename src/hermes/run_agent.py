"""``AIAgent``: the agent as embedders and the gateway use it, one object for one or more turns.

It only translates: keywords to the turn's types, the turn's result to a dictionary.
"""

import logging
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

from hermes.agent.budget import Budget
from hermes.agent.cancel import TurnControl
from hermes.agent.conversation import CarriedConversation, StoredConversation
from hermes.agent.execution import Conversation
from hermes.agent.prompt import system_prompt
from hermes.agent.runtime import AgentRuntime, ProviderChoice
from hermes.agent.step import DirectExecution
from hermes.agent.turn import TurnRequest, run_turn
from hermes.errors import HermesError
from hermes.events import (
    EventSink,
    ReasoningDelta,
    TextDelta,
    ToolFinished,
    ToolStarted,
    TurnEvent,
    TurnResult,
)
from hermes.ids import new_session_id, new_turn_id
from hermes.messages import Message, ModelOptions, TextPart, Usage
from hermes.providers.registry import Endpoint
from hermes.sessions.memory import MemorySessionStore

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentSettings:
    """The keywords of ``AIAgent``; see there."""

    model: str = ""
    provider: str = "custom"
    api_key: str = ""
    base_url: str = ""
    api_mode: str = ""
    credential_pool: Any = None
    fallback_model: Any = None
    session_id: str = ""
    max_iterations: int = 90
    enabled_toolsets: Sequence[str] = ("default",)
    reasoning_config: Mapping[str, Any] | None = None
    ephemeral_system_prompt: str | None = None
    checkpoints_enabled: bool = False
    checkpoint_max_snapshots: int | None = None
    checkpoint_max_total_size_mb: int | None = None
    checkpoint_max_file_size_mb: int | None = None
    options: ModelOptions = field(default_factory=ModelOptions)
    budget: Budget | None = None
    runtime: AgentRuntime | None = None
    control: TurnControl | None = None
    event_sink: EventSink | None = None
    live: bool = True
    stored: bool = False
    source: str = "api_server"
    session_key: str = ""
    attended: bool = False
    stream_delta_callback: Callable[[str], None] | None = None
    tool_start_callback: Callable[[str, str, Mapping[str, Any]], None] | None = None
    tool_complete_callback: Callable[[str, str, Mapping[str, Any], str], None] | None = None
    reasoning_callback: Callable[[str], None] | None = None


class AIAgent:
    """One agent.

    ``provider`` names an entry of the provider registry; ``base_url``, ``api_key`` and
    ``api_mode`` stand in place of its own. ``fallback_model`` is a list of endpoints to try
    after it. ``runtime`` holds what outlives the agent; without one the agent makes its own,
    which ``aclose`` releases. Events go to ``event_sink``, or else to the callbacks.
    With ``stored`` the conversation lives in the runtime's session store under ``session_id``,
    otherwise the caller carries the history. ``session_key`` is whose memory the turns use.
    ``attended`` says that somebody sees the events and can answer an approval.
    """

    def __init__(self, **keywords: Any) -> None:
        self._settings = AgentSettings(**keywords)
        self._owned = self._settings.runtime is None
        self._runtime = self._settings.runtime or _own_runtime()
        self.session_id = self._settings.session_id or new_session_id()
        self._usage = Usage()

    @property
    def session_prompt_tokens(self) -> int:
        """Input tokens of all turns so far."""
        return self._usage.input

    @property
    def session_completion_tokens(self) -> int:
        """Output tokens of all turns so far."""
        return self._usage.output

    @property
    def session_total_tokens(self) -> int:
        """Input and output tokens of all turns so far."""
        return self._usage.total

    @property
    def session_cached_tokens(self) -> int:
        """The part of the input that the provider had cached."""
        return self._usage.cached_input

    @property
    def session_reasoning_tokens(self) -> int:
        """The part of the output that was reasoning."""
        return self._usage.reasoning

    async def run_conversation(
        self,
        user_message: str | Message,
        conversation_history: Sequence[Message] = (),
        task_id: str = "",
    ) -> dict[str, Any]:
        """Run one turn; see ``as_dict`` for the result."""
        result = await self.run(user_message, conversation_history, turn_id=task_id)
        return as_dict(result) | {"session_id": self.session_id}

    async def run(
        self,
        user_message: str | Message,
        conversation_history: Sequence[Message] = (),
        *,
        turn_id: str = "",
    ) -> TurnResult:
        """Run one turn and return its result, however it ended.

        Raises:
            ConfigError: the provider or a toolset does not exist.
        """
        settings = self._settings
        await self._runtime.refresh()
        user = _user(user_message)
        sink = _CallbackSink(settings) if settings.event_sink is None else settings.event_sink
        execution = await self._execution(turn_id or new_turn_id(), sink)
        turn = TurnRequest(
            turn_id=turn_id or execution.context.turn_id,
            session_id=self.session_id,
            user=user,
            system=system_prompt(
                tools=execution.tools,
                workdir=self._runtime.workdir,
                persona=self._runtime.persona,
                extra=settings.ephemeral_system_prompt or "",
            ),
            model=settings.model,
            options=_options(settings),
            budget=settings.budget or replace(self._runtime.budget, steps=settings.max_iterations),
        )
        result = await run_turn(
            turn,
            execution,
            self._conversation(conversation_history),
            sink,
            TurnControl() if settings.control is None else settings.control,
        )
        self._usage += result.usage
        return result

    async def _execution(self, turn_id: str, sink: EventSink) -> DirectExecution:
        settings = self._settings
        return DirectExecution(
            provider=await self._runtime.provider(_choice(settings)),
            toolbox=self._runtime.toolbox(settings.enabled_toolsets),
            context=replace(
                self._runtime.tool_context(session_id=self.session_id, turn_id=turn_id),
                session_key=settings.session_key,
                attended=settings.attended,
                emit=sink.emit,
            ),
            live=settings.live,
            gate=self._runtime.gate,
        )

    def _conversation(self, history: Sequence[Message]) -> Conversation:
        if not self._settings.stored:
            return CarriedConversation(tuple(history))
        return StoredConversation(
            store=self._runtime.store,
            locks=self._runtime.locks,
            session_id=self.session_id,
            source=self._settings.source,
            model=self._settings.model,
        )

    async def aclose(self) -> None:
        """Release what the agent made for itself; a runtime that was given stays open."""
        if self._owned:
            await self._runtime.aclose()


def _own_runtime() -> AgentRuntime:
    return AgentRuntime(
        store=MemorySessionStore(),
        workdir=Path(),
        results=Path(tempfile.gettempdir()) / "hermes-results",
    )


def _user(message: str | Message) -> Message:
    if isinstance(message, Message):
        return message
    return Message(role="user", parts=(TextPart(text=message),))


def _choice(settings: AgentSettings) -> ProviderChoice:
    return ProviderChoice(
        provider=settings.provider,
        model=settings.model,
        base_url=settings.base_url,
        api_key=settings.api_key,
        api_mode=settings.api_mode,
        fallbacks=tuple(cast("Sequence[Endpoint]", settings.fallback_model or ())),
    )


def _options(settings: AgentSettings) -> ModelOptions:
    reasoning = settings.reasoning_config
    if reasoning is None or settings.options.reasoning_effort is not None:
        return settings.options
    effort = "none" if reasoning.get("enabled") is False else reasoning.get("effort")
    return replace(settings.options, reasoning_effort=effort)


class _CallbackSink:
    """Tells an embedder's callbacks of a turn's events."""

    def __init__(self, settings: AgentSettings) -> None:
        self._settings = settings
        self._arguments: dict[str, Mapping[str, Any]] = {}

    def emit(self, event: TurnEvent) -> None:
        try:
            self._tell(event)
        except Exception:  # noqa: BLE001 - an embedder's own code must not end the turn
            _log.exception("a callback failed on %s", event.kind)

    def _tell(self, event: TurnEvent) -> None:
        settings = self._settings
        if isinstance(event, TextDelta) and settings.stream_delta_callback:
            settings.stream_delta_callback(event.text)
        elif isinstance(event, ReasoningDelta) and settings.reasoning_callback and event.text:
            settings.reasoning_callback(event.text)
        elif isinstance(event, ToolStarted) and settings.tool_start_callback:
            self._arguments[event.call.id] = event.arguments
            settings.tool_start_callback(event.call.id, event.call.name, event.arguments)
        elif isinstance(event, ToolFinished) and settings.tool_complete_callback:
            arguments = self._arguments.pop(event.call.id, {})
            settings.tool_complete_callback(
                event.call.id, event.call.name, arguments, event.result.text
            )


def as_dict(result: TurnResult) -> dict[str, Any]:
    """Return a turn's result as a dictionary.

    ``final_response`` is the answer's text; ``completed``, ``partial`` and ``failed`` say how it
    ended; ``error`` (a ``HermesError`` or None) says why; ``messages`` are the turn's messages.
    """
    error: HermesError | None = result.error
    return {
        "final_response": result.text,
        "messages": list(result.messages),
        "api_calls": result.steps,
        "completed": result.status == "completed",
        "partial": result.status == "truncated"
        or (result.status != "completed" and bool(result.text)),
        "failed": result.status in ("failed", "cancelled"),
        "error": error,
        "error_code": error.code if error else None,
        "model": result.model,
        "tools": {
            "attempted": result.tools.attempted,
            "succeeded": result.tools.succeeded,
            "failed": result.tools.failed,
        },
        "pending_steer": result.pending_steer,
    }
