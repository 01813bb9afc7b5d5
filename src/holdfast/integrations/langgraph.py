"""
Storage for LangGraph: `HoldfastSaver` for checkpoints, `HoldfastStore` for a graph's long-term items.

    graph = builder.compile(checkpointer=HoldfastSaver(memory), store=HoldfastStore(memory, user_label=1))
    graph.invoke(state, {"configurable": {"thread_id": "web-42", "user_id": "ana"}})

Both keep what the graph gives them, and learn nothing from it: for that there is the middleware in `langchain`.  A
thread is the conversation of the same name, so erasing the conversation or the user erases its checkpoints.
"""

from __future__ import annotations

import json
import random
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any
from urllib.parse import quote, unquote

import numpy as np

from ..aio import AsyncMemory
from ..clock import from_ms
from ..errors import BadInput
from ..memory import Memory
from ..scope import Scope
from ..store import ItemRow
from .common import AdapterMemory, FrameworkState, StateChange, in_thread, missing_package

try:
    from langgraph.checkpoint.base import (
        WRITES_IDX_MAP,
        BaseCheckpointSaver,
        ChannelVersions,
        Checkpoint,
        CheckpointMetadata,
        CheckpointTuple,
        get_checkpoint_id,
        get_checkpoint_metadata,
    )
    from langgraph.checkpoint.serde.base import SerializerProtocol
    from langgraph.store.base import (
        BaseStore,
        GetOp,
        IndexConfig,
        Item,
        ListNamespacesOp,
        MatchCondition,
        Op,
        PutOp,
        Result,
        SearchItem,
        SearchOp,
        TTLConfig,
        ensure_embeddings,
        get_text_at_path,
        tokenize_path,
    )
except ImportError as error:
    raise missing_package("LangGraph", "langgraph", error) from error

__all__ = ["HoldfastSaver", "HoldfastStore"]

Config = Mapping[str, Any]
Tuples = list[CheckpointTuple]
Scopes = list[Scope]
Heads = list[tuple[str, dict[str, Any]]]
"""``(id, what is noted of it)`` of checkpoints, oldest first."""
Writes = list[tuple[str, str, Any]]
USER = "user_id"
CHECKPOINT, BLOB, WRITE = "c", "b", "w"
LATE = "~"  # sorts after every character of an id


