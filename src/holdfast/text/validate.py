"""
Validation of callers' input: numbers, texts, and messages in any accepted shape.  Pure.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any, TypeGuard

from ..clock import from_ms, to_ms
from ..errors import BadInput, TooLarge
from ..types import Message
from . import expression
from .terms import MESSAGE_OVERHEAD_TOKENS, count_tokens

MAX_TEXT_CHARS = 10_000
MAX_COUNT = 2**53  # a number that every store and every JSON reader holds exactly


def checked_query(query: object) -> str:
    """
    Return the words to search for.

    Raises:
        BadInput: not text, or nothing but blanks.
    """
    if not isinstance(query, str):
        raise BadInput(f"the query must be text, not {type(query).__name__}")
    if not query.strip():
        raise BadInput("the query is empty", hint="give a few words or a question")
    return query


def checked_score(score: object) -> float:
    """
    Return a rating as a number from 0 to 1; a thumb up is ``True``.

    Raises:
        BadInput: it is none.
    """
    if not isinstance(score, int | float) or not 0 <= score <= 1:
        raise BadInput(f"a score must be True, False, or a number from 0 to 1, not {score!r}"[:200])
    return float(score)


def parse_rating(text: str) -> float | None:
    """Return the score that *text* names: ``up``, ``down``, or a number from 0 to 1; ``None`` where it is none."""
    thumb = {"up": 1.0, "down": 0.0}.get(text.strip().lower())
    if thumb is not None:
        return thumb
    try:
        value = float(text)
    except ValueError:
        return None
    return value if 0 <= value <= 1 else None


MAX_CACHE_KEY = 64  # characters that providers take


def short_cache_key(key: str) -> str:
    """Return a cache key that providers take: a longer one by its beginning and its digest."""
    return key if len(key) <= MAX_CACHE_KEY else f"{key[:20]}:{sha256(key.encode()).hexdigest()[:40]}"


def checked_count(what: str, value: object) -> int:
    """
    Return a whole number from 1 to ``MAX_COUNT``.

    Raises:
        BadInput: anything else; says what was given.
    """
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise BadInput(f"{what} must be a whole number of at least 1, not {value!r}")
    if value > MAX_COUNT:
        raise BadInput(f"{what} must be {MAX_COUNT} at most")
    return value


def checked_limit(value: object) -> int | None:
    """
    Return how many items a caller wants at most; ``None`` means all.

    Raises:
        BadInput: not a whole number of at least 1.
    """
    return None if value is None else checked_count("limit", value)


def checked_text(what: str, value: object) -> str:
    """
    Return a text that can be stored.

    Raises:
        BadInput: not text, nothing but blanks, or longer than ``MAX_TEXT_CHARS``.
    """
    if not isinstance(value, str):
        raise BadInput(f"{what} must be text, not {type(value).__name__}")
    text = replace_unstorable(value)
    if not text.strip():
        raise BadInput(f"{what} is empty")
    if len(text) > MAX_TEXT_CHARS:
        raise BadInput(f"{what} is {len(text)} characters long; at most {MAX_TEXT_CHARS} are kept")
    return text


def checked_share(what: str, value: object) -> float:
    """
    Return a number from 0 to 1.

    Raises:
        BadInput: anything else.
    """
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        raise BadInput(f"{what} must be a number from 0 to 1, not {value!r}")
    return float(value)


ROLES = ("user", "assistant", "system", "tool")
_ALIASES = {
    "human": "user",
    "ai": "assistant",
    "bot": "assistant",
    "model": "assistant",
    "developer": "system",
    "function": "tool",
}
_OWN_KEYS = frozenset(("role", "content", "name", "at", "seq", "conversation", "tokens", "meta"))
MAX_META_CHARS = 1_000_000
MAX_META_DEPTH = 100

MessageLike = Message | Mapping[str, Any] | str


def checked_messages(given: object, *, now: datetime, max_chars: int) -> list[tuple[Message, bool]]:
    """
    Return one message or a list of them as ``(message, whether the caller gave its time)``.

    Text alone is a message of the user.  Else a message is a `Message` or a mapping in OpenAI's shape: ``role``, ``content`` (text, parts, or
    None beside tool calls), and optionally ``name``, ``at`` (an aware datetime or ISO 8601 text),
    ``tool_calls``, ``tool_call_id`` and anything else that JSON can hold, which is kept in ``meta``.

    Raises:
        BadInput: says which message (from 0) and what is wrong with it.
        TooLarge: its content is longer than *max_chars*.
    """
    if isinstance(given, Message | Mapping | str) or is_pair(given):
        given = [given]
    if isinstance(given, bytes) or not isinstance(given, Sequence):
        raise BadInput(
            f"append takes a message or a list of them, not {type(given).__name__}",
            hint='try {"role": "user", "content": "…"} or "…"',
        )
    if not given:
        raise BadInput("append was given an empty list", hint="pass at least one message")
    return [_check_message(item, index, now, max_chars) for index, item in enumerate(given)]


def is_pair(given: object) -> TypeGuard[tuple[str, str]]:
    """Whether *given* is a role with its text: ``("user", "Hello")``."""
    if not isinstance(given, tuple) or len(given) != 2 or not all(isinstance(one, str) for one in given):
        return False
    return given[0] in (*ROLES, *_ALIASES)


def _check_message(item: object, index: int, now: datetime, max_chars: int) -> tuple[Message, bool]:
    if isinstance(item, str):
        item = Message("user", item)
    elif is_pair(item):
        item = Message(*item)
    message = _from_mapping(item, index) if isinstance(item, Mapping) else item
    if not isinstance(message, Message):
        raise BadInput(f"message {index} is a {type(item).__name__}; it must be a Message, a mapping, or text")
    role = _ALIASES.get(message.role, message.role) if isinstance(message.role, str) else message.role
    if role not in ROLES:
        raise BadInput(f"message {index} has role {message.role!r}; use one of {', '.join(ROLES)}")
    if not isinstance(message.content, str):
        raise BadInput(f"message {index}: content must be text, not {type(message.content).__name__}")
    if len(message.content) > max_chars:
        raise TooLarge(
            f"message {index} is {len(message.content)} characters long; at most {max_chars} are stored",
            hint="shorten it, split it, or raise Config.max_message_chars",
        )
    content = replace_unstorable(message.content)
    at = _parse_time(message.at, index)
    message = replace(
        message,
        role=role,
        content=content,
        name=_check_sender(message.name, index),
        at=from_ms(to_ms(at if at is not None else now)),
        meta=_check_meta(message.meta, role, index),
        tokens=count_tokens(content) + MESSAGE_OVERHEAD_TOKENS,
    )
    return message, at is not None


def _from_mapping(item: Mapping[str, Any], index: int) -> Message:
    data, kind = item.get("data"), item.get("type")
    if (
        "role" not in item and isinstance(data, Mapping) and kind in (*ROLES, *_ALIASES)
    ):  # as LangChain writes them to files
        item = {"role": kind, **{key: data[key] for key in ("content", "name", "tool_call_id") if data.get(key)}}
    if "role" not in item:
        raise BadInput(f"message {index} has no role", hint='use {"role": "user", "content": "…"}')
    extra = item.get("meta") or {}
    if not isinstance(extra, Mapping):
        raise BadInput(f"message {index}: meta must be a mapping")
    meta = dict(extra)
    meta.update((key, value) for key, value in item.items() if key not in _OWN_KEYS)
    content = item.get("content")
    if content is None:
        if not meta.get("tool_calls"):
            raise BadInput(f"message {index} has no content")
        content = ""
    elif isinstance(content, list):
        meta["parts"] = content
        content = joined_text(
            part["text"] for part in content if isinstance(part, Mapping) and isinstance(part.get("text"), str)
        )
    return Message(item["role"], content, item.get("name"), item.get("at"), meta=meta)


def _check_sender(name: object, index: int) -> str | None:
    if name is None or name == "":
        return None
    if not isinstance(name, str) or len(name) > 200:
        raise BadInput(f"message {index}: name must be text of at most 200 characters")
    return replace_unstorable(name)


def _parse_time(at: object, index: int) -> datetime | None:
    if at is None:
        return None
    if isinstance(at, str):
        try:
            at = datetime.fromisoformat(at)
        except ValueError:
            raise BadInput(
                f"message {index}: at is not ISO 8601 time", hint='write it as "2026-03-14T19:02:00+00:00"'
            ) from None
        if at.tzinfo is None:
            at = at.replace(tzinfo=UTC)
    if not isinstance(at, datetime):
        raise BadInput(f"message {index}: at must be a datetime or ISO 8601 text, not {type(at).__name__}")
    if at.tzinfo is None:
        raise BadInput(
            f"message {index}: at has no time zone", hint="use datetime.now(timezone.utc), or .replace(tzinfo=…)"
        )
    return at


def _check_meta(meta: object, role: str, index: int) -> dict[str, Any]:
    if not isinstance(meta, Mapping):
        raise BadInput(f"message {index}: meta must be a mapping")
    if not meta and role != "tool":
        return {}
    try:
        text = json.dumps(dict(meta), ensure_ascii=True, allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        raise BadInput(f"message {index}: meta holds what JSON cannot") from None
    if len(text) > MAX_META_CHARS:
        raise TooLarge(f"message {index}: meta is longer than {MAX_META_CHARS} characters of JSON")
    if role == "tool" and not meta.get("tool_call_id"):
        raise BadInput(f"message {index} is a tool result without tool_call_id", hint="name the call that it answers")
    loaded: dict[str, Any] = json.loads(_storable_json(text))
    if is_nested_deeper(loaded, MAX_META_DEPTH):
        raise TooLarge(f"message {index}: meta is nested more than {MAX_META_DEPTH} deep")
    return loaded


def is_nested_deeper(value: Any, most: int) -> bool:
    """Whether lists and objects are nested more than so many levels deep; parsers may not follow."""
    level = [value]
    for _ in range(most):
        level = [
            inner
            for outer in level
            if isinstance(outer, list | dict)
            for inner in (outer.values() if isinstance(outer, dict) else outer)
        ]
    return any(isinstance(item, list | dict) for item in level)


def _storable_json(text: str) -> str:
    """Replace escaped NUL and lone surrogates in JSON with U+FFFD."""
    return json.dumps(_clean_json(json.loads(text)), ensure_ascii=True) if "\\u" in text else text


def _clean_json(value: Any) -> Any:
    if isinstance(value, str):
        return replace_unstorable(value)
    if isinstance(value, list):
        return [_clean_json(item) for item in value]
    if isinstance(value, dict):
        return {replace_unstorable(key): _clean_json(item) for key, item in value.items()}
    return value


_UNSTORABLE = expression("[\x00\ud800-\udfff]")


def replace_unstorable(text: str) -> str:
    """
    Replace NUL and lone surrogates in *text* by U+FFFD; the rest stays.

    These two are all that a database (PostgreSQL: NUL) or UTF-8 (surrogates) cannot hold.  They
    are replaced rather than refused, so that a garbled byte never costs a user's whole turn.
    """
    return _UNSTORABLE.sub("\ufffd", text) if _UNSTORABLE.search(text) else text


def joined_text(parts: Iterable[str]) -> str:
    """
    Return the text parts of one message as one text.

    A line break goes between two parts, except where white space already divides them: "I live in " and "Kyiv." are
    one sentence, which no reader of sentences would find on two lines.
    """
    text = ""
    for part in parts:
        text += part if not text or text[-1].isspace() or part[:1].isspace() else f"\n{part}"
    return text
