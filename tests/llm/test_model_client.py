"""Every call is within its budget, has the settings, and is recorded."""

from __future__ import annotations

from datetime import UTC, date, datetime

import pytest

from holdfast import Budget, Config, DigestReport, Memory, Price, ReplyUsage
from holdfast.errors import BadInput, ConfigError, NotFound
from holdfast.jobs.model_client import CallDeferred
from holdfast.llm import Answer, BadAnswer, ModelError, Request
from holdfast.scope import Scope
from holdfast.testing.fakes import FakeClock

ANA = Scope("default", "default", "ana")
START = datetime(2026, 3, 1, 22, tzinfo=UTC)
ASKED = Request("facts", "Read.", "I moved.", "abc", cache_key="facts:1f:1-10", timeout_s=5)


class Counting:
    """Answers with what it is told to have used; an error in ``fails`` is raised instead."""

    name = "count:1"

    def __init__(self, used=(100, 10, 40), cost=0.5):
        self.used, self.cost, self.asked, self.fails = used, cost, [], []

    def price(self, input_tokens, output_tokens, cached_tokens=0):
        return self.cost

    def ask(self, request):
        self.asked.append(request)
        if self.fails:
            raise self.fails.pop(0)
        return Answer("ok", self.name, "stop", *self.used, cost=self.cost)


@pytest.fixture
def clock():
    return FakeClock(START)


@pytest.fixture
def model():
    return Counting()


def opened(model, clock, users=("ana",), path=":memory:", **settings):
    memory = Memory(path, llm=model, embedder=None, clock=clock, config=Config(**settings))
    for user in users:
        memory.conversation("c", user=user).record("Hello.")
    memory.digest()
    model.asked.clear()
    return memory


def ask(memory, scope=ANA, request=ASKED):
    return memory._engine.client.ask(scope, request)


def facts(usage):
    return [row for row in usage if row.layer == "facts"]


def test_a_call_is_on_record_when_it_returns(model, clock):
    memory = opened(model, clock)
    before = memory.user("ana").usage(by=())
    ask(memory)
    model.fails = [ModelError("down")]
    with pytest.raises(ModelError):
        ask(memory)

    (row,) = facts(memory.usage(by=("user", "day", "layer", "model"), user="ana"))
    assert (row.user, row.day, row.model) == ("ana", "2026-03-01", "count:1")
    (whole,) = memory.user("ana").usage(by=())
    had = before[0] if before else whole.__class__(cost=0.0)
    assert (whole.calls - had.calls, whole.failed - had.failed) == (2, 1)
    assert (whole.input_tokens - had.input_tokens, whole.output_tokens - had.output_tokens) == (100, 10)
    assert whole.cached_tokens - had.cached_tokens == 40
    assert whole.cost - had.cost == pytest.approx(0.5)
    assert whole.tokens == whole.input_tokens + whole.output_tokens
    assert memory.doctor().ok


@pytest.mark.parametrize(
    ("prices", "cost", "paid"),
    [
        ({}, None, None),
        ({}, 0.0, 0.0),
        ({}, 0.25, 0.25),
        ({"count:1": Price(2, 10)}, 0.25, 100 * 2e-6 + 10 * 10e-6),
        ({"count:1": Price(2, 10, cached=0.5)}, None, 60 * 2e-6 + 40 * 0.5e-6 + 10 * 10e-6),
        ({"other:1": Price(2, 10)}, None, None),
    ],
)
def test_a_price_of_ones_own_goes_first_and_an_unknown_one_is_not_zero(model, clock, prices, cost, paid):
    model.cost = cost
    memory = opened(model, clock, prices=prices)
    ask(memory)

    (row,) = facts(memory.usage())
    assert row.cost == (None if paid is None else pytest.approx(paid * row.calls))
    assert row.unpriced == (row.calls if paid is None else 0)


