"""``holdfast say`` and ``holdfast chat``: messages stored from the terminal, with or without a model that answers."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import field, replace
from importlib.util import find_spec
from typing import TYPE_CHECKING, Annotated

import typer

from ...errors import BadInput, HoldfastError
from ...llm.protocol import Answer, LanguageModel, ModelError, reply_request
from ...reports import DigestReport, Receipt
from ...text import dataclass
from ...types import Fact, FactChange
from ..models import RULES, ModelOptions
from ..operator_commands.jobs import digest_all, raise_if_failed
from ..options import CONVERSATION, StrategyOption, SubjectOptions, without_password
from ..output import BAD, GOOD, NAME, QUIET, STRONG, ProgressBar, Screen, print_json, print_json_line
from ..render import change_row, print_changes, show_context
from ..terminal import (
    CommandError,
    count,
    fact_address,
    fact_label,
    fact_value,
    one_line,
    print_error,
    safe,
    to_json,
    usage_error,
)

if TYPE_CHECKING:
    from ...conversation import Conversation
    from ...memory import Memory
    from ...user import User

if find_spec("readline"):
    import readline  # noqa: F401  arrow keys and earlier lines in ``input``

HITS_SHOWN, FOUND_SHOWN = 3, 5
UNSTORED_TURNS = 40
CHAT_COMMANDS = (
    ("/facts", "list the facts"),
    ("/context", "show what the model would be sent for the next reply"),
    ("/search WORDS", "search facts, messages and summaries"),
    ("/again", "ask the model again, after a reply that failed"),
    ("/quit", "end the chat; so does Ctrl-D"),
    ("//…", "say something that begins with a slash"),
)


def say(
    options: SubjectOptions,
    model: ModelOptions,
    text: Annotated[str, typer.Argument(help="The user's message.")],
    reply: Annotated[
        str | None, typer.Option("--reply", metavar="TEXT", help="The assistant's reply, stored with it.")
    ] = None,
    conversation: Annotated[
        str, typer.Option("--conversation", "-c", metavar="NAME", help="The conversation.")
    ] = CONVERSATION,
    strategy: StrategyOption = None,
    digest: Annotated[bool, typer.Option(help="Do the background work right away.")] = True,
) -> int:
    """
    Store a message of the user and show which facts it changes.

    The message is on disk when the command returns. The store is created on first use.

    \b
    Examples:
      holdfast say "I'm vegetarian, and I live in Lisbon."
      holdfast say "I eat fish now." --reply "Noted!"
      holdfast say "She eats at seven." --subject luna
    """
    if not text.strip():
        raise usage_error("the message is empty", 'write holdfast say "I live in Lisbon."')
    with model.open(options) as llm, options.create(llm) as memory:
        receipt = options.chat(memory, conversation, strategy=strategy).record(text, reply)
        if not options.as_json:
            _show_receipt(Screen(), receipt, conversation, options)
        report = digest_all(memory, show=not options.as_json) if digest else DigestReport()
        if options.as_json:
            print_json({"conversation": conversation, **to_json(receipt), "digest": to_json(report)})
    return raise_if_failed(report)


def _show_receipt(screen: Screen, receipt: Receipt, conversation: str, options: SubjectOptions) -> None:
    screen.columns([change_row(change) for change in receipt.changes])
    replaced = next((change.fact for change in receipt.changes if change.op == "replaced" and change.fact), None)
    if receipt.skipped:
        screen.line((f"not stored: memory is {receipt.skipped.replace('-', ' ')}", QUIET))
    elif not receipt.changes:
        screen.line(("no facts learned", QUIET), (f"; stored as message {receipt.seqs[0]} of {conversation}", QUIET))
    elif replaced is not None:
        screen.line((f"earlier values: holdfast history {replaced.category}{options.repeated}", QUIET))


def chat(
    options: SubjectOptions,
    model: ModelOptions,
    reader: Annotated[
        str | None,
        typer.Option(
            "--reader", metavar="MODEL", help="Another model for facts and summaries, or rules (default: the same)."
        ),
    ] = None,
    system: Annotated[
        str | None, typer.Option("--system", metavar="TEXT", help="Instructions for the assistant.")
    ] = None,
    budget: Annotated[
        int | None,
        typer.Option("--budget", "-b", min=1, metavar="TOKENS", help="The most tokens of memory in a prompt."),
    ] = None,
    incognito: Annotated[
        bool, typer.Option("--incognito", help="Store nothing of this chat, and use nothing that is stored.")
    ] = False,
    own_facts: Annotated[
        bool, typer.Option("--own-facts", help="What you state in this chat is a fact of this chat alone.")
    ] = False,
    conversation: Annotated[
        str, typer.Option("--conversation", "-c", metavar="NAME", help="The conversation to start or continue.")
    ] = CONVERSATION,
    strategy: StrategyOption = None,
) -> int:
    """
    Chat with a model that remembers, and see which facts each message changes.

    Every line is a message; it is on disk before the model is asked. The model is sent the context
    that `holdfast context` shows. /facts, /context and /search WORDS look into memory, /again asks
    again, /help lists the rest; Ctrl-C stops a reply, Ctrl-D ends the chat. Without --llm there are
    no replies, but everything is remembered all the same.

    With --json every line is a message, and prints one line of JSON.

    \b
    Examples:
      holdfast chat
      holdfast chat --llm ollama:llama3.2
      holdfast chat --llm openai:gpt-5-mini --user ana --system "You are a cook."
      holdfast chat --llm openai:any --base-url http://127.0.0.1:8000/v1 --reader rules
      holdfast chat --llm bot.py:reply --incognito
    """
    # --base-url is the address of --llm; a reader is looked up at its own provider.
    with model.open(options) as llm, ModelOptions(reader or RULES).open() as other:
        reads = other if reader else llm
        with options.create(reads, background=True) as memory:
            open_chat = options.chat(
                memory, conversation, incognito=incognito, own_facts=own_facts or None, strategy=strategy
            )
            owner = options.owner(memory)
            session = ChatSession(memory, open_chat, owner, llm, system, budget, Screen(), options.as_json)
            if not options.as_json:
                _show_start(session, options, reads.name if reads else "built-in rules")
            for line in _lines(f"{options.user}> ", options.as_json):
                if not session.handle(line):
                    break
            return _end_chat(session, options)


def _show_start(session: ChatSession, options: SubjectOptions, reader: str) -> None:
    with ProgressBar("Opening"):
        last = session.chat.load(last=1)
    state = f"continues after message {last[-1].seq}" if last else "is new"
    known = count(len(session.owner.facts()), "fact")
    session.screen.line(
        (f"{session.chat.id}", STRONG), f" {state}; {known} known", (f"   {without_password(options.store)}", QUIET)
    )
    replies = session.model.name if session.model else "none (--llm MODEL)"
    session.screen.line((f"replies: {replies}   facts and summaries: {reader}", QUIET))
    session.screen.line(("/help lists the commands; Ctrl-D ends", QUIET))


def _lines(prompt: str, as_json: bool) -> Iterator[str]:
    """Yield typed lines until the input ends or Ctrl-C is pressed; echo lines that come from a pipe."""
    terminal = sys.stdin.isatty()
    if hasattr(sys.stdin, "reconfigure"):
        sys.stdin.reconfigure(errors="replace")
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
class ChatSession:
    """
    An open chat.

    ``known`` holds the facts that were shown; ``unstored`` the turns that memory did not store, which the model is sent
    from here.
    """

    memory: Memory
    chat: Conversation
    owner: User
    model: LanguageModel | None
    system: str | None
    budget: int | None
    screen: Screen
    as_json: bool = False
    known: dict[str, Fact] = field(default_factory=dict)
    unstored: list[tuple[str, str]] = field(default_factory=list)
    learned: int = 0
    skipped: int = 0
    failed: int = 0

    def __post_init__(self) -> None:
        self.known = {fact.id: fact for fact in self.owner.facts()}

    def handle(self, line: str) -> bool:
        """Handle one typed line; return whether the chat continues."""
        try:
            self.show_news()
            if self.as_json:
                self._send(line)
            elif line.startswith("/") and not line.startswith("//"):
                return self._run(*line.split(maxsplit=1))
            else:
                self._send(line[1:] if line.startswith("//") else line)
        except KeyboardInterrupt:
            stopped = CommandError("interrupted", "stopped", hint="your message is stored; /again asks again")
            print_error(stopped, self.as_json)
        except HoldfastError as error:
            self.failed += 1
            print_error(error, self.as_json)
        return True

    def show_news(self) -> None:
        """Show the facts that changed in the background since the last message."""
        now = {fact.id: fact for fact in self.owner.facts()}
        ended = {_slot(fact): fact for id, fact in self.known.items() if id not in now}
        changes: list[FactChange] = []
        for fact in (fact for id, fact in now.items() if id not in self.known):
            before = ended.pop(_slot(fact), None)
            changes.append(FactChange("replaced" if before else "new", fact, before))
        changes += [FactChange("retracted", fact, fact) for fact in ended.values()]
        self.known = now
        self._show_changes(changes)

    def _send(self, text: str) -> None:
        receipt = self.chat.append({"role": "user", "content": text})
        self._show_changes(receipt.changes)
        self.known = {fact.id: fact for fact in self.owner.facts()}
        self.skipped += bool(receipt.skipped)
        if receipt.skipped and not self.as_json:
            self.screen.line((f"  not stored: memory is {receipt.skipped.replace('-', ' ')}", QUIET))
        if receipt.discarded and not self.as_json:
            kinds = ", ".join(f"{name} ({number})" for name, number in sorted(receipt.discarded.items()))
            self.screen.line((f"  not remembered: {kinds}", QUIET))
        answer = self._reply(text if receipt.skipped else None)
        if self.as_json:
            print_json_line(
                {
                    "said": text,
                    "reply": answer.text if answer else None,
                    **to_json(receipt),
                    "answer": to_json(answer) if answer else None,
                }
            )
        elif self.model is None and not receipt.skipped:
            self._show_related(text, receipt)

    def _reply(self, unstored: str | None) -> Answer | None:
        """
        Ask the model for a reply to the last message, store it and show it.

        Raises:
            ModelError: the model failed; the message is stored all the same.
        """
        if self.model is None:
            return None
        built = self.chat.context(unstored, budget_tokens=self.budget, system=self.system)
        config = self.memory.config
        cached = config.prompt_cache and built.tokens >= config.prompt_cache_min_tokens
        request = reply_request(built.messages, built.cache_key if cached else "")
        request = replace(request, timeout_s=config.model_timeout_s)
        if unstored is not None:
            request = replace(request, before=(*request.before, *self.unstored[-UNSTORED_TURNS:]))
        if not request.text:
            raise BadInput("there is no message to answer", hint="say something first")
        with ProgressBar("Answering", show=not self.as_json):
            answer = self.model.ask(request)
        if not answer.text.strip():
            raise ModelError(f"{answer.model} returned an empty reply", hint="/again asks again")
        stored = self.chat.append({"role": "assistant", "content": answer.text})
        if stored.skipped:
            self.unstored += [("user", unstored or request.text), ("assistant", answer.text)]
        used = {"input_tokens": answer.input_tokens, "output_tokens": answer.output_tokens}
        reply = stored.seqs[-1] if stored.seqs else None
        self.chat.record_usage(answer.model, **used, cached_tokens=answer.cached_tokens, cost=answer.cost, seq=reply)
        if not self.as_json:
            self.screen.raw(f"bot> {answer.text.strip()}")
            self.screen.line((f"     {_tokens(answer)}", QUIET))
        return answer

    def _show_changes(self, changes: Sequence[FactChange]) -> None:
        self.learned += sum(change.op in ("new", "joined", "replaced") for change in changes)
        if not self.as_json:
            print_changes(self.screen, changes)

    def _show_related(self, text: str, receipt: Receipt) -> None:
        """Without a model, show what memory finds for the message."""
        hits = [hit for hit in self.owner.search(text, limit=HITS_SHOWN + 1) if hit.seq not in receipt.seqs]
        self.screen.columns(
            [[(hit.kind, NAME), (one_line(hit.text)[:200], QUIET)] for hit in hits[:HITS_SHOWN]], indent=5
        )
        if not hits and not receipt.changes:
            self.screen.line(("     stored; no facts learned, and nothing related found", QUIET))

    def _run(self, command: str, words: str = "") -> bool:
        """Run a command that begins with a slash; return whether the chat continues."""
        if command in ("/quit", "/exit", "/q"):
            return False
        known: dict[str, Callable[[], object]] = {
            "/facts": self._show_facts,
            "/context": lambda: show_context(self.screen, self.chat, self.chat.context(budget_tokens=self.budget)),
            "/search": lambda: self._search(words),
            "/again": lambda: self._reply(None) if self.model else self._no_model(),
        }
        known.get(command, self._help)()
        return True

    def _show_facts(self) -> None:
        rows = [[(fact_label(fact), NAME), (fact_value(fact), STRONG)] for fact in self.known.values()]
        self.screen.columns(rows, indent=2)
        if not rows:
            self.screen.line(("  no facts yet", QUIET))

    def _search(self, words: str) -> None:
        hits = self.owner.search(words, limit=FOUND_SHOWN) if words else []
        self.screen.columns([[(hit.kind, NAME), one_line(hit.text)[:200]] for hit in hits], indent=2)
        if not hits:
            self.screen.line(("  nothing found" if words else "  write /search and some words", QUIET))

    def _no_model(self) -> None:
        self.screen.line(("there is no model: end the chat, and start it again with --llm MODEL", BAD))

    def _help(self) -> None:
        self.screen.columns([[(name, STRONG), (meaning, QUIET)] for name, meaning in CHAT_COMMANDS], indent=2)


def _end_chat(session: ChatSession, options: SubjectOptions) -> int:
    """
    Do the remaining background work and show what it learned.

    Raises:
        CommandError: some of it failed.
    """
    digest_all(session.memory, show=not session.as_json)
    session.show_news()
    if not session.as_json:
        new = f"{count(session.learned, 'fact')} learned; " if session.learned else ""
        if session.skipped:
            session.screen.line((f"{new}{count(session.skipped, 'message')} not stored", QUIET))
        else:
            session.screen.line((f"{new}everything is stored", GOOD), (f"   holdfast facts{options.repeated}", QUIET))
    # Most work was done by threads during the chat; the jobs say what failed there.
    jobs = [job for job in session.memory.jobs() if job.user == options.user and job.attempt and job.reason]
    raise_if_failed(DigestReport(failed=len(jobs)))
    # At a terminal the failure was seen; a script has only the exit code.
    return 1 if session.failed and not sys.stdin.isatty() else 0


def _slot(fact: Fact) -> tuple[str, str]:
    """Return the address where only one value is active at a time, or the id of a fact that has others beside it."""
    alone = fact.kind != "attribute" or fact.cardinality == "multi"
    return (fact.subject, fact.id if alone else fact_address(fact))


def _tokens(answer: Answer) -> str:
    about = "about " if answer.estimated else ""
    cached = f" ({answer.cached_tokens:,} of them cached)" if answer.cached_tokens else ""
    return f"{about}{answer.input_tokens:,} tokens in{cached}, {answer.output_tokens:,} out"
