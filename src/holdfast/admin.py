"""The door for operators and the server: keys, the ledger of erasures, events, operations, metrics."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, replace
from datetime import date, datetime, timedelta
from functools import partial
from typing import Any

from .clock import DAY_MS, from_ms, to_ms
from .config import Config, ConfigChanges
from .engine import Engine
from .errors import BadInput, ConfigError, Conflict, NotFound
from .jobs.metrics import compute_metrics, days_between
from .jobs.observer import Watcher
from .jobs.queue import as_listed
from .jobs.usage import CallTimes, usage_of_all
from .llm.guard import address_for_key
from .llm.sealing import Keyring, Master
from .privacy.ledger import FORMAT, parse_ledger
from .reports import (
    USER_ORDERS,
    Activity,
    Backlog,
    Event,
    FoundAcross,
    MessageCount,
    Metrics,
    News,
    Operation,
    ReplayReport,
    StoreStats,
    UserKey,
    UserOrder,
)
from .scope import Scope, checked_name
from .store import KeyRow, ProviderKeyRow
from .store.queries import schema_version
from .text import expression
from .text.validate import checked_count
from .types import ApiKey, Job, NewKey, ProviderKey, Role, Secret, Upstream
from .user import Prompts

ROLES: tuple[Role, ...] = ("operator", "app", "user", "subject")

_EXPIRED_LISTED_MS = 7 * DAY_MS  # how long an expired key stays listed
_OPERATIONS_KEPT_MS = 7 * DAY_MS  # how long an operation that ended stays on record
_KEY_FORM = expression(r"hf_([0-9a-z]{12})_([A-Za-z0-9_-]{43})")
_ALPHABET = "0123456789abcdefghijklmnopqrstuvwxyz"
_PAGE = 100  # provider keys that are sealed again at once


class Admin:
    """The door for operators and the server, across users; from `Memory.admin`."""

    def __init__(self, engine: Engine, place: str) -> None:
        self._engine = engine
        self._place = place

    @property
    def keys(self) -> ApiKeys:
        """The API keys of those who ask over the network."""
        return ApiKeys(self._engine)

    @property
    def provider_keys(self) -> ProviderKeys:
        """The keys of model providers that users and orgs bring."""
        return ProviderKeys(self._engine)

    @property
    def erasures(self) -> Erasures:
        """The ledger of erasures, which keeps erased things from coming back with a backup."""
        return Erasures(self._engine)

    @property
    def events(self) -> Events:
        """The events of many users at once, and of orgs."""
        return Events(self._engine)

    @property
    def operations(self) -> Operations:
        """The long work that requests started."""
        return Operations(self._engine)

    @property
    def call_times(self) -> CallTimes:
        """How long the calls of servers took, of all users together."""
        return CallTimes(self._engine.store)

    def prompts(self, *, org: str = "default", bot: str | None = None) -> Prompts:
        """
        Return the prompts of all users of an org, or of one of its bots, who have none of their own.

        Args:
            org: the tenant.
            bot: only this assistant; its prompts go before those of the org.

        Raises:
            BadInput: a name is empty, too long, or holds control characters.
        """
        named = "" if bot is None else checked_name("bot", bot)
        return Prompts(self._engine, Scope(org=checked_name("org", org), bot=named, user="", subject=None))

    def reload(self, config: Config) -> ConfigChanges:
        """
        Use the settings of *config* from now on, as far as they can change while the memory is open.

        The result names what changed, and what needs a restart.  Every other memory keeps its own settings.

        Raises:
            ConfigError: *config* is no ``Config``.
        """
        if not isinstance(config, Config):
            raise ConfigError(
                f"config must be a Config, not {type(config).__name__}", hint="Config.load(path) reads one"
            )
        return self._engine.reload(config)

    def users(
        self,
        *,
        limit: int = 1000,
        after: UserKey | None = None,
        matching: str = "",
        sort: UserOrder = "name",
        skip: int = 0,
        org: str | None = None,
    ) -> list[UserKey]:
        """
        Return ``(org, user, bot)`` of the users with a memory.

        Args:
            limit: how many at most.
            after: by name, only keys above this one: the last of the page before.
            matching: only those whose org, name or bot holds these words; small and capital letters are alike.
            sort: by ``name``; or those with conversations: ``newest`` or ``oldest`` last message first, or most ``conversations``.
            skip: not by name, leave out so many first.
            org: only those of this org.

        Raises:
            BadInput: *matching* is no name, or *sort*, *after* and *skip* do not fit.
        """
        if sort not in USER_ORDERS or (skip if sort == "name" else after is not None):
            raise BadInput(
                "users cannot be listed so", hint=f"sort: {', '.join(USER_ORDERS)}; after: by name; skip: else"
            )
        matching, skip = matching and checked_name("matching", matching), skip and checked_count("skip", skip)
        return self._engine.store.users(limit=limit, after=after, matching=matching, sort=sort, skip=skip, org=org)

    def containing(self, words: str, *, after: UserKey | None = None, users: int = 5000, limit: int = 6) -> FoundAcross:
        """
        Find active facts that hold all *words*, and conversations whose names do; small and capital letters are alike.

        It looks through *users* users above *after*, fewer where more is found, and says behind whom the next look begins.

        Raises:
            BadInput: *words* is no text, or longer than any name.
        """
        wanted = checked_name("words", words).split()
        span = self.users(limit=checked_count("users", users), after=after)
        if not span or not wanted:
            return FoundAcross((), (), None)
        facts, talks, end = self._engine.store.containing(wanted, after or ("", "", ""), span[-1], limit=limit)
        return FoundAcross(tuple(facts), tuple(talks), end or (span[-1] if len(span) == users else None))

    def metrics(
        self,
        *,
        org: str | None = None,
        bot: str | None = None,
        since: date | None = None,
        until: date | None = None,
        most_users: int = 1_000,
    ) -> Metrics:
        """
        Measure how well memory serves, from what is stored.  It reads every message of the users it counts.

        Args:
            org: only this tenant.
            bot: only this assistant.
            since: the first day (UTC) that counts.
            until: the last day (UTC) that counts.
            most_users: count at most this many, by key; ``left_out`` is how many there are beyond.

        Raises:
            BadInput: *until* lies before *since*.
        """
        store, now_ms = self._engine.store, self._engine.now_ms()
        days = days_between(since, until, now_ms)
        users = [key for key in self._all_users() if org in (None, key[0]) and bot in (None, key[2])]
        counted = users[: checked_count("most_users", most_users)]
        used = usage_of_all(store, ("model",), since, until, org=org, bot=bot)
        jobs = [job for job in store.jobs(state=None) if org in (None, job.org) and bot in (None, job.bot)]
        scopes = [Scope(org=o, bot=b, user=u) for o, u, b in counted]
        note = partial(self._engine.uses.note_read, "metrics")
        return compute_metrics(store, scopes, days, used, jobs, left_out=len(users) - len(counted), note=note)

    def _all_users(self) -> Iterator[UserKey]:
        after = None
        while page := self.users(after=after):
            yield from page
            after = page[-1]

    def job(self, job_id: str) -> Job:
        """
        Return one job that is not finished.

        Raises:
            NotFound: there is none of this id.
        """
        found = self._engine.store.job(job_id)
        if found is None:
            raise NotFound(f"there is no job {job_id!r}", hint="what is finished leaves no row")
        return as_listed(found, self._engine.now_ms())

    def jobs_of_user(self, user: str, *, org: str = "default", bot: str = "default") -> list[Job]:
        """Return one user's background work that is not finished, oldest first."""
        found = self._engine.store.read(Scope(org=org, bot=bot, user=user), lambda view: view.jobs())
        return [as_listed(job, self._engine.now_ms()) for job in found]

    def backlog(self) -> tuple[Backlog, ...]:
        """Count the unfinished background work by kind and state; cheap."""
        return self._engine.store.backlog(self._engine.now_ms())

    def activity(
        self,
        *,
        since: date,
        until: date | None = None,
        org: str | None = None,
        user: str | None = None,
        bot: str | None = None,
    ) -> list[Activity]:
        """
        Count what changed by day, org, bot and kind, from the events that are kept (`Config.event_days`).

        It reads the events of every user, so keep the answer for a while.

        Args:
            since: the first day (UTC) that counts.
            until: the last day (UTC) that counts.
            org: only this tenant.
            user: only this user.
            bot: only this assistant.

        Raises:
            BadInput: *until* lies before *since*.
        """
        days = days_between(since, until, self._engine.now_ms())
        found = self._engine.store.activity(days.start_ms, days.end_ms, org=org, user=user, bot=bot)
        return [
            Activity(from_ms(day * DAY_MS).date(), org_of, bot_of, kind, count, users)
            for org_of, bot_of, day, kind, count, users in found
        ]

    def newest_events(self, kind: str | None = None, *, days: int = 30, limit: int = 100) -> list[Event]:
        """
        Return the newest events of all users, without those of jobs; one event names no text.

        Args:
            kind: only these, ``fact.replaced`` for example; of jobs, too.
            days: not older than so many days.
            limit: at most so many.
        """
        since_ms = self._engine.now_ms() - checked_count("days", days) * DAY_MS
        return self._engine.store.newest_events(kind, since_ms, limit=checked_count("limit", limit))

    def stats(self) -> StoreStats:
        """Return where the store is, how large, and how many rows it has of each kind."""
        rows = dict(self._engine.store.stats())
        return StoreStats(self._place, rows.pop("bytes", 0), schema_version(), rows)

    def size_bytes(self) -> int:
        """Return how large the store is; cheap."""
        return self._engine.store.size_bytes()

    def observe(self, watcher: Watcher) -> None:
        """Call ``watcher(what, of, amount)`` after each piece of work of this process; it must not raise or wait."""
        self._engine.observer.watchers.append(watcher)


