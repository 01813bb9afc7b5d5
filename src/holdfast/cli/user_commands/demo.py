"""``holdfast demo``: the bundled conversations, read by the real engine, and the result."""

from __future__ import annotations

import json
import shutil
import sys
import time
import tomllib
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ... import __version__
from ...reports import DigestReport
from ...text import dataclass
from ...types import Fact, FactChange, Rejected
from ..operator_commands.jobs import digest_all
from ..options import JsonOptions, UserOptions, open_memory, without_password
from ..output import BAD, GOOD, NAME, QUIET, STRONG, Piece, Screen, print_json
from ..render import QuoteFinder, digest_line, earlier_facts, show_context, show_fact, show_summary
from ..terminal import CommandError, count, days, fact_label, fact_value, seconds, to_json

if TYPE_CHECKING:
    from ...conversation import Conversation
    from ...memory import Memory

DEMO_STORE = "holdfast-demo.db"
FACTS_SHOWN, REJECTED_SHOWN, CONTEXT_TOKENS = 5, 5, 2000


@dataclass(frozen=True, slots=True)
class DemoConversation:
    """One bundled conversation, as ``demo/demo.toml`` lists it."""

    title: str
    about: str
    user: str
    id: str
    subject: str | None
    question: str
    messages: list[dict[str, Any]]

    def chat(self, memory: Memory) -> Conversation:
        """Return its conversation in *memory*."""
        return memory.conversation(self.id, user=self.user, subject=self.subject)


def demo(
    options: JsonOptions,
    store: Annotated[
        str, typer.Option("--store", "-s", metavar="PATH", help="Where to put the memory of the demo.")
    ] = DEMO_STORE,
) -> int:
    """
    Read the bundled conversations and show what is remembered.

    The memory is a file that you can keep using; running the demo again replaces it. The users in
    the conversations are fictional.

    \b
    Examples:
      holdfast demo
      holdfast demo --store /tmp/demo.db
    """
    conversations = bundled()
    _remove_earlier(store, conversations)
    began = time.monotonic()
    with open_memory(store) as memory:
        changes: tuple[FactChange, ...] = ()
        for one in conversations:
            changes += one.chat(memory).append(one.messages).changes
            one.chat(memory).end()  # so that its last messages are summarized, too
        report = DigestReport(changes=changes) + digest_all(memory, show=not options.as_json)
        spent_s = time.monotonic() - began
        if options.as_json:
            print_json(_as_json(memory, conversations, store, report))
            return 0
        screen = Screen()
        _show_reading(screen, store, memory, conversations, report, spent_s)
        for user in dict.fromkeys(one.user for one in conversations):
            _show_user(screen, memory, user)
        _show_summaries(screen, memory, conversations)
        _show_isolation(screen, memory, conversations)
        _show_context(screen, memory, conversations[0])
        _show_next(screen, store, conversations[0])
    return 0


def bundled() -> list[DemoConversation]:
    """Load the conversations in ``demo/``, in the order in which they are shown."""
    folder = resources.files(__package__.rpartition(".")[0]) / "demo"
    table = tomllib.loads((folder / "demo.toml").read_text(encoding="utf-8"))
    found = []
    for item in table["conversation"]:
        lines = (folder / item.pop("file")).read_text(encoding="utf-8").splitlines()
        found.append(DemoConversation(**{"subject": None} | item, messages=[json.loads(line) for line in lines]))
    return found


def _remove_earlier(store: str, conversations: list[DemoConversation]) -> None:
    """
    Remove the file of an earlier demo.

    Raises:
        CommandError: the file holds anything else.
    """
    path, on_server = Path(store), "://" in store
    if not on_server and not path.exists():
        return
    with open_memory(store) as memory:
        ours = not memory.admin.users(limit=1) if on_server else _is_a_demo(memory, conversations)
    if not ours:
        raise CommandError(
            "not-a-demo",
            f"{without_password(store)} holds more than the demo; it was not changed",
            hint="name another file: holdfast demo --store PATH",
        )
    for ending in () if on_server else ("", "-wal", "-shm"):
        Path(store + ending).unlink(missing_ok=True)


def _is_a_demo(memory: Memory, conversations: list[DemoConversation]) -> bool:
    """Return whether it holds only the bundled users, and each bundled conversation begins as it should."""
    if {user for _, user, _ in memory.admin.users()} - {one.user for one in conversations}:
        return False
    begun = [(one.chat(memory).load(limit=1), one.messages[0]["content"]) for one in conversations]
    stored = [(messages[0].content, first) for messages, first in begun if messages]
    return all(content == first for content, first in stored) and bool(stored or not memory.admin.users())


def _show_reading(
    screen: Screen,
    store: str,
    memory: Memory,
    conversations: list[DemoConversation],
    report: DigestReport,
    spent_s: float,
) -> None:
    screen.line((f"Holdfast {__version__}", STRONG), "   no account, no key; nothing leaves this machine")
    screen.columns(
        [
            [("store", QUIET), store, ("delete this file to undo everything", QUIET)],
            [("reader", QUIET), "built-in rules", ("the same rules read your own chats", QUIET)],
        ]
    )
    screen.heading(f"Reading {len(conversations)} bundled conversations")
    rows: list[list[Piece]] = []
    for one in conversations:
        stored = one.chat(memory).load()
        about = f", about {one.subject}" if one.subject else ""
        dates = days(stored[0].at, stored[-1].at)
        rows.append([(one.title, NAME), f"{len(stored):>3} messages", dates, (f"user {one.user}{about}", QUIET)])
    screen.columns(rows, indent=2)
    total = sum(len(one.messages) for one in conversations)
    screen.line(f"  {count(total, 'message')} stored; ", *digest_line(report), (f"   {seconds(spent_s)}", QUIET))


