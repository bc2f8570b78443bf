"""Tests of the local model; ``fake_worker`` is a program, not to be imported."""

from pathlib import Path

fake_worker_path = Path(__file__).with_name("fake_worker.py")
