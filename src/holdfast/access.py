"""The door to the keys of those who ask over the network: operators, apps, and users about themselves."""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from collections.abc import Mapping
from datetime import datetime, timedelta

from .clock import from_ms, to_ms
from .errors import BadInput, NotFound
from .figures import Spent
from .pipeline import Pipeline
from .scope import checked_name
from .store.access import KeyRow
from .types import ApiKey, NewKey, Role

ROLES: tuple[Role, ...] = ("operator", "app", "user", "subject")
_SPENT_MS = 7 * 86_400_000  # how long a key that expired stays listed
_FORM = re.compile(r"hf_([0-9a-z]{12})_([A-Za-z0-9_-]{43})")
_ALPHABET = "0123456789abcdefghijklmnopqrstuvwxyz"


class Access:
    """
    Keys: made, listed, revoked, checked; made by `Memory.access`.

    A key is shown once, when it is made; only its SHA-256 is stored.  A slow hash would guard weak secrets and
    cost each request; these have 256 random bits.
    """

    def __init__(self, pipeline: Pipeline) -> None:
        self._pipeline = pipeline

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
            role: ``operator`` may everything, in every org; ``app`` may everything about the users of *org*;
                ``user`` may see and mend what is held about *user*; ``subject`` the same of one *subject* alone.
            org: the tenant.
            user: whose memory, for the last two roles.
            bot: only this assistant's; every one's when not given.
            subject: for the last role.
            name: what it is for, in words.
            expires_at: from when on it opens nothing: a time, or how long from now.

        Raises:
            BadInput: a role that does not exist, or names that do not go with it.
        """
        whose = {"org": org, "user": user, "bot": bot, "subject": subject}
        return self._add(role, whose, name, expires_at)

    def _add(
        self,
        role: Role,
        whose: Mapping[str, str | None],
        name: str,
        expires_at: datetime | timedelta | None,
        parent: str = "",
    ) -> NewKey:
        """Make a key, of its own or one that ends with *parent*."""
        org, user, bot, subject = (whose[part] for part in ("org", "user", "bot", "subject"))
        if role not in ROLES:
            raise BadInput(f"there is no role {role!r}", hint=f"use {', '.join(ROLES)}")
        _check_whose(role, user, subject)
        now_ms = self._pipeline.now_ms()
        ends_ms = _ends(expires_at, now_ms)
        key_id = "".join(secrets.choice(_ALPHABET) for _ in range(12))
        key = f"hf_{key_id}_{secrets.token_urlsafe(32)}"
        row = KeyRow(
            checked_name("org", org),
            key_id,
            _digest(key),
            role,
            _named("user", user),
            _named("bot", bot),
            _named("subject", subject),
            _named("name", name or None),
            now_ms,
            ends_ms,
            parent=parent,
        )
        self._pipeline.store.add_key(row, spent_before_ms=now_ms - _SPENT_MS)
        return NewKey(key, _told(row))

    def copy(self, key: str, *, name: str, lasts: timedelta) -> NewKey | None:
        """
        A second key that opens what *key* opens, for so long at most; ``None`` when *key* opens nothing.

        For what keeps a key itself, such as a browser: the copy can be revoked alone, and ends with *key*.
        """
        about = self.check(key)
        if about is None:
            return None
        until = from_ms(self._pipeline.now_ms()) + lasts
        ends = until if about.expires_at is None else min(until, about.expires_at)
        row = self._pipeline.store.key(about.id)
        parent = about.id if row is None else row.parent or row.id
        whose = {"org": about.org, "user": about.user, "bot": about.bot, "subject": about.subject}
        return self._add(about.role, whose, name, ends, parent)

    def keys(self, org: str | None = None) -> list[ApiKey]:
        """The keys of an org, or of all, oldest first; those that were revoked or expired among them."""
        return [_told(row) for row in self._pipeline.store.keys(org)]

    def revoke(self, key_id: str, *, org: str | None = None) -> None:
        """
        End a key, and the copies that were made of it, at once and in every process.

        Args:
            key_id: the id that `keys` lists.
            org: only if it is a key of this org.

        Raises:
            NotFound: no such key stands.
        """
        row = self._pipeline.store.key(key_id)
        ours = row is not None and org in (None, row.org)
        if row is None or not ours or not self._pipeline.store.revoke_key(row.org, key_id, self._pipeline.now_ms()):
            raise NotFound(f"no key that stands has the id {key_id!r}", hint="keys() lists them")

    def spend(
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
        Count messages that a key stores, in all processes together, unless they are too many.

        Args:
            key: whose they are.
            messages: how many; a negative number gives back what was not stored after all.
            day: the most that the key may store a day, in UTC.
            month: the same a month.
            org_day: the most that all keys of its org may store a day.
            org_month: the same a month.

        Returns:
            0 when they were counted; else nothing was, and it is the seconds until there is room again.
        """
        now = from_ms(self._pipeline.now_ms())
        today, this_month = f"{now:%Y-%m-%d}", f"{now:%Y-%m}"
        most = {(key.id, today): day, (key.id, this_month): month, ("", today): org_day, ("", this_month): org_month}
        limits = {of: limit for of, limit in most.items() if limit is not None}
        if not limits or not messages:
            return 0
        last_month = now.replace(day=1) - timedelta(days=1)
        passed = self._pipeline.store.spend(key.org, limits, messages, before=f"{last_month:%Y-%m}")
        return 0 if passed is None else _until_next(now, monthly=passed[1] == this_month)

    def spent(self, org: str = "default") -> list[Spent]:
        """What the keys of an org have stored this month, this day, and in those before that are still counted."""
        return [Spent(*row) for row in self._pipeline.store.spent(checked_name("org", org))]

    def stands(self, key_id: str) -> bool:
        """Whether the key of that id opens anything: it was neither revoked nor has it expired."""
        row = self._pipeline.store.key(key_id)
        return row is not None and not self._ended(row)

    def _ended(self, row: KeyRow) -> bool:
        return row.revoked is not None or (row.expires is not None and row.expires <= self._pipeline.now_ms())

    def check(self, key: str) -> ApiKey | None:
        """Whose key it is; ``None`` for one that was never made, was revoked, or expired."""
        form = _FORM.fullmatch(key)
        row = self._pipeline.store.key(form[1]) if form else None
        if row is None or not hmac.compare_digest(row.digest, _digest(key)):
            return None
        return None if self._ended(row) else _told(row)


