"""
Spans of OpenTelemetry for what the doors do and for the calls of models; nothing of it is loaded before `enable`.

Names follow the conventions for generative AI: a span is called by its operation (``search_memory``, ``create_memory``,
…; ``chat MODEL`` for a model), and says whose memory it was by a digest of the names.  What was said, searched and
found stands in no span unless that is asked for.

`enable` puts itself around the methods of the doors, so that a program which does not trace pays nothing.
"""

from __future__ import annotations

import functools
import json
import os
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from importlib import import_module
from typing import Any

from ..context.result import Context
from ..conversation import Conversation
from ..errors import ConfigError, HoldfastError
from ..jobs.model_client import ModelClient
from ..llm.protocol import Answer
from ..memory import Memory
from ..reports import DigestReport, ErasureReceipt, Receipt
from ..scope import Scope
from ..types import FactChange
from ..user import User

CAPTURE = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
MAX_TEXT_CHARS = 4_000
_SECONDS = (0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92)

Attributes = dict[str, Any]


@dataclass(frozen=True, slots=True)
class _Call:
    """
    One method that is traced.

    ``given`` is the position behind ``self`` and the name of the argument that says what: a query, or a record's id.
    """

    owner: type
    method: str
    operation: str
    given: tuple[int, str] | None = None


QUERY, FACT, SEQ = (0, "query"), (0, "fact_id"), (0, "seq")
_CALLS = (
    _Call(Conversation, "append", "create_memory"),
    _Call(Conversation, "edit", "update_memory", SEQ),
    _Call(Conversation, "forget", "delete_memory", SEQ),
    _Call(Conversation, "clear", "delete_memory"),
    _Call(Conversation, "context", "search_memory", QUERY),
    _Call(Conversation, "recall", "search_memory", QUERY),
    _Call(User, "search", "search_memory", QUERY),
    _Call(User, "remember", "upsert_memory"),
    _Call(User, "correct", "update_memory", FACT),
    _Call(User, "never_true", "update_memory", FACT),
    _Call(User, "restore", "update_memory", FACT),
    _Call(User, "forget", "delete_memory", FACT),
    _Call(User, "clear", "delete_memory"),
    _Call(User, "erase", "delete_memory"),
    _Call(Memory, "digest", "holdfast.digest"),
)
_originals: list[tuple[type, str, Any]] = []


