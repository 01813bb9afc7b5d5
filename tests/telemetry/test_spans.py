"""What is traced: the names of the conventions, exactly; no word of a chat unless asked for; nothing when not enabled."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator

import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

from holdfast import HoldfastError, Memory
from holdfast.errors import BadInput
from holdfast.integrations import telemetry
from holdfast.jobs.observer import Observer
from holdfast.llm.protocol import ModelError


class Traced:
    """Everything that was exported."""

    def __init__(self) -> None:
        self.exporter = InMemorySpanExporter()
        self.provider = TracerProvider()
        self.provider.add_span_processor(SimpleSpanProcessor(self.exporter))
        self.reader = InMemoryMetricReader()
        self.meters = MeterProvider([self.reader])

    def enable(self, **more: object) -> None:
        telemetry.enable(tracer_provider=self.provider, meter_provider=self.meters, **more)  # type: ignore[arg-type]

    @property
    def spans(self):
        return self.exporter.get_finished_spans()

    @property
    def text(self) -> str:
        return "".join(span.to_json() for span in self.spans)

    def metrics(self):
        data = self.reader.get_metrics_data()
        return {m.name: m.data.data_points for r in data.resource_metrics for s in r.scope_metrics for m in s.metrics}


@pytest.fixture
def traced(monkeypatch) -> Iterator[Traced]:
    monkeypatch.delenv(telemetry.CAPTURE, raising=False)
    found = Traced()
    yield found
    telemetry.disable()
    found.provider.shutdown()
    found.meters.shutdown()


def story(memory: Memory) -> None:
    chat, user = memory.conversation("c", user="ana"), memory.user("ana")
    chat.append([{"role": "user", "content": "I live in Porto."}, {"role": "assistant", "content": "Noted!"}])
    chat.context("Where do I live?")
    user.search("Porto")
    fact = user.remember("Ana is allergic to peanuts.").fact
    user.correct(fact.id, value="Ana is allergic to walnuts.")
    chat.edit(1, "I live in Lisbon.")
    user.forget(user.facts("home")[0].id)
    memory.digest()
    user.erase()


def test_each_call_of_a_door_is_a_span_of_its_operation(traced):
    traced.enable()
    with Memory(embedder=None) as memory:
        story(memory)

    assert [span.name for span in traced.spans] == [
        "create_memory", "search_memory", "search_memory", "upsert_memory", "update_memory", "update_memory",
        "delete_memory", "holdfast.digest", "delete_memory",
    ]  # fmt: skip
    for span in traced.spans:
        assert span.attributes["gen_ai.operation.name"] == span.name
        assert span.attributes["gen_ai.provider.name"] == "holdfast"
        assert span.kind is SpanKind.INTERNAL
        assert span.status.status_code is StatusCode.UNSET
    append, context, search, remember, correct, edit, forget, _, erase = [
        dict(span.attributes) for span in traced.spans
    ]
    ana = append["gen_ai.memory.store.id"]
    assert {a["gen_ai.memory.store.id"] for a in (context, search, remember, correct, edit, forget, erase)} == {ana}
    assert (append["gen_ai.conversation.id"], append["gen_ai.memory.record.count"], append["holdfast.changes"]) == (
        "c",
        2,
        1,
    )
    assert context["gen_ai.conversation.id"] == "c"
    assert search["gen_ai.memory.record.count"] == 3  # the fact and both messages
    assert remember["gen_ai.memory.record.id"]
    assert (edit["gen_ai.memory.record.id"], "gen_ai.memory.record.id" in erase) == ("1", False)


def test_nothing_that_was_said_or_who_said_it_is_told(traced):
    traced.enable()
    with Memory(embedder=None) as memory:
        story(memory)

    for word in ("Porto", "Lisbon", "peanuts", "walnuts", "Noted", "live", '"ana"', "gen_ai.memory.query.text"):
        assert word not in traced.text


@pytest.mark.parametrize("how", ["argument", "environment"])
def test_what_was_searched_and_found_is_told_on_demand(traced, monkeypatch, how):
    monkeypatch.setenv(telemetry.CAPTURE, "true" if how == "environment" else "false")
    traced.enable(**({} if how == "environment" else {"content": True}))
    with Memory(embedder=None) as memory:
        memory.conversation("c", user="ana").record("I live in Porto.")
        memory.user("ana").search("Porto")

    found = dict(traced.spans[-1].attributes)
    assert found["gen_ai.memory.query.text"] == "Porto"
    records = json.loads(found["gen_ai.memory.records"])
    assert len(records) == found["gen_ai.memory.record.count"] == 2
    assert all(set(record) == {"content", "id", "score"} for record in records)
    assert {"Lives in Porto.", "I live in Porto."} == {record["content"] for record in records}


def test_an_error_is_told_by_its_code_without_its_words(traced):
    traced.enable()
    with Memory(embedder=None) as memory:
        with pytest.raises(BadInput):
            memory.conversation("c", user="ana").append({"role": "wizard", "content": "secret"})

    (span,) = traced.spans
    assert (span.attributes["error.type"], span.status.status_code) == ("bad-input", StatusCode.ERROR)
    assert (span.status.description, span.events) == (None, ())
    assert "wizard" not in traced.text


def test_two_users_are_two_stores_and_ids_say_nothing_of_them(traced):
    traced.enable()
    with Memory(embedder=None) as memory:
        for org, user in (("a", "b/c"), ("a/b", "c"), ("a", "b/c")):
            memory.conversation("c", user=user, org=org).record("Hello.")

    one, two, three = [span.attributes["gen_ai.memory.store.id"] for span in traced.spans]
    assert one == three != two
    assert len(one) == 16


def test_a_call_of_a_model_is_a_span_with_its_tokens(traced):
    traced.enable()
    with Memory(embedder=None, llm=lambda messages: "NONE") as memory:
        chat = memory.conversation("c", user="ana")
        for number in range(12):
            chat.record(f"Sentence {number} about the garden, which is green.", "I see.")
        memory.digest()

    calls = [span for span in traced.spans if span.kind is SpanKind.CLIENT]
    assert calls
    for span in calls:
        assert span.name == f"chat {span.attributes['gen_ai.request.model']}"
        assert span.attributes["gen_ai.operation.name"] == "chat"
        assert span.attributes["gen_ai.usage.input_tokens"] > 0
    assert "garden" not in traced.text
    metrics = traced.metrics()
    assert sum(point.count for point in metrics["gen_ai.client.operation.duration"]) == len(calls)
    assert metrics["gen_ai.client.operation.duration"][0].explicit_bounds[0] == 0.01
    used = sum(span.attributes["gen_ai.usage.input_tokens"] for span in calls)
    assert sum(point.value for point in metrics["gen_ai.client.inference.usage.input_tokens"]) == used


def test_a_model_that_fails_is_a_span_that_says_so(traced):
    def broken(messages):
        raise ModelError("the words of a provider")

    traced.enable()
    with Memory(embedder=None, llm=broken) as memory:
        memory.conversation("c", user="ana").record("I live in Porto.", "Noted!")
        memory.conversation("c", user="ana").end()
        memory.digest()

    failed = [span for span in traced.spans if span.kind is SpanKind.CLIENT]
    assert failed
    assert {span.attributes["error.type"] for span in failed} == {"model"}
    assert "words of a provider" not in traced.text


def test_enabling_twice_traces_once_and_disabling_ends_it(traced):
    traced.enable()
    traced.enable()
    with Memory(embedder=None) as memory:
        memory.conversation("c", user="ana").record("Hello.")
        assert len(traced.spans) == 1
        telemetry.disable()
        memory.conversation("c", user="ana").record("Hello again.")

    assert len(traced.spans) == 1
    assert Observer.tracers == []


def test_nothing_is_loaded_that_nobody_enabled():
    code = (
        "import sys, holdfast\n"
        "with holdfast.Memory(embedder=None) as m: m.conversation('c', user='a').record('Hi.')\n"
        "assert not [n for n in sys.modules if n.startswith(('opentelemetry', 'holdfast.integrations.telemetry'))]"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_without_the_package_the_hint_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "opentelemetry.trace", None)

    with pytest.raises(HoldfastError, match="holdfast\\[telemetry\\]"):
        telemetry.enable()
