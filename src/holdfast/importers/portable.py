"""
Portable memory formats, read and written: Portable AI Memory (PAM), Open Memory Interchange (OMI), and bundles of the
Open Knowledge Format (OKF).

They are written from what `User.export` returns, with a list of what a format cannot carry.  This module knows no store.
"""

from __future__ import annotations

import hashlib
import io
import json
import unicodedata
import zipfile
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from functools import partial
from typing import Any

from ..clock import from_ms
from ..text import dataclass, expression
from .items import (
    DamagedItem,
    ImportedMessage,
    Item,
    LeftOut,
    Place,
    guarded,
    iso_time,
    memory_item,
    read_each,
    text_of,
    time_of,
    title_of,
)

GENERATOR = "holdfast/1.0.0"
_SPACES = expression(r"\s+")
_NO_TAG = expression(r"[^a-z0-9_-]+")
_TYPES = {"identity": "identity", "goals": "goal", "skills": "skill", "work": "fact", "relationships": "relationship"}
_TYPES |= {"family": "relationship", "preference": "preference", "preferences": "preference", "dietary": "preference"}
_ENDED = {"replaced": "superseded", "retracted": "retracted", "archived": "archived"}


@dataclass(frozen=True, slots=True)
class FormatLoss:
    """Content that a format cannot carry: how much of it there is, and the reason."""

    what: str
    count: int
    why: str


# Reading


def read_pam(place: Place, document: Any) -> Iterator[Item]:
    """Read the memories of a PAM store; those that are not active are left out."""
    owner = str((document.get("owner") or {}).get("id") or "")

    def read(where: Place, memory: Any) -> Iterator[Item]:
        status = memory.get("status", "active")
        if status != "active":
            yield LeftOut(where, f"a memory that is {status}")
            return
        times = memory.get("temporal") or {}
        if (ended := time_of(times.get("valid_until"))) is not None and ended < datetime.now(UTC):
            yield LeftOut(where, "a memory that is no longer valid")
            return
        at = time_of(times.get("valid_from")) or time_of(times.get("created_at"))
        sure = (memory.get("confidence") or {}).get("current")
        ours = (memory.get("metadata") or {}).get("holdfast") or {}
        address = _address(ours)
        yield memory_item(
            where, memory["content"], id=str(memory["id"]), at=at, of=owner, address=address, confidence=_share(sure)
        )

    yield from read_each((*place, "memories"), document["memories"], read, "memory")


def read_pam_conversation(place: Place, document: Any) -> Iterator[Item]:
    """Read a conversation of a PAM bundle."""
    name = title_of(document.get("title") or document["id"], document["id"])
    if (document.get("provider") or {}).get("name") == "holdfast":
        name = title_of(document["provider"].get("conversation_id") or document["id"])
    owner = str((document.get("provider") or {}).get("account_id") or "")

    def read(where: Place, message: Any) -> Iterator[Item]:
        content = message.get("content") or {}
        text = content.get("text") or text_of(content.get("parts") or [])
        if message.get("is_thought"):
            yield LeftOut(where, "a thought of the model")
        elif not text.strip():
            yield LeftOut(where, "a message without text")
        else:
            line = {
                "conversation": name,
                "role": message["role"],
                "content": text,
                "at": iso_time(message["created_at"]),
            }
            if line["role"] == "tool":
                line |= {"role": "system", "kind": "tool"}
            speaker = (message.get("raw_metadata") or {}).get("name")
            yield ImportedMessage(where, line | ({"name": speaker} if speaker else {}), owner)

    yield from read_each((*place, "messages"), document["messages"], read)


def read_omi(place: Place, document: Any) -> Iterator[Item]:
    """Read the memories of an OMI file."""
    owner = (document.get("subject") or {}).get("id") or ""
    records = document["memories"]
    yield from read_each((*place, "memories"), records, lambda at, one: _omi_record(at, one, owner), "memory")


def read_omi_lines(place: Place, raw: bytes) -> Iterator[Item]:
    """Read an OMI file with one record a line; the first line is its envelope."""
    owner = ""
    for number, line in enumerate(raw.decode("utf-8").splitlines(), 1):
        where = (*place, "line", number)
        if not line.strip():
            continue
        try:
            record = json.loads(line)
        except ValueError:
            yield DamagedItem(where, "it is not JSON")
            continue
        if isinstance(record, dict) and record.get("format") == "open-memory-interchange":
            owner = (record.get("subject") or {}).get("id") or ""
        else:
            yield from guarded(where, record, partial(_omi_record, owner=owner), "memory")


