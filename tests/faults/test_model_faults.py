"""
Whatever a model does behind real HTTP: nothing crashes, nothing acknowledged is lost, nothing false is stored.

What is said of one call stands in ``tests/llm``; here a whole memory goes on while its model fails.
"""

from __future__ import annotations

import contextlib
import csv
import io
import json
import random
import threading
import time
from collections.abc import Iterator

import pytest

from holdfast.llm.protocol import ModelError, Request
from holdfast.testing.model import ServerAnswer, ServerRequest, answer_body, unreachable_url

from .world import HOME, ROW, World

FILE = "chat.db"
FAULTS = {
    "slow": ServerAnswer(ROW, wait_s=30),
    "drip": ServerAnswer(ROW, drip_s=0.05),
    "rate limit": ServerAnswer(status=429, headers={"Retry-After": "7"}),
    "rate limit by date": ServerAnswer(status=429, headers={"Retry-After": "Mon, 05 Jan 2026 09:00:30 GMT"}),
    "nonsense in Retry-After": ServerAnswer(status=429, headers={"Retry-After": "soon"}),
    "500": ServerAnswer(status=500),
    "503": ServerAnswer(status=503, body=b"<html>Service Unavailable</html>"),
    "529": ServerAnswer(status=529),
    "408": ServerAnswer(status=408),
    "wrong key": ServerAnswer(status=401),
    "no such model": ServerAnswer(status=404),
    "too long a prompt": ServerAnswer(status=413),
    "teapot": ServerAnswer(status=418),
    "empty body": ServerAnswer(body=b""),
    "prose for a body": ServerAnswer(body=b"upstream error"),
    "broken JSON": ServerAnswer(body=b'{"choices": [{"message": '),
    "JSON of another kind": ServerAnswer(body=b"[1, 2, 3]"),
    "null": ServerAnswer(body=b"null"),
    "no choices": ServerAnswer(
        body=b'{"id": "x", "object": "chat.completion", "created": 1, "model": "any", "choices": []}'
    ),
    "not text": ServerAnswer(body=b"\xff\xfe\x00\x01" * 20),
    "refusal": ServerAnswer("I'm sorry, but I can't help with that."),
    "filtered": ServerAnswer("", finish="content_filter"),
    "prose": ServerAnswer("Of course! Here is what I found interesting about this lovely conversation."),
    "cut before the first row": ServerAnswer("home,lives", finish="length"),
    "reset": ServerAnswer(ROW, cut=40, reset=True),
    "cut body": ServerAnswer(ROW, cut=200),
    "more announced than sent": ServerAnswer(ROW, headers={"Content-Length": "100000"}),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_loses_nothing_and_is_made_good_for(tmp_path, fault):
    """Fails, says why, and reads the same messages when the model is well again."""
    well = threading.Event()

    def answer(asked: ServerRequest) -> ServerAnswer:
        return ServerAnswer(ROW if "lives_in" in asked.system else "NONE") if well.is_set() else FAULTS[fault]

    with World(tmp_path / FILE, answer, model_timeout_s=1.0) as world:
        world.say(HOME)
        report = world.memory.digest()

        assert report.failed + report.waiting >= 1
        assert world.server.asked
        assert [job.reason for job in world.memory.jobs() if job.reason]
        assert world.facts() == []
        world.assert_sound()

        well.set()
        world.say("I'm vegetarian.")
        for _ in range(3):
            world.digest()
        retried = [job.id for job in world.memory.jobs("dead")]
        for job in retried:
            world.memory.retry(job)
        world.digest()

        assert world.homes() == ["Porto"]
        world.assert_sound()


def test_nobody_answers_and_the_memory_goes_on(tmp_path):
    reasons = set()
    with World(tmp_path / FILE, url=unreachable_url()) as world:
        for number in range(12):
            world.say(f"I live in Lisbon, and this is line {number}.")
            world.digest()
            reasons |= {job.reason for job in world.memory.jobs()}

        assert world.homes() == ["Lisbon"]  # the rules read on
        assert any("cannot be reached" in reason for reason in reasons)
        world.assert_sound()


HUGE = (
    b'{"choices": [{"index": 0, "message": {"role": "assistant", "content": "'
    + b"home,lives_in,Porto,0.9\\n" * 2_200_000
)


def test_an_answer_of_fifty_megabytes_is_a_failure_and_no_burden(tmp_path):
    assert len(HUGE) > 50 * 10**6
    with World(tmp_path / FILE, lambda asked: ServerAnswer(body=HUGE)) as world:
        world.say(HOME)
        began = time.monotonic()
        report = world.memory.digest()

        assert report.failed == 1
        assert time.monotonic() - began < 20
        assert any("longer answer than allowed" in job.reason for job in world.memory.jobs())
        world.assert_sound()


def everybody(world: World, count: int, text: str = HOME) -> list[str]:
    """So many users say the same, each with a number of their own; each is read in a call of its own."""
    users = [f"user{number}" for number in range(count)]
    for number, user in enumerate(users):
        world.say(f"{text} #{number}", user)
    return users


def number_of(asked: ServerRequest) -> int:
    """The number that stands in the message which is read."""
    return int(asked.text.rpartition("#")[2].partition('"')[0])


def test_a_connection_that_ends_at_any_byte_of_an_answer_gives_none():
    """Over each cut of the whole body; half an answer is never taken for one."""
    cuts: list[int] = []
    request = Request("facts", "Note the facts.", HOME, "0" * 12)
    with World(":memory:", lambda asked: ServerAnswer(ROW, cut=cuts[-1])) as world:
        size = len(answer_body(ServerAnswer(ROW), ServerRequest("/v1/chat/completions", {}, {"model": "any"})))
        given = []
        for cut in range(size + 8):
            cuts.append(cut)
            with contextlib.suppress(ModelError):
                given.append((cut, world.model.ask(request).text))

        assert {text for _, text in given} == {ROW}
        assert min(cut for cut, _ in given) >= size


def test_a_memory_whose_answers_are_cut_off_anywhere_believes_whole_ones():
    with World(":memory:", lambda asked: ServerAnswer(ROW, cut=12 * number_of(asked))) as world:
        users = everybody(world, 70)
        report = world.memory.digest()
        homes = [world.homes(user) for user in users]

        assert all(home in ([], ["Porto"]) for home in homes)
        assert homes[0] == []
        assert homes[-1] == ["Porto"]
        assert homes == sorted(homes)  # from some cut on, all of it arrives
        assert report.failed == homes.count([])
        world.assert_sound()


def test_an_answer_that_reached_its_limit_anywhere_yields_whole_rows():
    """The text ends in the middle, and the provider says so: whole rows count, half ones do not."""
    whole = f'{ROW}\nhistory,gave_up,old flat,0.9,,add,asserted,event,1,"I gave up the old flat"'
    with World(":memory:", lambda asked: ServerAnswer(whole[: 2 * number_of(asked)], finish="length")) as world:
        users = everybody(world, len(whole) // 2 + 1)
        world.memory.digest()
        told = [sorted(fact.value for fact in world.facts(user)) for user in users]

        assert {tuple(values) for values in told} == {(), ("Porto",), ("Porto", "old flat")}
        assert told[10] == []
        assert told[len(ROW) // 2 + 5] == ["Porto"]
        assert told[-1] == ["Porto", "old flat"]
        world.assert_sound()


WORDS = ["home", "lives_in", "Porto", "", "0.95", "1", "2", "99", "-1", "1e400", "NaN", "true", "set", "remove", "asserted",
         "x" * 700, "Lisbon", "self", "my new address is in Porto", "old flat", "flat, my", '"', "'", "\n", "\u0000", "\ud800",
         "😀", "主页", "DROP TABLE fact", "{", "}", "[", "]", "<facts>", "NONE", "state", "permanent", "work", "works_at", "../..", "%s"]  # fmt: skip
KEYS = [
    "category",
    "fact_key",
    "fact_value",
    "confidence",
    "subject",
    "op",
    "modality",
    "lifetime",
    "message",
    "quote",
    "facts",
]


def random_answers(rng: random.Random, count: int) -> Iterator[str]:
    """Answers that look right from afar: JSON and CSV of the right and of wrong words, whole and broken."""
    for number in range(count):
        if number % 2:
            out = io.StringIO()
            rows = [rng.choices(WORDS, k=rng.randint(1, 12)) for _ in range(rng.randint(0, 6))]
            csv.writer(out, delimiter=rng.choice(",;\t|"), lineterminator="\n").writerows([*rows, mutated(rng)])
            text = out.getvalue()
        else:
            text = json.dumps(random_value(rng, 4))
        if rng.random() < 0.3:
            text = text[: rng.randint(0, len(text))]
        yield rng.choice(["{}", "{}", "Here you are:\n```csv\n{}\n```", "{}\nNONE", "SUMMARY: {}"]).replace("{}", text)


def mutated(rng: random.Random) -> list[str]:
    """The right row with some cells exchanged."""
    row = next(csv.reader([ROW]))
    for _ in range(rng.randint(0, 3)):
        row[rng.randrange(len(row))] = rng.choice(WORDS)
    return row


def random_value(rng: random.Random, depth: int) -> object:
    kind = rng.random()
    if depth == 0 or kind < 0.15:
        return rng.choice([*WORDS, 1, -3.5, True, None])
    if kind < 0.35:
        return [random_value(rng, depth - 1) for _ in range(rng.randint(0, 4))]
    if kind < 0.7:
        return dict(zip(KEYS, mutated(rng), strict=False))
    return {rng.choice(KEYS): random_value(rng, depth - 1) for _ in range(rng.randint(0, 10))}


def test_random_answers_store_nothing_that_was_not_said(full):
    """A thousand with ``--full``."""
    count = 1000 if full else 300
    answers = random_answers(random.Random(7), count)
    reasons: set[str] = set()
    with World(":memory:", lambda asked: next(answers, "NONE"), job_attempts=5) as world:
        users = everybody(world, count * 3 // 5)
        while len(world.server.asked) < count:
            if not world.digest().failed:
                everybody(world, count // 10)  # all that they said was read: they go on
            reasons |= {job.reason.partition(":")[0] for job in world.memory.jobs() if job.reason}
        facts = [fact for user in users for fact in world.facts(user)]

        assert [fact.value for fact in facts].count("Porto") > count // 20
        assert reasons == {"bad-answer"}
        world.assert_sound()


def test_reading_and_writing_wait_for_no_model(tmp_path):
    """While a call hangs, everybody else reads and writes, the user who is read among them."""
    hangs, free = threading.Event(), threading.Event()

    def answer(asked: ServerRequest) -> ServerAnswer | str:
        hangs.set()
        free.wait(30)
        return ROW

    with World(tmp_path / FILE, answer) as world:
        world.say(HOME)
        worker = threading.Thread(target=world.memory.digest)
        worker.start()
        assert hangs.wait(30)
        for number in range(20):
            world.say(f"I live in Lisbon, line {number}.", "bo")
            world.say(f"Another line {number}.")
            world.assert_sound()

        assert worker.is_alive()  # all of this happened during one call
        assert world.homes("bo") == ["Lisbon"]
        free.set()
        worker.join(30)
        assert world.homes() == ["Porto"]
        world.assert_sound()
