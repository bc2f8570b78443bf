"""Which variables of the server a command of the agent sees."""

import pytest

from hermes.gateway.run import command_environment

_SECRETS = {
    "OPENAI_API_KEY": "anything",
    "GH_TOKEN": "anything",
    "PGPASSWORD": "anything",
    "DATABASE_URL": "sqlite:///x",
    "MY_LLM": "sk-proj-" + "a1B2c3D4e5" * 4,
    "PUSHER": "ghp_" + "a1B2c3D4e5" * 4,
    "BROKER": "amqp://worker:hunter2hunter2@broker.internal:5672/",
    "PEM": "-----BEGIN PRIVATE KEY-----\nMIIEvQ\n-----END PRIVATE KEY-----",
}
_HARMLESS = {
    "PATH": "/usr/local/bin:/usr/bin",
    "HOME": "/home/user",
    "LANG": "C.UTF-8",
    "LD_PRELOAD": "/usr/lib/libjemalloc.so.2",
    "VIRTUAL_ENV": "/srv/app/venv",
    "GIT_COMMIT": "0123456789abcdef0123456789abcdef01234567",
    "http_proxy": "http://proxy.internal:3128",
    "EMPTY": "",
}


@pytest.mark.parametrize("name", _SECRETS)
def test_a_secret_is_left_out_by_its_name_or_by_its_value(name: str) -> None:
    assert command_environment({name: _SECRETS[name], "LANG": "C"}) == {"LANG": "C"}


def test_ordinary_variables_stay_as_they_are() -> None:
    assert command_environment(_HARMLESS) == _HARMLESS
