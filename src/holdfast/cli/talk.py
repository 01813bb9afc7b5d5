"""One chat at the terminal: a turn stored, what it changed, the reply, and what may be typed instead of a turn."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from importlib import import_module
from typing import TYPE_CHECKING, Any

from ..errors import BadInput, HoldfastError
from ..llm.protocol import Answer, LanguageModel, ModelError, Request
from ..reports import DigestReport, Receipt
from ..types import Fact, FactChange
from .changes import print_changes
from .context import show_context
from .plain import CommandError, one_line, print_error, safe
from .progress import Progress
from .screen import BAD, GOOD, NAME, QUIET, STRONG, Screen, print_json_line
from .values import plain
from .words import address, count, label, value
from .work import digest_all, raise_if_failed

if TYPE_CHECKING:
    from ..context.result import Context
    from ..conversation import Conversation
    from ..memory import Memory
    from ..user import User

HITS_SHOWN = 3
UNKEPT_TURNS = 40
TEMPERATURE = 0.7
WHAT_ELSE = (
    ("/facts", "what is believed now"),
    ("/context", "what the model gets for the next reply"),
    ("/search WORDS", "find facts, messages and summaries"),
    ("/again", "ask the model again, after a reply that failed"),
    ("/quit", "end the chat; so does Ctrl-D"),
    ("//…", "say something that begins with a slash"),
)


def lines(prompt: str, as_json: bool) -> Iterator[str]:
    """What is typed, line by line, until it ends or Ctrl-C is pressed; what comes from a pipe is shown as well."""
    terminal = sys.stdin.isatty()
    if hasattr(sys.stdin, "reconfigure"):
        sys.stdin.reconfigure(errors="replace")
    if terminal:
        with suppress(ImportError):
            import_module("readline")  # arrow keys, and the lines before
    with suppress(KeyboardInterrupt, EOFError):
        while True:
            sys.stdout.flush()
            if terminal and not as_json:
                line = input(prompt)
            elif not (line := sys.stdin.readline()):
                return
            elif not as_json and line.strip():
                print(f"{prompt}{safe(line.strip())}")
            if line.strip():
                yield line.strip()
    if terminal:
        print()


@dataclass
class Talk:
    """
    A chat that is going on.

    ``known`` are the facts that have been told; ``unkept`` the turns that memory did not want, which the model is
    given from here.
    """

    memory: Memory
    chat: Conversation
    owner: User
    model: LanguageModel | None
    system: str | None
    budget: int | None
    screen: Screen
    user: str
    as_json: bool = False
    known: dict[str, Fact] = field(default_factory=dict)
    unkept: list[tuple[str, str]] = field(default_factory=list)
    learned: int = 0
    failed: int = 0

    def __post_init__(self) -> None:
        self.known = {fact.id: fact for fact in self.owner.facts()}

    def turn(self, line: str) -> bool:
        """Take up what was typed; false when the chat is over."""
        try:
            self.news()
            if self.as_json:
                self._say(line)
            elif line.startswith("/") and not line.startswith("//"):
                return self._instead(*line.split(maxsplit=1))
            else:
                self._say(line[1:] if line.startswith("//") else line)
        except KeyboardInterrupt:
            stopped = CommandError("interrupted", "stopped", hint="what was said is kept; /again asks again")
            print_error(stopped, self.as_json)
        except HoldfastError as error:
            self.failed += 1
            print_error(error, self.as_json)
        return True

    def news(self) -> list[FactChange]:
        """What the background has learned since the last turn; told, unless it is for a program."""
        now = {fact.id: fact for fact in self.owner.facts()}
        ended = {_place(fact): fact for id, fact in self.known.items() if id not in now}
        changes: list[FactChange] = []
        for fact in (fact for id, fact in now.items() if id not in self.known):
            before = ended.pop(_place(fact), None)
            changes.append(FactChange("replaced" if before else "new", fact, before))
        changes += [FactChange("retracted", fact, fact) for fact in ended.values()]
        self.known = now
        self._tell(changes)
        return changes

    def _say(self, said: str) -> None:
        receipt = self.chat.append({"role": "user", "content": said})
        self._tell(receipt.changes)
        self.known = {fact.id: fact for fact in self.owner.facts()}
        if receipt.skipped and not self.as_json:
            self.screen.line((f"  not kept: memory is {receipt.skipped}", QUIET))
        if receipt.discarded and not self.as_json:
            kinds = ", ".join(f"{name} ({number})" for name, number in sorted(receipt.discarded.items()))
            self.screen.line((f"  kept out of what is remembered: {kinds}", QUIET))
        answer = self._reply(said if receipt.skipped else None)
        if self.as_json:
            print_json_line(_as_data(said, receipt, answer))
        elif self.model is None and not receipt.skipped:
            self._nearest(said, receipt)

    def _reply(self, unstored: str | None) -> Answer | None:
        """
        The model's answer to what was said last, stored and shown.

        Raises:
            ModelError: there is none; what was said is kept.
        """
        if self.model is None:
            return None
        made = self.chat.context(unstored, budget_tokens=self.budget, system=self.system)
        request = replace(asked(made), timeout_s=self.memory.config.model_timeout_s)
        if unstored is not None:
            request = replace(request, before=(*request.before, *self.unkept[-UNKEPT_TURNS:]))
        if not request.text:
            raise BadInput("there is nothing that waits for an answer", hint="say something first")
        with Progress("Answering", show=not self.as_json):
            answer = self.model.ask(request)
        if not answer.text.strip():
            raise ModelError(f"{answer.model} said nothing", hint="/again asks again")
        if self.chat.append({"role": "assistant", "content": answer.text}).skipped:
            self.unkept += [("user", unstored or request.text), ("assistant", answer.text)]
        used = {"input_tokens": answer.input_tokens, "output_tokens": answer.output_tokens}
        self.chat.record_usage(answer.model, **used, cached_tokens=answer.cached_tokens, cost=answer.cost)
        if not self.as_json:
            self.screen.raw(f"bot> {answer.text.strip()}")
            self.screen.line((f"     {_used(answer)}", QUIET))
        return answer

    def _tell(self, changes: tuple[FactChange, ...] | list[FactChange]) -> None:
        self.learned += sum(change.op in ("new", "joined", "replaced") for change in changes)
        if not self.as_json:
            print_changes(self.screen, changes)

    def _nearest(self, said: str, receipt: Receipt) -> None:
        """Without a model: what memory finds for it, which is what a model would be told."""
        hits = [hit for hit in self.owner.search(said, limit=HITS_SHOWN + 1) if hit.seq not in receipt.seqs]
        self.screen.columns(
            [[(hit.kind, NAME), (one_line(hit.text)[:200], QUIET)] for hit in hits[:HITS_SHOWN]], indent=5
        )
        if not hits and not receipt.changes and not receipt.skipped:
            self.screen.line(("     kept; nothing to learn from it, and nothing like it was said before", QUIET))

    def _instead(self, command: str, words: str = "") -> bool:
        """What begins with a slash."""
        if command in ("/quit", "/exit", "/q"):
            return False
        known: dict[str, Callable[[], object]] = {
            "/facts": self._facts,
            "/context": lambda: show_context(self.screen, self.chat, self.chat.context(budget_tokens=self.budget)),
            "/search": lambda: self._search(words),
            "/again": lambda: self._reply(None) if self.model else self._nobody(),
        }
        known.get(command, self._help)()
        return True

    def _facts(self) -> None:
        rows = [[(label(fact), NAME), (value(fact), STRONG)] for fact in self.known.values()]
        self.screen.columns(rows, indent=2)
        if not rows:
            self.screen.line(("  nothing is believed yet", QUIET))

    def _search(self, words: str) -> None:
        hits = self.owner.search(words, limit=5) if words else []
        self.screen.columns([[(hit.kind, NAME), one_line(hit.text)[:200]] for hit in hits], indent=2)
        if not hits:
            self.screen.line(("  nothing found" if words else "  write /search and what to look for", QUIET))

    def _nobody(self) -> None:
        self.screen.line(("nobody answers here: end the chat, and begin it again with --llm MODEL", BAD))

    def _help(self) -> None:
        self.screen.columns([[(typed, STRONG), (meaning, QUIET)] for typed, meaning in WHAT_ELSE], indent=2)


def asked(made: Context) -> Request:
    """The request for a reply: the context's messages, the last of them as what is to be answered."""
    spoken = [(m["role"], m["content"]) for m in made.messages if isinstance(m.get("content"), str) and m["content"]]
    system = "\n\n".join(words for role, words in spoken if role == "system")
    turns = [(role, words) for role, words in spoken if role in ("user", "assistant")]
    last = turns.pop()[1] if turns and turns[-1][0] == "user" else ""
    return Request(
        layer="chat",
        system=system,
        text=last,
        prompt="",
        cache_key=made.cache_key,
        temperature=TEMPERATURE,
        before=tuple(turns),
    )


