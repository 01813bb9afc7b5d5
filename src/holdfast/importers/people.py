"""
The exports of chats between people and bots: Discord, Telegram, WhatsApp, and Slack.

Bots are assistants.  Whether a person is the user, the file mostly does not say: their role is `OTHER_PERSON` then,
and whoever imports names the user.  This module knows no store.
"""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, tzinfo
from functools import partial
from typing import Any

from ..errors import BadInput
from ..text import dataclass, expression
from .items import (
    OTHER_PERSON,
    DamagedItem,
    ImportedMessage,
    Item,
    LeftOut,
    Place,
    guarded,
    iso_time,
    read_each,
    title_of,
)


def read_discord(place: Place, document: Any) -> Iterator[Item]:
    """Read a channel as DiscordChatExporter wrote it."""
    channel, guild = document["channel"], document.get("guild") or {}
    name = title_of(" ".join(str(part) for part in (guild.get("name"), channel.get("name")) if part), channel.get("id"))

    def read(where: Place, message: Any) -> Iterator[Item]:
        kind, author = str(message.get("type") or "Default"), message["author"]
        if kind not in ("Default", "Reply", "ChatInputCommand", "ContextMenuCommand", "0", "19"):
            yield LeftOut(where, f"a {kind} notice")
            return
        if not str(message.get("content") or "").strip():
            yield LeftOut(where, "a message without text")
            return
        line = {
            "conversation": name,
            "role": "assistant" if author.get("isBot") else OTHER_PERSON,
            "name": str(author.get("nickname") or author["name"])[:200],
            "content": message["content"],
            "at": iso_time(message.get("timestamp")),
        }
        yield ImportedMessage(where, line)

    yield from read_each((*place, "messages"), document["messages"], read)


def read_telegram(place: Place, document: Any) -> Iterator[Item]:
    """Read what Telegram Desktop exported: one chat, or all of an account."""
    me = (document.get("personal_information") or {}).get("user_id")
    if "messages" in document:
        yield from _telegram_chat(place, document, me)
        return
    for part in ("chats", "left_chats"):
        chats = (document.get(part) or {}).get("list") or ()
        yield from read_each((*place, part, "list"), chats, lambda at, one: _telegram_chat(at, one, me), "chat")


def _telegram_chat(place: Place, chat: Any, me: Any) -> Iterator[Item]:
    name, kind = title_of(chat.get("name") or chat.get("type"), chat.get("id")), chat.get("type")

    def role(message: Mapping[str, Any]) -> str:
        if message.get("forwarded_from"):
            return OTHER_PERSON
        if kind == "saved_messages" or (me is not None and message.get("from_id") == f"user{me}"):
            return "user"
        if message.get("via_bot") or (kind == "bot_chat" and message.get("from") == chat.get("name")):
            return "assistant"
        return "user" if kind == "bot_chat" else OTHER_PERSON

    def read(where: Place, message: Any) -> Iterator[Item]:
        if message.get("type") != "message":
            yield LeftOut(where, f"a notice ({message.get('action') or message.get('type')})")
            return
        text = message.get("text") or ""
        parts = text if isinstance(text, list) else [text]
        text = "".join(part if isinstance(part, str) else str(part["text"]) for part in parts)
        if not text.strip():
            yield LeftOut(where, f"a message without text ({message.get('media_type') or 'media'})")
            return
        speaker = message.get("forwarded_from") or message.get("from")
        line: dict[str, Any] = {"conversation": name, "role": role(message), "content": text}
        line["at"] = iso_time(message.get("date_unixtime") or message.get("date"))
        yield ImportedMessage(where, line | ({"name": str(speaker)[:200]} if speaker else {}))

    yield from read_each((*place, "messages"), chat["messages"], read)


# WhatsApp

