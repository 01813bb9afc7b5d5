"""``holdfast facts``, ``history`` and ``why``: what is known about a user, with the quotes behind it."""

from __future__ import annotations

import difflib
import shlex
import sys
from typing import TYPE_CHECKING, Annotated

import typer

from ..lookup import FACT_HELP, find_fact, match_facts, suggest_users
from ..options import SubjectOptions, parse_time
from ..output import BAD, CHANGED, GOOD, NAME, QUIET, STRONG, Piece, Screen, print_json
from ..render import QuoteFinder, earlier_facts, show_earlier_fact, show_fact, show_fact_line, show_quote
from ..terminal import CommandError, count, fact_address, fact_label, fact_value, minute, to_json, valid_time

if TYPE_CHECKING:
    from ...memory import Memory
    from ...types import Fact, Rejected


def facts(
    options: SubjectOptions,
    category: Annotated[str | None, typer.Argument(help="Only this category: dietary, home, …")] = None,
    as_of: Annotated[
        str | None,
        typer.Option("--as-of", metavar="TIME", help="What was true then: 2026-03-14 (its end) or 2026-03-14T19:02."),
    ] = None,
    quotes: Annotated[bool, typer.Option(help="Show the quote behind each fact.")] = True,
    ids: Annotated[bool, typer.Option("--ids", help="Show the id of each fact.")] = False,
    rejected: Annotated[bool, typer.Option("--rejected", help="Show rejected candidates, and why.")] = False,
    waiting: Annotated[
        bool, typer.Option("--waiting", help="Show what waits for a decision; see `holdfast review`.")
    ] = False,
    archived: Annotated[bool, typer.Option("--archived", help="Show archived facts.")] = False,
    conversation: Annotated[
        list[str] | None,
        typer.Option("--conversation", "-c", metavar="NAME", help="Only what it states; may be repeated."),
    ] = None,
    first: Annotated[
        int | None, typer.Option("--from", min=1, metavar="NUMBER", help="Only from this message of it on,")
    ] = None,
    last: Annotated[int | None, typer.Option("--to", min=1, metavar="NUMBER", help="and up to this one.")] = None,
) -> int:
    """
    List the facts about the user, each with the quote behind it.

    \b
    Examples:
      holdfast facts
      holdfast facts dietary
      holdfast facts --as-of 2026-03-14 --no-quotes
      holdfast facts --rejected
      holdfast facts --conversation web-42 --from 11 --to 20
    """
    at = parse_time(as_of, "--as-of") if as_of else None
    with options.open() as memory:
        owner = options.owner(memory)
        rejected = rejected or waiting
        candidates = owner.rejected(limit=1000, waiting=waiting) if rejected else []
        where = {"conversation": conversation or None, "start_seq": first, "end_seq": last}
        found = owner.facts(category, as_of=at, archived=archived, **where) if not rejected else []  # type: ignore[arg-type]
        if options.as_json:
            print_json(to_json(candidates if rejected else found))
            return 0
        screen, finder = Screen(), QuoteFinder(memory, options)
        if rejected:
            _show_rejected(screen, candidates, finder, waiting=waiting)
            return 0
        if archived and not found:
            screen.line("no facts are archived")
        elif not found:
            _print_no_facts(memory, options, category)
        for fact in found:
            past = earlier_facts(fact, owner.history(fact.category)) if quotes and fact.category else []
            show_fact(screen, fact, past, finder if quotes else None, with_id=ids)
        if found:
            screen.line()
            past = [fact for fact in owner.history(category) if fact.category and not fact.live]
            screen.line((_footer(found, past, options), QUIET))
    return 0


def history(
    options: SubjectOptions,
    category: Annotated[str, typer.Argument(help="A category, as `holdfast facts` names it: dietary, home, …")],
    key: Annotated[str | None, typer.Argument(help="One of its keys: lives_in, …")] = None,
    ids: Annotated[bool, typer.Option("--ids", help="Show the id of each value.")] = False,
) -> int:
    """
    Show every value that a fact had, oldest first, and when each was true.

    \b
    Examples:
      holdfast history dietary
      holdfast history home lives_in
    """
    with options.open() as memory:
        owner = options.owner(memory)
        found = owner.history(category, key)
        if not found and not options.as_json:
            known = sorted({fact.category for fact in owner.facts() if fact.category})
            if not known:
                _print_no_facts(memory, options, None)
                return 0
            raise CommandError(
                "no-history",
                f"there was never a fact under {f'{category} {key}' if key else category!r}",
                hint=_nearest(category, known),
            )
    if options.as_json:
        print_json(to_json(found))
        return 0
    _show_history(Screen(), found, with_ids=ids)
    return 0


