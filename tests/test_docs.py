"""The documentation names what there is, and its commands work."""

import asyncio
import json
import re
import signal
import sys
from pathlib import Path

import pytest

import test_house_rules
from house_rules import layers
from support.process import LIMIT, started
from support.program import SOURCE
from support.scripted_http import ScriptedHttp, chat

ROOT = SOURCE.parent
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
README = (ROOT / "README.md").read_text()
DEVELOPMENT = (ROOT / "docs" / "development.md").read_text()
ARCHITECTURE = (ROOT / "docs" / "architecture.md").read_text()


def links(page: Path) -> list[str]:
    """Targets of the page's links that lead into the project."""
    found = re.findall(r"\]\(([^)\s]+)\)", page.read_text())
    return [target for target in found if "://" not in target]


def anchors(page: Path) -> set[str]:
    headings = re.findall(r"^#+ (.+)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def blocks(text: str, kind: str = "sh") -> list[str]:
    return re.findall(rf"^```{kind}\n(.*?)^```", text, re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_leads_somewhere(page: Path) -> None:
    for target in links(page):
        path, _, anchor = target.partition("#")
        aim = (page.parent / path).resolve() if path else page
        assert aim.exists(), target
        assert not anchor or anchor in anchors(aim), target


def test_the_index_and_the_readme_lead_to_every_page() -> None:
    pages = {page.name for page in (ROOT / "docs").glob("*.md")} - {"README.md"}

    assert set(links(ROOT / "docs" / "README.md")) == pages
    assert {f"docs/{name}" for name in pages} <= {
        t.partition("#")[0] for t in links(ROOT / "README.md")
    }


def test_every_make_target_that_is_named_exists() -> None:
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    commands = [
        line for page in PAGES for block in blocks(page.read_text()) for line in block.split("\n")
    ]
    named = {target for line in commands for target in re.findall(r"\bmake ([a-z]+)", line)}

    assert {"serve", "test", "check", "bench", "constraints"} <= named <= targets


def test_the_page_on_development_names_every_rule_and_step() -> None:
    rules = {rule.__name__ for rule in test_house_rules.SOURCE_RULES}
    rules |= {rule.__name__ for rule in test_house_rules.TEXT_RULES}
    table = DEVELOPMENT.partition("## House rules")[2].partition("## Tests")[0]
    named = {
        name
        for row in re.findall(r"^\| (`.*?) \|", table, re.MULTILINE)
        for name in row.split(", ")
    }
    assert {name.strip("`").replace("-", "_") for name in named} == rules

    steps = re.findall(
        r'^begin "?([a-z ]+?)"?$', (ROOT / "scripts" / "check").read_text(), re.MULTILINE
    )
    table = DEVELOPMENT.partition("## The checks")[2].partition("## House rules")[0]
    assert re.findall(r"^\| ([a-z ]+?) \| `", table, re.MULTILINE) == steps


def test_the_page_on_architecture_names_modules_that_exist() -> None:
    tops = "agent|gateway|hermes_cli|providers|sessions|tools|wire|events"
    named = set(re.findall(rf"`((?:{tops})(?:\.\w+)+)`", ARCHITECTURE))
    assert len(named) > 15
    for name in named:
        path = SOURCE / "hermes" / name.replace(".", "/")
        module = path.with_suffix(".py").exists() or path.is_dir()
        owner = path.parent.with_suffix(".py")
        assert module or f"class {path.name}" in owner.read_text(), name


def test_the_layers_of_the_page_are_those_that_are_checked() -> None:
    table = ARCHITECTURE.partition("## Layers")[2].partition("## The vocabulary")[0]
    named = {f"hermes.{name}" for name in re.findall(r"`([a-z_.]+)`", table)} - {"hermes.hermes"}
    checked = layers.layered_names(ROOT / ".importlinter")
    exist = {
        n
        for n in checked
        if list((SOURCE / n.replace(".", "/")).parent.glob(f"{n.split('.')[-1]}*"))
    }
    settings = {name for name in exist if name.startswith("hermes.hermes_cli.")}

    assert exist - settings - {"hermes.aliases"} <= named


@pytest.fixture
def workplace(home: Path, tmp_path: Path, scripted_http: ScriptedHttp) -> dict[str, str]:
    """A person's folder: a checkout with an environment, settings, a provider; its variables."""
    settings = tmp_path / ".hermes"
    settings.mkdir(mode=0o700)
    (settings / "config.yaml").write_text(
        f"model: {{provider: custom, base_url: '{scripted_http.base_url}', default: m,"
        " api_key: k}\n"
    )
    tools = tmp_path / ".venv" / "bin"
    tools.mkdir(parents=True)
    (tools / "activate").write_text(f'PATH="{tools}:$PATH"\n')
    (tools / "hermes").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m hermes "$@"\n')
    (tools / "hermes").chmod(0o755)
    return {
        "HOME": str(tmp_path),
        "HERMES_HOME": str(settings),
        "PATH": "/usr/bin:/bin",
        "PYTHONPATH": str(SOURCE),
    }


async def shell(text: str, environment: dict[str, str]) -> str:
    """Run a block of a page as a person would; return what it prints."""
    process = await asyncio.create_subprocess_exec(
        *("sh", "-e", "-c", text),
        cwd=environment["HOME"],
        env=environment,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    async with asyncio.timeout(LIMIT):
        out, err = await process.communicate()
    assert process.returncode == 0, err.decode()
    return out.decode()


@pytest.mark.asyncio
async def test_the_request_of_the_readme_streams_an_answer(
    workplace: dict[str, str], scripted_http: ScriptedHttp
) -> None:
    [request] = [block for block in blocks(README) if "curl" in block]
    scripted_http.script(chat("It tells ", "what Hermes is."))

    async with asyncio.timeout(LIMIT), started("serve", "--port", "0", **workplace) as server:
        ready = (await server.out.readline()).decode()
        [address] = re.findall(r"(127\.0\.0\.1:\d+)", ready)
        out = await shell(request.replace("127.0.0.1:8642", address), workplace)
        server.send(signal.SIGTERM)
        assert await server.wait() == 0

    events = [line.removeprefix("data: ") for line in out.splitlines() if line.startswith("data: ")]
    assert events[-1] == "[DONE]"
    deltas = [choice["delta"] for event in events[:-1] for choice in json.loads(event)["choices"]]
    assert "".join(d.get("content") or "" for d in deltas) == "It tells what Hermes is."


@pytest.mark.asyncio
async def test_the_question_of_the_readme_is_answered(
    workplace: dict[str, str], scripted_http: ScriptedHttp
) -> None:
    [question] = [block for block in blocks(README) if "hermes chat" in block]
    scripted_http.script(chat("It is a file."))

    assert await shell(question, workplace) == "It is a file.\n"


@pytest.mark.asyncio
async def test_the_check_tells_its_options() -> None:
    [block] = [block for block in blocks(DEVELOPMENT) if "--help" in block]
    [command] = [line for line in block.splitlines() if "--help" in line]

    out = await shell(f"cd {ROOT}; {command}", {"HOME": "/", "PATH": "/usr/bin:/bin"})

    assert all(option in out for option in ("--quick", "--raise-floor"))