def test_short_prompts_go_without_a_key_and_the_switch_is_for_all(model, clock):
    long = Request("facts", "Read. " * 600, "I moved.", "abc", cache_key="facts:1f:1-10")
    for settings, keys in [
        ({}, ["", "facts:1f:1-10"]),
        ({"prompt_cache_min_tokens": 0}, ["facts:1f:1-10"] * 2),
        ({"prompt_cache": False}, ["", ""]),
    ]:
        memory = opened(model, clock, model_timeout_s=7, **settings)
        for request in (ASKED, long):
            ask(memory, request=request)

        assert [request.cache_key for request in model.asked] == keys
        assert {request.timeout_s for request in model.asked} == {7}


@pytest.mark.parametrize(
    ("budget", "said"),
    [
        ({"budget": Budget(tokens_per_day=200)}, "budget of the memory: 220 of 200 tokens are used today"),
        ({"budget_org": Budget(usd_per_day=0.9)}, "budget of org 'default': 1.00 of 0.90 dollars are used today"),
        ({"budget_user": Budget(200, 99.0)}, "budget of this user: 220 of 200 tokens are used today"),
    ],
)
def test_a_spent_budget_stops_until_the_day_turns(model, clock, budget, said):
    memory = Memory(llm=model, embedder=None, clock=clock, config=Config(**budget))
    memory.conversation("c", user="ana").append({"role": "assistant", "content": "Hello."})
    model.asked.clear()
    ask(memory)
    ask(memory)
    with pytest.raises(CallDeferred) as stopped:
        ask(memory)

    assert stopped.value.message == said
    assert stopped.value.until_ms == datetime(2026, 3, 2, tzinfo=UTC).timestamp() * 1000
    assert len(model.asked) == 2
    clock.advance(hours=2)
    ask(memory)
    assert len(model.asked) == 3


def test_a_budget_of_one_is_not_that_of_another(model, clock):
    memory = Memory(llm=model, embedder=None, clock=clock, config=Config(budget_org=Budget(tokens_per_day=100)))
    for org in ("acme", "other"):
        memory.conversation("c", user="ana", org=org).append({"role": "assistant", "content": "Hello."})
    ask(memory, Scope("acme", "default", "ana"))
    with pytest.raises(CallDeferred):
        ask(memory, Scope("acme", "default", "bo"))

    assert ask(memory, Scope("other", "default", "ana")).text == "ok"


def test_what_another_process_used_counts(model, clock, tmp_path):
    budget = Config(budget=Budget(tokens_per_day=100))
    with Memory(tmp_path / "m.db", llm=model, embedder=None, clock=clock, config=budget) as one:
        one.conversation("c", user="ana").append({"role": "assistant", "content": "Hello."})
        ask(one)
    with (
        Memory(tmp_path / "m.db", llm=model, embedder=None, clock=clock, config=budget) as other,
        pytest.raises(CallDeferred),
    ):
        ask(other)


def test_a_budget_in_dollars_needs_a_price(clock):
    with pytest.raises(ConfigError, match=r"needs the price of function:echo, which is not known \(name it: Config"):
        Memory(llm=echo, embedder=None, config=Config(budget=Budget(usd_per_day=1)))
    priced = Config(budget=Budget(usd_per_day=1), prices={"function:echo": Price(1, 1)})
    Memory(llm=echo, embedder=None, config=priced).close()


def echo(messages):
    return "ok"


@pytest.mark.parametrize(
    "settings",
    [
        {"budget": Budget()},
        {"budget_org": 5},
        {"budget_user": Budget(tokens_per_day=-1)},
        {"prices": {"m": 3}},
        {"prices": {"m": Price(-1, 1)}},
        {"prompt_cache_retention": "1h"},
    ],
)
def test_settings_that_cannot_be_used_are_refused(settings):
    with pytest.raises(ConfigError):
        Config(**settings)


def test_old_days_fall_off_the_record(model, clock):
    memory = opened(model, clock, usage_days=30)
    ask(memory)
    clock.advance(days=20)
    ask(memory)
    assert len({row.day for row in memory.usage(by=("day",))}) == 2
    clock.advance(days=20)
    ask(memory)

    assert [row.day for row in memory.usage(by=("day",))] == ["2026-03-21", "2026-04-10"]