def why(options: SubjectOptions, fact: Annotated[str, typer.Argument(metavar="FACT", help=FACT_HELP)]) -> int:
    """
    Show the evidence of a fact: every quote, its extractor, what it replaced, how to correct it.

    \b
    Examples:
      holdfast why dietary
      holdfast why "home lives_in" --user ana
      holdfast why shellfish --json
    """
    with options.open() as memory:
        owner = options.owner(memory)
        found = find_fact(owner, fact)
        past = earlier_facts(found, owner.history(found.category)) if found.category else []
        if options.as_json:
            print_json({"fact": to_json(found), "replaced": to_json(past)})
            return 0
        screen, finder = Screen(), QuoteFinder(memory, options)
        show_fact_line(screen, found)
        for quote in found.evidence:
            show_quote(screen, quote, finder.message(quote))
        for old in past:
            show_earlier_fact(screen, found, old)
        address = fact_address(found)
        name = shlex.quote(address if match_facts(owner.facts(), address) == [found] else found.id)
        _show_details(screen, found, f"{name}{options.repeated}", f"{name} VALUE{options.repeated}")
    return 0


def _show_details(screen: Screen, fact: Fact, name: str, name_and_value: str) -> None:
    screen.line()
    used = f"{count(fact.uses, 'time')}, last {minute(fact.last_used_at)}" if fact.last_used_at else "not yet"
    screen.columns(
        [
            [("read by", NAME), fact.source],
            [("learned", NAME), minute(fact.recorded_at)],
            [("confidence", NAME), f"{fact.confidence:.2f}"],
            [("lifetime", NAME), fact.lifetime],
            [("used", NAME), used],
            [("strength", NAME), f"{fact.strength:.2f}"],
            [("importance", NAME), f"{fact.importance:.2f}"],
            [("range", NAME), _range(fact)],
            [("id", NAME), fact.id],
        ],
        indent=2,
    )
    screen.line()
    screen.line(("if this is wrong:", QUIET))
    correct: list[Piece] = [f"  holdfast correct {name_and_value}", ("another value was true from the start", QUIET)]
    screen.columns(
        [
            *([correct] if fact.kind == "attribute" else []),
            [f"  holdfast never-true {name}", ("it was never true", QUIET)],
            [f"  holdfast forget {name}", ("erase it, and the words that state it", QUIET)],
        ]
    )


def _range(fact: Fact) -> str:
    if not fact.conversation:
        return "written by hand"
    span = str(fact.start_seq) if fact.start_seq == fact.end_seq else f"{fact.start_seq} to {fact.end_seq}"
    return f"{'message' if fact.start_seq == fact.end_seq else 'messages'} {span} of {fact.conversation}"


def _show_history(screen: Screen, found: list[Fact], *, with_ids: bool) -> None:
    by_address: dict[tuple[str, str, str], list[Fact]] = {}
    for fact in found:
        by_address.setdefault((fact.only_in, fact.subject, fact_address(fact)), []).append(fact)
    for values in by_address.values():
        screen.line()
        only = f"   only in {values[-1].only_in}" if values[-1].only_in else ""
        screen.line((fact_label(values[-1]), NAME), (f"   {fact_address(values[-1])}{only}", QUIET))
        screen.columns([_history_row(fact, with_ids) for fact in values], indent=2)


def _history_row(fact: Fact, with_id: bool) -> list[Piece]:
    source = fact.evidence[-1] if fact.evidence else None
    quote = f'message {source.seq} of {source.conversation}: "{source.quote}"' if source else ""
    mark = ("●", GOOD) if fact.live else ("○", QUIET)
    ended = f"{fact.ended_because.replace('_', ' ')}; " if fact.ended_because not in ("", "replaced") else ""
    words = (fact_value(fact), STRONG if fact.live else CHANGED)
    return [mark, *([(fact.id, QUIET)] if with_id else []), valid_time(fact), words, (ended + quote, QUIET)]


def _show_rejected(screen: Screen, found: list[Rejected], finder: QuoteFinder, *, waiting: bool = False) -> None:
    if not found:
        screen.line("nothing waits" if waiting else "no candidates were rejected")
    for item in found:
        claim = item.candidate
        label = " ".join(part for part in (claim.category, claim.key) if part) or claim.kind
        screen.line()
        screen.line(
            (label, NAME),
            ": ",
            claim.value or claim.text,
            (f"   {item.id}" if waiting else f"   rejected: {item.reason}", QUIET if waiting else BAD),
        )
        quote, message = finder.rejected(item)
        show_quote(screen, quote, message)


def _footer(found: list[Fact], past: list[Fact], options: SubjectOptions) -> str:
    """Count the facts, and name the command that shows what held before, if anything did: the newest of *past*."""
    text = f"{count(len(found), 'fact')} about {options.user}."
    address = fact_address(past[-1]) if past else ""
    return f"{text}   earlier values: holdfast history {address}{options.repeated}" if past else text


def _print_no_facts(memory: Memory, options: SubjectOptions, category: str | None) -> None:
    owner = options.owner(memory)
    known = sorted({fact.category for fact in owner.facts() if fact.category})
    if category and known:
        print(f"there are no facts under {category!r}; {_nearest(category, known)}", file=sys.stderr)
    elif owner.conversations():
        words = f"there are no facts about {options.user!r} yet; `holdfast digest` reads messages that are waiting"
        print(words, file=sys.stderr)
    else:
        print(f"nothing is stored about {options.user!r}; {suggest_users(memory, options)}", file=sys.stderr)


def _nearest(category: str, known: list[str]) -> str:
    near = difflib.get_close_matches(category, known, n=1)
    if near:
        return f"did you mean {near[0]!r}?"
    return f"there is {', '.join(known)}" if known else ""
