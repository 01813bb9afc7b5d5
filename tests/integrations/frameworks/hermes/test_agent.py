"""Hermes itself, in processes of its own, with a stand-in for the model's server."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

RUN = """
import sys
from run_agent import AIAgent
agent = AIAgent(base_url=sys.argv[1], api_key="x", model="m", quiet_mode=True, max_iterations=3, enabled_toolsets=[])
agent.run_conversation(sys.argv[2])
agent.shutdown_memory_provider()
"""


@pytest.fixture
def model():
    """A server of chat completions that keeps what it was asked, and answers "Noted."."""
    asked = []

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *given):
            pass

        def do_GET(self):
            self.answer("application/json", json.dumps({"object": "list", "data": [{"id": "m", "object": "model"}]}))

        def do_POST(self):
            asked.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            choice = {"index": 0, "finish_reason": "stop"}
            said = {"role": "assistant", "content": "Noted."}
            if asked[-1].get("stream"):
                chunk = {"id": "1", "object": "chat.completion.chunk", "model": "m"}
                lines = [chunk | {"choices": [choice | {"delta": said}]}]
                self.answer(
                    "text/event-stream", "".join(f"data: {json.dumps(x)}\n\n" for x in lines) + "data: [DONE]\n\n"
                )
            else:
                whole = {"id": "1", "object": "chat.completion", "model": "m", "choices": [choice | {"message": said}]}
                self.answer("application/json", json.dumps(whole))

        def answer(self, kind, text):
            self.send_response(200)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text.encode())

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/v1", asked
        server.shutdown()


def test_hermes_remembers_what_it_was_told_in_another_process(tmp_path, model):
    address, asked = model
    env = {**os.environ, "HERMES_HOME": str(tmp_path)}
    subprocess.run([sys.executable, "-m", "hermes_holdfast"], env=env, check=True)
    (tmp_path / "config.yaml").write_text("memory:\n  provider: holdfast\n")
    for text in ("I am a vegetarian.", "What may I cook?"):
        subprocess.run([sys.executable, "-c", RUN, address, text], env=env, cwd=tmp_path, check=True)

    prompts = [body["messages"] for body in asked if "messages" in body]
    second = next(prompt for prompt in prompts if any("What may I cook?" in str(m["content"]) for m in prompt[1:]))
    assert "Is vegetarian." in second[0]["content"]
