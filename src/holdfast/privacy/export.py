"""
Everything held about a user as plain JSON, and back.

What was said and what was made of it travels: messages, summaries, facts with their evidence, what was
refused, what was chosen.  What can be computed again does not: the index, vectors, pending work.
Times are milliseconds since 1970 UTC, as in the store.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, asdict, fields, replace
from datetime import datetime
from functools import cache
from types import NoneType, UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from ..clock import from_ms, to_ms
from ..config import Config
from ..errors import BadInput, Conflict, HoldfastError
from ..ingest.append import ABANDONED, build_document, index_message
from ..jobs.queue import ReadMode
from ..jobs.summaries import into_index as summary_into_index
from ..reconcile.archive import index_fact as fact_into_index
from ..reports import Event, News
from ..scope import Scope, checked_name
from ..store import (
    ConsentRow,
    ConversationRow,
    Derivation,
    EpisodeRangeRow,
    FactRow,
    ItemRow,
    MessageRow,
    PromptRow,
    ReadView,
    RebuildRow,
    Side,
    Store,
    SubjectRow,
    UsageRow,
    UserRow,
    WriteView,
    open_store,
)
from ..text import dataclass
from ..text.validate import MAX_META_DEPTH, is_nested_deeper
from ..types import LABELS, Candidate, Evidence, Fact, Message, Summary
from .consent import ConsentChoices
from .ledger import ERASED

FORMAT, VERSION = "holdfast-user", 1


@dataclass(frozen=True, slots=True)
class Exporter:
    """Exports from and imports into one store."""

    store: Store
    config: Config
    now_ms: Callable[[], int]
    choices: ConsentChoices

    def export(self, scope: Scope) -> dict[str, Any]:
        """Everything of the user, of all subjects, in one snapshot."""
        return self.store.read(scope.about(None), self._export)

    def _export(self, view: ReadView) -> dict[str, Any]:
        scope = view.scope
        return {
            "format": FORMAT,
            "version": VERSION,
            "org": scope.org,
            "user": scope.user,
            "bot": scope.bot,
            "consent": [asdict(row) for row in view.consent()],
            "never": [{"subject": subject, "topic": topic} for subject, topic in view.blocked_topics()],
            "subjects": [asdict(row) | {"aliases": list(row.aliases)} for row in view.subjects()],
            "prompts": [asdict(row) for row in view.prompts()],
            "usage": [asdict(row) for row in view.usage()],
            "conversations": [_conversation(view, row) for row in view.conversations()],
            "facts": [_fact(row) for row in view.all_facts()],
            "endings": [asdict(edge) for edge in view.endings()],
            "items": [
                {"subject": subject, "conversation": conversation}
                | asdict(row)
                | {"value": b64encode(row.value).decode("ascii")}
                for subject, conversation, row in view.every_item()
            ],
        }

    def import_(self, scope: Scope, data: object) -> None:
        """
        Import an export for a user without any data.

        It is tried in a separate store first, whose every promise is then checked.

        Raises:
            BadInput: not an export, or one that was damaged; nothing was stored.
            Conflict: something is held about the user, or they opted out.
        """
        if not isinstance(data, Mapping) or data.get("format") != FORMAT:
            raise BadInput("this is not the export of a user", hint="pass what export() returned")
        if data.get("version") != VERSION:
            raise BadInput(f"this export has version {data.get('version')!r}; this library reads {VERSION}")
        user = scope.about(None)
        reads = self.choices.reads(user)
        trial = open_store(":memory:", self.config)
        try:
            trial.write(user, lambda view: self._import(view, data, reads))
            broken = trial.check()
        except (Conflict, BadInput) as error:
            raise BadInput(f"this export cannot be used: {error.message}") from error
        except (TypeError, ValueError, KeyError, OverflowError, HoldfastError) as error:
            raise BadInput(f"this export cannot be used: {type(error).__name__}") from error
        finally:
            trial.close()
        if broken:
            raise BadInput(f"this export breaks the rule {broken[0].rule}", hint="export the user again")
        self.store.write(user, lambda view: self._import(view, data, reads))

    def _import(self, view: WriteView, data: Data, reads: ReadMode) -> None:
        if view.user() != UserRow() or view.consent():
            raise Conflict("this user has data already", hint="erase() first, or choose another user")
        now_ms = self.now_ms()
        view.save_user(UserRow(epoch=now_ms), now_ms)
        for item in object_list(data, "conversations"):
            self._take_conversation(view, item, now_ms)
        for item in object_list(data, "facts"):
            row = _fact_row(item)
            if row.fact.live:
                row = fact_into_index(view, row, now_ms)
            view.add_fact(row)
            view.add_derivations(
                Derivation("fact", row.fact.id, "message", e.home, e.conversation, e.seq, e.seq)
                for e in row.fact.evidence
            )
        view.add_derivations(build_value(Derivation, edge) for edge in object_list(data, "endings"))
        for item in object_list(data, "consent"):
            view.save_consent(build_value(ConsentRow, item))
        for item in object_list(data, "never"):
            view.set_blocked_topic(text_field(item, "subject"), text_field(item, "topic"), blocked=True, now_ms=now_ms)
        for item in _may_be_listed(data, "subjects"):
            view.save_subject(build_value(SubjectRow, item))
        for item in _may_be_listed(data, "prompts"):
            view.add_prompt(build_value(PromptRow, item))
        for item in _may_be_listed(data, "usage"):
            view.add_usage(build_value(UsageRow, item))
        for item in _may_be_listed(data, "items"):
            kept = build_value(ItemRow, item, value=b64decode(text_field(item, "value"), validate=True))
            view.at(text_field(item, "subject"), text_field(item, "conversation")).save_item(kept)
        self.choices.take_up(view, reads, now_ms)

    def _take_conversation(self, view: WriteView, item: Data, now_ms: int) -> None:
        row = build_value(ConversationRow, item)
        here = view.at(checked_name("subject", row.subject), checked_name("conversation id", row.conversation))
        here.save_conversation(row)
        user = view.user()
        stored = [
            _message_row(one, row.conversation, user.next_doc + i)
            for i, one in enumerate(object_list(item, "messages"))
        ]
        ready = [
            (m, index_message(m.message, from_ms(now_ms), self.config.language, self.config.detectors))
            for m in stored
            if m.message.role not in (ABANDONED, ERASED)
        ]
        view.save_user(replace(user, next_doc=user.next_doc + len(stored), version=user.version + 1), now_ms)
        gone = (ABANDONED, ERASED)
        here.add_messages([replace(m, doc=0) if m.message.role in gone else m for m in stored])
        here.add_docs([build_document(m, one, row.subject) for m, one in ready])
        for key in object_list(item, "keys"):
            here.add_idempotency(
                text_field(key, "key"),
                text_field(key, "digest"),
                whole_number(key, "first_seq"),
                whole_number(key, "last_seq"),
                now_ms,
            )
        for one in object_list(item, "refused"):
            here.add_rejected(build_value(Candidate, one["claim"]), text_field(one, "reason"), time_ms(one["at"]))
        for one in item.get("episodes", ()):
            here.add_episode_range(build_value(EpisodeRangeRow, one), now_ms)
        for one in object_list(item, "readings"):
            here.add_read_range(text_field(one, "model"), whole_number(one, "start_seq"), whole_number(one, "end_seq"))
        for one in object_list(item, "rebuilds"):
            here.add_rebuild(build_value(RebuildRow, one, before=_side(one["before"]), after=_side(one["after"])))
        said = {m.message.seq: m.message.at for m in stored}
        for one in sorted(object_list(item, "summaries"), key=lambda one: int(one["level"])):
            self._take_summary(here, row, one, said, now_ms)

    def _take_summary(
        self, view: WriteView, row: ConversationRow, item: Data, said: Mapping[int, Any], now_ms: int
    ) -> None:
        summary, live = build_value(Summary, item, conversation=row.conversation), bool(item["live"])
        at = said.get(summary.end_seq)
        summary = replace(summary, last_at=summary.last_at or at)  # newest_summaries shows dated ones
        doc = summary_into_index(view, summary, row.subject, to_ms(at) if at else now_ms, now_ms) if live else 0
        covered = range(summary.start_seq, summary.end_seq + 1) if live and summary.level == 1 else ()
        view.add_summary(summary, doc, covered, live=live)
        if summary.level == 1:
            place = (row.subject, row.conversation, summary.start_seq, summary.end_seq)
            view.add_derivations([Derivation("summary", summary.id, "message", *place)])


def _conversation(view: ReadView, row: ConversationRow) -> dict[str, Any]:
    here = view.at(row.subject, row.conversation)
    return asdict(row) | {
        "messages": [_message(stored) for stored in here.message_rows()],
        "summaries": [
            asdict(s.summary) | _times(s.summary) | {"live": s.live} | _lists(s.summary) for s in here.summary_rows()
        ],
        "readings": [dict(zip(("model", "start_seq", "end_seq"), row, strict=True)) for row in here.read_ranges()],
        "rebuilds": [_rebuilt(one) for one in here.rebuilds()],
        "keys": [dict(zip(("key", "digest", "first_seq", "last_seq"), key, strict=True)) for key in here.keys()],
        "episodes": [asdict(asked) for asked in here.episode_ranges()],
        "refused": [
            {"claim": asdict(r.candidate), "reason": r.reason, "at": to_ms(r.at) if r.at else 0}
            for r in here.rejected(limit=2**62)
        ],
    }


def _rebuilt(row: RebuildRow) -> dict[str, Any]:
    return asdict(row) | {"before": _listed_side(row.before), "after": _listed_side(row.after)}


def _listed_side(side: Side) -> dict[str, Any]:
    sources = [{"fact": fact, "source": source} for fact, source in side.sources]
    return {"ids": list(side.ids), "sources": sources, "ends": [{"fact": fact, "seq": seq} for fact, seq in side.ends]}


def _side(item: Data) -> Side:
    sources = tuple((text_field(one, "fact"), text_field(one, "source")) for one in object_list(item, "sources"))
    ends = tuple((text_field(one, "fact"), whole_number(one, "seq")) for one in object_list(item, "ends"))
    return build_value(Side, item, sources=sources, ends=ends)


def _times(summary: Summary) -> dict[str, int | None]:
    found = {name: getattr(summary, name) for name in ("created_at", "first_at", "last_at")}
    return {name: to_ms(at) if at else None for name, at in found.items()}


def _lists(summary: Summary) -> dict[str, list[str]]:
    return {name: list(getattr(summary, name)) for name in ("themes", "concerns", "actions", "children")}


def _message(row: MessageRow) -> dict[str, Any]:
    m = row.message
    said = {"seq": m.seq, "role": m.role, "name": m.name, "content": m.content, "at": to_ms(m.at) if m.at else 0}
    return said | {"meta": dict(m.meta), "tokens": m.tokens, "session": row.session, "recorded_at": row.recorded_at}


def _message_row(item: Data, conversation: str, doc: int) -> MessageRow:
    message = build_value(Message, item, at=from_ms(time_ms(item.get("at"))), conversation=conversation)
    if is_nested_deeper(message.meta, MAX_META_DEPTH):
        raise BadInput(f"message {message.seq}: meta is nested more than {MAX_META_DEPTH} deep")
    meta = dict(message.meta)
    if message.role != ABANDONED:
        meta.pop(ABANDONED, None)
    elif not isinstance(meta.get(ABANDONED), dict):
        raise BadInput(f"message {message.seq} was left behind, and its words are not there")
    return build_value(MessageRow, item, message=replace(message, meta=meta), doc=doc)


_TIMES = ("valid_from", "valid_to", "recorded_at", "last_used_at")


def _fact(row: FactRow) -> dict[str, Any]:
    fact = row.fact
    values = {f.name: getattr(fact, f.name) for f in fields(Fact) if f.name not in ("evidence", "until")}
    values |= {name: None if values[name] is None else to_ms(values[name]) for name in _TIMES}
    kept = {f.name: getattr(row, f.name) for f in fields(FactRow) if f.name not in ("fact", "doc")}
    return values | kept | {"evidence": [asdict(e) | {"at": to_ms(e.at) if e.at else None} for e in fact.evidence]}


def _fact_row(item: Data) -> FactRow:
    evidence = tuple(build_value(Evidence, e) for e in object_list(item, "evidence"))
    if not evidence:
        raise BadInput("a fact must have evidence")
    fact = build_value(Fact, item, evidence=evidence, conversation="", start_seq=0, end_seq=0, until=None)
    if not 0 <= fact.importance <= 1:
        raise BadInput("the importance of a fact must be from 0 to 1")
    if fact.label not in LABELS:
        raise BadInput(f"the label of a fact must be one of {', '.join(LABELS)}")
    return build_value(FactRow, item, fact=fact, doc=0)


def _may_be_listed(data: Data, name: str) -> Sequence[Any]:
    """As `object_list`; nothing in an export that was made before there was such a thing."""
    return object_list(data, name) if name in data else ()


_EVENTS_PAGE = 500  # events that are read at once


def events_after(store: Store, scope: Scope, after: int, limit: int, conversation: str | None) -> list[Event]:
    """Return the events of a scope after a number, oldest first."""
    found: list[Event] = []
    while len(found) < limit:
        news = _read_news(store, scope, after)
        if news.lost:  # begin with the oldest that is kept
            news = _read_news(store, scope, 0)
        found += [event for event in news.events if event.concerns(scope.subject, conversation)]
        if not news.events or news.events[-1].id == news.newest:
            break
        after = news.events[-1].id
    return found[:limit]


def events_before(store: Store, scope: Scope, before: int | None, limit: int) -> list[Event]:
    """Return the events of a scope before a number, newest first."""
    found: list[Event] = []
    while len(found) < limit:
        part = _read_before(store, scope, before)
        found += [event for event in part if event.concerns(scope.subject)]
        if len(part) < _EVENTS_PAGE:
            break
        before = part[-1].id
    return found[:limit]


def _read_news(store: Store, scope: Scope, after: int) -> News:
    return store.read(scope, lambda view: view.news(after, limit=_EVENTS_PAGE))


def _read_before(store: Store, scope: Scope, number: int | None) -> list[Event]:
    return store.read(scope, lambda view: view.events_before(number, limit=_EVENTS_PAGE))


LONG_AGO_MS, FAR_MS = -62_135_596_800_000, 253_402_300_799_999  # years 1 and 9999

T = TypeVar("T")
Data = Mapping[str, Any]


def build_value(kind: Callable[..., T], item: Data, **given: Any) -> T:
    """
    Build a value of the frozen class *kind*; other fields of *item* are ignored, *given* goes first.

    A field that has a default may be missing, so that exports of earlier versions are read.  Lists become tuples, and milliseconds become times where the class wants those.

    Raises:
        BadInput: a field is missing, or holds what does not belong there.
    """
    values = dict(given)
    hints = _hints(kind)
    for field in fields(kind):  # type: ignore[arg-type]
        if field.name in given:
            continue
        if field.name not in item and (field.default, field.default_factory) != (MISSING, MISSING):
            continue
        if field.name not in item:
            raise BadInput(f"{kind.__name__}.{field.name} is missing")
        value = _taken(hints[field.name], item[field.name])
        if not _fits(hints[field.name], value) or (field.name == "id" and not value):
            raise BadInput(f"{kind.__name__}.{field.name} does not fit")
        values[field.name] = value
    return kind(**values)


@cache
def _hints(kind: Any) -> dict[str, Any]:
    return get_type_hints(kind)


def _taken(hint: Any, value: Any) -> Any:
    if isinstance(value, list) and get_origin(hint) is tuple:
        return tuple(value)
    if value is not None and (hint is datetime or datetime in get_args(hint)):
        return from_ms(time_ms(value))
    return value


def _fits(hint: Any, value: Any) -> bool:
    origin, inside = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        return any(_fits(one, value) for one in inside)
    if origin is Literal:
        return isinstance(value, str) and value in inside
    if origin is tuple:
        return isinstance(value, tuple) and all(_fits(inside[0], one) for one in value)
    if origin is not None:
        return isinstance(value, origin)
    if hint in (int, float):
        number = int if hint is int else (int, float)
        return isinstance(value, number) and not isinstance(value, bool) and abs(value) < 2**63
    return isinstance(value, NoneType if hint is None else hint)


def object_list(item: Data, name: str) -> Sequence[Any]:
    """Return the list of objects under *name*."""
    found = item.get(name)
    if not isinstance(found, list) or not all(isinstance(one, Mapping) for one in found):
        raise BadInput(f"{name} must be a list of objects")
    return found


def text_field(item: Data, name: str) -> str:
    """Return the text under *name*."""
    found = item.get(name)
    if not isinstance(found, str):
        raise BadInput(f"{name} must be text")
    return found


def whole_number(item: Data, name: str) -> int:
    """Return the whole number under *name*."""
    found = item.get(name)
    if not _fits(int, found):
        raise BadInput(f"{name} must be a whole number")
    return int(item[name])


def time_ms(value: object) -> int:
    """Return a time in milliseconds since 1970 UTC, from the year 1 to the year 9999."""
    if isinstance(value, bool) or not isinstance(value, int) or not LONG_AGO_MS <= value <= FAR_MS:
        raise BadInput("a time must be whole milliseconds since 1970")
    return value
