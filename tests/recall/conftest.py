"""A user whose talks are stored, indexed and embedded the way the product does it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from holdfast.clock import to_ms
from holdfast.config import Config
from holdfast.embed import Embedder, quantize
from holdfast.ingest.append import WorkSettings, append, prepare
from holdfast.recall.search import search
from holdfast.scope import SELF, Scope
from holdfast.store import DocRow, WriteView, open_store, pack_words
from holdfast.testing.fakes import HashEmbedder
from holdfast.testing.rows import new_fact
from holdfast.text.terms import terms
from holdfast.types import Hit

MONDAY = datetime(2024, 3, 4, 9, 0, tzinfo=UTC)
ANA = Scope("acme", "guide", "ana")


class Desk:
    """One store, and the few moves that tests of search make on it."""

    def __init__(self, embedder: Embedder | None) -> None:
        self.store = open_store(":memory:", Config(durable=False))
        self.embedder = embedder

    def say(
        self, scope: Scope, said: Sequence[str | tuple[str, str]], *, at: datetime = MONDAY, embed: bool = True
    ) -> None:
        """Append messages a minute apart: texts of the user, or (speaker, text), where a role is no name."""
        rows: list[dict[str, Any]] = []
        for minute, item in enumerate(said):
            speaker, text = item if isinstance(item, tuple) else ("user", item)
            who = {"role": speaker} if speaker in ("user", "assistant") else {"role": "user", "name": speaker}
            rows.append({**who, "content": text, "at": (at + timedelta(minutes=minute)).isoformat()})
        config, now = Config(), at + timedelta(days=1)
        ready = prepare(rows, now=now, max_chars=1_000_000)

        def work(view: WriteView) -> None:
            append(view, ready, config, WorkSettings(embed=False), key=None, digest="", now_ms=to_ms(now))

        self.store.write(scope, work)
        if embed:
            self.embed(scope)

    def embed(self, scope: Scope) -> None:
        """Give every document of the user its vector."""
        embedder = self.embedder
        if embedder is None:
            return

        def work(view: WriteView) -> None:
            docs = view.unembedded(embedder.id, limit=10_000)
            texts = view.texts(docs)
            rows = quantize(embedder.embed([texts[doc.kind, doc.doc] for doc in docs]))
            view.add_vectors((doc, embedder.id, *row) for doc, row in zip(docs, rows, strict=True))
            user = view.user()
            view.save_user(replace(user, version=user.version + 1), 0)

        self.store.write(scope.about(None), work)

    def believe(self, scope: Scope, seq: int, value: str, text: str) -> str:
        """Learn a fact from message *seq*, which must hold *value*; its id."""

        def work(view: WriteView) -> str:
            (message,) = view.messages(start_seq=seq, limit=1)
            row = new_fact(message, value, key=f"key{seq}", about=scope.subject or SELF, home=scope.subject or SELF)
            user, words = view.user(), Counter(terms(text))
            row = replace(row, fact=replace(row.fact, text=text), doc=user.next_doc)
            view.save_user(replace(user, next_doc=user.next_doc + 1, version=user.version + 1), 0)
            place = (row.fact.subject, "fact", row.doc, "", 0, row.fact.id, 0, SELF, "user", row.stated_at)
            view.add_docs([DocRow(*place, words.total(), len(text), 0, words=pack_words(words))])
            view.add_fact(row)
            return row.fact.id

        found = self.store.write(scope, work)
        self.embed(scope)
        return found

    def find(self, scope: Scope, question: str, **options: Any) -> list[Hit]:
        """Search with this desk's embedder."""
        options = {"now": MONDAY + timedelta(days=30), "embedder": self.embedder} | options
        return self.store.read(scope, lambda view: search(view, question, **options))


@pytest.fixture(params=["words", "vectors"])
def desk(request: pytest.FixtureRequest) -> Iterator[Desk]:
    """A desk without an embedder, and one with."""
    desk = Desk(HashEmbedder() if request.param == "vectors" else None)
    yield desk
    desk.store.close()


@pytest.fixture
def embedding() -> Iterator[Desk]:
    """A desk with an embedder."""
    desk = Desk(HashEmbedder())
    yield desk
    desk.store.close()
