import re
from pathlib import Path
from typing import Any

import pytest

from hermes.messages import ToolCall
from hermes.tools.base import ToolContext
from hermes.tools.registry import MAKERS
from hermes.tools.search_worker import SKIPPED
from hermes.toolsets import ALIASES, TOOLSETS

_PAGE = (Path(__file__).parents[2] / "docs" / "tools.md").read_text()


def test_the_page_names_every_tool_set_and_skipped_folder() -> None:
    rows = re.findall(r"^\| `(\w+)\(", _PAGE, re.MULTILINE)

    assert set(rows) == set(MAKERS)
    assert all(f"`{name}`" in _PAGE for name in [*TOOLSETS, *ALIASES, *SKIPPED])


@pytest.mark.asyncio
async def test_the_example_of_a_tool_runs(context: ToolContext) -> None:
    [code] = re.findall(r"```python\n(.*?)```", _PAGE, re.DOTALL)
    names: dict[str, Any] = {}
    exec(code, names)

    async def call(arguments: str) -> tuple[str, bool]:
        asked = ToolCall(id="c1", name="roll", arguments=arguments)
        result = await names["toolbox"].run(asked, context)
        return result.text, result.is_error

    assert await call('{"sides": 6}') == ("4", False)
    assert await call('{"sides": 1}') == ("A die has at least two sides.", True)
    assert (await call("{}"))[1]
