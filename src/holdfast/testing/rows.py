"""
Rows that fill a store for tests, and pass ``Store.check``.

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
from ..store import (
    ContextStatsRow,
    ConversationRow,
    Derivation,
    DocRow,
    EpisodeRangeRow,
    FactRow,
    ItemRow,
    MessageRow,
    PromptRow,
    ReadView,
    RebuildRow,
    Side,
    SubjectRow,
    SummaryRow,
    UsageRow,
    WriteView,
    pack_words,
)
from ..types import Candidate, Evidence, Fact, Message, Story, StoryLine, Summary

ANA = Scope("acme", "support", "ana").within("chat")
"""The conversation that most tests talk in."""

START_MS = 1_767_603_600_000  # 2026-01-05 09:00 UTC
END_MS = START_MS + 3_600_000


def sent_at_ms(seq: int) -> int:
    """Return the time of message *seq* in milliseconds: one message a second."""
    return START_MS + 1000 * seq


def say(
    view: WriteView, *texts: str, role: str = "user", name: str | None = None, meta: Mapping[str, Any] | None = None
) -> list[Message]:
    """Append one message per text to the view's conversation, indexed by its words."""
    subject, conversation = _subject_and_conversation(view)
    user = view.user()
    now = view.conversation() or ConversationRow(subject, conversation, 1, 1, 0, 0, 1, START_MS, START_MS)
    rows, docs = [], []
    for offset, text in enumerate(texts):
        seq, number = now.next_seq + offset, user.next_doc + offset
        at, words = sent_at_ms(seq), Counter(text.split())
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
                words=pack_words(words),
            )
        )
    last_at = sent_at_ms(now.next_seq + len(texts) - 1)
    view.save_user(replace(user, next_doc=user.next_doc + len(texts), version=user.version + 1), START_MS)
    view.save_conversation(replace(now, next_seq=now.next_seq + len(texts), last_at=last_at))
    view.add_messages(rows)
    view.add_docs(docs)
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
    """Build an active attribute whose evidence is *message*, which must hold *value*; store nothing."""
    assert message.at is not None
    start = message.content.index(value)
    end = start + len(value)
    evidence = Evidence(message.conversation, message.seq, message.role, value, start, end, message.at, home)
    fact = Fact(
        id=new_id("fact", sent_at_ms(message.seq)),
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
    return FactRow(fact, key, slot_value, home == SELF, sent_at_ms(message.seq), message.seq, doc=0)


def learn(view: WriteView, value: str, **address: str | bool) -> FactRow:
    """Append a sentence with *value* to the view's conversation and store the fact in it; see `new_fact`."""
    subject, conversation = _subject_and_conversation(view)
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
                words=pack_words(words),
            )
        ]
    )
    view.add_fact(row)
    view.add_derivations([Derivation("fact", fact.id, "message", subject, conversation, message.seq, message.seq)])
    return row


def end_fact(view: WriteView, row: FactRow, *, at_ms: int, because: str = "retracted", by: str | None = None) -> None:
    """End a fact: history keeps it, the index does not."""
    fact = replace(row.fact, valid_to=from_ms(at_ms), ended_because=because, superseded_by=by)
    view.update_fact(replace(row, fact=fact, ended_at=at_ms))
    view.remove_docs(row.fact.subject, "fact", [row.doc])


def summarize(view: WriteView, start_seq: int, end_seq: int, children: Sequence[Summary] = ()) -> Summary:
    """Cover a range of messages with a level-1 summary, or *children* with one of the next level."""
    subject, conversation = _subject_and_conversation(view)
    user, now = view.user(), view.conversation()
    assert now is not None
    level = children[0].level + 1 if children else 1
    at, number = sent_at_ms(end_seq), user.next_doc
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
        first_at=from_ms(sent_at_ms(start_seq)),
        last_at=from_ms(at),
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


def _subject_and_conversation(view: WriteView) -> tuple[str, str]:
    assert view.scope.subject is not None, "tests write within a conversation"
    assert view.scope.conversation is not None, "tests write within a conversation"
    return view.scope.subject, view.scope.conversation


def add_older_version(view: WriteView, of: Summary) -> Summary:
    """Add an older version of an active summary, as if that had been rebuilt."""
    old = replace(of, id=new_id("sum", END_MS), version=of.version + 1, parent=None, text="an older summary")
    view.add_summary(old, 0, (), live=False)
    return old


def add_rebuilt_range(view: WriteView) -> RebuildRow:
    """Record that the first summary of the conversation was rebuilt, and that a model read its range."""
    new = view.summaries()[0]
    old = add_older_version(view, new)
    span = (new.start_seq, new.end_seq)
    row = RebuildRow(
        "reb_1", 0, "summaries", *span, Side((old.id,)), Side((new.id,), ends=(("f", 1),)), "test 1", END_MS
    )
    view.add_rebuild(row)
    view.add_read_range("test:1", *span)
    return row


def swap_versions(view: WriteView, now: SummaryRow, then: SummaryRow) -> None:
    """Replace the active version of a summary without parent by an older one."""
    view.remove_docs(view.scope.subject or "", "summary", [now.doc])
    view.rewrite_summary(replace(now, live=False, doc=0))
    view.rewrite_summary(replace(then, live=True))