def _show_user(screen: Screen, memory: Memory, user: str) -> None:
    """Print the facts of one user that changed in full, the others on one line each, then what was rejected."""
    owner = memory.user(user)
    facts = owner.facts()
    screen.heading(f"Facts about {user.capitalize()}", f"{count(len(facts), 'fact')}; first those that changed")
    history = {category: owner.history(category) for category in {fact.category for fact in facts if fact.category}}
    past = {fact.id: earlier_facts(fact, history.get(fact.category, [])) for fact in facts}
    changed = sorted((fact for fact in facts if past[fact.id]), key=lambda fact: fact.valid_from)[:FACTS_SHOWN]
    finder = QuoteFinder(memory, UserOptions(user=user))
    for fact in changed:
        show_fact(screen, fact, past[fact.id], finder)
    screen.line()
    rows: list[list[Piece]] = [
        [(fact_label(fact), NAME), fact_value(fact), (_source(fact), QUIET)] for fact in facts if fact not in changed
    ]
    screen.columns(rows, indent=2)
    _show_rejected(screen, owner.rejected())


def _source(fact: Fact) -> str:
    if not fact.evidence:
        return ""
    first = fact.evidence[0]
    again = f", said {fact.confirmations + 1} times" if fact.confirmations else ""
    return f"message {first.seq} of {first.conversation}{again}"


def _show_rejected(screen: Screen, rejected: list[Rejected]) -> None:
    # A rejected retraction is no claim.
    claims = [item for item in rejected if item.candidate.op == "assert"][:REJECTED_SHOWN]
    if not claims:
        return
    screen.line()
    screen.line("  read, but rejected:")
    for item in claims:
        reason = f"   message {item.candidate.seq}: {item.reason}"
        screen.line(("    ✗ ", BAD), f'"{item.candidate.quote}"', (reason, QUIET))


def _show_summaries(screen: Screen, memory: Memory, conversations: list[DemoConversation]) -> None:
    """Print which messages each level of summaries covers, and one summary of the two lowest levels."""
    longest = max(conversations, key=lambda one: len(one.messages))
    chat = longest.chat(memory)
    found = chat.summaries()
    screen.heading(f"How {len(longest.messages)} messages stay in view", f"the summaries of {longest.title!r}")
    levels = sorted({summary.level for summary in found}, reverse=True)
    for level in levels:
        ranges = " | ".join(f"{one.start_seq}–{one.end_seq}" for one in found if one.level == level)
        screen.line((f"  level {level}", NAME), f"  {ranges}")
    screen.line()
    for level in levels[-2:]:
        show_summary(screen, chat, next(summary for summary in found if summary.level == level), 2)


def _show_isolation(screen: Screen, memory: Memory, conversations: list[DemoConversation]) -> None:
    """Print how many facts about each subject the next reply of each chat is given: none of another subject's."""
    about = [one for one in conversations if one.subject]
    screen.heading("Each subject separate", "the facts that the next reply in each chat is given")
    rows: list[list[Piece]] = []
    for one in about:
        subjects = {fact.id: fact.subject for fact in memory.user(one.user).facts()}
        built = one.chat(memory).context(one.question)
        given = [subjects.get(source.id, "?") for source in built.sources if source.kind == "fact"]
        others = [other.subject for other in about if other.subject not in (None, one.subject)]
        leaked = sum(subject in others for subject in given)
        rows.append(
            [
                (one.title, NAME),
                f"{given.count('self')} about {one.user}",
                f"{given.count(one.subject or '')} about {one.subject}",
                *(f"{given.count(other or '')} about {other}" for other in others),
                ("nothing leaks", GOOD) if not leaked else (f"{leaked} LEAKED", BAD),
            ]
        )
    screen.columns(rows, indent=2)


def _show_context(screen: Screen, memory: Memory, one: DemoConversation) -> None:
    screen.heading(f'{one.user.capitalize()} asks: "{one.question}"')
    chat = one.chat(memory)
    show_context(screen, chat, chat.context(one.question, budget_tokens=CONTEXT_TOKENS))


def _show_next(screen: Screen, store: str, one: DemoConversation) -> None:
    repeated = UserOptions(store=store, user=one.user).repeated
    screen.heading("Next")
    if shutil.which("holdfast") is None:
        folder = Path(sys.executable).parent
        screen.line(f'  export PATH="{folder}:$PATH"', ("   so that `holdfast` is found", QUIET))
    commands = {
        f'holdfast say "I\'m vegetarian again."{repeated} -c {one.id}': "change a fact, and see it replaced",
        f'holdfast context "{one.question}"{repeated} -o text': "what a model would be sent, word for word",
        f"holdfast why dietary{repeated}": "every quote behind a fact, and how to correct it",
        "holdfast import chat.jsonl": "your own conversations",
        "holdfast chat": "chat, and see what is remembered; --llm MODEL answers",
    }
    screen.columns([[command, (meaning, QUIET)] for command, meaning in commands.items()], indent=2)


def _as_json(memory: Memory, conversations: list[DemoConversation], store: str, report: DigestReport) -> dict[str, Any]:
    users = dict.fromkeys(one.user for one in conversations)
    return {
        "store": without_password(store) if "://" in store else str(Path(store).resolve()),
        "conversations": [
            {
                "id": one.id,
                "user": one.user,
                "subject": one.subject,
                "messages": len(one.messages),
                "summaries": to_json(one.chat(memory).summaries()),
                "context": to_json(one.chat(memory).context(one.question).to_dict()),
            }
            for one in conversations
        ],
        "users": [
            {
                "user": user,
                "facts": to_json(memory.user(user).facts()),
                "rejected": to_json(memory.user(user).rejected()),
            }
            for user in users
        ],
        "digest": to_json(report),
    }