def _omi_record(place: Place, record: Any, owner: Any) -> Iterator[Item]:
    if (ended := time_of(record.get("valid_to"))) is not None and ended < datetime.now(UTC):
        yield LeftOut(place, "a memory that is no longer valid")
        return
    subject = record.get("subject")
    of = str((subject.get("id") if isinstance(subject, Mapping) else subject) or owner)
    ours = (record.get("ext") or {}).get("holdfast") or {}
    at = time_of(record.get("valid_from")) or time_of(record.get("created"))
    yield memory_item(
        place,
        record["content"],
        id=str(record["id"]),
        at=at,
        of=of,
        address=_address(ours),
        confidence=_share(record.get("confidence")),
    )


def _address(ours: Any) -> tuple[str, str, str] | None:
    """Return the address that Holdfast wrote beside a memory: of facts about the user themselves."""
    if not isinstance(ours, Mapping) or ours.get("kind") != "attribute" or ours.get("subject", "self") != "self":
        return None
    found = (str(ours.get("category") or ""), str(ours.get("key") or ""), str(ours.get("value") or ""))
    return found if all(found) else None


def _share(value: Any) -> float:
    return float(value) if isinstance(value, int | float) and 0 <= value <= 1 else 1.0


# Writing


def write_pam(data: Mapping[str, Any]) -> tuple[bytes, list[FormatLoss]]:
    """Return an export as a PAM bundle, a ZIP of the memory store and its conversations, and what it cannot carry."""
    user, memories, relations = str(data["user"]), list[dict[str, Any]](), list[dict[str, Any]]()
    refs = {str(talk["conversation"]): _pam_id(talk) for talk in _talks(data)}
    for fact in data["facts"]:
        memories.append(_pam_memory(fact, refs))
        if fact.get("superseded_by"):
            relations.append(
                {
                    "id": f"rel-{fact['id']}",
                    "from": fact["superseded_by"],
                    "to": fact["id"],
                    "type": "supersedes",
                    "created_at": _iso(fact["recorded_at"]),
                }
            )
    derived: dict[str, list[str]] = {}
    for memory in memories:
        derived.setdefault(memory["provenance"].get("conversation_ref", ""), []).append(memory["id"])
    files, index = {}, []
    for number, talk in enumerate(_talks(data), 1):
        name = f"conversations/{number:04}.json"
        document = _pam_conversation(talk, user)
        files[name] = _json(document)
        entry = {"id": document["id"], "platform": "holdfast", "title": document["title"]}
        entry |= {"message_count": len(document["messages"]), "temporal": document["temporal"]}
        entry["derived_memories"] = derived.get(document["id"], [])
        index.append(entry | {"storage": {"type": "file", "ref": name, "format": "json"}})
    digest = hashlib.sha256(_canonical(sorted(memories, key=lambda one: str(one["id"])))).hexdigest()
    store = {
        "schema": "portable-ai-memory",
        "schema_version": "1.0",
        "exported_by": GENERATOR,
        "export_date": datetime.now(UTC).isoformat().replace("+00:00", "Z"),
        "owner": {"id": user},
        "memories": memories,
        "relations": relations,
        "conversations_index": index,
        "integrity": {
            "canonicalization": "RFC8785",
            "checksum": f"sha256:{digest}",
            "total_memories": len(memories),
        },
        "export_type": "full",
    }
    return _zipped({"memory-store.json": _json(store)} | files), _losses(data)


def _pam_memory(fact: Mapping[str, Any], refs: Mapping[str, str]) -> dict[str, Any]:
    evidence = fact["evidence"]
    kind = {"statement": "context", "episode": "custom"}.get(fact["kind"]) or _TYPES.get(fact["category"], "fact")
    times = {"created_at": _iso(fact["recorded_at"]), "valid_from": _iso(fact["valid_from"])}
    if fact["valid_to"] is not None:
        times["valid_until"] = _iso(fact["valid_to"])
    if fact.get("superseded_by"):
        times["superseded_by"] = fact["superseded_by"]
    said = {"platform": "holdfast", "extraction_method": "manual" if _by_hand(fact) else "llm_inference"}
    if evidence and evidence[0]["conversation"] in refs:
        said |= {
            "conversation_ref": refs[evidence[0]["conversation"]],
            "message_ref": f"msg-{evidence[0]['seq']}",
        }
    memory = {
        "id": fact["id"],
        "type": kind,
        "status": "active" if fact["valid_to"] is None else _ENDED.get(fact["ended_because"], "superseded"),
        "content": fact["text"],
        "content_hash": f"sha256:{hashlib.sha256(_normal(fact['text']).encode()).hexdigest()}",
        "tags": _tags(fact),
        "confidence": {"initial": fact["confidence"], "current": fact["confidence"]},
        "temporal": times,
        "provenance": said,
        "metadata": {"holdfast": _ours(fact)},
    }
    return memory | ({"custom_type": "episode"} if kind == "custom" else {})


