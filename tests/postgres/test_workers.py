"""Workers are killed, and put to sleep beyond their lease, as real processes: all is done, and nothing twice."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest

from holdfast import Config, Memory
from holdfast.store.postgres.schema import APP
from holdfast.types import Job
from tests.postgres.lending import Lender

LEASE_S, WORKERS, USERS, BACKLOG = 1, 3, 6, 16
# Ten messages of this length are a chunk in another process too, where chunk_tokens is what it is by default.
TALK = " The tram was late again, and the rain came down on the old bridge until the lamps were lit." * 4
TURNS = [
    {"role": role, "content": f"I live in Porto, and this is turn {number}.{TALK}"}
    for number in range(12)
    for role in ("user", "assistant")
]
# Whatever is ever written about a conversation is noted by the server, also what is replaced or removed afterwards.
NOTES = """
CREATE TABLE noted (what text);
CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
    INSERT INTO public.noted VALUES (CASE TG_TABLE_NAME
        WHEN 'summary' THEN concat_ws(' ', 'summary', to_jsonb(NEW) ->> 'user_id', to_jsonb(NEW) ->> 'conversation',
            to_jsonb(NEW) ->> 'level', to_jsonb(NEW) ->> 'start_seq')
        WHEN 'evidence' THEN concat_ws(' ', 'evidence', to_jsonb(NEW) ->> 'user_id', to_jsonb(NEW) ->> 'conversation',
            to_jsonb(NEW) ->> 'seq', to_jsonb(NEW) ->> 'fact')
        ELSE 'taken over' END);
    RETURN NULL;
END $$;
CREATE TRIGGER note AFTER INSERT ON summary FOR EACH ROW EXECUTE FUNCTION note();
CREATE TRIGGER note AFTER INSERT ON evidence FOR EACH ROW EXECUTE FUNCTION note();
CREATE TRIGGER note AFTER UPDATE ON job FOR EACH ROW
    WHEN (OLD.state = 'running' AND NEW.state = 'running' AND OLD.fence < NEW.fence) EXECUTE FUNCTION note();
"""


@pytest.fixture
def address(postgres: Lender) -> Iterator[str]:
    """A database with the notes in it, which nobody gets again."""
    name = "workers"
    postgres.server.create(name, "holdfast_template")
    with psycopg.connect(postgres.server.at(name), autocommit=True) as admin:
        admin.execute(NOTES)
    yield postgres.server.at(name, APP)
    postgres.server.ask(f"DROP DATABASE {name} WITH (FORCE)")


def worker(address: str) -> subprocess.Popen[bytes]:
    """One that has begun to work."""
    command = [sys.executable, "-m", "holdfast", "worker", "--json", "--store", address, "--lease", str(LEASE_S)]
    wordy = os.environ | {"HOLDFAST_CACHE": os.devnull}  # without an embedding model, which would take all the time
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=wordy)
    assert process.stdout is not None
    assert b"working" in process.stdout.readline()
    return process


def killed(workers: list[subprocess.Popen[bytes]], number: int, address: str) -> None:
    """kill -9; another one is started."""
    end(workers[number])
    workers[number] = worker(address)


def end(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.communicate()


def slept(workers: list[subprocess.Popen[bytes]], number: int, _address: str) -> None:
    """Nothing happens in it until others have taken over what it had begun; then it goes on where it was."""
    workers[number].send_signal(signal.SIGSTOP)
    time.sleep(LEASE_S + 0.3)
    workers[number].send_signal(signal.SIGCONT)


def notes(postgres: Lender) -> dict[str, int]:
    """How often what was written."""
    with psycopg.connect(postgres.server.at("workers")) as admin:
        return dict(admin.execute("SELECT what, count(*) FROM noted GROUP BY what").fetchall())


@pytest.mark.slow
@pytest.mark.parametrize("trouble", [killed, slept], ids=["killed", "slept"])
def test_workers_in_trouble_lose_nothing_and_do_nothing_twice(
    address: str, postgres: Lender, full: bool, trouble: Callable[..., None]
) -> None:
    rounds, rng = (50 if full else 2), random.Random(3)
    workers = [worker(address) for _ in range(WORKERS)]
    over, acknowledged = threading.Event(), []

    def talk() -> None:
        with Memory(address, embedder=None) as memory:
            while not over.is_set():
                user, name = f"user-{len(acknowledged) % USERS}", f"c{len(acknowledged)}"
                memory.conversation(name, user=user).append(TURNS, idempotency_key=name)
                acknowledged.append((user, name))
                while len(waiting(memory)) > BACKLOG and not over.wait(0.05):
                    pass

    try:
        with ThreadPoolExecutor(1) as pool:
            talking = pool.submit(talk)
            try:
                wait_until_busy(postgres)
                for _ in range(rounds):
                    time.sleep(rng.uniform(0.05, 0.4))
                    trouble(workers, rng.randrange(WORKERS), address)
            finally:
                over.set()
            talking.result()
    finally:
        for process in workers:
            end(process)
    assert_done(address, acknowledged)
    written = notes(postgres)
    taken_over = written.pop("taken over", 0)
    print(f"{rounds} times {trouble.__name__}: {len(acknowledged)} conversations, {taken_over} jobs taken over")

    assert {what: times for what, times in written.items() if times > 1} == {}
    assert taken_over or not full


def waiting(memory: Memory) -> list[Job]:
    """What the workers here can do."""
    return [job for job in memory.jobs() if job.kind != "embed"]


def wait_until_busy(postgres: Lender) -> None:
    deadline = time.monotonic() + 60
    while not notes(postgres):
        assert time.monotonic() < deadline, "no worker works"
        time.sleep(0.05)


def assert_done(address: str, acknowledged: list[tuple[str, str]]) -> None:
    """All that was acknowledged is there, read, and summarized, once."""
    with Memory(address, embedder=None, config=Config(job_lease_ms=LEASE_S * 1000)) as memory:
        deadline = time.monotonic() + 120
        # vectors that a killed worker had begun are left lying: this memory makes none
        while memory.digest(10).jobs or any(job.kind != "embed" for job in memory.jobs("running")):
            assert time.monotonic() < deadline, memory.jobs()
            time.sleep(0.05)
        assert memory.jobs("dead") == []
        assert memory.doctor().findings == ()
        for user, name in acknowledged:
            chat = memory.conversation(name, user=user)
            assert [m.content for m in chat.load()] == [turn["content"] for turn in TURNS]
            assert len(chat.summaries(level=1)) == 2
        for user in {user for user, _ in acknowledged}:
            assert [fact.value for fact in memory.user(user).facts() if fact.key == "lives_in"] == ["Porto"]