def enable(*, tracer_provider: Any = None, meter_provider: Any = None, content: bool | None = None) -> None:
    """
    Trace every memory of this process from now on; a second call replaces the first.

    Args:
        tracer_provider: where spans go; the global one when not given.
        meter_provider: where the durations and tokens of models' calls go; the global one when not given.
        content: whether spans hold what was searched and found; the environment variable
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
    spans = _Spans(trace, metrics, trace.get_tracer("holdfast", tracer_provider=tracer_provider), content)
    for call in _CALLS:
        _replace(call.owner, call.method, functools.partial(spans.around, call))
    models = _Models(spans, metrics.get_meter("holdfast", meter_provider=meter_provider))
    _replace(ModelClient, "ask", models.around)


def disable() -> None:
    """Trace nothing any more."""
    while _originals:
        owner, name, original = _originals.pop()
        setattr(owner, name, original)


def store_id(scope: Scope) -> str:
    """Whose memory, as spans and logs name it: a digest of org, bot and user."""
    named = json.dumps([scope.org, scope.bot, scope.user])
    return sha256(named.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def _replace(owner: type, name: str, wrap: Callable[[Callable[..., Any]], Callable[..., Any]]) -> None:
    original = getattr(owner, name)
    _originals.append((owner, name, original))
    setattr(owner, name, wrap(original))


class _Spans:
    """Makes spans around calls."""

    def __init__(self, trace: Any, metrics: Any, tracer: Any, content: bool) -> None:
        self.trace, self.metrics, self.tracer, self.content = trace, metrics, tracer, content

    def around(self, call: _Call, original: Callable[..., Any]) -> Callable[..., Any]:
        """*original* within a span."""

        @functools.wraps(original)
        def traced(door: Any, *args: Any, **more: Any) -> Any:
            attributes = _before(door, call, args, more, content=self.content)
            with self.started(call.operation, self.trace.SpanKind.INTERNAL, attributes) as span:
                result = self.told(span, lambda: original(door, *args, **more))
                if span.is_recording():
                    span.set_attributes(_after(result, content=self.content))
                return result

        return traced

    def started(self, name: str, kind: Any, attributes: Attributes) -> Any:
        """A span that notes no exception by itself: the message of one may hold what was said."""
        return self.tracer.start_as_current_span(
            name, kind=kind, attributes=attributes, record_exception=False, set_status_on_exception=False
        )

    def told(self, span: Any, work: Callable[[], Any]) -> Any:
        """The result of *work*; an error is told by its code."""
        try:
            return work()
        except BaseException as error:
            span.set_attribute("error.type", _kind(error))
            span.set_status(self.trace.StatusCode.ERROR)
            raise


class _Models:
    """Makes spans around the calls of models, and counts them."""

    def __init__(self, spans: _Spans, meter: Any) -> None:
        self._spans = spans
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

    def around(self, original: Callable[..., Answer]) -> Callable[..., Answer]:
        """*original*, the asking of a model, within a span."""

        @functools.wraps(original)
        def traced(client: ModelClient, scope: Scope, request: Any) -> Answer:
            provider, _, model = client.model.name.partition(":")
            named = {
                "gen_ai.operation.name": "chat",
                "gen_ai.provider.name": provider,
                "gen_ai.request.model": model or provider,
            }
            own = {"gen_ai.memory.store.id": store_id(scope), "holdfast.layer": request.layer} | _within(scope)
            began, failed = time.perf_counter(), {}
            kind = self._spans.trace.SpanKind.CLIENT
            with self._spans.started(f"chat {model or provider}", kind, named | own) as span:
                try:
                    answer: Answer = self._spans.told(span, lambda: original(client, scope, request))
                except BaseException as error:
                    failed = {"error.type": _kind(error)}
                    raise
                finally:
                    self._duration.record(time.perf_counter() - began, named | failed)
                used = {
                    "input": answer.input_tokens,
                    "output": answer.output_tokens,
                    "cache_read.input": answer.cached_tokens,
                }
                for name, tokens in used.items():
                    self._tokens[name].add(tokens, named)
                    span.set_attribute(f"gen_ai.usage.{name}_tokens", tokens)
                span.set_attribute("gen_ai.response.finish_reasons", [answer.finish])
                return answer

        return traced


def _before(door: Any, call: _Call, args: tuple[Any, ...], more: Mapping[str, Any], *, content: bool) -> Attributes:
    """What is known of a call when it begins."""
    found: Attributes = {"gen_ai.operation.name": call.operation, "gen_ai.provider.name": "holdfast"}
    if isinstance(door, Conversation | User):
        found |= {"gen_ai.memory.store.id": store_id(door._scope)} | _within(door._scope)
    if call.given is None:
        return found
    place, name = call.given
    given = args[place] if len(args) > place else more.get(name)
    if name != "query" and given is not None:
        found["gen_ai.memory.record.id"] = str(given)[:200]
    elif content and isinstance(given, str):
        found["gen_ai.memory.query.text"] = given[:MAX_TEXT_CHARS]
    return found


def _after(result: Any, *, content: bool) -> Attributes:
    """What is known of it when it has ended."""
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
    hits = [{"content": hit.text, "id": hit.id, "score": hit.score} for hit in result]
    return _records(len(hits), hits, content=content)


def _records(count: int, records: Iterable[Mapping[str, Any]], *, content: bool) -> Attributes:
    found: Attributes = {"gen_ai.memory.record.count": count}
    if content:
        told = [{**record, "content": record["content"][:MAX_TEXT_CHARS]} for record in records]
        found["gen_ai.memory.records"] = json.dumps(told, ensure_ascii=False)
    return found


def _within(scope: Scope) -> Attributes:
    return {} if scope.conversation is None else {"gen_ai.conversation.id": scope.conversation}


def _kind(error: BaseException) -> str:
    return error.code if isinstance(error, HoldfastError) else type(error).__name__
