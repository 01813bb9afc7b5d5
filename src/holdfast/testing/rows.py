"""
Small, sound pieces of memory to fill a store with: whatever is written here passes ``Store.check``.

Each function takes an open `WriteView` of a conversation and keeps the counters, the index and the
edges right, the way the pipeline does.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from ..clock import from_ms, new_id
from ..scope import SELF, Scope
from ..store.protocol import ConversationRow, Derivation, DocRow, FactRow, MessageRow, WriteView
from ..types import Evidence, Fact, Message, Summary

ANA = Scope("acme", "support", "ana").within("chat")
"""The conversation that most tests talk in."""

START_MS = 1_767_603_600_000  # 2026-01-05 09:00 UTC
END_MS = START_MS + 3_600_000


def said_at(seq: int) -> int:
    """When message *seq* is said, in milliseconds: one a second."""
    return START_MS + 1000 * seq


def say(
    view: WriteView, *texts: str, role: str = "user", name: str | None = None, meta: Mapping[str, Any] | None = None
) -> list[Message]:
    """Append one message per text to the view's conversation, indexed by its words."""
    subject, conversation = _place(view)
    user = view.user()
    now = view.conversation() or ConversationRow(subject, conversation, 1, 1, 0, 0, 1, START_MS, START_MS)
    rows, docs, postings = [], [], []
    for offset, text in enumerate(texts):
        seq, number = now.next_seq + offset, user.next_doc + offset
        at, words = said_at(seq), Counter(text.split())
        message = Message(role, text, name, from_ms(at), seq, conversation, len(words), meta or {})
        rows.append(MessageRow(message, now.session, number, at))
        length = words.total()
        docs.append(
            DocRow(
                subject,
                "message",
                number,
                conversation,
                seq,
                "",
                1,
                message.speaker,
                role,
                at,
                length,
                len(text),
                signals=0,
            )
        )
        postings += [(subject, "message", word, number, count) for word, count in words.items()]
    last_at = said_at(now.next_seq + len(texts) - 1)
    view.save_user(replace(user, next_doc=user.next_doc + len(texts), version=user.version + 1), START_MS)
    view.save_conversation(replace(now, next_seq=now.next_seq + len(texts), last_at=last_at))
    view.add_messages(rows)
    view.add_docs(docs)
    view.add_postings(postings)
    return [row.message for row in rows]


def new_fact(
    message: Message,
    value: str,
    *,
    category: str = "home",
    key: str = "lives_in",
    about: str = SELF,
    home: str = SELF,
    multi: bool = False,
) -> FactRow:
    """A live attribute that rests on *message*, which must hold *value*; not yet in any store."""
    assert message.at is not None
    start = message.content.index(value)
    end = start + len(value)
    evidence = Evidence(message.conversation, message.seq, message.role, value, start, end, message.at, home)
    fact = Fact(
        id=new_id("fact", said_at(message.seq)),
        kind="attribute",
        subject=about,
        category=category,
        key=key,
        value=value,
        text=f"{key} {value}",
        confidence=0.9,
        cardinality="multi" if multi else "single",
        lifetime="state",
        valid_from=message.at,
        valid_to=None,
        recorded_at=message.at,
        superseded_by=None,
        evidence=(evidence,),
        strength=1.0,
        last_used_at=None,
        uses=0,
        source="test 1",
    )
    slot_value = value if multi else ""
    return FactRow(fact, key, slot_value, home == SELF, said_at(message.seq), message.seq, doc=0)


def learn(view: WriteView, value: str, **address: str | bool) -> FactRow:
    """Say a sentence with *value* in the view's conversation and believe it; see `new_fact`."""
    subject, conversation = _place(view)
    (message,) = say(view, f"it is {value} now")
    row = new_fact(message, value, home=subject, **address)  # type: ignore[arg-type]
    user, fact = view.user(), row.fact
    row = replace(row, doc=user.next_doc)
    words = Counter(fact.text.split())
    view.save_user(replace(user, next_doc=user.next_doc + 1, version=user.version + 1), START_MS)
    view.add_docs(
        [
            DocRow(
                subject=fact.subject,
                kind="fact",
                doc=row.doc,
                conversation="",
                seq=0,
                ref=fact.id,
                session=0,
                speaker=SELF,
                role="user",
                at=row.stated_at,
                terms=words.total(),
                chars=len(fact.text),
                signals=0,
                unscoped=row.unscoped,
            )
        ]
    )
    view.add_postings((fact.subject, "fact", word, row.doc, count) for word, count in words.items())
    view.add_fact(row)
    view.add_derivations([Derivation("fact", fact.id, "message", subject, conversation, message.seq, message.seq)])
    return row


def end_fact(view: WriteView, row: FactRow, *, at_ms: int, because: str = "retracted", by: str | None = None) -> None:
    """Stop believing *row*: history keeps it, the index does not."""
    fact = replace(row.fact, valid_to=from_ms(at_ms), ended_because=because, superseded_by=by)
    view.update_fact(replace(row, fact=fact, ended_at=at_ms))
    view.remove_docs(row.fact.subject, "fact", [row.doc])


def summarise(view: WriteView, start_seq: int, end_seq: int, children: Sequence[Summary] = ()) -> Summary:
    """Cover a range of messages with a level-1 summary, or *children* with one of the next level."""
    subject, conversation = _place(view)
    user, now = view.user(), view.conversation()
    assert now is not None
    level = children[0].level + 1 if children else 1
    at, number = said_at(end_seq), user.next_doc
    row = Summary(
        id=new_id("sum", at),
        level=level,
        start_seq=start_seq,
        end_seq=end_seq,
        exchanges=1,
        text="what was said",
        themes=("themes",),
        concerns=(),
        actions=("act", "again"),
        block=0,
        version=1,
        children=tuple(child.id for child in children),
        created_at=from_ms(at),
        source="test 1",
        conversation=conversation,
    )
    view.save_user(replace(user, next_doc=number + 1, version=user.version + 1), START_MS)
    view.add_docs(
        [DocRow(subject, "summary", number, conversation, end_seq, row.id, 0, SELF, "summary", at, 0, len(row.text), 0)]
    )
    if children:
        view.add_summary(row, number, ())
        view.set_parent(row.children, row.id)
    else:
        view.add_summary(row, number, range(start_seq, end_seq + 1))
        view.add_derivations([Derivation("summary", row.id, "message", subject, conversation, start_seq, end_seq)])
        view.save_conversation(replace(now, chunk_start=end_seq + 1))
    return row


def _place(view: WriteView) -> tuple[str, str]:
    assert view.scope.subject is not None, "tests write within a conversation"
    assert view.scope.conversation is not None, "tests write within a conversation"
    return view.scope.subject, view.scope.conversation