_DATE = r"(?P<a>\d{1,4})[./-](?P<b>\d{1,2})[./-](?P<c>\d{2,4})\.?"
_TIME = r"(?P<hour>\d{1,2})[:.](?P<minute>\d{2})(?:[:.](?P<second>\d{2}))?\s?(?P<half>[AaPp]\.?\s?[Mm]\.?)?"
_STARTS = expression(
    rf"(?:\[{_DATE},?\s{_TIME}\]\s|{_DATE.replace('?P<', '?P<x')},?\s{_TIME.replace('?P<', '?P<x')}\s-\s)"
)
_SPEAKER = expression(r"(?P<name>[^:\n]{1,200}): ?(?P<text>.*)", re.DOTALL)
_MARKS = expression("[\u200e\u200f\u202a-\u202e\ufeff]")
_NO_TEXT = expression(
    r"<Media omitted>|<attached: [^>]*>|.{0,120}\(file attached\)|(?:image|video|audio|sticker|GIF|document|Contact card)"
    r" omitted|null|(?:This message was deleted|You deleted this message)\.?|Waiting for this message\.?.*|",
    re.IGNORECASE,
)
_EDITED = "<This message was edited>"


def is_whatsapp(head: str) -> bool:
    """Return whether a text is a chat that WhatsApp exported."""
    lines = [_MARKS.sub("", line) for line in head.replace("\u202f", " ").splitlines()[:20]]
    return any(_STARTS.match(line) for line in lines[:3])


@dataclass(slots=True)
class _Said:
    line: int
    when: Mapping[str, str]
    text: str
    notice: bool = False


def read_whatsapp(place: Place, raw: bytes, *, day_first: bool | None = None, zone: tzinfo = UTC) -> Iterator[Item]:
    """
    Read a chat that WhatsApp exported, ``_chat.txt``.

    Raises:
        BadInput: its dates can be read in two ways, and *day_first* does not say which is meant.
    """
    said: list[_Said] = []
    before: list[Item] = []
    for number, marked in enumerate(raw.decode("utf-8", "replace").split("\n"), 1):
        line = _MARKS.sub("", marked.rstrip("\r")).replace("\u202f", " ").replace("\u00a0", " ")
        found = _STARTS.match(line)
        if found is not None:
            when = {key.removeprefix("x"): value for key, value in found.groupdict().items() if value is not None}
            said.append(_Said(number, when, line[found.end() :], ": \u200e" in marked))
        elif said:
            said[-1].text += "\n" + line
        elif line.strip():
            before.append(
                DamagedItem((*place, "line", number), "it begins with no date", "WhatsApp begins messages with one")
            )
    yield from before
    first = _day_first([one.when for one in said], zone) if day_first is None else day_first
    name = title_of(str(place[0]).rsplit("/", 1)[-1].removesuffix(".txt").lstrip("_"))
    for one in said:
        where: Place = (*place, "line", one.line)
        speaker = _SPEAKER.fullmatch(one.text)
        if speaker is None or (one.notice and not _NO_TEXT.fullmatch(speaker["text"].strip())):
            yield LeftOut(where, "a notice of WhatsApp")
            continue
        text = speaker["text"].replace(_EDITED, "").strip()
        if _NO_TEXT.fullmatch(text):
            yield LeftOut(where, "a message without text (media, or deleted)")
            continue
        try:
            at = _when(one.when, first, zone).isoformat()
        except ValueError:
            yield DamagedItem(
                where, "its date does not exist", "say how dates are written: --dates day-first or month-first"
            )
            continue
        line_ = {"conversation": name, "role": OTHER_PERSON, "name": speaker["name"].strip(), "content": text, "at": at}
        yield ImportedMessage(where, line_)


def _when(when: Mapping[str, str], day_first: bool, zone: tzinfo) -> datetime:
    a, b, c = int(when["a"]), int(when["b"]), int(when["c"])
    if len(when["a"]) == 4:
        year, month, day = a, b, c
    else:
        day, month, year = (a, b, c) if day_first else (b, a, c)
    hour, half = int(when["hour"]), when.get("half", "").lower()
    if half:
        hour = hour % 12 + (12 if half.startswith("p") else 0)
    return datetime(
        year + 2000 if year < 100 else year,
        month,
        day,
        hour,
        int(when["minute"]),
        int(when.get("second") or 0),
        tzinfo=zone,
    )


