"""The program of the local model's process: loads the weights and serves them on loopback.

It takes one line of JSON on standard input (``weights``, ``key``, ``context``, ``threads``),
answers with one on standard output (``address``) and ends when standard input closes, so that it
cannot outlive its parent; why it could not start stands on standard error. The key travels by
pipe and so is in no argument and no environment. Nothing of Hermes is imported: this file runs by
its path.
"""

import importlib
import json
import os
import sys
import threading
from typing import Any

_SHORT_SPIN = "1000"
_ERRORS_ONLY = 1


def main() -> None:
    """Serve until standard input closes."""
    line = sys.stdin.readline()
    if not line:
        return
    settings = json.loads(line)
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # the native code's own lines must not stand between the answers
    threading.Thread(target=_end_with_the_parent, daemon=True).start()
    # OpenMP threads that spin for long at each barrier slow generation to a fifth beside one
    # other busy process. Read when the native library is loaded, which is below.
    os.putenv("GOMP_SPINCOUNT", _SHORT_SPIN)
    server = _serve(settings)
    answers.write(json.dumps({"address": server.listening_address}) + "\n")
    answers.flush()
    threading.Event().wait()


def _serve(settings: dict[str, Any]) -> Any:
    xllamacpp: Any = importlib.import_module("xllamacpp")
    params = xllamacpp.CommonParams()
    params.model.path = settings["weights"]
    params.n_ctx = settings["context"]
    params.n_parallel = 1
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = settings["threads"]
    params.hostnames, params.port, params.api_keys = ["127.0.0.1"], 0, [settings["key"]]
    params.ui = params.endpoint_slots = False
    params.cache_ram_mib = 512
    params.verbosity = _ERRORS_ONLY
    params.model_alias = {"local"}
    return xllamacpp.Server(params)


def _end_with_the_parent() -> None:
    while os.read(0, 4096):
        pass
    os._exit(0)


if __name__ == "__main__":
    main()