def _pam_id(talk: Mapping[str, Any]) -> str:
    return hashlib.sha256(f"{talk['subject']} {talk['conversation']}".encode()).hexdigest()[:16]


def _pam_conversation(talk: Mapping[str, Any], user: str) -> dict[str, Any]:
    messages = []
    for message in talk["messages"]:
        one = {
            "id": f"msg-{message['seq']}",
            "role": message["role"],
            "content": {"type": "text", "text": message["content"]},
            "created_at": _iso(message["at"]),
        }
        messages.append(one | ({"raw_metadata": {"name": message["name"]}} if message.get("name") else {}))
    name = str(talk["conversation"])
    return {
        "schema": "portable-ai-memory-conversation",
        "schema_version": "1.0",
        "id": _pam_id(talk),
        "provider": {"name": "holdfast", "conversation_id": name, "account_id": user},
        "title": name,
        "temporal": {"created_at": _iso(talk["created_at"]), "updated_at": _iso(talk["last_at"])},
        "messages": messages,
    }


def write_omi(data: Mapping[str, Any]) -> tuple[bytes, list[FormatLoss]]:
    """Return an export as an OMI document, and what it cannot carry."""
    records = []
    for fact in data["facts"]:
        record = {
            "id": fact["id"],
            "content": fact["text"],
            "type": "episodic" if fact["kind"] == "episode" else "semantic",
            "created": _iso(fact["recorded_at"]),
            "confidence": fact["confidence"],
            "tags": _tags(fact),
            "valid_from": _iso(fact["valid_from"]),
            "valid_to": None if fact["valid_to"] is None else _iso(fact["valid_to"]),
            "source": {"platform": "holdfast", "method": "manual" if _by_hand(fact) else "extracted"},
            "ext": {"holdfast": _ours(fact)},
        }
        if fact["evidence"]:
            record["source"]["ref"] = str(fact["evidence"][0]["conversation"])
        records.append(record)
    document = {
        "format": "open-memory-interchange",
        "version": "0.1",
        "serialization": "json",
        "subject": {"id": str(data["user"]), "type": "person"},
        "generated_at": datetime.now(UTC).isoformat(),
        "generator": GENERATOR,
        "memories": records,
    }
    return _json(document), [_no_messages(data), *_losses(data)]


def write_okf(data: Mapping[str, Any]) -> tuple[bytes, list[FormatLoss]]:
    """Return an export as an OKF bundle, a ZIP with one concept for each fact, and what it cannot carry."""
    files, index, past = {}, ["# Memory of a user", ""], 0
    for fact in data["facts"]:
        past += fact["valid_to"] is not None
        name = f"facts/{fact['id']}.md"
        fields = {
            "type": "Fact" if fact["kind"] == "attribute" else str(fact["kind"]).capitalize(),
            "title": fact["text"],
            "timestamp": _iso(fact["valid_from"]),
            "tags": f"[{', '.join(_tags(fact))}]",
            "id": fact["id"],
            "status": "active" if fact["valid_to"] is None else _ENDED.get(fact["ended_because"], "superseded"),
        }
        if fact["kind"] == "attribute" and fact["subject"] == "self":
            fields |= {key: fact[key] for key in ("category", "key", "value")}
        head = "\n".join(f"{key}: {_yaml(str(value), key)}" for key, value in fields.items())
        quotes = [f"> {_SPACES.sub(' ', one['quote'])}" for one in fact["evidence"] if one.get("quote")]
        body = [fact["text"], ""] + ([*quotes, ""] if quotes else [])
        files[name] = f"---\n{head}\n---\n\n".encode() + "\n".join(body).encode()
        index.append(f"- [{_SPACES.sub(' ', fact['text'])}](/{name})")
    files["index.md"] = ("\n".join(index) + "\n").encode()
    lost = [_no_messages(data), *_losses(data)]
    if past:
        lost.append(
            FormatLoss("validity of past facts", past, "OKF has no field for when a fact ended; its status says it")
        )
    return _zipped(files), lost


def write_memories(data: Mapping[str, Any]) -> tuple[bytes, list[FormatLoss]]:
    """Return the active facts as a list of memories with ``content``, ``category`` and ``confidence``, and what is lost."""
    past = sum(fact["valid_to"] is not None for fact in data["facts"])
    lost = [FormatLoss("facts that ended", past, "the format knows what holds")] if past else []
    return _json(memories_of(data)), [*lost, _no_messages(data), *_losses(data)]


