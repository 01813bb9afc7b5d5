"""What is shown cannot steer the terminal, and a quote stands under its words."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast import Evidence, Message
from holdfast.cli.output import Screen, cells
from holdfast.cli.render import show_quote
from holdfast.cli.terminal import count, json_text, safe

from .conftest import Holdfast

HOSTILE = (
    "\x1b[2J\x1b]0;owned\x07 red\x9b31m \u202eevil\u202c \u2066x\u2069 \x00 \r over [bold]not markup[/bold] \u2028 end"
)
UNSAFE = set(map(chr, [*range(0x09), 0x0B, 0x0C, *range(0x0E, 0x20), *range(0x7F, 0xA0)])) | set(
    "\r\u200e\u200f\u061c\u2028\u2029\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
)


@given(st.text())
def test_safe_text_holds_nothing_that_steers_a_terminal(text: str) -> None:
    assert not UNSAFE & set(safe(text))


@given(st.text())
def test_json_for_a_terminal_says_the_same(text: str) -> None:
    shown = json_text({"text": text})

    assert json.loads(shown) == {"text": text}
    assert not UNSAFE & set(shown)


@pytest.mark.parametrize(
    "args",
    [
        ("facts",),
        ("facts", "--json"),
        ("search", "red"),
        ("search", "red", "--json"),
        ("context",),
        ("context", "-o", "text"),
        ("context", "-o", "messages"),
        ("summaries",),
        ("history", "home"),
    ],
    ids=" ".join,
)
def test_no_command_lets_stored_text_reach_the_terminal(holdfast: Holdfast, args: tuple[str, ...]) -> None:
    holdfast("say", f"I live in Lisbon {HOSTILE}. I like red {HOSTILE} wine.", "--reply", HOSTILE)
    run = holdfast(*args)

    assert run.code == 0
    assert run.out
    assert not UNSAFE & set(run.out + run.err)


def test_names_cannot_steer_the_terminal_either(holdfast: Holdfast) -> None:
    run = holdfast("facts", "--store", "\x1b[31mred.db")

    assert run.code == 1
    assert "\x1b" not in run.err
    assert "\\x1b[31mred.db" in run.err


def test_markup_in_stored_text_is_text(holdfast: Holdfast) -> None:
    holdfast("say", "I live in Lisbon. [bold]Really[/bold] [link=http://x]y[/link] :smile:")

    assert "I live in Lisbon. [bold]Really[/bold] [link=http://x]y[/link] :smile:" in holdfast("facts").out


def test_forced_colour_colours_and_no_colour_wins(holdfast: Holdfast, monkeypatch: pytest.MonkeyPatch) -> None:
    holdfast("say", "I live in Lisbon.")
    plain = holdfast("facts").out
    monkeypatch.setenv("FORCE_COLOR", "1")
    coloured = holdfast("facts").out
    monkeypatch.setenv("NO_COLOR", "1")

    assert "\x1b" not in plain
    assert "\x1b[" in coloured
    assert holdfast("facts").out == plain


def framed(content: str, quote: str, capsys: pytest.CaptureFixture[str]) -> list[str]:
    start = content.index(quote)
    said = Evidence("main", 7, "user", quote, start, start + len(quote), at=datetime(2026, 3, 14, tzinfo=UTC))
    show_quote(Screen(), said, Message("user", content))
    return capsys.readouterr().out.splitlines()


@pytest.mark.parametrize(
    ("content", "quote"),
    [
        ("I eat fish now, still no meat though", "I eat fish"),
        ("안녕하세요, 저는 채식주의자예요", "저는 채식주의자예요"),
        ("日本語で：私はベジタリアンです。", "私はベジタリアンです"),
        ("tabs\tand\nlines before I eat fish and after", "I eat fish"),
        ("word " * 200 + "I eat fish" + " word" * 200, "I eat fish"),
    ],
)
def test_the_marks_stand_under_the_quote(content: str, quote: str, capsys: pytest.CaptureFixture[str]) -> None:
    _, _, text, marks = framed(content, quote, capsys)

    before = text[: text.index(quote)]
    assert marks.index("^") - marks.index("|") == cells(before) - before.index("|")
    assert marks.count("^") == cells(quote)
    assert cells(text) <= 100


def test_a_quote_longer_than_the_line_is_cut(capsys: pytest.CaptureFixture[str]) -> None:
    _, _, text, marks = framed("so " + "very " * 100, "very " * 90, capsys)

    assert text.endswith("…")
    assert cells(text) <= 100
    assert cells(marks) <= 100


def test_a_huge_message_is_framed_at_once(capsys: pytest.CaptureFixture[str]) -> None:
    """Only the words around the quote are looked at."""
    text = framed("x" * 1_000_000 + " I eat fish " + "y" * 1_000_000, "I eat fish", capsys)[2]

    assert "I eat fish" in text


def test_counted_nouns_are_english():
    assert [count(2, noun) for noun in ("fact", "summary", "story", "day", "entry")] == [
        "2 facts",
        "2 summaries",
        "2 stories",
        "2 days",
        "2 entries",
    ]
    assert count(1, "summary") == "1 summary"
