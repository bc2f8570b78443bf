"""The output items of a response, put together from whichever events bring them first.

Deltas come before done events, and those before the final object; nothing is passed on twice.
What ends a response is for ``openai_responses``.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from hermes.events import ToolCallDelta
from hermes.ids import new_call_id
from hermes.wire.jsonvalue import as_json_text, as_list, as_object, as_text, dump
from hermes.wire.stream import Batch

_KEPT = ("id", "summary", "encrypted_content")


@dataclass(slots=True)
class Item:
    """An output item under way, and how much of it was passed on."""

    kind: str = ""
    texts: set[int] = field(default_factory=set[int])
    summary: int = -1
    has_reasoning: bool = False
    is_done: bool = False
    call: int = -1
    has_arguments: bool = False
    early: list[str] = field(default_factory=list[str])


class OutputItems:
    """The items of one response; their deltas go to ``batch``."""

    def __init__(self, batch: Batch) -> None:
        self._batch = batch
        self._items: dict[Any, Item] = {}
        self._calls = 0

    def of(self, event: dict[str, Any], kind: str) -> Item:
        """Return the item that ``event`` belongs to: by its place, or by its id alone."""
        key = event.get("output_index")
        if not isinstance(key, int):
            content = as_object(event.get("item"))
            key = as_text(event.get("item_id")) or as_text(content.get("id"))
        item = self._items.setdefault(key, Item())
        item.kind = kind
        return item

    def begin(self, event: dict[str, Any]) -> None:
        """Take the beginning of an item; without place and id each is an item of its own."""
        nameless = self._items.pop("", None)
        if nameless is not None:
            self._items[object()] = nameless
        content = as_object(event.get("item"))
        kind = as_text(content.get("type"))
        item = self.of(event, kind)
        if kind == "function_call":
            self._begin_call(item, content)

    def text(self, item: Item, index: int, text: str) -> None:
        """Take a piece of the text part ``index``."""
        item.texts.add(index)
        self._batch.text(text)

    def whole_text(self, item: Item, index: int, text: str) -> None:
        """Take the text part ``index`` as it ended."""
        if index not in item.texts:
            self.text(item, index, text)

    def reasoning(self, item: Item, summary: int, text: str) -> None:
        """Take a piece of reasoning; the parts of a summary are paragraphs."""
        if item.has_reasoning and summary != item.summary and text:
            text = "\n\n" + text
        item.summary = summary
        item.has_reasoning = item.has_reasoning or bool(text)
        self._batch.reasoning(text)

    def arguments(self, item: Item, piece: str) -> None:
        """Take a piece of a call's arguments, kept back while the call has no beginning."""
        if item.call < 0:
            item.early.append(piece)
        elif piece:
            item.has_arguments = True
            self._batch.call(ToolCallDelta(index=item.call, arguments=piece))

    def whole_arguments(self, item: Item, arguments: Any) -> None:
        """Take a call's arguments as they ended."""
        if item.call >= 0 and not item.has_arguments:
            self.arguments(item, as_json_text(arguments))

    def end(self, item: Item, content: dict[str, Any]) -> None:
        """Take a finished item: only what its deltas did not bring already."""
        if item.is_done:
            return
        item.is_done = True
        kind = content.get("type")
        if kind == "function_call":
            self._begin_call(item, content)
            self.whole_arguments(item, content.get("arguments"))
        elif kind == "reasoning":
            self._end_reasoning(item, content)
        elif kind == "message" and not item.texts:
            for index, part in enumerate(as_list(content.get("content"))):
                members = as_object(part)
                text = as_text(members.get("text")) or as_text(members.get("refusal"))
                self.whole_text(item, index, text)

    def end_all(self, output: Sequence[Any]) -> None:
        """Take the items that no event brought from the final list.

        They are matched by their order among those of a kind: endpoints leave items out of that
        list, and some name them otherwise there than in the events.
        """
        came: dict[str, list[Item]] = {}
        for item in self._items.values():
            came.setdefault(item.kind, []).append(item)
        for entry in output:
            content = as_object(entry)
            same = came.get(as_text(content.get("type")))
            self.end(same.pop(0) if same else Item(), content)

    def _begin_call(self, item: Item, content: dict[str, Any]) -> None:
        if item.call >= 0:
            return
        item.call, self._calls = self._calls, self._calls + 1
        self._batch.call(
            ToolCallDelta(
                index=item.call,
                id=as_text(content.get("call_id")) or as_text(content.get("id")) or new_call_id(),
                name=as_text(content.get("name")),
            )
        )
        for piece in item.early:
            self.arguments(item, piece)
        item.early.clear()

    def _end_reasoning(self, item: Item, content: dict[str, Any]) -> None:
        parts = as_list(content.get("summary")) or as_list(content.get("content"))
        texts = [as_text(as_object(part).get("text")) for part in parts]
        if not item.has_reasoning:
            self._batch.reasoning("\n\n".join(filter(None, texts)))
        if content.get("encrypted_content"):
            kept = {name: content[name] for name in _KEPT if content.get(name)}
            self._batch.proof(opaque=dump(kept))
