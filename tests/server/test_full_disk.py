"""The disk under a served file is full: 507, with a time to try again, and nothing half written."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from holdfast import Memory

from .test_serve import start

TEXT = "I live in Porto, and this is what I have to say of it: " + "a word, " * 4_000


@pytest.fixture
def small() -> Iterator[Path]:
    """A disk of 12 megabytes."""
    place = Path(tempfile.mkdtemp(prefix="holdfast-small-"))
    mount = ["mount", "-t", "tmpfs", "-o", "size=12m", "holdfast", str(place)]
    if subprocess.run(mount, capture_output=True).returncode:
        place.rmdir()
        pytest.skip("a small disk needs the right to mount one")
    try:
        yield place
    finally:
        subprocess.run(["umount", "-l", str(place)], check=True)
        place.rmdir()


def say(client: httpx.Client, number: int) -> httpx.Response:
    body = {"messages": [{"role": "user", "content": f"{number}: {TEXT}"}]}
    return client.post("/v1/users/ana/conversations/c/messages", json=body, headers={"Idempotency-Key": str(number)})


def test_a_full_disk_is_told_and_nothing_is_half_written(small: Path) -> None:
    running = start(small / "chat.db")
    try:
        with running.client() as client:
            assert say(client, 0).status_code == 201
            (small / "others").write_bytes(b"x" * (shutil.disk_usage(small).free - 200_000))
            stored = 1
            while (answer := say(client, stored)).status_code == 201:
                stored += 1
            assert (answer.status_code, answer.json()["code"]) == (507, "store-full")
            assert answer.headers["content-type"] == "application/problem+json"
            assert int(answer.headers["retry-after"]) > 0
            assert client.get("/v1/users/ana/conversations/c/messages").status_code == 200
            assert client.get("/readyz").status_code == 200
            (small / "others").unlink()
            assert say(client, stored).status_code == 201, "the same call, once there is room"
    finally:
        running.process.terminate()
        running.process.communicate(timeout=30)
    with Memory(running.store) as memory:
        said = [message.content.split(":")[0] for message in memory.conversation("c", user="ana").load()]
        assert said == [str(number) for number in range(stored + 1)]
        assert memory.doctor().findings == ()
