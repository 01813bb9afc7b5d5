"""``holdfast demo``: the bundled conversations through the real engine, and what comes out."""

from __future__ import annotations

import json
import shutil
import sys
import time
import tomllib
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .. import __version__
from ..reports import DigestReport
from ..types import Fact, FactChange, Rejected
from .changes import digest_words
from .context import show_context
from .facts import earlier, show_fact
from .frames import Quotes
from .options import Json, commands, open_memory, same_options, without_password
from .plain import CommandError
from .screen import BAD, GOOD, NAME, QUIET, STRONG, Screen, print_json
from .summaries import show_summary
from .values import plain
from .words import count, days, label, seconds, value
from .work import digest_all

if TYPE_CHECKING:
    from ..conversation import Conversation
    from ..memory import Memory

app = commands()

DEMO_STORE = "holdfast-demo.db"
FRAMES_SHOWN, REJECTED_SHOWN, CONTEXT_TOKENS = 5, 5, 2000


@dataclass(frozen=True, slots=True)
class Story:
    """One bundled conversation, as ``demo/demo.toml`` lists it."""

    title: str
    about: str
    user: str
    id: str
    subject: str | None
    question: str
    messages: list[dict[str, Any]]

    def chat(self, memory: Memory) -> Conversation:
        """Its conversation in *memory*."""
        return memory.conversation(self.id, user=self.user, subject=self.subject)


@app.command()
def demo(
    store: Annotated[
        str, typer.Option("--store", "-s", metavar="PATH", help="Where to put the demo's memory.")
    ] = DEMO_STORE,
    as_json: Json = False,
) -> int:
    """
    Read the bundled conversations and show what is remembered of them.

    The memory is a file that you can go on with; running the demo again begins it anew. The users
    in the conversations do not exist.

    \b
    Examples:
      holdfast demo
      holdfast demo --store /tmp/demo.db
    """
    stories = bundled()
    _begin_anew(store, stories)
    began = time.monotonic()
    with open_memory(store) as memory:
        at_once: tuple[FactChange, ...] = ()
        for story in stories:
            at_once += story.chat(memory).append(story.messages).changes
            # The conversation is over, so its last messages are summarised as well.
            story.chat(memory).end()
        report = DigestReport(changes=at_once) + digest_all(memory, show=not as_json)
        spent_s = time.monotonic() - began
        if as_json:
            print_json(_as_data(memory, stories, store, report))
            return 0
        screen = Screen()
        _opening(screen, store, memory, stories, report, spent_s)
        for user in dict.fromkeys(story.user for story in stories):
            _user(screen, memory, user)
        _summaries(screen, memory, stories)
        _isolation(screen, memory, stories)
        _context(screen, memory, stories[0])
        _next(screen, store, stories[0])
    return 0


def bundled() -> list[Story]:
    """The conversations in ``demo/``, in the order in which they are shown."""
    folder = resources.files(__package__) / "demo"
    table = tomllib.loads((folder / "demo.toml").read_text(encoding="utf-8"))
    found = []
    for item in table["conversation"]:
        lines = (folder / item["file"]).read_text(encoding="utf-8").splitlines()
        messages = [json.loads(line) for line in lines]
        found.append(
            Story(
                item["title"],
                item["about"],
                item["user"],
                item["id"],
                item.get("subject"),
                item["question"],
                messages,
            )
        )
    return found


def _begin_anew(store: str, stories: list[Story]) -> None:
    """Remove an earlier demo's file; a file that holds anything else is left alone."""
    path, on_server = Path(store), "://" in store
    if not on_server and not path.exists():
        return
    with open_memory(store) as memory:
        ours = not memory.admin.users(limit=1) if on_server else _is_a_demo(memory, stories)
    if not ours:
        raise CommandError(
            "not-a-demo",
            f"{without_password(store)} holds more than the demo; it was left alone",
            hint="name another file: holdfast demo --store PATH",
        )
    for ending in () if on_server else ("", "-wal", "-shm"):
        Path(store + ending).unlink(missing_ok=True)


def _is_a_demo(memory: Memory, stories: list[Story]) -> bool:
    """Whether nobody but the bundled users is in it, and every bundled conversation begins as it should."""
    if {user for _, user, _ in memory.admin.users()} - {story.user for story in stories}:
        return False
    begun = [(story.chat(memory).load(limit=1), story.messages[0]["content"]) for story in stories]
    there = [(stored[0].content, first) for stored, first in begun if stored]
    return all(content == first for content, first in there) and bool(there or not memory.admin.users())


def _opening(
    screen: Screen, store: str, memory: Memory, stories: list[Story], report: DigestReport, spent_s: float
) -> None:
    screen.line((f"Holdfast {__version__}", STRONG), "   no account, no key; nothing leaves this machine")
    screen.columns(
        [
            [("store", QUIET), store, ("delete this file to undo everything", QUIET)],
            [("reader", QUIET), "built-in rules", ("the same patterns that work on your own chats", QUIET)],
        ]
    )
    screen.heading(f"Reading {len(stories)} bundled conversations")
    rows: list[Any] = []
    for story in stories:
        stored = story.chat(memory).load()
        rows.append(
            [
                (story.title, NAME),
                f"{len(stored):>3} messages",
                f"{days(stored[0].at, stored[-1].at)}",
                (f"user {story.user}" + (f", about {story.subject}" if story.subject else ""), QUIET),
            ]
        )
    screen.columns(rows, indent=2)
    total = sum(len(story.messages) for story in stories)
    screen.line(f"  {count(total, 'message')} kept; ", *digest_words(report), (f"   {seconds(spent_s)}", QUIET))