def _until_next(now: datetime, *, monthly: bool) -> int:
    """Seconds until the next day or month."""
    midnight = now.replace(hour=0, minute=0, second=0, microsecond=0)
    then = (midnight.replace(day=1) + timedelta(days=32)).replace(day=1) if monthly else midnight + timedelta(days=1)
    return int((then - now).total_seconds()) + 1


def _check_whose(role: Role, user: str | None, subject: str | None) -> None:
    if (user is not None) != (role in ("user", "subject")):
        raise BadInput(f"a key of the role {role} " + ("needs a user" if user is None else "belongs to no user"))
    if (subject is not None) != (role == "subject"):
        raise BadInput(f"a key of the role {role} " + ("needs a subject" if subject is None else "names no subject"))


def _ends(expires_at: datetime | timedelta | None, now_ms: int) -> int | None:
    if expires_at is None:
        return None
    if isinstance(expires_at, timedelta):
        ends_ms = now_ms + expires_at // timedelta(milliseconds=1)
    else:
        ends_ms = to_ms(expires_at)
    if ends_ms <= now_ms:
        raise BadInput("a key cannot expire before it is made")
    return ends_ms


def _named(what: str, value: str | None) -> str:
    return "" if value is None else checked_name(what, value)


def _digest(key: str) -> str:
    return hashlib.sha256(key.encode()).hexdigest()


def _told(row: KeyRow) -> ApiKey:
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
