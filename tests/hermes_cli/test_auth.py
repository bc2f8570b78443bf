"""The server's key, and where a server may listen without one."""

import threading
from pathlib import Path

import pytest

from hermes.errors import ConfigError
from hermes.hermes_cli import auth, dotenv_file

STRONG = "Tz4-9pLq_w7Xb2Rm"


@pytest.mark.parametrize(
    "key",
    [
        "",
        "short",
        "a" * 40,
        "abab" * 10,
        "123456" * 5,
        "changeme-changeme",
        "your-api-key-here",
        "your_secret_token_here",
        "sk-xxxxxxxxxxxxxxxxxxxx",
        "my-super-secret-key-1",
        "placeholder-key-123",
        "<put-your-key-here>",
        "${API_SERVER_KEY_VALUE}",
        "                    ",
        "sk-test123",
        "Password12345678!",
    ],
)
def test_a_key_that_can_be_guessed_is_weak_and_refused_without_being_repeated(key: str) -> None:
    assert not auth.is_strong_key(key)
    with pytest.raises(ConfigError) as caught:
        auth.check_server_key(key)
    assert caught.value.code == "api_server_key_invalid"
    assert "API_SERVER_KEY" in caught.value.message
    assert not key.strip() or key not in caught.value.message


@pytest.mark.parametrize(
    "key", [STRONG, "opensslrandhex32strongkey", "9f86d081884c7d659a2feaa0c55ad015"]
)
def test_a_long_varied_key_is_strong(key: str) -> None:
    assert auth.is_strong_key(key)


def test_a_key_is_made_once_and_kept_private(home: Path) -> None:
    first = auth.ensure_server_key(home)
    second = auth.ensure_server_key(home)

    assert (first.created, second.created) == (True, False)
    assert second.key == first.key
    assert auth.is_strong_key(first.key)
    assert first.path == home / ".env"
    assert first.path.stat().st_mode & 0o777 == 0o600
    assert first.key not in repr(first)


def test_two_starts_at_once_agree_on_one_key(home: Path) -> None:
    barrier = threading.Barrier(8, timeout=20)
    keys: list[auth.ServerKey] = []

    def start() -> None:
        barrier.wait()
        keys.append(auth.ensure_server_key(home))

    threads = [threading.Thread(target=start) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(5)

    assert len(keys) == 8
    assert {made.key for made in keys} == {auth.ensure_server_key(home).key}
    assert sum(made.created for made in keys) == 1


def test_other_lines_of_dotenv_stay(home: Path) -> None:
    (home / ".env").write_text("# mine\nOPENAI_API_KEY='x y'\n\nAPI_SERVER_KEY=\n")

    made = auth.ensure_server_key(home)

    assert made.created
    text = (home / ".env").read_text()
    assert text == f"# mine\nOPENAI_API_KEY='x y'\n\nAPI_SERVER_KEY={made.key}\n"


def test_a_weak_stored_key_is_refused_and_not_replaced(home: Path) -> None:
    (home / ".env").write_text("API_SERVER_KEY=changeme\n")

    with pytest.raises(ConfigError, match="too weak"):
        auth.ensure_server_key(home)

    assert (home / ".env").read_text() == "API_SERVER_KEY=changeme\n"


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "127.9.9.9", "::1", "[::1]", "localhost", "::ffff:127.0.0.1"]
)
def test_loopback_needs_no_key(host: str) -> None:
    auth.check_binding(host, "")


@pytest.mark.parametrize(
    "host",
    [
        "0.0.0.0",
        "::",
        "[::]",
        "::ffff:0.0.0.0",
        "nas.lan",
        "192.168.1.5",
        "",
        "localhost.evil.example",
    ],
)
def test_beyond_loopback_a_strong_key_is_demanded(host: str) -> None:
    with pytest.raises(ConfigError) as missing:
        auth.check_binding(host, "")
    with pytest.raises(ConfigError) as weak:
        auth.check_binding(host, "changeme")
    auth.check_binding(host, STRONG)

    assert (missing.value.code, weak.value.code) == ("open_binding", "api_server_key_invalid")
    assert "127.0.0.1" in missing.value.message


@pytest.mark.parametrize(
    ("left", "right", "equal"),
    [
        ("abc", "abc", True),
        ("abc", "abd", False),
        ("schlüssel", "schlüssel", True),
        ("schlüssel", "schlussel", False),
        ("\udcff", "\udcff", True),
        ("\ud83d", "abc", False),
        ("", "a", False),
    ],
)
def test_any_two_texts_can_be_compared(left: str, right: str, equal: bool) -> None:
    assert auth.constant_time_equal(left, right) is equal


@pytest.mark.parametrize(
    "value", ["plain", "two words", "it's", 'q"uote', "back\\slash", "a#b", "$x${y}", "é"]
)
def test_a_stored_variable_is_read_back_as_it_was(home: Path, value: str) -> None:
    dotenv_file.store_variable(home, "SOME_KEY", value)

    assert dotenv_file.read_variables(home) == {"SOME_KEY": value}


@pytest.mark.parametrize(
    ("name", "value"), [("A_KEY", "a\nB=c"), ("A B", "c"), ("", "c"), ("A", "\0")]
)
def test_a_variable_cannot_smuggle_another_line(home: Path, name: str, value: str) -> None:
    with pytest.raises(ConfigError):
        dotenv_file.store_variable(home, name, value)

    assert not (home / ".env").exists()
