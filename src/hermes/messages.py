"""The conversation vocabulary: what is said, what is asked of a model, what it cost.

No JSON of any provider or client is known here; ``wire`` translates at the edge.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

JsonObject: TypeAlias = Mapping[str, Any]
"""A parsed JSON object; its values are whatever the sender wrote."""

Role: TypeAlias = Literal["system", "user", "assistant", "tool"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TextPart:
    """Words, as Unicode without lone surrogates."""

    text: str
    kind: Literal["text"] = "text"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReasoningPart:
    """What the model thought; never part of an answer.

    ``signature`` and ``opaque`` (an encrypted or redacted block) are valid only for the endpoint
    named by ``origin`` and are left out of requests to any other.
    """

    text: str
    signature: str = ""
    opaque: str = ""
    origin: str = ""
    kind: Literal["reasoning"] = "reasoning"


@dataclass(frozen=True, slots=True, kw_only=True)
class ImagePart:
    """A picture: an ``http(s):`` or ``data:image/`` URL; ``detail`` as OpenAI has it."""

    url: str
    detail: str = ""
    kind: Literal["image"] = "image"


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    """A model's wish to run a tool; ``arguments`` is JSON text exactly as the model wrote it."""

    id: str
    name: str
    arguments: str
    kind: Literal["tool_call"] = "tool_call"


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolResult:
    """What a tool gave back; a failure is a value with ``is_error``, never an exception.

    ``text`` is bounded for the model; ``stored_as`` names the whole output when it was cut.
    """

    call_id: str
    name: str
    text: str
    is_error: bool = False
    stored_as: str = ""
    images: tuple[ImagePart, ...] = ()
    kind: Literal["tool_result"] = "tool_result"


Part: TypeAlias = TextPart | ReasoningPart | ImagePart | ToolCall | ToolResult


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One entry of a conversation; tool results stand in messages of role ``tool``."""

    role: Role
    parts: tuple[Part, ...]
    id: str = ""

    @property
    def text(self) -> str:
        """The words of the message, its text parts joined without a separator."""
        return "".join(part.text for part in self.parts if part.kind == "text")

    @property
    def reasoning(self) -> str:
        """The joined reasoning text."""
        return "".join(part.text for part in self.parts if part.kind == "reasoning")

    @property
    def tool_calls(self) -> tuple[ToolCall, ...]:
        """The calls that the message asks for, in order."""
        return tuple(part for part in self.parts if part.kind == "tool_call")

    @property
    def tool_results(self) -> tuple[ToolResult, ...]:
        """The results that the message carries, in order."""
        return tuple(part for part in self.parts if part.kind == "tool_result")


def text_message(role: Role, text: str) -> Message:
    """Return a message that holds one text part."""
    return Message(role=role, parts=(TextPart(text=text),))


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Tokens of one or more model calls.

    ``cached_input`` is part of ``input``, ``reasoning`` of ``output``.
    """

    input: int = 0
    cached_input: int = 0
    output: int = 0
    reasoning: int = 0

    @property
    def total(self) -> int:
        """Input and output together."""
        return self.input + self.output

    def __add__(self, other: "Usage") -> "Usage":
        return Usage(
            input=self.input + other.input,
            cached_input=self.cached_input + other.cached_input,
            output=self.output + other.output,
            reasoning=self.reasoning + other.reasoning,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolSpec:
    """A tool as the model sees it; ``parameters`` is a JSON Schema (2020-12) of type object."""

    name: str
    description: str
    parameters: JsonObject = field(default_factory=lambda: {"type": "object", "properties": {}})


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelOptions:
    """How a model is to answer; ``None`` leaves the choice to the endpoint and sends no key.

    ``reasoning_effort`` is ``none`` (off), ``minimal``, ``low``, ``medium``, ``high`` or ``xhigh``.
    ``tool_choice`` is ``auto``, ``none``, ``required`` or the name of one tool.
    ``response_format`` is OpenAI's ``response_format`` object. ``extra`` is laid over the request
    body as it stands (configured fields of a custom endpoint).
    """

    temperature: float | None = None
    top_p: float | None = None
    max_output_tokens: int | None = None
    stop: tuple[str, ...] = ()
    seed: int | None = None
    reasoning_effort: str | None = None
    tool_choice: str | None = None
    parallel_tool_calls: bool | None = None
    response_format: JsonObject | None = None
    extra: JsonObject = field(default_factory=dict[str, Any])


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRequest:
    """One model call. An empty ``model`` means the endpoint's default."""

    model: str
    messages: tuple[Message, ...]
    tools: tuple[ToolSpec, ...] = ()
    options: ModelOptions = field(default_factory=ModelOptions)
    stream: bool = True