class HoldfastSaver(BaseCheckpointSaver[str]):
    """
    A checkpointer that keeps the threads of a graph in a memory.

    Args:
        memory: where they are kept.
        user: whose threads these are when a call's ``configurable`` names no ``user_id``.
        org: the tenant.
        bot: the assistant.
        serde: another serializer than LangGraph's own.
    """

    def __init__(
        self,
        memory: Memory | AsyncMemory,
        *,
        user: str | None = None,
        org: str = "default",
        bot: str = "default",
        serde: SerializerProtocol | None = None,
    ) -> None:
        super().__init__(serde=serde)
        self._memory = memory
        self._members = AdapterMemory(memory, user=user, org=org, bot=bot)
        self._state: FrameworkState = self._members.state("langgraph.checkpoint")

    def for_user(self, user: str) -> HoldfastSaver:
        """Return the same checkpointer for another user, whose threads it lists and deletes."""
        members = self._members
        other = HoldfastSaver(self._memory, user=user, org=members.org, bot=members.bot, serde=self.serde)
        other._state = self._state
        other._state_user = user
        return other

    _state_user: str | None = None

    def get_tuple(self, config: Config) -> CheckpointTuple | None:
        """Return the checkpoint that *config* names, or the newest of its thread."""
        scope, thread, ns = self._place(config)
        wanted = get_checkpoint_id(config)
        head = _name(CHECKPOINT, ns)
        if wanted:
            rows = self._state.load(scope, head + wanted, head + wanted + "\x01")
        else:
            rows = self._state.load(scope, head, head + LATE)[-1:]
        return self._tuple(scope, thread, ns, rows[0], config) if rows else None

    def list(
        self,
        config: Config | None,
        *,
        filter: dict[str, Any] | None = None,
        before: Config | None = None,
        limit: int | None = None,
    ) -> Iterator[CheckpointTuple]:
        """Yield the checkpoints of a thread, or of all threads of the user, newest first."""
        return iter(self._listed(config, filter, before, limit))

    def put(
        self, config: Config, checkpoint: Checkpoint, metadata: CheckpointMetadata, new_versions: ChannelVersions
    ) -> dict[str, Any]:
        """Store a checkpoint with the channels that changed, in one transaction."""
        scope, _, ns = self._place(config)
        bare: dict[str, Any] = dict(checkpoint)
        values = bare.pop("channel_values")
        written = {
            _name(BLOB, ns, channel, str(version)): self._dump(values[channel]) if channel in values else b""
            for channel, version in new_versions.items()
        }
        head = {"parent": config["configurable"].get("checkpoint_id"), "run": _run_of(config, metadata)}
        body = self._dump(bare)
        written[_name(CHECKPOINT, ns) + checkpoint["id"]] = _joined(
            head, body, self._dump(get_checkpoint_metadata(config, metadata))
        )
        self._state.save(scope, StateChange(written))
        return self._config(config, ns, checkpoint["id"])

    def put_writes(self, config: Config, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = "") -> None:
        """Store what a task wrote after a checkpoint; a task that is run again overwrites nothing but special writes."""
        scope, _, ns = self._place(config)
        head = _name(WRITE, ns, config["configurable"]["checkpoint_id"], task_id)
        plain: dict[str, bytes] = {}
        special: dict[str, bytes] = {}
        for number, (channel, value) in enumerate(writes):
            index = WRITES_IDX_MAP.get(channel, number)
            named = {"task": task_id, "path": task_path, "index": index, "channel": channel}
            (plain if index >= 0 else special)[f"{head}{index}"] = _joined(named, self._dump(value))
        if plain:
            self._state.save(scope, StateChange(plain, keep=True))
        if special:
            self._state.save(scope, StateChange(special))

    def delete_thread(self, thread_id: str) -> None:
        """Delete a thread of the user; its conversation in the memory stays (``Conversation.clear`` deletes both)."""
        self._state.remove(self._scope(thread_id))

    def delete_for_runs(self, run_ids: Sequence[str]) -> None:
        """Delete the checkpoints that these runs of the user made, with their writes."""
        gone = {str(run) for run in run_ids}
        for scope in self._homes():
            for ns, found in self._checkpoints(scope).items():
                ids = [id_ for id_, head in found if head.get("run") in gone]
                self._drop(scope, ns, ids, [id_ for id_, _ in found if id_ not in ids])

    def copy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """Copy a thread of the user, with its whole history."""
        rows = self._state.load(self._scope(source_thread_id))
        self._state.save(self._scope(target_thread_id), StateChange({row.name: row.value for row in rows}))

    def prune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        """
        Delete the threads, or all but the newest checkpoint of each namespace.

        A channel that is stored as changes since a snapshot keeps its ancestors back to that snapshot.
        """
        for thread_id in thread_ids:
            if strategy == "delete":
                self.delete_thread(thread_id)
                continue
            if strategy != "keep_latest":
                raise BadInput(f"there is no strategy {strategy!r}", hint="use keep_latest or delete")
            scope = self._scope(thread_id)
            for ns, found in self._checkpoints(scope).items():
                keep = self._needed(scope, ns, dict(found))
                self._drop(scope, ns, [id_ for id_, _ in found if id_ not in keep], sorted(keep))

    async def aget_tuple(self, config: Config) -> CheckpointTuple | None:
        """Do as `get_tuple` in a worker thread."""
        return await in_thread(self.get_tuple, config)

    async def alist(
        self,
        config: Config | None,
        *,
        filter: dict[str, Any] | None = None,
        before: Config | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[CheckpointTuple]:
        """Do as `list` in a worker thread."""
        for found in await in_thread(self._listed, config, filter, before, limit):
            yield found

    async def aput(
        self, config: Config, checkpoint: Checkpoint, metadata: CheckpointMetadata, new_versions: ChannelVersions
    ) -> dict[str, Any]:
        """Do as `put` in a worker thread."""
        return await in_thread(self.put, config, checkpoint, metadata, new_versions)

    async def aput_writes(
        self, config: Config, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        """Do as `put_writes` in a worker thread."""
        await in_thread(self.put_writes, config, writes, task_id, task_path)

    async def adelete_thread(self, thread_id: str) -> None:
        """Do as `delete_thread` in a worker thread."""
        await in_thread(self.delete_thread, thread_id)

    async def adelete_for_runs(self, run_ids: Sequence[str]) -> None:
        """Run `delete_for_runs` in a worker thread."""
        await in_thread(self.delete_for_runs, run_ids)

    async def acopy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """Do as `copy_thread` in a worker thread."""
        await in_thread(self.copy_thread, source_thread_id, target_thread_id)

    async def aprune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        """Do as `prune` in a worker thread."""
        await in_thread(self.prune, thread_ids, strategy=strategy)

    def get_next_version(self, current: str | None, channel: None) -> str:
        """Return the next version of a channel; versions of parallel branches differ."""
        number = 0 if current is None else int(str(current).split(".")[0])
        return f"{number + 1:032}.{random.random():016}"

    def _listed(
        self, config: Config | None, filter: dict[str, Any] | None, before: Config | None, limit: int | None
    ) -> Tuples:
        scopes = self._homes() if config is None else [self._place(config)[0]]
        only = None if config is None else config["configurable"].get("checkpoint_ns")
        exact = None if config is None else get_checkpoint_id(config)
        end = get_checkpoint_id(before) if before else None
        found: Tuples = []
        for scope in scopes:
            thread = scope.conversation or "" if config is None else str(config["configurable"]["thread_id"])
            rows = self._state.load(scope, f"{CHECKPOINT}/", f"{CHECKPOINT}0")
            for row in sorted(rows, key=lambda row: row.name.rpartition("/")[2], reverse=True):
                _, label, id_ = row.name.split("/")
                ns = unquote(label[1:])
                if (only is not None and ns != only) or (exact and id_ != exact) or (end and id_ >= end):
                    continue
                if limit is not None and len(found) >= limit:
                    return found
                tuple_ = self._tuple(scope, thread, ns, row, config)
                meta: Mapping[str, Any] = tuple_.metadata
                if not filter or all(meta.get(name) == value for name, value in filter.items()):
                    found.append(tuple_)
        return found

    def _place(self, config: Config) -> tuple[Scope, str, str]:
        """Return the scope, the thread and the namespace that *config* names."""
        given = config["configurable"]
        thread = str(given["thread_id"])
        return self._scope(thread, given.get(USER)), thread, given.get("checkpoint_ns") or ""

    def _scope(self, thread: str, user: object = None) -> Scope:
        return self._state.scope(thread, user or self._state_user)

    def _homes(self) -> Scopes:
        return self._state.homes(self._state_user)

    def _config(self, given: Config | None, ns: str, id_: str, thread: str | None = None) -> dict[str, Any]:
        named = {} if given is None else given["configurable"]
        found = {"thread_id": named.get("thread_id", thread), "checkpoint_ns": ns, "checkpoint_id": id_}
        return {"configurable": found | ({USER: named[USER]} if named.get(USER) else {})}

    def _tuple(self, scope: Scope, thread: str, ns: str, row: ItemRow, config: Config | None) -> CheckpointTuple:
        head, body, metadata = _split(row.value)
        checkpoint = self._load(body)
        names = _blob_names(ns, checkpoint)
        blobs = self._state.load_named(scope, list(names.values()))
        values = {channel: self._load(blobs[name]) for channel, name in names.items() if blobs.get(name)}
        id_, parent = row.name.rpartition("/")[2], head.get("parent")
        return CheckpointTuple(
            config=self._config(config, ns, id_, thread),
            checkpoint={**checkpoint, "channel_values": values},
            metadata=self._load(metadata),
            parent_config=self._config(config, ns, parent, thread) if parent else None,
            pending_writes=self._writes(scope, ns, id_),
        )

    def _writes(self, scope: Scope, ns: str, id_: str) -> Writes:
        head = _name(WRITE, ns, id_)
        found = [_split(row.value) for row in self._state.load(scope, head, head + LATE)]
        found.sort(key=lambda parts: (parts[0]["path"], parts[0]["task"], parts[0]["index"]))
        return [(named["task"], named["channel"], self._load(value)) for named, value, *_ in found]

    def _checkpoints(self, scope: Scope) -> dict[str, Heads]:
        """Return the thread's checkpoints by namespace."""
        found: dict[str, Heads] = {}
        for row in self._state.load(scope, f"{CHECKPOINT}/", f"{CHECKPOINT}0"):
            _, label, id_ = row.name.split("/")
            found.setdefault(unquote(label[1:]), []).append((id_, _split(row.value)[0]))
        return found

    def _needed(self, scope: Scope, ns: str, heads: Mapping[str, Mapping[str, Any]]) -> set[str]:
        """Return the newest checkpoint and the ancestors from which its channels are computed."""
        id_, keep = max(heads), set[str]()
        open_channels: set[str] | None = None
        while id_ in heads:
            keep.add(id_)
            names = self._channels(scope, ns, id_)
            stored = self._state.load_named(scope, list(names.values()))
            without = {channel for channel, name in names.items() if not stored.get(name) and _may_be_delta(channel)}
            open_channels = without if open_channels is None else open_channels & without
            if not open_channels:
                break
            id_ = heads[id_].get("parent") or ""
        return keep

    def _drop(self, scope: Scope, ns: str, gone: Sequence[str], left: Sequence[str]) -> None:
        """Delete checkpoints with their writes, and channels that none of those *left* needs."""
        if not gone:
            return
        used = set()
        for id_ in left:
            used |= set(self._channels(scope, ns, id_).values())
        blobs = [row.name for row in self._state.load(scope, _name(BLOB, ns), _name(BLOB, ns) + LATE)]
        ranges = [(name, name + "\x01") for name in blobs if name not in used]
        for id_ in gone:
            head = _name(CHECKPOINT, ns) + id_
            ranges += [(head, head + "\x01"), (_name(WRITE, ns, id_), _name(WRITE, ns, id_) + LATE)]
        self._state.save(scope, StateChange({}, remove=ranges))

    def _channels(self, scope: Scope, ns: str, id_: str) -> dict[str, str]:
        """Return the name of the stored value of each channel of a checkpoint."""
        name = _name(CHECKPOINT, ns) + id_
        return _blob_names(ns, self._load(_split(self._state.load_named(scope, [name])[name])[1]))

    def _dump(self, value: Any) -> bytes:
        kind, data = self.serde.dumps_typed(value)
        return b"".join([str(kind).encode(), b"\n", data])

    def _load(self, stored: bytes) -> Any:
        kind, _, data = stored.partition(b"\n")
        return self.serde.loads_typed((kind.decode(), data))


def _name(kind: str, *parts: str) -> str:
    """Return the beginning of the names of a kind of item; each part is escaped and closed, so none begins another."""
    return "".join([f"{kind}/", *(f".{quote(part, safe='')}/" for part in parts)])


def _blob_names(ns: str, checkpoint: Mapping[str, Any]) -> dict[str, str]:
    versions = checkpoint["channel_versions"]
    return {channel: _name(BLOB, ns, channel, str(version)) for channel, version in versions.items()}


def _may_be_delta(channel: str) -> bool:
    """Whether a channel without a value may be stored as changes: the graph's own channels are empty between steps."""
    return not channel.startswith(("__", "branch:"))


def _run_of(config: Config, metadata: Mapping[str, Any]) -> str | None:
    run = metadata.get("run_id") or (config.get("metadata") or {}).get("run_id") or config["configurable"].get("run_id")
    return None if run is None else str(run)


def _joined(head: Mapping[str, Any], *parts: bytes) -> bytes:
    """Return one value: a line of JSON with the lengths of the parts, then the parts."""
    line = json.dumps({**head, "lengths": [len(part) for part in parts]}).encode()
    return b"".join([line, b"\n", *parts])


def _split(value: bytes) -> tuple[Any, ...]:
    """Return what `_joined` put together."""
    line, _, rest = value.partition(b"\n")
    head = json.loads(line)
    parts = []
    for length in head.pop("lengths"):
        parts.append(rest[:length])
        rest = rest[length:]
    return (head, *parts)


# Long-term items

Namespace = tuple[str, ...]
UserOf = Callable[[Namespace], str | None]


class HoldfastStore(BaseStore):
    """
    A `BaseStore` that keeps its items in a memory, each with the user that its namespace names.

    Args:
        memory: where they are kept.
        user: whose items these are where the namespace names no user.
        user_label: which label of a namespace is the user: 1 for ``("memories", user_id)``, or a function of the namespace.
        org: the tenant.
        bot: the assistant.
        index: LangGraph's ``IndexConfig``, to search by other vectors or fields than all texts with the memory's own
            embedder; ``False`` for no search by meaning.
        ttl: LangGraph's ``TTLConfig``.

    A search or a list sees one user: the one whom its prefix names, else *user*.
    """

    supports_ttl = True

    def __init__(
        self,
        memory: Memory | AsyncMemory,
        *,
        user: str = "shared",
        user_label: int | UserOf | None = None,
        org: str = "default",
        bot: str = "default",
        index: IndexConfig | bool | None = None,
        ttl: TTLConfig | None = None,
    ) -> None:
        self._members = AdapterMemory(memory, user=user, org=org, bot=bot)
        self._state = self._members.state("langgraph.store")
        self._user_label = user_label
        self.ttl_config = ttl
        self._index = index
        fields = (index.get("fields") if isinstance(index, Mapping) else None) or ["$"]
        self._fields = [tokenize_path(path) if path != "$" else path for path in fields]
        self._embeddings = ensure_embeddings(index["embed"]) if isinstance(index, Mapping) else None

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Carry out operations: what is read is as it was before the writes of the same batch."""
        results: list[Result] = []
        puts: dict[tuple[Namespace, str], PutOp] = {}
        for op in ops:
            _check_labels(op)
            if isinstance(op, GetOp):
                results.append(self._get(op))
            elif isinstance(op, SearchOp):
                results.append(self._search(op))
            elif isinstance(op, ListNamespacesOp):
                results.append(self._list(op))
            elif isinstance(op, PutOp):
                puts[op.namespace, op.key] = op
                results.append(None)
            else:
                raise BadInput(f"{type(op).__name__} is not an operation of a store")
        for op in puts.values():
            self._put(op)
        return results

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """Do as `batch` in a worker thread."""
        return await in_thread(self.batch, list(ops))

    def _scope(self, namespace: Namespace) -> Scope:
        label = self._user_label
        if callable(label):
            return self._state.scope(None, label(namespace))
        named = namespace[label] if label is not None and len(namespace) > label else None
        return self._state.scope(None, named)

    def _get(self, op: GetOp) -> Item | None:
        scope, name = self._scope(op.namespace), _item_name(op.namespace, op.key)
        rows = self._state.load(scope, name, name + "\x01")
        if not rows:
            return None
        self._refresh(scope, rows, op.refresh_ttl)
        return Item(**_item_fields(rows[0]))

    def _put(self, op: PutOp) -> None:
        scope, name = self._scope(op.namespace), _item_name(op.namespace, op.key)
        if op.value is None:
            self._state.remove(scope, name, name + "\x01")
            return
        try:
            text = json.dumps(op.value, ensure_ascii=False)
        except (TypeError, ValueError) as error:
            raise BadInput(f"the value of {op.key!r} cannot be stored as JSON: {error}") from error
        vectors = self._vectors(op)
        head = {"ttl": op.ttl, "vectors": [len(vectors), vectors.shape[1] if len(vectors) else 0]}
        body = _joined(head, text.encode("utf-8", "surrogatepass"), vectors.astype("<f4").tobytes())
        # an item that expired is gone: what takes its name is a new one
        expired = [] if self._state.load(scope, name, name + "\x01", limit=1) else [(name, name + "\x01")]
        self._state.save(scope, StateChange({name: body}, remove=expired, expires_at=self._expiry(op.ttl)))

    def _expiry(self, ttl_minutes: float | None) -> int | None:
        return None if ttl_minutes is None else self._members.memory._engine.now_ms() + round(ttl_minutes * 60_000)

    def _refresh(self, scope: Scope, rows: Sequence[ItemRow], refresh: bool) -> None:
        for row in rows:
            ttl = _split(row.value)[0].get("ttl") if refresh and row.expires_at is not None else None
            if ttl is not None:
                self._state.touch(scope, row, self._expiry(ttl))

    def _search(self, op: SearchOp) -> list[SearchItem]:
        scope, head = self._scope(op.namespace_prefix), _name("i", *op.namespace_prefix)
        rows = self._state.load(scope, head, head + LATE)
        wanted = []
        for row in rows:
            fields = _item_fields(row)
            if all(_matches(fields["value"].get(name), value) for name, value in (op.filter or {}).items()):
                wanted.append((row, fields))
        scores: list[float | None] = [None] * len(wanted)
        if op.query and self._index is not False:
            scores = self._scores(op.query, [row for row, _ in wanted])
        ranked = sorted(
            range(len(wanted)), key=lambda i: (scores[i] is None, -(scores[i] or 0.0), -wanted[i][0].updated_at, i)
        )
        chosen = ranked[op.offset : op.offset + op.limit]
        self._refresh(scope, [wanted[i][0] for i in chosen], op.refresh_ttl)
        return [SearchItem(**wanted[i][1], score=scores[i]) for i in chosen]

    def _list(self, op: ListNamespacesOp) -> list[Namespace]:
        conditions = op.match_conditions or ()
        prefix = next((c.path for c in conditions if c.match_type == "prefix" and "*" not in c.path), ())
        rows = self._state.load(self._scope(tuple(map(str, prefix))), "i/", "i0")
        found = {_item_place(row.name)[0] for row in rows}
        found = {namespace for namespace in found if all(_fits(one, namespace) for one in conditions)}
        if op.max_depth is not None:
            found = {namespace[: op.max_depth] for namespace in found}
        return sorted(found)[op.offset : op.offset + op.limit]

    def _vectors(self, op: PutOp) -> Any:
        """Return a row for each text of the item that is searched by meaning."""
        if op.index is False or self._index is False:
            return np.zeros((0, 0), np.float32)
        fields = self._fields if op.index is None else [tokenize_path(path) for path in op.index]
        texts = [text for field in fields for text in get_text_at_path(op.value, field)]
        return self._embed(texts) if texts else np.zeros((0, 0), np.float32)

    def _embed(self, texts: list[str]) -> Any:
        if self._embeddings is not None:
            return np.asarray(self._embeddings.embed_documents(texts), np.float32)
        embedder = self._members.memory._engine.embedder
        return np.zeros((0, 0), np.float32) if embedder is None else embedder.embed(texts)

    def _scores(self, query: str, rows: Sequence[ItemRow]) -> list[float | None]:
        """Return how near each item is to *query*: the nearest of its texts; ``None`` for one that has no vector."""
        if self._embeddings is not None:
            question = np.asarray(self._embeddings.embed_query(query), np.float32)
        else:
            found = self._embed([query])
            if not len(found):
                return [None] * len(rows)
            question = found[0]
        return [_nearest(question, row) for row in rows]


def _nearest(question: Any, row: ItemRow) -> float | None:
    head, _, stored = _split(row.value)
    number, width = head["vectors"]
    if not number or width != len(question):
        return None
    vectors = np.frombuffer(stored, "<f4").reshape(number, width)
    lengths = np.linalg.norm(vectors, axis=1) * np.linalg.norm(question)
    return float(np.max(np.divide(vectors @ question, lengths, out=np.zeros(number, np.float32), where=lengths > 0)))


def _item_name(namespace: Namespace, key: str) -> str:
    return _name("i", *namespace) + f"={quote(str(key), safe='')}"


def _item_place(name: str) -> tuple[Namespace, str]:
    *labels, key = name.split("/")[1:]
    return tuple(unquote(label[1:]) for label in labels), unquote(key[1:])


def _item_fields(row: ItemRow) -> dict[str, Any]:
    namespace, key = _item_place(row.name)
    created: datetime = from_ms(row.created_at)
    value = json.loads(_split(row.value)[1].decode("utf-8", "surrogatepass"))
    return {
        "value": value,
        "key": key,
        "namespace": namespace,
        "created_at": created,
        "updated_at": from_ms(row.updated_at),
    }


def _check_labels(op: Op) -> None:
    """Refuse labels that are empty or not text, also in operations that were not made by `BaseStore`'s own methods."""
    if isinstance(op, GetOp | PutOp):
        labels: Iterable[object] = op.namespace
    elif isinstance(op, SearchOp):
        labels = op.namespace_prefix
    else:
        return
    if any(not isinstance(label, str) or not label or "\x00" in label for label in labels):
        raise BadInput("the labels of a namespace must be texts, and not empty")


def _fits(condition: MatchCondition, namespace: Namespace) -> bool:
    path = tuple(condition.path)
    if len(namespace) < len(path):
        return False
    part = namespace[: len(path)] if condition.match_type == "prefix" else namespace[len(namespace) - len(path) :]
    return all(wanted in ("*", label) for wanted, label in zip(path, part, strict=True))


def _matches(found: Any, wanted: Any) -> bool:
    """Whether a value is what a filter wants: equal, or within the bounds of its operators."""
    if isinstance(wanted, Mapping):
        if any(str(name).startswith("$") for name in wanted):
            return all(_holds(found, operator, bound) for operator, bound in wanted.items())
        return isinstance(found, Mapping) and all(_matches(found.get(name), value) for name, value in wanted.items())
    if isinstance(wanted, list | tuple):
        same = isinstance(found, list | tuple) and len(found) == len(wanted)
        return same and all(_matches(one, other) for one, other in zip(found, wanted, strict=True))
    return bool(found == wanted)


def _holds(found: Any, operator: str, bound: Any) -> bool:
    if operator in ("$eq", "$ne"):
        return bool(found == bound) is (operator == "$eq")
    try:
        number, limit = float(found), float(bound)
    except (TypeError, ValueError):
        return False
    if operator in ("$gt", "$gte"):
        return number > limit or (operator == "$gte" and number == limit)
    if operator in ("$lt", "$lte"):
        return number < limit or (operator == "$lte" and number == limit)
    raise BadInput(f"a filter has no operator {operator!r}", hint="use $eq, $ne, $gt, $gte, $lt or $lte")