class ApiKeys:
    """
    The API keys of those who ask over the network; from `Admin.keys`.

    A key is shown once, when it is made; only its SHA-256 is stored.  A slow hash would guard weak secrets and
    cost each request; these have 256 random bits.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def create(
        self,
        role: Role,
        *,
        org: str = "default",
        user: str | None = None,
        bot: str | None = None,
        subject: str | None = None,
        name: str = "",
        expires_at: datetime | timedelta | None = None,
    ) -> NewKey:
        """
        Make a key.

        Args:
            role: ``operator`` may do everything in every org; ``app`` everything with the users of *org*; ``user`` may
                see and correct what is held about *user*; ``subject`` the same for one *subject* alone.
            org: the tenant.
            user: the user, for the last two roles.
            bot: only this assistant; every one when not given.
            subject: the subject, for the last role.
            name: what the key is for, in words.
            expires_at: when it expires: a time, or how long from now.

        Raises:
            BadInput: the role does not exist, or *user* and *subject* do not fit it.
        """
        names = {"org": org, "user": user, "bot": bot, "subject": subject}
        return self._add(role, names, name, expires_at)

    def _add(
        self,
        role: Role,
        names: Mapping[str, str | None],
        name: str,
        expires_at: datetime | timedelta | None,
        parent: str = "",
    ) -> NewKey:
        """Make a key; one with a *parent* ends when that one ends."""
        org, user, bot, subject = (names[part] for part in ("org", "user", "bot", "subject"))
        if role not in ROLES:
            raise BadInput(f"there is no role {role!r}", hint=f"use {', '.join(ROLES)}")
        _check_names(role, user, subject)
        now_ms = self._engine.now_ms()
        ends_ms = _expiry_ms(expires_at, now_ms)
        key_id = "".join(secrets.choice(_ALPHABET) for _ in range(12))
        key = f"hf_{key_id}_{secrets.token_urlsafe(32)}"
        row = KeyRow(
            checked_name("org", org),
            key_id,
            _digest(key),
            role,
            _name_or_empty("user", user),
            _name_or_empty("bot", bot),
            _name_or_empty("subject", subject),
            _name_or_empty("name", name or None),
            now_ms,
            ends_ms,
            parent=parent,
        )
        self._engine.store.add_key(row, expired_before_ms=now_ms - _EXPIRED_LISTED_MS)
        return NewKey(key, _api_key(row))

    def copy(self, key: str, *, name: str, lasts: timedelta) -> NewKey | None:
        """
        Make a second key that opens what *key* opens, for *lasts* at most; ``None`` when *key* opens nothing.

        A browser keeps such a copy: it can be revoked alone, and ends with *key*.
        """
        about = self.check(key)
        if about is None:
            return None
        until = from_ms(self._engine.now_ms()) + lasts
        ends = until if about.expires_at is None else min(until, about.expires_at)
        row = self._engine.store.key(about.id)
        parent = about.id if row is None else row.parent or row.id
        names = {"org": about.org, "user": about.user, "bot": about.bot, "subject": about.subject}
        return self._add(about.role, names, name, ends, parent)

    def message_counts(self, org: str = "default") -> list[MessageCount]:
        """Return how many messages each key of an org stored this day and month, and in earlier ones still on record."""
        return [MessageCount(*row) for row in self._engine.store.spent(checked_name("org", org))]

    def list(self, org: str | None = None) -> list[ApiKey]:
        """Return the keys of an org, or of all, oldest first, revoked and expired ones included."""
        return [_api_key(row) for row in self._engine.store.keys(org)]

    def revoke(self, key_id: str, *, org: str | None = None) -> None:
        """
        End a key, and the copies that were made of it, at once and in every process.

        Args:
            key_id: the id that `keys` lists.
            org: only if it is a key of this org.

        Raises:
            NotFound: there is no such key, or it was revoked already.
        """
        row = self._engine.store.key(key_id)
        ours = row is not None and org in (None, row.org)
        if row is None or not ours or not self._engine.store.revoke_key(row.org, key_id, self._engine.now_ms()):
            raise NotFound(f"no valid key has the id {key_id!r}", hint="list() lists them")

    def count_messages(
        self,
        key: ApiKey,
        messages: int,
        *,
        day: int | None = None,
        month: int | None = None,
        org_day: int | None = None,
        org_month: int | None = None,
    ) -> int:
        """
        Count messages that a key stores, in all processes together, unless a quota would be exceeded.

        Args:
            key: the key that stores them.
            messages: how many; a negative number gives back what was not stored after all.
            day: how many the key may store a day (UTC).
            month: how many it may store a month.
            org_day: how many all keys of its org may store a day.
            org_month: how many they may store a month.

        Returns:
            0 when they were counted; otherwise nothing was, and it is the seconds until there is room again.
        """
        now = from_ms(self._engine.now_ms())
        today, this_month = f"{now:%Y-%m-%d}", f"{now:%Y-%m}"
        most = {(key.id, today): day, (key.id, this_month): month, ("", today): org_day, ("", this_month): org_month}
        limits = {of: limit for of, limit in most.items() if limit is not None}
        if not limits or not messages:
            return 0
        last_month = now.replace(day=1) - timedelta(days=1)
        passed = self._engine.store.spend(key.org, limits, messages, before=f"{last_month:%Y-%m}")
        return 0 if passed is None else _seconds_until_next(now, monthly=passed[1] == this_month)

    def is_valid(self, key_id: str) -> bool:
        """Whether the key of that id exists and was neither revoked nor has expired."""
        row = self._engine.store.key(key_id)
        return row is not None and not self._ended(row)

    def _ended(self, row: KeyRow) -> bool:
        return row.revoked is not None or (row.expires is not None and row.expires <= self._engine.now_ms())

    def check(self, key: str) -> ApiKey | None:
        """Return what *key* opens; ``None`` for one that was never made, was revoked, or expired."""
        form = _KEY_FORM.fullmatch(key)
        row = self._engine.store.key(form[1]) if form else None
        if row is None or not hmac.compare_digest(row.digest, _digest(key)):
            return None
        return None if self._ended(row) else _api_key(row)


def _seconds_until_next(now: datetime, *, monthly: bool) -> int:
    """Return the seconds until the next day, or month."""
    midnight = now.replace(hour=0, minute=0, second=0, microsecond=0)
    then = (midnight.replace(day=1) + timedelta(days=32)).replace(day=1) if monthly else midnight + timedelta(days=1)
    return int((then - now).total_seconds()) + 1


def _check_names(role: Role, user: str | None, subject: str | None) -> None:
    if (user is not None) != (role in ("user", "subject")):
        raise BadInput(f"a key of the role {role} " + ("needs a user" if user is None else "belongs to no user"))
    if (subject is not None) != (role == "subject"):
        raise BadInput(f"a key of the role {role} " + ("needs a subject" if subject is None else "names no subject"))


def _expiry_ms(expires_at: datetime | timedelta | None, now_ms: int) -> int | None:
    if expires_at is None:
        return None
    if isinstance(expires_at, timedelta):
        ends_ms = now_ms + expires_at // timedelta(milliseconds=1)
    else:
        ends_ms = to_ms(expires_at)
    if ends_ms <= now_ms:
        raise BadInput("a key cannot expire before it is made")
    return ends_ms


def _name_or_empty(what: str, value: str | None) -> str:
    return "" if value is None else checked_name(what, value)


def _digest(key: str) -> str:
    return hashlib.sha256(key.encode()).hexdigest()


def _api_key(row: KeyRow) -> ApiKey:
    return ApiKey(
        id=row.id,
        role=row.role,  # type: ignore[arg-type]
        org=row.org,
        user=row.user or None,
        bot=row.bot or None,
        subject=row.subject or None,
        name=row.label,
        created_at=from_ms(row.created),
        expires_at=None if row.expires is None else from_ms(row.expires),
        revoked_at=None if row.revoked is None else from_ms(row.revoked),
    )


class ProviderKeys:
    """
    Keys of model providers that users and orgs bring; from `Admin.provider_keys`.

    Keys are sealed with AES-256-GCM under a master key from the environment (``HOLDFAST_MASTER_KEY``, or a file
    that ``HOLDFAST_MASTER_KEY_FILE`` names) and bound to their owner and to one address.  No call returns one.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def set(
        self,
        provider: str,
        model: str,
        key: str | Secret | None = None,
        base_url: str | None = None,
        *,
        org: str = "default",
        user: str | None = None,
    ) -> ProviderKey:
        """
        Use this model and this key from now on, in place of what the owner had set for that provider.

        Args:
            provider: ``openai``, ``anthropic``, ``google`` or ``ollama``.
            model: the provider's name of the model.
            key: the key; ``None`` keeps the present one, for the same address only.
            base_url: another address than the provider's; with ``openai`` any server that speaks its protocol.
            org: the tenant.
            user: the owner; the org itself when not given.

        Raises:
            BadInput: a name, the address or the key cannot be used.
            EndpointRefused: the address is private and the operator does not allow it, or it is malformed.
            VaultLocked: there is no master key; nothing was stored.
            ConfigError: there is a budget in dollars and the price of the model is unknown.
        """
        org, owner, brought = checked_name("org", org), _owner(user), self._engine.provider_keys
        before = next((row for row in self._engine.store.provider_keys(org, owner) if row.provider == provider), None)
        given = self._key_of(before) if key is None else key if isinstance(key, Secret) else Secret(key)
        address = address_for_key(provider, model, base_url, given, brought.guard)
        if key is None and before is not None and address.base_url != before.base_url:
            hint = "give the key again with the new address"
            raise BadInput("a key belongs to the address that it was set for", hint=hint)
        self._engine.check_price(address)
        ring = brought.keyring()
        row = ProviderKeyRow(
            org=org,
            user=owner,
            id=before.id if before is not None else f"pk_{secrets.token_hex(8)}",
            provider=provider,
            model=model,
            base_url=str(address.base_url),
            master=ring.first().id,
            sealed="",
            print=ring.print_of(given),
            set_at=self._engine.now_ms(),
        )
        row = replace(row, sealed=ring.seal(given, row.bound)[1])
        self._engine.store.save_provider_key(row)
        self._engine.keys_changed()
        return _provider_key(row, ring, in_use=True)

    def list(self, *, org: str = "default", user: str | None = None) -> list[ProviderKey]:
        """Return what a user, or without one the org itself, has set, without the keys; the one in use comes first."""
        ring = self._engine.provider_keys.keyring()
        rows = self._engine.store.provider_keys(checked_name("org", org), _owner(user))
        return [_provider_key(row, ring, in_use=not number) for number, row in enumerate(rows)]

    def remove(self, key_id: str, *, org: str = "default", user: str | None = None) -> None:
        """
        Delete a key of a user, or without one of the org itself.

        Raises:
            NotFound: the owner has no key of that id.
        """
        if not self._engine.store.remove_provider_key(checked_name("org", org), _owner(user), key_id):
            raise NotFound(f"no provider key has the id {key_id!r} here", hint="list() lists them")
        self._engine.keys_changed()

    def upstream(self, *, org: str = "default", user: str | None = None) -> Upstream | None:
        """
        Return the model to ask for a user, or for the org: the user's, else the org's, else ``None``.

        Raises:
            VaultLocked: the key cannot be opened; no other one is used in its place.
            EndpointRefused: the operator no longer allows its address.
        """
        own = self._engine.provider_keys
        row = own.row(checked_name("org", org), _owner(user))
        if row is None:
            return None
        address = own.address(row)
        whose = "user" if row.user else "org"
        return Upstream(row.provider, row.model, row.base_url, Secret(address.api_key or ""), whose, row.id)

    def rotate(self, new: str | Secret | None = None) -> int:
        """
        Seal every key again and return how many there are.

        Args:
            new: the master key to seal with, in base64 or hexadecimal; the first one of the environment when not
                given.  Other processes need it, too, before they can open what it sealed.

        Raises:
            VaultLocked: a key does not open with the known master keys; the others were sealed again.
            ConfigError: *new* is not a key.
        """
        own = self._engine.provider_keys
        ring = own.keyring()
        if new is not None:
            first = Master.of(new.reveal() if isinstance(new, Secret) else new)
            ring = Keyring((first, *(one for one in ring.masters if one.id != first.id)))
        master, done = ring.first(), 0
        while rows := self._engine.store.keys_to_reseal(master.id, limit=_PAGE):
            for row in rows:
                key = ring.open(row.master, row.sealed, row.bound)
                new_row = replace(row, master=master.id, sealed=ring.seal(key, row.bound)[1], print=ring.print_of(key))
                done += self._engine.store.reseal_provider_key(new_row, row.sealed)
        own.use_keyring(ring)
        return done

    def _key_of(self, row: ProviderKeyRow | None) -> Secret:
        if row is None:
            raise BadInput("there is no key yet", hint="give one")
        return self._engine.provider_keys.keyring().open(row.master, row.sealed, row.bound)


