"""
Between rows of the database and values.

The column orders are those of the SELECT lists in ``sql/``; nothing here knows a database.
"""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from ..clock import from_ms, to_ms
from ..reports import Event
from ..text import remembered
from ..types import Candidate, Evidence, Fact, Job, Message, Rejected, Story, StoryLine, StorySource, Summary
from .port import Row
from .values import (
    ConsentRow,
    Derivation,
    DocRow,
    ErasureRow,
    FactRow,
    MessageRow,
    RebuildRow,
    Side,
    SubjectRow,
    SummaryRow,
)

FactKey = tuple[str, str]
"""(subject, fact id): what names a fact within a user."""


_SIGN = bytes([ord("1")] * 128 + [ord("0")] * 128)  # of an int8, read as a byte


def signs(data: bytes) -> bytes:
    """Return the signs of a vector's int8 numbers, a bit each: 1 from 0 upwards, the first in the highest bit."""
    told = data.translate(_SIGN)
    whole = -(-len(told) // 8)
    return int(told.ljust(8 * whole, b"0") or b"0", 2).to_bytes(whole, "big")


def compact_json(value: Any) -> str:
    """JSON on one line, the same text for the same value, readable in any language."""
    return json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"))


def subject(row: Row) -> SubjectRow:
    """Parse a row of ``subjects``."""
    id_, name, aliases, created_at = row
    return SubjectRow(id_, name, tuple(json.loads(aliases)), created_at)


def message(row: Row, conversation: str) -> Message:
    """Parse a row of ``messages``."""
    seq, role, name, content, at, tokens, meta = row
    values = json.loads(meta) if meta != "{}" else {}
    return Message(role, content, name, from_ms(at), seq, conversation, tokens, values)


def message_columns(row: MessageRow) -> Row:
    """Return the parameters of ``add_message`` after the conversation's key."""
    m = row.message
    if m.at is None:
        raise ValueError("a message on its way into the store must have its time set")
    meta = compact_json(dict(m.meta)) if m.meta else "{}"
    return (m.seq, m.role, m.name, m.content, to_ms(m.at), m.tokens, row.session, row.doc, meta, row.recorded_at)


def stored(row: Row, conversation: str) -> MessageRow:
    """Parse a row of ``stored``."""
    session, number, recorded_at = row[7:]
    return MessageRow(message(row[:7], conversation), session, number, recorded_at)


def rewritten(row: MessageRow) -> dict[str, Any]:
    """Return the parameters of ``rewrite_message`` beside the conversation's key."""
    m = row.message
    meta = compact_json(dict(m.meta)) if m.meta else "{}"
    content = {"role": m.role, "name": m.name, "content": m.content, "tokens": m.tokens, "meta": meta}
    return {"seq": m.seq, "doc": row.doc, **content}


def doc(row: Row) -> DocRow:
    """Parse a row of ``docs`` or ``unembedded``."""
    (subject, kind, number, conversation, seq, ref, session, speaker, role, at,
     terms, chars, signals, unscoped, embedded) = row  # fmt: skip
    place = (subject, kind, number, conversation, seq, ref, session, speaker, role, at)
    return DocRow(*place, terms, chars, signals, bool(unscoped), embedded)


def doc_columns(row: DocRow) -> Row:
    """Return the parameters of ``add_doc`` after the user's key."""
    head = (row.subject, row.kind, row.doc, row.conversation, row.seq, row.ref, row.session, row.speaker)
    return (*head, row.role, row.at, row.terms, row.chars, row.signals, int(row.unscoped), row.embedded, row.words)


def evidence_by_fact(rows: Iterable[Row]) -> Mapping[FactKey, tuple[Evidence, ...]]:
    """Parse the rows of an evidence query, oldest first within each fact."""
    found: defaultdict[FactKey, list[Evidence]] = defaultdict(list)
    for subject, fact_id, conversation, seq, role, quote, start, stop, at, home in rows:
        found[subject, fact_id].append(Evidence(conversation, seq, role, quote, start, stop, from_ms(at), home))
    return {key: tuple(items) for key, items in found.items()}


def fact(row: Row, evidence: Mapping[FactKey, tuple[Evidence, ...]]) -> FactRow:
    """Parse a row of any query in facts.sql that selects facts."""
    return _fact(row, evidence.get((row[0], row[1]), ()))


@remembered(4096)  # every message is read beside the same facts, and every context shows them
def _fact(row: Row, evidence: tuple[Evidence, ...]) -> FactRow:
    (subject, fact_id, kind, category, key, value, text, slot_key, slot_value, cardinality, confidence, lifetime,
     valid_from, valid_to, recorded_at, ended_at, ended_because, superseded_by, expires_at, unscoped,
     stated_at, stated_seq, strength, last_used_at, uses, doc_number, source, importance,
     home, only_in, label) = row  # fmt: skip
    value_of = Fact(
        id=fact_id,
        kind=kind,
        subject=subject,
        category=category,
        key=key,
        value=value,
        text=text,
        confidence=confidence,
        cardinality=cardinality,
        lifetime=lifetime,
        valid_from=from_ms(valid_from),
        valid_to=None if valid_to is None else from_ms(valid_to),
        recorded_at=from_ms(recorded_at),
        superseded_by=superseded_by,
        evidence=evidence,
        strength=strength,
        last_used_at=None if last_used_at is None else from_ms(last_used_at),
        uses=uses,
        source=source,
        ended_because=ended_because,
        importance=importance,
        only_in=only_in,
        label=label,
        until=None if expires_at is None or valid_to is not None else from_ms(expires_at),
    )
    return FactRow(
        value_of, slot_key, slot_value, bool(unscoped), stated_at, stated_seq, doc_number, ended_at, expires_at, home
    )


def fact_columns(row: FactRow) -> dict[str, Any]:
    """Return the parameters of ``add_fact`` and ``update_fact`` beside the user's key."""
    f = row.fact
    return {
        "about": f.subject,
        "id": f.id,
        "kind": f.kind,
        "category": f.category,
        "key": f.key,
        "value": f.value,
        "text": f.text,
        "slot_key": row.slot_key,
        "slot_value": row.slot_value,
        "cardinality": f.cardinality,
        "confidence": f.confidence,
        "lifetime": f.lifetime,
        "valid_from": to_ms(f.valid_from),
        "valid_to": None if f.valid_to is None else to_ms(f.valid_to),
        "recorded_at": to_ms(f.recorded_at),
        "ended_at": row.ended_at,
        "ended_because": f.ended_because,
        "superseded_by": f.superseded_by,
        "expires_at": row.expires_at,
        "unscoped": int(row.unscoped),
        "stated_at": row.stated_at,
        "stated_seq": row.stated_seq,
        "strength": f.strength,
        "last_used_at": None if f.last_used_at is None else to_ms(f.last_used_at),
        "uses": f.uses,
        "doc": row.doc,
        "source": f.source,
        "importance": f.importance,
        "owner_home": row.home,
        "owner": f.only_in,
        "label": f.label,
    }


def summary(row: Row, conversation: str, children: Mapping[str, Sequence[str]]) -> Summary:
    """Parse a row of ``summaries``."""
    (summary_id, level, start_seq, end_seq, exchanges, text, themes, concerns, actions, block, version,
     created_at, source, stale, parent, first_at, last_at) = row  # fmt: skip
    lists = json.loads(f"[{themes},{concerns},{actions}]")
    return Summary(
        id=summary_id,
        level=level,
        start_seq=start_seq,
        end_seq=end_seq,
        exchanges=exchanges,
        text=text,
        themes=tuple(lists[0]),
        concerns=tuple(lists[1]),
        actions=tuple(lists[2]),
        block=block,
        version=version,
        children=tuple(children.get(summary_id, ())),
        created_at=from_ms(created_at),
        source=source,
        stale=bool(stale),
        conversation=conversation,
        parent=parent,
        first_at=from_ms(first_at) if first_at is not None else None,
        last_at=from_ms(last_at) if last_at is not None else None,
    )


def summary_row(row: Row, conversation: str, children: Mapping[str, Sequence[str]]) -> SummaryRow:
    """Parse a row of ``summary_rows``."""
    return SummaryRow(summary(row[:17], conversation, children), row[17], bool(row[18]))


def story(row: Row) -> Story:
    """Parse a row of ``stories``."""
    subject, story_id, version, lines, source, created_at = row
    return Story(story_id, subject, tuple(map(_story_line, json.loads(lines))), version, source, from_ms(created_at))


def _story_line(data: Mapping[str, Any]) -> StoryLine:
    first_at, last_at = (from_ms(at) if at is not None else None for at in data["times"])
    return StoryLine(data["text"], first_at, last_at, tuple(StorySource(*one) for one in data["sources"]))


def story_columns(row: Story) -> dict[str, Any]:
    """Return the parameters of ``save_story`` beside the user's key and the subject."""
    lines = [
        {
            "text": line.text,
            "times": [to_ms(at) if at else None for at in (line.first_at, line.last_at)],
            "sources": [[one.summary, one.conversation, one.start_seq, one.end_seq] for one in line.sources],
        }
        for line in row.lines
    ]
    return {
        "id": row.id,
        "version": row.version,
        "lines": compact_json(lines),
        "source": row.source,
        "created_at": to_ms(row.created_at) if row.created_at else 0,
    }


def consent(row: Row) -> ConsentRow:
    """Parse a row of ``consent``."""
    return ConsentRow(*row)


def derivation(row: Row) -> Derivation:
    """Parse a row of ``endings``."""
    return Derivation(*row)


def rebuilt(row: Row) -> RebuildRow:
    """Parse a row of ``rebuilt``."""
    rebuild_id, part, layer, start_seq, end_seq, before, after, source, created_at = row
    return RebuildRow(rebuild_id, part, layer, start_seq, end_seq, side(before), side(after), source, created_at)


def side(text: str) -> Side:
    """Parse one side of a rebuilt range."""
    found = json.loads(text)
    pairs = (tuple(map(tuple, found[name])) for name in ("sources", "ends"))
    return Side(tuple(found["ids"]), *pairs)


def rebuilt_columns(row: RebuildRow) -> dict[str, Any]:
    """Return the parameters of ``add_rebuild`` beside the conversation's key."""
    texts = {"before": compact_json(asdict(row.before)), "after": compact_json(asdict(row.after))}
    plain = {
        name: getattr(row, name) for name in ("id", "part", "layer", "start_seq", "end_seq", "source", "created_at")
    }
    return plain | texts


def summary_columns(row: Summary, doc_number: int) -> dict[str, Any]:
    """Return the parameters of ``add_summary`` beside the conversation's key."""
    return {
        "id": row.id,
        "level": row.level,
        "start_seq": row.start_seq,
        "end_seq": row.end_seq,
        "exchanges": row.exchanges,
        "text": row.text,
        "themes": compact_json(list(row.themes)),
        "concerns": compact_json(list(row.concerns)),
        "actions": compact_json(list(row.actions)),
        "block": row.block,
        "version": row.version,
        "parent": row.parent,
        "stale": int(row.stale),
        "doc": doc_number,
        "source": row.source,
        "created_at": to_ms(row.created_at),
        "first_at": to_ms(row.first_at) if row.first_at else None,
        "last_at": to_ms(row.last_at) if row.last_at else None,
    }


def rejected(row: Row) -> Rejected:
    """Parse a row of ``rejected``."""
    conversation, claim, reason, recorded_at, subject, _, id_ = row
    return Rejected(Candidate(**json.loads(claim)), reason, conversation, from_ms(recorded_at), id_, subject)


def claim_columns(candidate: Candidate) -> dict[str, Any]:
    """Return the claim as JSON, and an id that is the same for the same claim."""
    claim = compact_json(asdict(candidate))
    return {"seq": candidate.seq, "claim": claim, "id": hashlib.sha256(claim.encode()).hexdigest()[:24]}


def job(row: Row) -> Job:
    """Parse a row of any query in jobs.sql that selects whole jobs."""
    return Job(*row)


def erased(row: Row) -> ErasureRow:
    """Parse a row of ``erasures``."""
    id_, place, kind, seq, fact, spans, at = row
    return ErasureRow(id_, place, kind, at, seq, fact, tuple((start, end) for start, end in json.loads(spans)))


def erased_columns(row: ErasureRow) -> dict[str, Any]:
    """Return the parameters of ``add_erasures``."""
    return asdict(row) | {"spans": compact_json([list(span) for span in row.spans])}


def event(row: Row, user: tuple[str, str, str]) -> Event:
    """Parse a row of ``events_after`` or ``events_before``; *user* is (org, user, bot)."""
    number, at, kind, actor, subject, conversation, ref = row
    return Event(number, at, kind, actor, *user, subject, conversation, ref)
