"""``hermes serve``: the gateway in the foreground.

What is served, and how it ends, is ``gateway.server``'s.
"""

import gc
import logging
import sys

import click

from hermes.hermes_cli import auth, config, event_loop
from hermes.hermes_cli.config import LoadedSettings
from hermes.redaction import redact


@click.command()
@click.option("--host", help="Address to listen on (default 127.0.0.1).")
@click.option("--port", type=click.IntRange(0, 65535), help="Port to listen on (default 8642).")
@click.option("-v", "--verbose", count=True, help="Log more; twice for everything.")
def command(host: str | None, port: int | None, verbose: int) -> None:
    """Serve the agent to OpenAI clients over HTTP."""
    _log_to_stderr(verbose)
    loaded = config.load_settings()
    for warning in loaded.warnings:
        click.echo(f"Warning: {warning}", err=True)
    loaded = _with_address(loaded, host, port)
    loaded = _with_key(loaded)
    _run(loaded)


def _log_to_stderr(verbose: int) -> None:
    level = (logging.WARNING, logging.INFO, logging.DEBUG)[min(verbose, 2)]
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_RedactingFormatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    logging.basicConfig(level=level, handlers=[handler])


class _RedactingFormatter(logging.Formatter):
    """Takes secrets out of everything that is logged, tracebacks too."""

    def format(self, record: logging.LogRecord) -> str:
        return redact(super().format(record))


def _with_address(loaded: LoadedSettings, host: str | None, port: int | None) -> LoadedSettings:
    changes: dict[str, object] = {}
    if host is not None:
        changes["host"] = host
    if port is not None:
        changes["port"] = port
    return loaded.with_api_server(**changes) if changes else loaded


def _with_key(loaded: LoadedSettings) -> LoadedSettings:
    extra = loaded.settings.platforms.api_server.extra
    if extra.key:
        auth.check_server_key(extra.key)
        return loaded
    made = auth.ensure_server_key(loaded.home)
    if made.created:
        click.echo(f"Made an API key and stored it in {made.path} (API_SERVER_KEY).", err=True)
    return loaded.with_api_server(key=made.key)


def _spare_the_collector() -> None:
    """Leave what the start has made out of every later garbage collection.

    It lives as long as the process, and looking through it again stops all streams for 20 ms.
    """
    gc.freeze()
    gc.set_threshold(5_000, 20, 50)
    gc.enable()


def _run(loaded: LoadedSettings) -> None:
    gc.disable()  # until the server has announced itself
    from hermes.gateway import server

    def say(line: str) -> None:
        click.echo(line, err=True)

    def announce(listening: server.Listening) -> None:
        _spare_the_collector()
        key = loaded.settings.platforms.api_server.extra.key or ""
        click.echo(f"Hermes listens on {listening.url}/v1 (model {listening.model}).")
        click.echo(f"Key: API_SERVER_KEY in {loaded.home / '.env'}, ends in …{key[-4:]}.")
        click.echo("Stop with Ctrl-C.")

    event_loop.run(server.serve(loaded, say=say, announce=announce))