def _owner(user: str | None) -> str:
    return "" if user is None else checked_name("user", user)


def _provider_key(row: ProviderKeyRow, ring: Keyring, *, in_use: bool) -> ProviderKey:
    return ProviderKey(
        id=row.id,
        org=row.org,
        user=row.user or None,
        provider=row.provider,
        model=row.model,
        base_url=row.base_url,
        fingerprint=row.print,
        set_at=from_ms(row.set_at),
        in_use=in_use,
        opens=any(one.id == row.master for one in ring.masters),
    )


class Erasures:
    """The log of what was erased, so that it does not come back with a backup; from `Admin.erasures`."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def export(self) -> dict[str, Any]:
        """
        Return the ledger as JSON-able data: digests, numbers, offsets and times, without a name or word of what was erased.

        Users who paused memory or opted out are named in it, as they are in the store, so that their choice goes on to
        hold.  With the key that it contains, a guess at a name can be tested: keep it as you keep a backup.
        """
        key, rows = self._engine.store.ledger()
        choices = [
            {"org": user.org, "user": user.user, "bot": user.bot, **asdict(row)}
            for user, row in self._engine.store.consents()
        ]
        return {"format": FORMAT, "key": key, "erased": [asdict(row) for row in rows], "choices": choices}

    def replay(
        self, data: Mapping[str, Any], *, dry_run: bool = False, progress: Callable[[int], None] | None = None
    ) -> ReplayReport:
        """
        Erase here what the ledger of a newer copy of this memory says was erased.

        It is erased with all that rests on it, choices to pause or opt out hold again, and the ledger is taken over.
        What this copy never held, or has erased itself, is skipped; so an interrupted replay can be repeated.

        Args:
            data: what `export` returned.
            dry_run: change nothing; report what is still held.
            progress: called now and then with the number of users checked.

        Raises:
            BadInput: *data* is no ledger.
            Conflict: it is the ledger of another memory.
        """
        key, rows, choices = parse_ledger(data)
        replay, store = self._engine.replay, self._engine.store
        known_key, known_rows = store.ledger()
        if known_key and key and known_key != key:
            raise Conflict("this is the ledger of another memory", hint="use the ledger of a later copy of this memory")
        known = {row.id for row in known_rows}
        fresh = [row for row in rows if row.id not in known]
        if key and not dry_run:
            store.merge_ledger(key, ())  # log what is erased now under the same key
        counts: dict[str, int] = {}
        users = 0
        for user, found in replay.users(key, fresh, progress):
            users += 1
            for kind, number in found.counts().items():
                counts[kind] = counts.get(kind, 0) + number
            if not dry_run:
                replay.erase(user, found)
        chosen = replay.apply_choices(choices, dry_run=dry_run)
        if key and not dry_run:
            store.merge_ledger(key, fresh)
        return ReplayReport(users=users, held=counts, choices=chosen, entries=len(rows), dry_run=dry_run)


class Events:
    """
    Events across users, for those who follow many memories at once; from `Admin.events`.

    Events are rows, written in the transaction that changes something, so every process that opens the memory sees
    those of all others.  `User.events` reads those of one user.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def changes(self) -> int:
        """Return a number that differs after any write of any process since the last call; cheap."""
        return self._engine.store.changes()

    def news(self, heads: Mapping[UserKey, int], *, limit: int = 500) -> dict[UserKey, News]:
        """
        Return the new events of many users, from one moment.

        Args:
            heads: by (org, user, bot), the number of the last event known of each; 0 for none.
            limit: how many events of each at most.

        Returns:
            The news of the users who have any.
        """
        return self._engine.store.news(heads, limit=checked_count("limit", limit))

    def of_org(self, org: str = "default", *, before: int | None = None, limit: int = 100) -> list[Event]:
        """
        Return the events of an org as a whole, newest first: keys made, set, revoked or removed; a user erased.

        An erased user is not named: no event here is about a user.

        Args:
            org: the tenant.
            before: only events with a lower number.
            limit: how many at most.
        """
        return list(
            self._engine.store.events_of_org(checked_name("org", org), before, limit=checked_count("limit", limit))
        )


class Operations:
    """
    Long work that requests started, on record for every process of a service; from `Admin.operations`.

    The process that works on an operation saves it every few seconds, so that others see its progress.  A row holds
    numbers, ids and states, never message text, and is erased with its user.
    """

    def __init__(self, engine: Engine) -> None:
        self._store = engine.store

    def add(self, operation: Operation) -> Operation:
        """Store an operation, or return the uninterrupted one that has the same ``once``."""
        return self._store.add_operation(operation, ended_before_ms=operation.created_ms - _OPERATIONS_KEPT_MS)

    def save(self, operation: Operation) -> bool | None:
        """Store its progress; return whether it was asked to stop, or ``None`` when it is no longer on record."""
        return self._store.save_operation(operation)

    def get(self, operation_id: str) -> Operation | None:
        """Return the operation of that id."""
        return self._store.operation(operation_id)

    def newest(self, limit: int = 20, *, of: UserKey | None = None) -> list[Operation]:
        """Return at most *limit* operations, newest first: of one user (org, user, bot), or of all."""
        return self._store.operations(limit=limit, of=of)

    def stop(self, operation_id: str) -> bool:
        """Stop it before its next part; ``False`` when it has ended or there is none."""
        return self._store.stop_operation(operation_id)