def fill_conversation(view: WriteView) -> None:
    """Write rows of every kind that two conversations of one user can both hold: no fact address is shared."""
    say(view, "one two", "three")
    summarize(view, 1, 2)
    place = f"{view.scope.subject} in {view.scope.conversation}"
    learn(view, "Faro", category=f"home of {place}")
    old = learn(view, "Lisbon", category=f"past home of {place}")
    end_fact(view, old, at_ms=END_MS)
    view.add_derivations([Derivation("end", old.fact.id, "message", view.scope.subject or "", neighbor(view), 3, 3)])
    say(view.at(view.scope.subject, neighbor(view)), "one", "two", "three")
    fill_other_tables(view)


def fill_other_tables(view: WriteView) -> None:
    """Write a row into every table but those of messages, facts, and summaries."""
    view.add_idempotency("key", "digest", 1, 2, END_MS)
    view.want("digest", "", wanted=4, run_at_ms=0, now_ms=0)
    view.save_prefix("layered", "sha", "{}")
    view.add_episode_range(EpisodeRangeRow(1, 2, 1, "rules 1"), END_MS)
    view.add_rejected(Candidate("attribute", "self", "a", "b", "c", "d", 1.0, 1, "one", 0), "why", END_MS)
    add_rebuilt_range(view)
    view.add_context_stats(ContextStatsRow(2, END_MS, "layered", 40, "sha", 2, 1))
    view.save_item(ItemRow("framework.state", "step 1", b"\x00state", END_MS, END_MS))
    view.add_vectors([(doc, "e1", 0.5, b"123") for doc in view.unembedded("e1", limit=99)])
    view.set_blocked_topic("", "health", blocked=True, now_ms=1)
    view.save_subject(SubjectRow("luna", "Luna", ("my dog",), 1))
    view.save_story(Story("story 1", "luna", (StoryLine("one", None, None, ()),), 1, "rules 1", from_ms(END_MS)))
    add_usage_and_prompt(view)


def add_usage_and_prompt(view: WriteView) -> None:
    """Add the usage of a model call, and a custom prompt."""
    view.add_usage(UsageRow("2026-01-01", "facts", "m", calls=1, input_tokens=5, output_tokens=1, cost=7))
    view.add_prompt(PromptRow("chunk_summary", len(view.prompts()) + 1, "in verse", END_MS))


def scope_pairs() -> list[tuple[tuple[str, ...], tuple[str, ...]]]:
    """Return pairs of conversation scopes that differ in one part, each part once."""
    first = ("org", "user", "bot", "self", "chat")
    return [(first, (*first[:n], "other", *first[n + 1 :])) for n in range(5)]


def neighbor(view: ReadView) -> str:
    """Return the name of another conversation, in which a fact was ended."""
    return f"beside {view.scope.conversation}"


def rests_on_conversation(view: ReadView, row: FactRow) -> bool:
    evidence = row.fact.evidence[0]
    return (evidence.home, evidence.conversation) == (view.scope.subject, view.scope.conversation)


def read_everything(view: ReadView) -> list[object]:
    """Read everything of one conversation and its user that the conversation can see."""
    mine = view.scope.conversation or ""
    here = (view.scope.subject, mine)
    facts = [row for row in view.all_facts() if rests_on_conversation(view, row)]
    return [
        view.conversation(), view.message_rows(), view.summary_rows(), view.keys(), view.covered(1, 9),
        view.derived_from(1, 9), view.prefix("layered"), view.rejected(), view.episode_ranges(), facts, view.blocked_topics(), view.subjects(),
        view.usage(), view.prompts(),
        view.rebuilds(), view.read_ranges(), view.context_stats(), view.items("framework.state"),
        [e for e in view.news(0, limit=999).events if (e.subject, e.conversation) == here and e.kind[:4] != "job."],
        [edge for edge in view.endings() if (edge.subject, edge.conversation) == (view.scope.subject, neighbor(view))],
        [row for part in view.partitions(["message", "summary"]) for row in view.docs(part) if row.conversation == mine],
    ]  # fmt: skip


def remove_everything(view: WriteView) -> None:
    """Make every call that removes something from one conversation."""
    for fact in view.all_facts():
        if rests_on_conversation(view, fact):
            view.remove_evidence(fact.fact.subject, fact.fact.id, fact.fact.evidence[0])
            view.remove_docs(fact.fact.subject, "fact", [fact.doc])
            view.remove_fact(fact)
    for stored in view.message_rows():
        view.rewrite_message(replace(stored, message=replace(stored.message, content="other words")))
    for edge in (edge for edge in view.endings() if edge.conversation == neighbor(view)):
        view.remove_ending(edge.child, edge.conversation, edge.start_seq)
    for row in view.summary_rows():
        view.rewrite_summary(replace(row, summary=replace(row.summary, stale=True)))
    view.forget_idempotency_digests(1, 9)
    view.remove_rejected(1, 9)
    view.remove_docs(view.scope.subject or "", "summary", [row.doc for row in view.summary_rows()])
    view.remove_summaries([row.summary for row in view.summary_rows()])
    for episodes in view.episode_ranges():
        view.remove_episode_range(episodes)
    view.remove_docs(view.scope.subject or "", "message", [row.doc for row in view.message_rows()])
    view.remove_conversation()


def fill_another_conversation(view: WriteView) -> None:
    """Fill another conversation of the user, so that something is left to remove after `remove_everything`."""
    fill_conversation(view.at(view.scope.subject, "again"))