def leave(talk: Talk, options: str) -> int:
    """
    Learn from what is not read yet, tell it, and where to look next.

    Raises:
        CommandError: some of that failed.
    """
    digest_all(talk.memory, show=not talk.as_json)
    talk.news()
    if not talk.as_json:
        new = f"{count(talk.learned, 'fact')} learned; " if talk.learned else ""
        talk.screen.line((f"{new}everything is kept", GOOD), (f"   holdfast facts{options}", QUIET))
    # Most of it was done by threads while the chat went on; what failed there stands in the jobs.
    jobs = [job for job in talk.memory.jobs() if job.user == talk.user and job.attempt and job.reason]
    raise_if_failed(DigestReport(failed=len(jobs)))
    # At a terminal it was seen, and mended or not; a script has only the exit code.
    return 1 if talk.failed and not sys.stdin.isatty() else 0


def _place(fact: Fact) -> tuple[str, str]:
    """Where only one value holds at a time; a place of its own for what stands beside others."""
    return (fact.subject, fact.id if fact.kind != "attribute" or fact.cardinality == "multi" else address(fact))


def _used(answer: Answer) -> str:
    about = "about " if answer.estimated else ""
    cached = f" ({answer.cached_tokens:,} of them cached)" if answer.cached_tokens else ""
    return f"{about}{answer.input_tokens:,} tokens in{cached}, {answer.output_tokens:,} out"


def _as_data(said: str, receipt: Receipt, answer: Answer | None) -> dict[str, Any]:
    reply = plain(answer) if answer else None
    return {"said": said, "reply": answer.text if answer else None, **plain(receipt), "answer": reply}
