"""Tool calls out of a chat stream, told apart whatever the endpoint's dialect.

Endpoints repeat an index for several calls, leave index or id out, send an id anew on each
piece, or arguments as an object. No call is dropped and no two are glued; whether arguments
make sense is for the toolbox to say.
"""

from dataclasses import dataclass, field
from typing import Any

from hermes.events import ToolCallDelta
from hermes.ids import new_call_id
from hermes.wire.jsonvalue import as_json_text, as_object, as_text, is_json


@dataclass(slots=True)
class _Call:
    """A call under way; ``made_id`` means that its id is ours."""

    index: int
    id: str
    name: str
    made_id: bool
    arguments: list[str] = field(default_factory=list[str])

    @property
    def is_whole(self) -> bool:
        if not self.arguments or not self.arguments[-1].rstrip().endswith("}"):
            return False  # spares joining long arguments at each piece
        return is_json("".join(self.arguments))


@dataclass(frozen=True, slots=True)
class _Piece:
    """One entry of ``delta.tool_calls``."""

    key: object
    id: str
    name: str
    arguments: str


def _piece(entry: dict[str, Any], key: object) -> _Piece:
    function = as_object(entry.get("function")) or entry
    return _Piece(
        key=key,
        id=as_text(entry.get("id")),
        name=as_text(function.get("name")),
        arguments=as_json_text(function.get("arguments")),
    )


class CallAssembler:
    """The calls of one answer."""

    def __init__(self) -> None:
        self._calls: list[_Call] = []
        self._current: dict[object, _Call] = {}

    def take(self, entry: dict[str, Any]) -> ToolCallDelta | None:
        """Return the delta of one entry of ``tool_calls``, or ``None`` if it says nothing."""
        key = entry.get("index")
        if not isinstance(key, int):
            key = None
        return self._take(_piece(entry, key))

    def take_function(self, function: dict[str, Any]) -> ToolCallDelta | None:
        """Return the delta of a legacy ``function_call``."""
        return self._take(_piece(function, "function_call"))

    def _take(self, piece: _Piece) -> ToolCallDelta | None:
        call = self._find(piece)
        if call is None:
            return self._open(piece)
        if piece.arguments:
            call.arguments.append(piece.arguments)
        if piece.name and not call.name:
            call.name = piece.name
            return ToolCallDelta(index=call.index, name=piece.name, arguments=piece.arguments)
        if not piece.arguments:
            return None
        return ToolCallDelta(index=call.index, arguments=piece.arguments)

    def _find(self, piece: _Piece) -> _Call | None:
        """The call that ``piece`` goes on with, or ``None`` if it begins another."""
        if piece.key is None:
            known = next((call for call in self._calls if call.id == piece.id), None)
            call = known or (self._calls[-1] if self._calls else None)
        else:
            call = self._current.get(piece.key)
        if call is None or (piece.id and piece.id == call.id):
            return call
        return None if _begins_another(piece, call) else call

    def _open(self, piece: _Piece) -> ToolCallDelta | None:
        if not (piece.id or piece.name or piece.arguments):
            return None
        call = _Call(
            index=len(self._calls),
            id=piece.id or new_call_id(),
            name=piece.name,
            made_id=not piece.id,
        )
        if piece.arguments:
            call.arguments.append(piece.arguments)
        self._calls.append(call)
        self._current[piece.key] = call
        return ToolCallDelta(
            index=call.index, id=call.id, name=call.name, arguments=piece.arguments
        )


def _begins_another(piece: _Piece, call: _Call) -> bool:
    """Whether ``piece``, which does not carry the id of ``call``, begins a call of its own."""
    if not piece.id and not piece.name:
        return False
    if not call.name:
        return bool(piece.id) and not call.made_id and bool(call.arguments)
    opens = piece.arguments.lstrip()[:1] == "{"
    if not piece.name:  # An id alone is new on each piece of some endpoints.
        return opens and call.is_whole
    if piece.name != call.name:
        return True
    if piece.id and not call.made_id:
        return opens or not piece.arguments
    # The same name again, and no id to compare: a repeat of the name, or the same tool again.
    return opens and call.is_whole
