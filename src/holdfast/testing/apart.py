"""Two conversations that are easily taken for one another, filled alike, and all that can be taken from one."""

from __future__ import annotations

from dataclasses import replace

from ..store.protocol import Derivation, EpisodesRow, FactRow, ReadView, WriteView
from ..store.values import PromptRow, ShownRow, UsageRow
from ..types import Candidate
from .remade import made_again
from .rows import END_MS, end_fact, learn, say, summarise


def fill_apart(view: WriteView) -> None:
    """`fill` for a conversation that may share its user with another: its facts have addresses of their own."""
    say(view, "one two", "three")
    summarise(view, 1, 2)
    place = f"{view.scope.subject} in {view.scope.conversation}"
    learn(view, "Faro", category=f"home of {place}")
    old = learn(view, "Lisbon", category=f"past home of {place}")
    end_fact(view, old, at_ms=END_MS)
    view.add_derivations([Derivation("end", old.fact.id, "message", view.scope.subject or "", beside(view), 3, 3)])
    say(view.at(view.scope.subject, beside(view)), "one", "two", "three")
    view.add_idempotency("key", "digest", 1, 2, END_MS)
    view.want("digest", "", wanted=4, run_at_ms=0, now_ms=0)
    view.save_prefix("layered", "sha", "{}")
    view.add_episodes(EpisodesRow(1, 2, 1, "rules 1"), END_MS)
    view.add_rejected(Candidate("attribute", "self", "a", "b", "c", "d", 1.0, 1, "one", 0), "why", END_MS)
    made_again(view)
    view.add_shown(ShownRow(2, END_MS, "layered", 40, "sha", 2, 1))
    view.add_vectors([(doc, "e1", 0.5, b"123") for doc in view.unembedded("e1", limit=99)])
    view.set_topic("", "health", never=True, now_ms=1)
    pay(view)


def pay(view: WriteView) -> None:
    """A call of a model that cost something, and a prompt of one's own."""
    view.add_usage(UsageRow("2026-01-01", "facts", "m", calls=1, input_tokens=5, output_tokens=1, cost=7))
    view.add_prompt(PromptRow("chunk_summary", len(view.prompts()) + 1, "in verse", END_MS))


def one_apart() -> list[tuple[tuple[str, ...], tuple[str, ...]]]:
    """Two conversations that differ in one part of their names, each part once."""
    first = ("org", "user", "bot", "self", "chat")
    return [(first, (*first[:n], "other", *first[n + 1 :])) for n in range(5)]


def beside(view: ReadView) -> str:
    """Another conversation, in which a fact was ended."""
    return f"beside {view.scope.conversation}"


def said_in(view: ReadView, row: FactRow) -> bool:
    said = row.fact.evidence[0]
    return (said.home, said.conversation) == (view.scope.subject, view.scope.conversation)


def everything(view: ReadView) -> list[object]:
    """What one conversation and its user hold, as far as a conversation can see it."""
    mine = view.scope.conversation or ""
    here = (view.scope.subject, mine)
    facts = [row for row in view.facts_ever() if said_in(view, row)]
    return [
        view.conversation(), view.stored(), view.summary_rows(), view.keys(), view.covered(1, 9),
        view.resting_on(1, 9), view.prefix("layered"), view.rejected(), view.episode_ranges(), facts, view.topics(),
        view.usage(), view.prompts(),
        view.rebuilt(), view.readings(), view.shown(),
        [e for e in view.news(0, limit=999).events if (e.subject, e.conversation) == here and e.kind[:4] != "job."],
        [edge for edge in view.endings() if (edge.subject, edge.conversation) == (view.scope.subject, beside(view))],
        [row for part in view.partitions(["message", "summary"]) for row in view.docs(part) if row.conversation == mine],
    ]  # fmt: skip


def take_away(view: WriteView) -> None:
    """Every call that takes something away from one conversation."""
    for row in view.facts_ever():
        if said_in(view, row):
            view.remove_evidence(row.fact.subject, row.fact.id, row.fact.evidence[0])
            view.remove_docs(row.fact.subject, "fact", [row.doc])
            view.remove_fact(row)
    for stored in view.stored():
        view.rewrite_message(replace(stored, message=replace(stored.message, content="other words")))
    for edge in (edge for edge in view.endings() if edge.conversation == beside(view)):
        view.remove_ending(edge.child, edge.conversation, edge.start_seq)
    for told in view.summary_rows():
        view.rewrite_summary(replace(told, summary=replace(told.summary, stale=True)))
    view.forget_bodies(1, 9)
    view.remove_rejected(1, 9)
    view.remove_docs(view.scope.subject or "", "summary", [row.doc for row in view.summary_rows()])
    view.remove_summaries([row.summary for row in view.summary_rows()])
    for asked in view.episode_ranges():
        view.remove_episodes(asked)
    view.remove_docs(view.scope.subject or "", "message", [row.doc for row in view.stored()])
    view.remove_conversation()


def fill_again(view: WriteView) -> None:
    """What `take_away` took from a conversation, so that there is something to take from its user."""
    fill_apart(view.at(view.scope.subject, "again"))