def _user(screen: Screen, memory: Memory, user: str) -> None:
    """What changed about one user, in full; the rest on one line each; what was not believed."""
    owner = memory.user(user)
    facts = owner.facts()
    screen.heading(f"What is believed about {user.capitalize()}", f"{count(len(facts), 'fact')}; first what changed")
    ever = {category: owner.history(category) for category in {fact.category for fact in facts if fact.category}}
    past = {fact.id: earlier(fact, ever.get(fact.category, [])) for fact in facts}
    changed = sorted((fact for fact in facts if past[fact.id]), key=lambda fact: fact.valid_from)
    seen = Quotes(memory, user=user, org="default", bot="default")
    for fact in changed[:FRAMES_SHOWN]:
        show_fact(screen, fact, past[fact.id], seen)
    rest = [fact for fact in facts if fact not in changed[:FRAMES_SHOWN]]
    screen.line()
    screen.columns([[(label(fact), NAME), value(fact), (_said(fact), QUIET)] for fact in rest], indent=2)
    _rejected(screen, owner.rejected())


def _said(fact: Fact) -> str:
    if not fact.evidence:
        return ""
    first = fact.evidence[0]
    again = f", said {fact.confirmations + 1} times" if fact.confirmations else ""
    return f"message {first.seq} of {first.conversation}{again}"


def _rejected(screen: Screen, rejected: list[Rejected]) -> None:
    # Taking back what nobody believed is no claim that was refused.
    claims = [item for item in rejected if item.candidate.op == "assert"][:REJECTED_SHOWN]
    if not claims:
        return
    screen.line()
    screen.line("  read, but not believed:")
    for item in claims:
        screen.line(
            ("    ✗ ", BAD), f'"{item.candidate.quote}"', (f"   message {item.candidate.seq}: {item.reason}", QUIET)
        )


def _summaries(screen: Screen, memory: Memory, stories: list[Story]) -> None:
    """Which messages each level of summaries covers, and the text of one of every level."""
    story = max(stories, key=lambda item: len(item.messages))
    chat = story.chat(memory)
    found = chat.summaries()
    screen.heading(f"How {len(story.messages)} messages stay in view", f"the summaries of {story.title!r}")
    levels = sorted({summary.level for summary in found}, reverse=True)
    for level in levels:
        here = [summary for summary in found if summary.level == level]
        ranges = " | ".join(f"{summary.start_seq}–{summary.end_seq}" for summary in here)
        screen.line(("  level " + str(level), NAME), f"  {ranges}")
    screen.line()
    for level in levels[-2:]:
        show_summary(screen, chat, next(summary for summary in found if summary.level == level), 2)


def _isolation(screen: Screen, memory: Memory, stories: list[Story]) -> None:
    """Whose facts the next reply of each subject's chat is given: its own and the user's, nobody else's."""
    about = [story for story in stories if story.subject]
    screen.heading("Who is told what", "the facts that the next reply in each chat is given")
    rows: list[Any] = []
    for story in about:
        subjects = {fact.id: fact.subject for fact in memory.user(story.user).facts()}
        made = story.chat(memory).context(story.question)
        given = [subjects.get(source.id, "?") for source in made.sources if source.kind == "fact"]
        others = [other.subject for other in about if other.subject not in (None, story.subject)]
        leaked = sum(subject in others for subject in given)
        rows.append(
            [
                (story.title, NAME),
                f"{given.count('self')} about {story.user}",
                f"{given.count(story.subject or '')} about {story.subject}",
                *(f"{given.count(other or '')} about {other}" for other in others),
                ("nothing crosses over", GOOD) if not leaked else (f"{leaked} CROSS OVER", BAD),
            ]
        )
    screen.columns(rows, indent=2)


def _context(screen: Screen, memory: Memory, story: Story) -> None:
    screen.heading(f'{story.user.capitalize()} asks: "{story.question}"')
    chat = story.chat(memory)
    show_context(screen, chat, chat.context(story.question, budget_tokens=CONTEXT_TOKENS))


def _next(screen: Screen, store: str, story: Story) -> None:
    options = same_options(store, story.user)
    screen.heading("Next")
    if shutil.which("holdfast") is None:
        screen.line(f'  export PATH="{Path(sys.executable).parent}:$PATH"', ("   so that `holdfast` is found", QUIET))
    screen.columns(
        [
            [
                f'holdfast say "I\'m vegetarian again."{options} -c {story.id}',
                ("change a fact, see it replaced", QUIET),
            ],
            [f'holdfast context "{story.question}"{options} -o text', ("what a model would get, word for word", QUIET)],
            [f"holdfast why dietary{options}", ("every word that a fact rests on, and how to mend it", QUIET)],
            ["holdfast import chat.jsonl", ("your own conversations", QUIET)],
            ["holdfast chat", ("talk, and see what is remembered; --llm MODEL answers", QUIET)],
        ],
        indent=2,
    )


def _as_data(memory: Memory, stories: list[Story], store: str, report: DigestReport) -> dict[str, Any]:
    users = list(dict.fromkeys(story.user for story in stories))
    return {
        "store": without_password(store) if "://" in store else str(Path(store).resolve()),
        "conversations": [
            {
                "id": story.id,
                "user": story.user,
                "subject": story.subject,
                "messages": len(story.messages),
                "summaries": plain(story.chat(memory).summaries()),
                "context": plain(story.chat(memory).context(story.question).to_dict()),
            }
            for story in stories
        ],
        "users": [
            {
                "user": user,
                "facts": plain(memory.user(user).facts()),
                "rejected": plain(memory.user(user).rejected()),
            }
            for user in users
        ],
        "digest": plain(report),
    }
