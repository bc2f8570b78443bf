"""``hermes models`` and ``hermes doctor`` with endpoints on loopback that answer, fail or hang."""

import asyncio
import json
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hermes.hermes_cli import main
from hermes.hermes_cli.models import get_default_model_for_provider
from hermes.sessions.opening import open_store
from support.scripted_http import Fault, ScriptedHttp, error, whole

Write = Callable[[str], Path]

SECRET = "sk-fake-00-abcdefghijklmnopqrstuvwx"
STRONG = "Tz4-9pLq_w7Xb2Rm"
NO_SERVERS = "local: {detect_servers: false}\n"


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def _custom(server: ScriptedHttp, model: str = "big") -> str:
    return (
        f"model: {{provider: custom, base_url: '{server.base_url}', default: {model}, "
        f"api_key: {SECRET}, context_length: 4096}}\n"
        f"platforms: {{api_server: {{extra: {{port: {_free_port()}}}}}}}\n{NO_SERVERS}"
    )


async def _run(*arguments: str) -> int:
    return await asyncio.wait_for(asyncio.to_thread(main.run, list(arguments)), 20)


def _list(*names: str) -> Any:
    return whole({"object": "list", "data": [{"id": name} for name in names]})


@pytest.mark.asyncio
async def test_the_default_endpoint_is_asked_and_its_model_marked(
    scripted_http: ScriptedHttp, write_config: Write, capsys: pytest.CaptureFixture[str]
) -> None:
    scripted_http.script(_list("small", "big"))
    write_config(_custom(scripted_http))

    assert await _run("models") == 0

    shown = capsys.readouterr().out
    assert f"custom  {scripted_http.base_url}  [default]\n    big  (set, 4096 tokens" in shown
    assert "    small\n" in shown
    assert "local/qwen2.5-coder-0.5b" in shown
    assert SECRET not in shown
    (request,) = scripted_http.requests
    assert (request.method, request.path) == ("GET", "/v1/models")
    assert request.headers["authorization"] == f"Bearer {SECRET}"


@pytest.mark.asyncio
async def test_a_refused_key_fails_at_once_and_is_never_shown(
    scripted_http: ScriptedHttp, write_config: Write, capsys: pytest.CaptureFixture[str]
) -> None:
    scripted_http.script(error(401, f"Incorrect API key provided: {SECRET}"))
    write_config(_custom(scripted_http))

    assert await _run("models") == 1

    shown = capsys.readouterr()
    assert "cannot be used:" in shown.out
    assert SECRET not in shown.out + shown.err
    assert len(scripted_http.requests) == 1


@pytest.mark.asyncio
async def test_an_endpoint_that_never_answers_holds_up_nobody_beyond_its_limit(
    scripted_http: ScriptedHttp, write_config: Write, capsys: pytest.CaptureFixture[str]
) -> None:
    async with ScriptedHttp() as healthy:
        healthy.script(_list("other"))
        scripted_http.script([Fault.HANG])
        write_config(
            _custom(scripted_http) + f"providers: {{lab: {{base_url: '{healthy.base_url}'}}}}\n"
        )

        assert await _run("models", "--json", "--limit", "0.5") == 1

    rows = {row["name"]: row for row in json.loads(capsys.readouterr().out)["endpoints"]}
    assert "did not list its models within 0.5 s" in rows["custom"]["error"]
    assert rows["custom"]["seconds"] < 5
    assert (rows["lab"]["error"], rows["lab"]["models"]) == ("", ["other"])


@pytest.mark.asyncio
async def test_fallbacks_and_named_endpoints_are_listed_with_their_roles(
    scripted_http: ScriptedHttp, write_config: Write, capsys: pytest.CaptureFixture[str]
) -> None:
    scripted_http.default = lambda _request: _list("big")
    async with ScriptedHttp() as second:
        second.script([Fault.RESET])
        write_config(
            _custom(scripted_http)
            + "fallback_providers: [{provider: lab}]\n"
            + f"providers: {{lab: {{base_url: '{second.base_url}', model: spare}}}}\n"
        )

        assert await _run("models", "--json") == 0

    rows = json.loads(capsys.readouterr().out)["endpoints"]
    assert [(row["role"], row["model"], bool(row["error"])) for row in rows] == [
        ("default", "big", False),
        ("fallback", "spare", True),
    ]


def test_without_a_provider_it_says_that_a_local_model_answers(
    write_config: Write, capsys: pytest.CaptureFixture[str]
) -> None:
    write_config(NO_SERVERS)

    assert main.run(["models"]) == 0

    assert capsys.readouterr().out.startswith("No provider is set: a model on this computer")


def test_a_provider_that_does_not_exist_is_named(
    write_config: Write, capsys: pytest.CaptureFixture[str]
) -> None:
    write_config("model: {provider: opnai}\n" + NO_SERVERS)

    assert main.run(["models"]) == 2

    assert "did you mean openai" in capsys.readouterr().err


def test_each_named_provider_has_the_default_model_of_its_profile() -> None:
    assert get_default_model_for_provider("anthropic")
    assert get_default_model_for_provider("Claude") == get_default_model_for_provider("anthropic")
    assert get_default_model_for_provider("custom") is None
    assert get_default_model_for_provider("no-such-provider") is None


async def _doctor(capsys: pytest.CaptureFixture[str]) -> tuple[int, dict[str, list[Any]], str]:
    code = await _run("doctor", "--json")
    shown = capsys.readouterr()
    findings: dict[str, list[Any]] = {}
    for finding in json.loads(shown.out)["checks"]:
        findings.setdefault(finding["check"], []).append(finding)
    return code, findings, shown.out + shown.err


