"""
OpenTelemetry spans of what a memory does and of the calls of models; the package is loaded by `enable`.

Names follow the conventions for generative AI: a span is named by its operation (``search_memory``, ``create_memory``,
…; ``chat MODEL`` for a model), and names the memory by a digest.  No span holds message text, queries or results unless
you ask for that.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from typing import Any

from ..context.result import Context
from ..errors import ConfigError, HoldfastError
from ..jobs.observer import ObservedCall, Observer, Tracer, store_id
from ..llm.protocol import Answer
from ..reports import DigestReport, ErasureReceipt, Receipt
from ..types import FactChange

CAPTURE = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
MAX_TEXT_CHARS = 4_000
OPERATIONS = {
    "append": "create_memory",
    "edit": "update_memory",
    "forget_message": "delete_memory",
    "clear_conversation": "delete_memory",
    "context": "search_memory",
    "recall": "search_memory",
    "search": "search_memory",
    "remember": "upsert_memory",
    "correct": "update_memory",
    "never_true": "update_memory",
    "restore": "update_memory",
    "forget_fact": "delete_memory",
    "clear_facts": "delete_memory",
    "erase": "delete_memory",
    "digest": "holdfast.digest",
}
_SECONDS = (0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92)
_enabled: list[Tracer] = []

Attributes = dict[str, Any]


def enable(*, tracer_provider: Any = None, meter_provider: Any = None, content: bool | None = None) -> None:
    """
    Trace every memory of this process from now on; a second call replaces the first.

    Args:
        tracer_provider: where spans go; the global one when not given.
        meter_provider: where the durations and tokens of models' calls go; the global one when not given.
        content: whether spans hold queries and results; the environment variable
            ``OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT`` decides when not given.

    Raises:
        ConfigError: the package opentelemetry-api is not installed.
    """
    try:
        trace, metrics = import_module("opentelemetry.trace"), import_module("opentelemetry.metrics")
    except ImportError as error:
        hint = "pip install 'holdfast[telemetry]'"
        raise ConfigError(f"traces need a package that is not installed: {error.name}", hint=hint) from error
    disable()
    if content is None:
        content = os.environ.get(CAPTURE, "").strip().lower() in ("1", "true", "span_only", "span_and_event")
    tracer = trace.get_tracer("holdfast", tracer_provider=tracer_provider)
    spans = _Spans(trace, tracer, metrics.get_meter("holdfast", meter_provider=meter_provider), content)
    _enabled.append(spans.around)
    Observer.tracers.append(spans.around)


def disable() -> None:
    """Stop tracing."""
    while _enabled:
        Observer.tracers.remove(_enabled.pop())


class _Spans:
    """A tracer that makes spans of calls, and metrics of the calls of models."""

    def __init__(self, trace: Any, tracer: Any, meter: Any, content: bool) -> None:
        self._trace, self._tracer, self._content = trace, tracer, content
        self._duration = meter.create_histogram(
            "gen_ai.client.operation.duration",
            unit="s",
            description="Duration of a call of a model.",
            explicit_bucket_boundaries_advisory=_SECONDS,
        )
        self._tokens = {
            kind: meter.create_counter(
                f"gen_ai.client.inference.usage.{kind}_tokens", unit="{token}", description=f"Tokens: {kind}."
            )
            for kind in ("input", "output", "cache_read.input")
        }

    @contextmanager
    def around(self, call: ObservedCall) -> Iterator[None]:
        """Open the span of a call."""
        if call.name == "ask":
            with self._model_call(call):
                yield
        elif call.name in OPERATIONS:
            attributes = _before(call, OPERATIONS[call.name], content=self._content)
            with self._span(OPERATIONS[call.name], self._trace.SpanKind.INTERNAL, attributes) as span:
                yield
                if span.is_recording():
                    span.set_attributes(_after(call.result, content=self._content))
        else:
            yield

    @contextmanager
    def _span(self, name: str, kind: Any, attributes: Attributes) -> Iterator[Any]:
        """Open a span that records an error by its code: the message of an exception may hold message text."""
        with self._tracer.start_as_current_span(
            name, kind=kind, attributes=attributes, record_exception=False, set_status_on_exception=False
        ) as span:
            try:
                yield span
            except BaseException as error:
                span.set_attribute("error.type", _error_type(error))
                span.set_status(self._trace.StatusCode.ERROR)
                raise

    @contextmanager
    def _model_call(self, call: ObservedCall) -> Iterator[None]:
        """Open the span of a model's call, and measure it."""
        provider, _, model = call.details["model"].partition(":")
        model = model or provider
        named = {"gen_ai.operation.name": "chat", "gen_ai.provider.name": provider, "gen_ai.request.model": model}
        own = _memory(call) | {"holdfast.layer": call.details["layer"]}
        began, failed = time.perf_counter(), {}
        with self._span(f"chat {model}", self._trace.SpanKind.CLIENT, named | own) as span:
            try:
                yield
            except BaseException as error:
                failed = {"error.type": _error_type(error)}
                raise
            finally:
                self._duration.record(time.perf_counter() - began, named | failed)
            answer: Answer = call.result
            used = {
                "input": answer.input_tokens,
                "output": answer.output_tokens,
                "cache_read.input": answer.cached_tokens,
            }
            for name, tokens in used.items():
                self._tokens[name].add(tokens, named)
                span.set_attribute(f"gen_ai.usage.{name}_tokens", tokens)
            span.set_attribute("gen_ai.response.finish_reasons", [answer.finish])


