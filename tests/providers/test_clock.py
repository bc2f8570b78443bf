"""The deadline that moves while a stream is alive."""

from hermes.providers.clock import Watch
from support.manual_clock import ManualClock


def watched() -> tuple[ManualClock, Watch, list[str]]:
    clock, calls = ManualClock(), list[str]()
    watch = Watch(clock)
    watch.on_expiry = lambda: calls.append("expired")
    return clock, watch, calls


def test_it_expires_when_its_limit_has_passed() -> None:
    clock, watch, calls = watched()
    watch.limit(5)
    clock.advance(4.9)
    assert not calls
    clock.advance(0.1)
    assert calls == ["expired"]
    assert watch.expired


def test_an_extension_moves_the_deadline_from_now() -> None:
    clock, watch, calls = watched()
    watch.limit(5)
    for _ in range(10):
        clock.advance(4)
        watch.limit(5)
    clock.advance(4.9)
    assert not calls
    clock.advance(0.2)
    assert calls == ["expired"]


def test_a_thousand_extensions_cost_one_timer() -> None:
    clock, watch, _ = watched()
    for _ in range(1000):
        watch.limit(5)
        clock.advance(0.001)
    assert clock.pending == 1


def test_a_shorter_limit_takes_effect_at_once() -> None:
    clock, watch, calls = watched()
    watch.limit(100)
    watch.limit(3)
    clock.advance(3)
    assert calls == ["expired"]


def test_time_while_it_is_held_does_not_count() -> None:
    clock, watch, calls = watched()
    watch.limit(5)
    watch.hold()
    clock.advance(60)
    assert not calls
    watch.limit(5)
    clock.advance(4)
    assert not calls
    clock.advance(1)
    assert calls == ["expired"]


def test_stopped_it_never_expires() -> None:
    clock, watch, calls = watched()
    watch.limit(5)
    watch.stop()
    clock.advance(60)
    assert not calls
    assert clock.pending == 0
