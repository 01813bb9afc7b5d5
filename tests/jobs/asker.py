"""
A process that does background work with a model at an address of this machine, until there is none or its time is over.

    python asker.py STORE URL REQUESTS_A_MINUTE SECONDS
"""

from __future__ import annotations

import json
import sys
import time
from urllib.error import HTTPError
from urllib.request import Request as Call
from urllib.request import urlopen

from holdfast import Config, Memory
from holdfast.llm.protocol import Answer, ModelError, Request
from holdfast.testing.fakes import HashEmbedder


class Local:
    """Asks a server; what it answers is no use to anybody, and that is fine here."""

    name = "local:model"
    rate_limit_key = "a provider, an address and a key"

    def __init__(self, url: str) -> None:
        self.url = url

    def ask(self, request: Request) -> Answer:
        try:
            with urlopen(Call(self.url, json.dumps({"text": request.text}).encode())) as answer:
                return Answer(answer.read().decode(), self.name, input_tokens=10, output_tokens=1)
        except HTTPError as error:
            wait = error.headers.get("Retry-After")
            raise ModelError("too many", retry_after_s=float(wait) if wait else None) from None


def main() -> None:
    store, url, limit, seconds = sys.argv[1:]
    limits = {"model_requests_per_minute": int(limit) or None, "job_backoff_ms": 10, "job_attempts": 10_000}
    config = Config(**limits, chunk_tokens=1)  # a few words are a chunk
    with Memory(store, llm=Local(url), embedder=HashEmbedder(), config=config) as memory:
        print("ready", flush=True)
        sys.stdin.readline()
        until = time.monotonic() + float(seconds)
        while time.monotonic() < until and memory.digest(until - time.monotonic()).jobs >= 0:
            time.sleep(0.02)
        print(json.dumps([job.reason for job in memory.jobs("waiting")]))


if __name__ == "__main__":
    main()
