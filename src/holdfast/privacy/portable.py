"""
Everything held about a user as plain JSON, and back.

What was said and what was made of it travels: messages, summaries, facts with their evidence, what was
refused, what was chosen.  What can be computed again does not: the index, vectors, pending work.
Times are milliseconds since 1970 UTC, as in the store.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

from ..clock import from_ms, to_ms
from ..config import Config
from ..errors import BadInput, Conflict, HoldfastError
from ..incoming import MAX_META_DEPTH, deeper
from ..ingest.append import document
from ..ingest.prepare import indexed
from ..jobs.kit import Reads
from ..jobs.summaries import into_index as summary_into_index
from ..reconcile.indexing import into_index as fact_into_index
from ..scope import Scope, checked_name
from ..store import open_store
from ..store.protocol import (
    ConsentRow,
    ConversationRow,
    Derivation,
    EpisodesRow,
    FactRow,
    MessageRow,
    ReadView,
    RebuiltRow,
    Side,
    Store,
    UserRow,
    WriteView,
)
from ..store.values import PromptRow, UsageRow
from ..types import Candidate, Evidence, Fact, Message, Summary
from .choices import Choices
from .erasing import ERASED
from .fitting import Data, listed, made, text, whole, whole_ms

FORMAT, VERSION = "holdfast-user", 1


@dataclass(frozen=True, slots=True)
class Portable:
    """Exports from and imports into one store."""

    store: Store
    config: Config
    now_ms: Callable[[], int]
    choices: Choices

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
            "never": [{"subject": subject, "topic": topic} for subject, topic in view.topics()],
            "prompts": [asdict(row) for row in view.prompts()],
            "usage": [asdict(row) for row in view.usage()],
            "conversations": [_conversation(view, row) for row in view.conversations()],
            "facts": [_fact(row) for row in view.facts_ever()],
            "endings": [asdict(edge) for edge in view.endings()],
        }

    def import_(self, scope: Scope, data: object) -> None:
        """
        Take an export back into a user of whom nothing is held.

        It is tried in a store of its own first, whose every promise is then checked.

        Raises:
            BadInput: not an export, or one that was damaged; nothing was stored.
            Conflict: something is held about the user, or they opted out.
        """
        if not isinstance(data, Mapping) or data.get("format") != FORMAT:
            raise BadInput("this is not the export of a user", hint="pass what export() returned")
        if data.get("version") != VERSION:
            raise BadInput(f"this export has version {data.get('version')!r}; this library reads {VERSION}")
        whole = scope.about(None)
        reads = self.choices.reads(whole)
        trial = open_store(":memory:", self.config)
        try:
            trial.write(whole, lambda view: self._import(view, data, reads))
            broken = trial.check()
        except (Conflict, BadInput) as error:
            raise BadInput(f"this export cannot be used: {error.message}") from error
        except (TypeError, ValueError, KeyError, OverflowError, HoldfastError) as error:
            raise BadInput(f"this export cannot be used: {type(error).__name__}") from error
        finally:
            trial.close()
        if broken:
            raise BadInput(f"this export breaks the rule {broken[0].rule}", hint="export the user again")
        self.store.write(whole, lambda view: self._import(view, data, reads))

    def _import(self, view: WriteView, data: Data, reads: Reads) -> None:
        if view.user() != UserRow() or view.consent():
            raise Conflict("something is held about this user already", hint="erase() first, or choose another user")
        now_ms = self.now_ms()
        view.save_user(UserRow(epoch=now_ms), now_ms)
        for item in listed(data, "conversations"):
            self._take_conversation(view, item, now_ms)
        for item in listed(data, "facts"):
            row = _fact_row(item)
            if row.fact.live:
                row = fact_into_index(view, row, now_ms)
            view.add_fact(row)
            view.add_derivations(
                Derivation("fact", row.fact.id, "message", e.home, e.conversation, e.seq, e.seq)
                for e in row.fact.evidence
            )
        view.add_derivations(made(Derivation, edge) for edge in listed(data, "endings"))
        for item in listed(data, "consent"):
            view.save_consent(made(ConsentRow, item))
        for item in listed(data, "never"):
            view.set_topic(text(item, "subject"), text(item, "topic"), never=True, now_ms=now_ms)
        for item in _may_be_listed(data, "prompts"):
            view.add_prompt(made(PromptRow, item))
        for item in _may_be_listed(data, "usage"):
            view.add_usage(made(UsageRow, item))
        self.choices.take_up(view, reads, now_ms)

    def _take_conversation(self, view: WriteView, item: Data, now_ms: int) -> None:
        row = made(ConversationRow, item)
        here = view.at(checked_name("subject", row.subject), checked_name("conversation id", row.conversation))
        here.save_conversation(row)
        user = view.user()
        stored = [
            _message_row(one, row.conversation, user.next_doc + i) for i, one in enumerate(listed(item, "messages"))
        ]
        ready = [
            (m, indexed(m.message, from_ms(now_ms), self.config.language, self.config.detectors))
            for m in stored
            if m.message.role != ERASED
        ]
        docs = [document(m, one, row.subject) for m, one in ready]
        view.save_user(replace(user, next_doc=user.next_doc + len(stored), version=user.version + 1), now_ms)
        here.add_messages([replace(m, doc=0) if m.message.role == ERASED else m for m in stored])
        here.add_docs(docs)
        here.add_postings(
            (row.subject, "message", term, doc.doc, count)
            for (_, one), doc in zip(ready, docs, strict=True)
            for term, count in one.terms.items()
        )
        for key in listed(item, "keys"):
            here.add_idempotency(
                text(key, "key"), text(key, "digest"), whole(key, "first_seq"), whole(key, "last_seq"), now_ms
            )
        for one in listed(item, "refused"):
            here.add_rejected(made(Candidate, one["claim"]), text(one, "reason"), whole_ms(one["at"]))
        for one in item.get("episodes", ()):
            here.add_episodes(made(EpisodesRow, one), now_ms)
        for one in listed(item, "readings"):
            here.add_reading(text(one, "model"), whole(one, "start_seq"), whole(one, "end_seq"))
        for one in listed(item, "rebuilds"):
            here.add_rebuilt(made(RebuiltRow, one, was=_side(one["was"]), became=_side(one["became"])))
        said = {m.message.seq: m.message.at for m in stored}
        for one in sorted(listed(item, "summaries"), key=lambda one: int(one["level"])):
            self._take_summary(here, row, one, said, now_ms)

    def _take_summary(
        self, view: WriteView, row: ConversationRow, item: Data, said: Mapping[int, Any], now_ms: int
    ) -> None:
        summary, live = made(Summary, item, conversation=row.conversation), bool(item["live"])
        at = said.get(summary.end_seq)
        doc = summary_into_index(view, summary, row.subject, to_ms(at) if at else now_ms, now_ms) if live else 0
        covered = range(summary.start_seq, summary.end_seq + 1) if live and summary.level == 1 else ()
        view.add_summary(summary, doc, covered, live=live)
        if summary.level == 1:
            place = (row.subject, row.conversation, summary.start_seq, summary.end_seq)
            view.add_derivations([Derivation("summary", summary.id, "message", *place)])


def _conversation(view: ReadView, row: ConversationRow) -> dict[str, Any]:
    here = view.at(row.subject, row.conversation)
    return asdict(row) | {
        "messages": [_message(stored) for stored in here.stored()],
        "summaries": [
            asdict(s.summary) | {"created_at": to_ms(s.summary.created_at), "live": s.live} | _lists(s.summary)
            for s in here.summary_rows()
        ],
        "readings": [dict(zip(("model", "start_seq", "end_seq"), row, strict=True)) for row in here.readings()],
        "rebuilds": [_rebuilt(one) for one in here.rebuilt()],
        "keys": [dict(zip(("key", "digest", "first_seq", "last_seq"), key, strict=True)) for key in here.keys()],
        "episodes": [asdict(asked) for asked in here.episode_ranges()],
        "refused": [
            {"claim": asdict(r.candidate), "reason": r.reason, "at": to_ms(r.at) if r.at else 0}
            for r in here.rejected(limit=2**62)
        ],
    }


def _rebuilt(row: RebuiltRow) -> dict[str, Any]:
    return asdict(row) | {"was": _listed_side(row.was), "became": _listed_side(row.became)}


def _listed_side(side: Side) -> dict[str, Any]:
    sources = [{"fact": fact, "source": source} for fact, source in side.sources]
    return {"ids": list(side.ids), "sources": sources, "ends": [{"fact": fact, "seq": seq} for fact, seq in side.ends]}


def _side(item: Data) -> Side:
    sources = tuple((text(one, "fact"), text(one, "source")) for one in listed(item, "sources"))
    ends = tuple((text(one, "fact"), whole(one, "seq")) for one in listed(item, "ends"))
    return made(Side, item, sources=sources, ends=ends)


def _lists(summary: Summary) -> dict[str, list[str]]:
    return {name: list(getattr(summary, name)) for name in ("themes", "concerns", "actions", "children")}


def _message(row: MessageRow) -> dict[str, Any]:
    m = row.message
    said = {"seq": m.seq, "role": m.role, "name": m.name, "content": m.content, "at": to_ms(m.at) if m.at else 0}
    return said | {"meta": dict(m.meta), "tokens": m.tokens, "session": row.session, "recorded_at": row.recorded_at}


def _message_row(item: Data, conversation: str, doc: int) -> MessageRow:
    message = made(Message, item, at=from_ms(whole_ms(item.get("at"))), conversation=conversation)
    if deeper(message.meta, MAX_META_DEPTH):
        raise BadInput(f"message {message.seq}: meta is nested more than {MAX_META_DEPTH} deep")
    return made(MessageRow, item, message=replace(message, meta=dict(message.meta)), doc=doc)


_TIMES = ("valid_from", "valid_to", "recorded_at", "last_used_at")


def _fact(row: FactRow) -> dict[str, Any]:
    fact = row.fact
    values = {f.name: getattr(fact, f.name) for f in fields(Fact) if f.name != "evidence"}
    values |= {name: None if values[name] is None else to_ms(values[name]) for name in _TIMES}
    kept = {f.name: getattr(row, f.name) for f in fields(FactRow) if f.name not in ("fact", "doc")}
    return values | kept | {"evidence": [asdict(e) | {"at": to_ms(e.at) if e.at else None} for e in fact.evidence]}


def _fact_row(item: Data) -> FactRow:
    evidence = tuple(made(Evidence, e) for e in listed(item, "evidence"))
    if not evidence:
        raise BadInput("a fact must have evidence")
    return made(FactRow, item, fact=made(Fact, item, evidence=evidence), doc=0)


def _may_be_listed(data: Data, name: str) -> Sequence[Any]:
    """As `listed`; nothing in an export that was made before there was such a thing."""
    return listed(data, name) if name in data else ()
