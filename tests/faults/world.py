"""A memory whose model stands behind real HTTP, and what must hold of it whatever the model does."""

from __future__ import annotations

import re
from pathlib import Path
from types import TracebackType

from holdfast import Config, Memory
from holdfast.llm import model
from holdfast.reports import DigestReport
from holdfast.testing.fakes import FakeClock
from holdfast.testing.model import Answers, ModelServer
from holdfast.types import Fact

HOME = "I gave up the old flat, my new address is in Porto."  # states something that no pattern reads
ROW = 'home,lives_in,Porto,0.95,,set,asserted,state,1,"my new address is in Porto"'
SAMPLE = 20  # users of whom a context is made and who are searched, when there are many
NAME = re.compile(r"[^\W_]+(?:[_-][^\W_]+)*")


class World:
    """A memory in a file, or only of this process; each user says one thing and is read at once."""

    def __init__(self, location: str | Path, answers: Answers = (), *, url: str = "", **settings: float) -> None:
        self.server = ModelServer(answers)
        self.clock = FakeClock()
        self.model = model("openai:any", base_url=url or self.server.url, api_key="none")
        config = Config(extract_every_user_turns=1, job_backoff_ms=1000, **settings)  # type: ignore[arg-type]
        self.memory = Memory(location, llm=self.model, embedder=None, config=config, clock=self.clock)
        self.acknowledged: dict[str, list[str]] = {}

    def __enter__(self) -> World:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.memory.close()
        self.model.close()
        self.server.close()

    def say(self, text: str, user: str = "ana") -> None:
        """One message that is acknowledged."""
        self.memory.conversation("a", user=user).append({"role": "user", "content": text})
        self.acknowledged.setdefault(user, []).append(text)

    def digest(self) -> DigestReport:
        """All that is due, an hour later: whoever asked to be left alone has been."""
        self.clock.advance(hours=1)
        return self.memory.digest()

    def homes(self, user: str = "ana") -> list[str]:
        """Where somebody is believed to live."""
        return [fact.value for fact in self.facts(user) if fact.key == "lives_in"]

    def facts(self, user: str = "ana") -> list[Fact]:
        return self.memory.user(user).facts()

    def assert_sound(self) -> None:
        """Nothing acknowledged is lost, reading works, and no row is of a wrong form or cites what was not said."""
        assert self.memory.doctor().findings == ()
        for number, (user, texts) in enumerate(self.acknowledged.items()):
            chat, owner = self.memory.conversation("a", user=user), self.memory.user(user)
            assert [message.content for message in chat.load()] == texts
            if number < SAMPLE:
                assert texts[-1] in chat.context(texts[-1]).to_text()
                assert owner.search(texts[0])
            for fact in owner.facts():
                assert_well_formed(fact, texts)
            for summary in chat.summaries():
                assert summary.text.strip()
                assert 1 <= summary.start_seq <= summary.end_seq <= len(texts)


def assert_well_formed(fact: Fact, texts: list[str]) -> None:
    """Each value is of its kind, and each quote stands where it is said to stand."""
    assert NAME.fullmatch(fact.category), fact
    assert fact.kind != "attribute" or (NAME.fullmatch(fact.key) and fact.value.strip()), fact
    assert fact.text.strip(), fact
    assert 0.7 <= fact.confidence <= 1.0, fact
    assert fact.lifetime in ("permanent", "state", "event", "transient"), fact
    assert fact.evidence, fact
    for evidence in fact.evidence:
        assert evidence.quote, fact
        assert texts[evidence.seq - 1][evidence.start : evidence.end] == evidence.quote, fact