def _day_first(dates: list[Mapping[str, str]], zone: tzinfo) -> bool:
    """Return whether the day comes before the month: where only one reading exists, or only one keeps the order."""
    dates = [when for when in dates if len(when["a"]) != 4]
    if any(int(when["a"]) > 12 for when in dates) or not dates:
        return True
    if any(int(when["b"]) > 12 for when in dates):
        return False
    in_order = {}
    for first in (True, False):
        times = [_when(when, first, zone) for when in dates]
        in_order[first] = times == sorted(times)
    if in_order[True] != in_order[False]:
        return in_order[True]
    if all(when["a"] == when["b"] for when in dates):
        return True
    raise BadInput(
        "its dates can be read in two ways: day or month first", hint="say which: --dates day-first or month-first"
    )


# Slack

SLACK_DAY = expression(r"(?:.*/)?(?P<channel>[^/]+)/\d{4}-\d{2}-\d{2}\.json")
_MENTION = expression(r"<([@#!])([^>|]+)(?:\|([^>]*))?>|<([^>|]+)(?:\|([^>]*))?>")
_SLACK_TALK = (None, "thread_broadcast", "me_message", "bot_message", "file_share")


def read_slack(names: list[str], load: Callable[[str], Any]) -> Iterator[Item]:
    """Read the export of a Slack workspace: every channel and every thread is a conversation."""
    people: dict[str, tuple[str, bool]] = {}
    for name in names:
        if name.rsplit("/", 1)[-1] == "users.json":
            rows = load(name)
            for one in rows if isinstance(rows, list) else ():
                if not isinstance(one, dict) or "id" not in one:
                    continue
                profile = one["profile"] if isinstance(one.get("profile"), dict) else {}
                shown = profile.get("display_name") or profile.get("real_name") or one.get("name") or one["id"]
                people[str(one["id"])] = (str(shown), bool(one.get("is_bot")))
    for name in sorted(names):
        found = SLACK_DAY.fullmatch(name)
        if found is not None:
            channel = "#" + found["channel"]
            read = partial(_slack_message, channel=channel, people=people)
            yield from guarded((name,), load(name), partial(read_each, read=read), "day of a channel")


def _slack_message(place: Place, message: Any, channel: str, people: Mapping[str, tuple[str, bool]]) -> Iterator[Item]:
    if message.get("type") != "message" or message.get("subtype") not in _SLACK_TALK:
        yield LeftOut(place, f"a notice ({message.get('subtype') or message.get('type')})")
        return
    text = html.unescape(_MENTION.sub(lambda found: _mention(found, people), message.get("text") or ""))
    if not text.strip():
        yield LeftOut(place, "a message without text")
        return
    known, is_bot = people.get(str(message.get("user")), ("", False))
    profile = message.get("user_profile") or {}
    speaker = known or profile.get("display_name") or profile.get("real_name") or message.get("username")
    bot = is_bot or bool(message.get("bot_id")) or message.get("subtype") == "bot_message"
    thread = message.get("thread_ts")
    in_thread = thread is not None and thread != message["ts"]
    line = {
        "conversation": f"{channel} thread {thread}" if in_thread else channel,
        "role": "assistant" if bot else OTHER_PERSON,
        "content": text,
        "at": iso_time(message["ts"]),
    }
    name = str(speaker or message.get("user") or message.get("bot_id") or "")
    yield ImportedMessage(place, line | ({"name": name[:200]} if name else {}))


def _mention(found: re.Match[str], people: Mapping[str, tuple[str, bool]]) -> str:
    mark, key, shown, address, words = found.groups()
    if address is not None:
        return words or address
    return ("@" if mark == "!" else mark) + (shown or people.get(key, (key, False))[0])