def test_usage_can_be_asked_for_some_days(model, clock):
    memory = opened(model, clock, users=("ana", "bo"))
    clock.advance(days=1)
    ask(memory)
    ask(memory, Scope("default", "default", "bo"))
    ask(memory, Scope("default", "default", "bo"))

    assert [(r.user, r.calls) for r in memory.usage(by="user", since=date(2026, 3, 2))] == [("ana", 1), ("bo", 2)]
    bo = memory.user("bo")
    assert [(r.user, r.day, r.calls) for r in bo.usage(by=("user", "day"), since=date(2026, 3, 2))] == [
        ("bo", "2026-03-02", 2)
    ]
    assert bo.usage(since=date(2026, 3, 3)) == []
    assert memory.usage(until=datetime(2026, 2, 28, 23, 30, tzinfo=UTC)) == []
    for wrong in ({"by": ("price",)}, {"since": "2026-03-02"}, {"until": datetime(2026, 3, 2)}):
        with pytest.raises(BadInput):
            memory.usage(**wrong)
        with pytest.raises(BadInput):
            bo.usage(**wrong)


def test_a_call_that_outlives_its_user_leaves_no_trace_of_them(clock):
    class Erasing(Counting):
        def ask(self, request):
            memory.user("ana").erase()
            return super().ask(request)

    model = Counting()
    memory = opened(model, clock)
    memory._engine.client.model.__class__ = Erasing
    ask(memory)

    assert memory.usage(user="ana") == []
    assert memory.admin.users() == []


def test_usage_is_erased_and_exported_with_the_user(model, clock):
    memory = opened(model, clock)
    ask(memory)
    data = memory.user("ana").export()
    before = memory.usage(by=("day", "layer", "model"))
    receipt = memory.user("ana").erase()

    assert receipt.rows["usage"] == len(before)
    assert memory.usage() == []
    memory.import_(data)
    assert memory.usage(by=("day", "layer", "model")) == before


def asks_once(memory, user="ana"):
    """Want one job that asks the model once; it is done when the model answered."""
    engine = memory._engine

    def handler(job):
        scope = Scope(job.org, job.bot, job.user, conversation=job.conversation)
        engine.client.ask(scope, ASKED)
        engine.store.write(scope, lambda view: view.finish(job, engine.now_ms()))
        return DigestReport()

    engine.queue.handlers["test"] = handler
    scope = Scope("default", "default", user, conversation="c")
    engine.store.write(scope, lambda view: view.want("test", "", wanted=1, run_at_ms=0, now_ms=0))


def the_job(memory):
    (job,) = [job for job in memory.jobs() if job.kind == "test"]
    return job


def test_work_without_budget_waits_visibly_and_goes_on_the_next_day(model, clock):
    memory = opened(model, clock, budget=Budget(tokens_per_day=0))
    asks_once(memory)

    assert memory.digest().waiting == 1
    job = the_job(memory)
    assert (job.state, job.attempt) == ("waiting", 0)
    assert job.reason == (
        "waiting: budget of the memory: 0 of 0 tokens are used today; next at 2026-03-02T00:00:00+00:00"
    )
    assert [job.id for job in memory.jobs("waiting")] == [job.id]
    assert job.id not in [job.id for job in memory.jobs("ready")]
    assert memory.digest() == DigestReport()
    assert model.asked == []
    clock.advance(hours=2)
    assert memory.digest().waiting == 1
    assert memory.conversation("c", user="ana").append({"role": "user", "content": "I moved to Lisbon."}).seqs == (2,)


def test_a_larger_budget_sets_waiting_work_free_when_the_memory_is_opened(model, clock, tmp_path):
    with opened(model, clock, path=tmp_path / "m.db", budget=Budget(tokens_per_day=0)) as memory:
        asks_once(memory)
        memory.digest()
    with Memory(tmp_path / "m.db", llm=model, embedder=None, clock=clock) as memory:
        job = the_job(memory)
        assert (job.state, job.run_at_ms) == ("ready", clock().timestamp() * 1000)
        asks_once(memory)

        assert memory.digest().jobs == 1
        assert [job for job in memory.jobs() if job.kind == "test"] == []