def memories_of(data: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the active facts of an export as memories; the category of each is its label."""
    memories = []
    for fact in data["facts"]:
        if fact["valid_to"] is not None:
            continue
        said = next((one for one in fact["evidence"]), None)
        by_hand = said is not None and said["conversation"] == "(by hand)"
        extracted = (None if said is None else said["at"]) or fact["recorded_at"]
        memory = {
            "id": fact["id"],
            "userId": str(data["user"]),
            "organizationId": str(data["org"]),
            "content": fact["text"],
            "source": {
                "conversationId": None if said is None or by_hand else str(said["conversation"]),
                "messageId": None if said is None or by_hand else str(said["seq"]),
                "extractedAt": _iso(extracted),
            },
            "category": fact["label"],
            "confidence": fact["confidence"],
            "lastAccessedAt": None if fact["last_used_at"] is None else _iso(fact["last_used_at"]),
            "accessCount": fact["uses"],
        }
        memories.append(memory)
    return memories


WRITERS: dict[str, tuple[str, Callable[[Mapping[str, Any]], tuple[bytes, list[FormatLoss]]]]] = {
    "pam": ("Portable AI Memory bundle", write_pam),
    "omi": ("Open Memory Interchange", write_omi),
    "okf": ("Open Knowledge Format bundle", write_okf),
    "memories": ("Memories as JSON", write_memories),
}


def _losses(data: Mapping[str, Any]) -> list[FormatLoss]:
    """Return what none of the formats carries, of which there is any."""
    talks = data["conversations"]
    subjects = {str(one["subject"]) for one in (*data["subjects"], *data["facts"])} - {"self"}
    counts = [
        ("summaries", sum(len(talk["summaries"]) for talk in talks), "they are made again from the messages"),
        ("subjects", len(subjects), "the formats know one person; facts about others are sentences"),
        (
            "choices",
            len(data["consent"]) + len(data["never"]),
            "no format carries pausing, opting out, or blocked topics",
        ),
        ("prompts", len(data["prompts"]), "they are settings of Holdfast"),
        ("usage", len(data["usage"]), "it counts what Holdfast did"),
        ("items of frameworks", len(data["items"]), "they are another program's own state"),
    ]
    return [FormatLoss(*one) for one in counts if one[1]]


def _no_messages(data: Mapping[str, Any]) -> FormatLoss:
    count = sum(len(talk["messages"]) for talk in _talks(data))
    return FormatLoss("messages", count, "the format has memories only; `--format pam` carries conversations")


def _talks(data: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the conversations of an export, without the one that holds facts by hand."""
    return [talk for talk in data["conversations"] if talk["messages"] and talk["conversation"] != "(by hand)"]


def _by_hand(fact: Mapping[str, Any]) -> bool:
    return str(fact["source"]).startswith("by hand")


def _ours(fact: Mapping[str, Any]) -> dict[str, Any]:
    kept = {key: fact[key] for key in ("kind", "subject", "category", "key", "value")}
    kept["evidence"] = [{key: one[key] for key in ("conversation", "seq", "role", "quote")} for one in fact["evidence"]]
    return kept


def _tags(fact: Mapping[str, Any]) -> list[str]:
    tag = _NO_TAG.sub("-", str(fact["category"]).lower()).strip("-_")
    return [tag] if tag else []


def _iso(ms: int) -> str:
    return from_ms(ms).isoformat().replace("+00:00", "Z")


def _normal(text: str) -> str:
    """Return a text as PAM hashes it."""
    return _SPACES.sub(" ", unicodedata.normalize("NFC", text.strip().lower()))


def _json(document: Any) -> bytes:
    return json.dumps(document, ensure_ascii=False, indent=1).encode("utf-8", "backslashreplace") + b"\n"


def _canonical(value: Any) -> bytes:
    """Return JSON in the canonical form of RFC 8785."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, Mapping):
        keys = sorted(value, key=lambda key: str(key).encode("utf-16-be"))
        return b"{" + b",".join(_canonical(key) + b":" + _canonical(value[key]) for key in keys) + b"}"
    if isinstance(value, list | tuple):
        return b"[" + b",".join(_canonical(one) for one in value) + b"]"
    return json.dumps(value, ensure_ascii=False).encode("utf-8", "backslashreplace")


def _yaml(value: str, key: str) -> str:
    if key == "tags":
        return value
    return json.dumps(_SPACES.sub(" ", value), ensure_ascii=False)


def _zipped(files: Mapping[str, bytes]) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, raw in files.items():
            archive.writestr(name, raw)
    return stream.getvalue()
