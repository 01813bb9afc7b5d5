"""What callers may give, and what they are told when they may not."""

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.errors import BadInput, TooLarge
from holdfast.ingest.append import body_digest, prepare
from holdfast.types import Message

NOW = datetime(2026, 3, 14, 19, 2, tzinfo=UTC)


def one(given_message, **options):
    (prepared,) = prepare(given_message, now=NOW, max_chars=options.pop("max_chars", 1000), **options)
    return prepared.message


def test_a_mapping_in_openai_shape_is_a_message():
    message = one({"role": "user", "content": "hi", "name": "Ana", "temperature": 1})

    assert (message.role, message.content, message.name, message.at) == ("user", "hi", "Ana", NOW)
    assert message.meta == {"temperature": 1}


@pytest.mark.parametrize(
    ("alias", "role"), [("human", "user"), ("ai", "assistant"), ("model", "assistant"), ("developer", "system")]
)
def test_other_frameworks_names_for_roles_are_understood(alias, role):
    assert one(Message(alias, "hi")).role == role


def test_tool_calls_may_come_without_content():
    calls = [{"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}]

    message = one({"role": "assistant", "content": None, "tool_calls": calls})

    assert message.content == ""
    assert message.meta["tool_calls"] == calls


def test_parts_keep_their_text_and_themselves():
    parts = [{"type": "text", "text": "look"}, {"type": "image_url", "image_url": {"url": "x"}}]

    message = one({"role": "user", "content": parts})

    assert message.content == "look"
    assert message.meta["parts"] == parts


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2026-03-14T20:02:00+01:00", NOW),
        ("2026-03-14T19:02:00Z", NOW),
        ("2026-03-14T19:02:00", NOW),
        (datetime(2026, 3, 14, 21, 2, tzinfo=timezone(timedelta(hours=2))), NOW),
    ],
)
def test_times_become_utc(text, expected):
    assert one({"role": "user", "content": "x", "at": text}).at == expected


@pytest.mark.parametrize(
    ("bad", "says"),
    [
        ([], "empty list"),
        (b"hello", "not bytes"),
        (7, "not int"),
        ([7], "message 0 is a int"),
        ({"content": "x"}, "no role"),
        ({"role": "wizard", "content": "x"}, "'wizard'"),
        ({"role": ["user"], "content": "x"}, "has role"),
        ({"role": "user"}, "no content"),
        ({"role": "user", "content": 7}, "must be text"),
        ({"role": "user", "content": "x", "at": "yesterday"}, "ISO 8601"),
        ({"role": "user", "content": "x", "at": datetime(2026, 1, 1)}, "no time zone"),
        ({"role": "user", "content": "x", "at": 5}, "not int"),
        ({"role": "user", "content": "x", "name": "n" * 201}, "at most 200"),
        ({"role": "user", "content": "x", "meta": 5}, "mapping"),
        ({"role": "user", "content": "x", "extra": object()}, "JSON cannot"),
        ({"role": "user", "content": "x", "extra": float("nan")}, "JSON cannot"),
        ({"role": "tool", "content": "x"}, "tool_call_id"),
    ],
)
def test_bad_input_is_named_with_its_place(bad, says):
    with pytest.raises(BadInput, match=says):
        prepare(bad, now=NOW, max_chars=1000)


@pytest.mark.parametrize("text", ["hello", ["hello"], [{"role": "user", "content": "hello"}]])
def test_text_alone_is_a_message_of_the_user(text):
    message = one(text)

    assert (message.role, message.content) == ("user", "hello")


def test_a_message_beyond_the_limit_is_refused_with_both_sizes():
    with pytest.raises(TooLarge, match=r"1001 characters.*at most 1000"):
        one(Message("user", "x" * 1001))


@pytest.mark.parametrize("mark", ["\x00", "\ud800", "x\udfff"])
def test_what_no_database_holds_becomes_the_replacement_character(mark):
    message = one(
        {"role": "user", "content": f"a{mark[-1]}b", "name": f"n{mark[-1]}", "extra": [mark[-1], {f"k{mark[-1]}": 1}]}
    )

    assert message.content == "a\ufffdb"
    assert message.name == "n\ufffd"
    assert message.meta["extra"] == ["\ufffd", {"k\ufffd": 1}]


@given(st.text(st.characters(), max_size=300))
def test_any_text_is_stored_or_named(text):
    """All of Unicode, lone surrogates included, comes out as text that UTF-8 can hold."""
    message = one({"role": "user", "content": text})

    assert message.content.encode("utf-8").decode("utf-8") == message.content
    assert len(message.content) == len(text)


def test_the_digest_is_of_what_the_caller_sent():
    """The clock's time is not part of it, or a retry a second later would be another body."""
    first = prepare({"role": "user", "content": "x"}, now=NOW, max_chars=10)
    again = prepare({"role": "user", "content": "x"}, now=NOW + timedelta(seconds=9), max_chars=10)
    other = prepare({"role": "user", "content": "x", "at": NOW.isoformat()}, now=NOW, max_chars=10)

    assert body_digest(first) == body_digest(again)
    assert body_digest(first) != body_digest(other)


def test_two_text_parts_of_one_sentence_stay_one_sentence():
    parts = [{"type": "text", "text": text} for text in ("I live in ", "Kyiv.", "I like tea.")]

    assert one({"role": "user", "content": parts}).content == "I live in Kyiv.\nI like tea."