def _before(call: ObservedCall, operation: str, *, content: bool) -> Attributes:
    """Return the attributes known when a call begins."""
    found: Attributes = {"gen_ai.operation.name": operation, "gen_ai.provider.name": "holdfast"} | _memory(call)
    record, query = call.details.get("record"), call.details.get("query")
    if record is not None:
        found["gen_ai.memory.record.id"] = str(record)[:200]
    if content and isinstance(query, str):
        found["gen_ai.memory.query.text"] = query[:MAX_TEXT_CHARS]
    return found


def _memory(call: ObservedCall) -> Attributes:
    """Return the attributes that name the memory and the conversation."""
    if call.scope is None:
        return {}
    place = {} if call.scope.conversation is None else {"gen_ai.conversation.id": call.scope.conversation}
    return {"gen_ai.memory.store.id": store_id(call.scope)} | place


def _after(result: Any, *, content: bool) -> Attributes:
    """Return the attributes known when a call has returned."""
    if isinstance(result, DigestReport):
        counts = ("jobs", "summaries", "facts", "failed", "tokens")
        return {f"holdfast.{name}": getattr(result, name) for name in counts}
    if isinstance(result, ErasureReceipt):
        return {"gen_ai.memory.record.count": sum(result.rows.values())}
    if isinstance(result, FactChange):
        fact = result.fact
        return {"holdfast.change": result.op} | ({} if fact is None else {"gen_ai.memory.record.id": fact.id})
    if isinstance(result, Receipt):
        skipped = {"holdfast.skipped": result.skipped} if result.skipped else {}
        return {"gen_ai.memory.record.count": len(result.seqs), "holdfast.changes": len(result.changes)} | skipped
    if isinstance(result, Context):
        shown = [{"content": line} for section in result.sections for line in section.items]
        tokens = {"holdfast.context.tokens": result.tokens}
        return tokens | _records(len(result.sources), shown, content=content)
    hits = [{"content": hit.text, "id": hit.id, "score": hit.relevance} for hit in result]
    return _records(len(hits), hits, content=content)


def _records(count: int, records: Iterable[Mapping[str, Any]], *, content: bool) -> Attributes:
    found: Attributes = {"gen_ai.memory.record.count": count}
    if content:
        cut = [{**record, "content": record["content"][:MAX_TEXT_CHARS]} for record in records]
        found["gen_ai.memory.records"] = json.dumps(cut, ensure_ascii=False)
    return found


def _error_type(error: BaseException) -> str:
    return error.code if isinstance(error, HoldfastError) else type(error).__name__