def _statuses(findings: dict[str, list[Any]], check: str) -> list[str]:
    return [finding["status"] for finding in findings[check]]


@pytest.mark.asyncio
async def test_a_good_installation_has_no_failure_and_nothing_is_made(
    home: Path,
    scripted_http: ScriptedHttp,
    write_config: Write,
    capsys: pytest.CaptureFixture[str],
) -> None:
    scripted_http.script(_list("big"))
    write_config(_custom(scripted_http)).chmod(0o600)

    code, findings, shown = await _doctor(capsys)

    assert code == 0
    failing = [f for group in findings.values() for f in group if f["status"] == "fail"]
    assert failing == []
    assert _statuses(findings, "provider") == ["ok"]
    assert "1 model(s)" in findings["provider"][0]["text"]
    assert [path.name for path in home.iterdir()] == ["config.yaml"]
    assert SECRET not in shown


@pytest.mark.asyncio
async def test_each_fault_is_found_with_its_next_step(
    home: Path,
    scripted_http: ScriptedHttp,
    write_config: Write,
    capsys: pytest.CaptureFixture[str],
) -> None:
    scripted_http.script(error(401, f"bad key {SECRET}"))
    write_config(
        _custom(scripted_http).replace("extra: {port", "extra: {host: 0.0.0.0, port")
        + "terminal: {cwd: /no/such/folder}\nmodle: 1\n"
    )
    (home / ".env").write_text("API_SERVER_KEY=changeme\n")
    (home / ".env").chmod(0o644)
    (home / "hermes.db").write_text("this is no database, whatever its name may promise " * 40)
    home.chmod(0o755)

    code, findings, shown = await _doctor(capsys)

    assert code == 1
    assert _statuses(findings, "home") == ["warn"]
    assert _statuses(findings, ".env") == ["fail"]
    assert _statuses(findings, "key") == ["fail"]
    assert _statuses(findings, "terminal") == ["fail"]
    assert _statuses(findings, "database") == ["fail"]
    assert _statuses(findings, "provider") == ["fail"]
    assert _statuses(findings, "settings") == ["warn"]
    assert findings[".env"][0]["advice"] == f"chmod 600 {home / '.env'}"
    assert SECRET not in shown


@pytest.mark.asyncio
async def test_a_port_of_another_program_fails_and_one_of_ours_does_not(
    scripted_http: ScriptedHttp, write_config: Write, capsys: pytest.CaptureFixture[str]
) -> None:
    async with ScriptedHttp() as occupant:
        occupant.script(
            whole({"hello": "world"}), whole({"platform": "hermes-agent", "version": "9.9"})
        )
        scripted_http.default = lambda _request: _list("big")
        place = f"127.0.0.1:{occupant.port}"
        text = write_config(_custom(scripted_http)).read_text()
        port = text.partition("port: ")[2].partition("}")[0]
        write_config(text.replace(f"port: {port}", f"port: {occupant.port}"))

        _, foreign, _ = await _doctor(capsys)
        _, ours, _ = await _doctor(capsys)

    assert _statuses(foreign, "port") == ["fail"]
    assert ours["port"][0]["text"] == f"Hermes 9.9 listens on {place}"
    assert _statuses(ours, "port") == ["ok"]


@pytest.mark.asyncio
async def test_settings_that_cannot_be_read_are_the_last_finding(
    write_config: Write, capsys: pytest.CaptureFixture[str]
) -> None:
    write_config("agent: {max_turns: many}")

    code, findings, _ = await _doctor(capsys)

    assert code == 1
    assert "agent.max_turns" in findings["settings"][0]["text"]
    assert "provider" not in findings


@pytest.mark.asyncio
async def test_an_existing_database_opens_and_missing_drivers_are_named(
    home: Path, write_config: Write, capsys: pytest.CaptureFixture[str]
) -> None:
    store = await open_store(home / "hermes.db")
    await store.aclose()
    write_config(NO_SERVERS)
    _, there, _ = await _doctor(capsys)

    write_config(
        NO_SERVERS + f"sessions: {{database_url: 'postgresql://u:{SECRET}@127.0.0.1:1/d'}}"
    )
    code, unreachable, shown = await _doctor(capsys)

    assert _statuses(there, "database") == ["ok"]
    assert _statuses(unreachable, "database") == ["fail"]
    assert code == 1
    assert SECRET not in shown


@pytest.mark.asyncio
async def test_without_any_provider_the_local_model_is_what_counts(
    write_config: Write, capsys: pytest.CaptureFixture[str]
) -> None:
    write_config("local: {detect_servers: false, enabled: false}")
    code, off, _ = await _doctor(capsys)

    write_config("local: {detect_servers: false, model: no-such-model}")
    _, unknown, _ = await _doctor(capsys)

    assert code == 1
    assert _statuses(off, "local model") == ["fail"]
    assert "no-such-model" in unknown["local model"][0]["text"]
    assert "provider" not in off


def test_the_report_for_people_ends_with_the_count(
    write_config: Write, capsys: pytest.CaptureFixture[str]
) -> None:
    write_config("agent: {max_turns: many}")

    assert main.run(["doctor"]) == 1

    lines = capsys.readouterr().out.splitlines()
    assert lines[-1].endswith("1 failure(s)")
    assert any(line.startswith("fail settings: ") for line in lines)
