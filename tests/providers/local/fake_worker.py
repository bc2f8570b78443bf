"""Speaks the protocol of the model's process without a model; run as a program.

Its "weights" are JSON: ``start`` (``ok``, ``babble``, ``die``, ``mute``, ``stubborn``) and
``answers``, used up in order over all starts. An answer has ``text`` (pieces), or ``status`` and
``body``; then ``crash`` ends the process and ``hold`` waits until the client hangs up. What
happens is noted as lines of JSON in a file beside the weights.
"""

import json
import os
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

settings = json.loads(sys.stdin.readline())
weights = Path(settings["weights"])
script = json.loads(weights.read_text())
notes = weights.with_suffix(".notes")
lock = threading.Lock()


def note(**what):
    with notes.open("a") as file:
        file.write(json.dumps(what) + "\n")


def say(**what):
    sys.stdout.write(json.dumps(what) + "\n")
    sys.stdout.flush()


class Handler(BaseHTTPRequestHandler):
    def log_message(self, *_args):
        pass

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        with lock:
            asked = sum(1 for line in notes.read_text().splitlines() if "request" in line)
            note(
                request=body,
                authorised=self.headers["Authorization"] == f"Bearer {settings['key']}",
            )
        try:
            self.answer(script["answers"][asked])
        except ConnectionError:  # it hung up before all was said
            note(hung_up=True)

    def answer(self, answer):
        if "status" in answer:
            self.reply(answer["status"], "application/json", json.dumps(answer["body"]))
            return
        self.reply(200, "text/event-stream", "")
        for piece in answer.get("text", []):
            self.event({"choices": [{"index": 0, "delta": {"content": piece}}], "model": "m"})
        if answer.get("crash"):
            os._exit(7)
        if answer.get("hold"):
            self.connection.recv(1)
            raise ConnectionResetError
        last = {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}], "model": "m"}
        self.event({**last, "usage": {"prompt_tokens": 10, "completion_tokens": 2}})
        self.wfile.write(b"data: [DONE]\n\n")

    def reply(self, status, kind, text):
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.end_headers()
        self.wfile.write(text.encode())

    def event(self, chunk):
        self.wfile.write(b"data: " + json.dumps(chunk).encode() + b"\n\n")
        self.wfile.flush()


start = script.get("start", "ok")
note(started=os.getpid())
if start == "die":
    sys.exit("something native went wrong")
if start == "babble":
    sys.stdout.write("loading...\n")
    sys.exit(0)
if start != "mute":
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    port = server.server_address[1]
    say(address=f"http://127.0.0.1:{port}")
sys.stdin.read()
if start == "stubborn":
    threading.Event().wait()
os._exit(0)