def test_a_model_that_asks_for_rest_is_asked_by_nobody_until_then(model, clock):
    memory = opened(model, clock, users=("ana", "bo"))
    asks_once(memory, "ana")
    asks_once(memory, "bo")
    model.fails = [ModelError("count:1 has reached its rate limit", retry_after_s=30)]
    report = memory.digest()

    assert (report.failed, report.waiting) == (1, 1)
    assert len(model.asked) == 1
    assert {job.run_at_ms for job in memory.jobs() if job.kind == "test"} == {clock().timestamp() * 1000 + 30_000}
    clock.advance(seconds=30)
    assert memory.digest().jobs == 2
    assert [job for job in memory.jobs() if job.kind == "test"] == []


def test_a_fault_that_only_a_user_can_mend_waits_and_is_never_given_up(model, clock):
    memory = opened(model, clock)
    asks_once(memory)
    for _ in range(20):
        model.fails = [ModelError("count:1 refused the key", hint="check the key", transient=False, setup=True)]
        assert memory.digest().failed == 1
        job = the_job(memory)
        assert (job.state, job.attempt) == ("waiting", 0)
        assert job.reason.startswith("waiting: model: count:1 refused the key (check the key); next at 2026-03-0")
        assert memory.digest().waiting == 0
        clock.advance(minutes=15)

    model.fails = []
    assert memory.digest().jobs == 1


def test_faults_that_pass_are_tried_again_and_lasting_ones_put_aside(model, clock):
    memory = opened(model, clock)
    for error, state in [
        (ModelError("down"), "ready"),
        (BadAnswer("empty"), "ready"),
        (ModelError("too long", transient=False), "dead"),
    ]:
        asks_once(memory)
        model.fails = [error]
        memory.digest()
        assert the_job(memory).state == state
        assert error.message in the_job(memory).reason
        clock.advance(hours=1)
        memory.digest()


def test_what_ones_own_model_used_for_a_reply_counts_too(model, clock):
    memory = opened(model, clock, budget_user=Budget(tokens_per_day=2_000), prices={"mine": Price(1, 2, cached=0.5)})
    chat = memory.conversation("c", user="ana")
    chat.record_usage("mine", input_tokens=1_000, output_tokens=100, cached_tokens=400)
    chat.record_usage("other", input_tokens=1_000, output_tokens=100)
    chat.record_usage("third", input_tokens=0, output_tokens=0, cost=0.25)

    rows = {row.model: row for row in memory.usage() if row.layer == "chat"}
    assert rows["mine"].cost == pytest.approx(600e-6 + 400 * 0.5e-6 + 100 * 2e-6)
    assert (rows["mine"].input_tokens, rows["mine"].output_tokens, rows["mine"].cached_tokens) == (1_000, 100, 400)
    assert rows["other"].cost is None
    assert rows["third"].cost == 0.25
    with pytest.raises(CallDeferred, match="2,200 of 2,000 tokens are used today"):
        ask(memory)
    for wrong in ({"input_tokens": -1}, {"output_tokens": 1.5}, {"cost": -1}, {"cost": float("nan")}):
        with pytest.raises(BadInput):
            chat.record_usage("mine", **({"input_tokens": 1, "output_tokens": 1} | wrong))
    question, reply = chat.record("Where was it?", "At the bakery.").seqs
    chat.record_usage("mine", input_tokens=1_000, output_tokens=100, cached_tokens=400, seq=reply)
    assert [message.usage for message in chat.load(last=2)] == [None, ReplyUsage("mine", 1_000, 100, 400)]
    assert chat.load(last=1)[0].content == "At the bakery."
    with pytest.raises(BadInput, match="no reply"):
        chat.record_usage("mine", input_tokens=1, output_tokens=1, seq=question)
    with pytest.raises(NotFound):
        chat.record_usage("mine", input_tokens=1, output_tokens=1, seq=99)
    memory.conversation("c", user="nobody").record_usage("mine", input_tokens=1, output_tokens=1)
    assert memory.usage(user="nobody") == []
