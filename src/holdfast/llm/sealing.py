"""
Encryption of stored provider keys with AES-256-GCM, under a master key that is never in the store.

The seal is bound to the key's org, user, row, provider and address, so a row that was moved or changed does not open.
Without the master key nothing is sealed or opened; there is no plain form.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
import os
import re
import secrets
import stat
from collections.abc import Sequence
from dataclasses import field
from typing import Any

from ..errors import ConfigError, VaultLocked
from ..text import dataclass
from ..types import Secret

MASTER, MASTER_FILE = "HOLDFAST_MASTER_KEY", "HOLDFAST_MASTER_KEY_FILE"
KEY_BYTES, NONCE_BYTES = 32, 12
_MOST_FILE_BYTES = 4_096
_NEEDED = f"set {MASTER} or {MASTER_FILE}; `holdfast provider-keys --make-master-key` makes one"


@dataclass(frozen=True, slots=True)
class Master:
    """A master key.  Every row that it sealed names its ``id``; the key itself is in no text of this value."""

    id: str
    _sealing: bytes = field(repr=False)
    _printing: bytes = field(repr=False)

    @classmethod
    def of(cls, text: str) -> Master:
        """
        Parse a master key: 32 bytes in base64 or hexadecimal.

        Raises:
            ConfigError: it is no key; the text is not repeated.
        """
        raw = _bytes(text.strip())
        if len(raw) != KEY_BYTES or len(set(raw)) < 8:
            raise ConfigError(
                "the master key is not a key of 32 random bytes",
                hint="`holdfast provider-keys --make-master-key` or `openssl rand -base64 32` makes one",
            )
        return cls(*(_derived(raw, use) for use in ("id", "seal", "print")))  # type: ignore[arg-type]

    def __reduce__(self) -> Any:
        raise TypeError("a master key cannot be pickled")


@dataclass(frozen=True, slots=True)
class Keyring:
    """The master keys of a process: the first one seals, and all of them open."""

    masters: tuple[Master, ...] = ()

    def first(self) -> Master:
        """
        Return the master key that seals.

        Raises:
            VaultLocked: there is none.
        """
        if not self.masters:
            raise VaultLocked("provider keys cannot be stored: there is no master key", hint=_NEEDED)
        return self.masters[0]

    def seal(self, secret: Secret, bound: Sequence[str]) -> tuple[str, str]:
        """
        Return the master key's id and the sealed text, which opens only with the same *bound*.

        Raises:
            VaultLocked: there is no master key.
        """
        master, nonce = self.first(), secrets.token_bytes(NONCE_BYTES)
        sealed = _cipher(master._sealing).encrypt(nonce, secret.reveal().encode(), _associated_data(master.id, bound))
        return master.id, base64.b64encode(nonce + sealed).decode()

    def open(self, master_id: str, sealed: str, bound: Sequence[str]) -> Secret:
        """
        Return the provider key that was sealed.

        Raises:
            VaultLocked: its master key is missing, or the row was changed or moved.
        """
        master = next((one for one in self.masters if one.id == master_id), None)
        if master is None:
            why = (
                "there is no master key" if not self.masters else f"its master key {master_id} is not among those given"
            )
            raise VaultLocked(f"a provider key cannot be opened: {why}", hint=_NEEDED)
        try:
            raw = base64.b64decode(sealed, validate=True)
            opened: bytes = _cipher(master._sealing).decrypt(
                raw[:NONCE_BYTES], raw[NONCE_BYTES:], _associated_data(master.id, bound)
            )
        except (ValueError, _invalid_tag()):
            hint = "set the key again, or restore a backup"
            raise VaultLocked("a provider key cannot be opened: its row was changed or moved", hint=hint) from None
        return Secret(opened.decode())

    def print_of(self, secret: Secret) -> str:
        """Return four characters by which an owner recognizes a key; they reveal nothing without the master key."""
        digest = hmac.digest(self.first()._printing, secret.reveal().encode(), "sha256")
        return base64.b32encode(digest).decode().lower().rstrip("=")[-4:]


def keyring(environ: os._Environ[str] | dict[str, str] = os.environ) -> Keyring:
    """
    Read the master keys of this process from one variable, or from the file that the other variable names.

    Several keys, separated by spaces or lines, are given while one replaces another: the first seals, the others still
    open.

    Raises:
        ConfigError: a key is no key, both variables are set, or the file is not its owner's alone.
    """
    text, path = environ.get(MASTER, ""), environ.get(MASTER_FILE, "")
    if text and path:
        raise ConfigError(f"{MASTER} and {MASTER_FILE} are both set", hint="unset one of them")
    return Keyring(tuple(Master.of(word) for word in (_read(path) if path else text).split()))


def new_master() -> Secret:
    """Return a new random master key."""
    return Secret(base64.b64encode(secrets.token_bytes(KEY_BYTES)).decode())


def _read(path: str) -> str:
    try:
        opened = os.open(path, os.O_RDONLY | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NONBLOCK", 0))
    except OSError as error:
        raise ConfigError(f"{MASTER_FILE}: {path} cannot be read: {error.strerror}") from None
    try:
        found = os.fstat(opened)
        if not stat.S_ISREG(found.st_mode):
            raise ConfigError(f"{MASTER_FILE}: {path} is not a file")
        if hasattr(os, "geteuid"):
            if found.st_uid not in (os.geteuid(), 0):
                hint = "chown it to the one that runs Holdfast"
                raise ConfigError(f"{MASTER_FILE}: {path} belongs to another user", hint=hint)
            mounted = found.st_uid == 0 != os.geteuid()  # a container's secret: owned by root, readable by our group
            if stat.S_IMODE(found.st_mode) & (0o137 if mounted else 0o177):
                raise ConfigError(f"{MASTER_FILE}: others may use {path}", hint=f"chmod 600 {path}")
        return os.read(opened, _MOST_FILE_BYTES).decode("ascii", "replace")
    finally:
        os.close(opened)


def _bytes(text: str) -> bytes:
    if re.fullmatch(r"[0-9a-fA-F]{64}", text):
        return bytes.fromhex(text)
    try:
        return base64.b64decode(text.replace("-", "+").replace("_", "/") + "=" * (-len(text) % 4), validate=True)
    except (ValueError, binascii.Error):
        return b""


def _derived(raw: bytes, use: str) -> str | bytes:
    """Derive a separate key for each use (HKDF's expand step; the master key is uniform already)."""
    made = hmac.digest(raw, f"holdfast vault 1 {use}".encode() + b"\x01", hashlib.sha256)
    return made.hex()[:8] if use == "id" else made


def _associated_data(master_id: str, bound: Sequence[str]) -> bytes:
    """Encode what the seal covers beside the key: a list, so that no two lists of names give the same bytes."""
    return json.dumps(["holdfast provider key", 1, master_id, *bound], ensure_ascii=True).encode()


def _cipher(key: bytes) -> Any:
    """
    Raises:
        VaultLocked: the package that seals is missing.
    """
    try:
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM  # noqa: PLC0415 - it comes with an extra
    except ImportError:
        raise VaultLocked(
            "provider keys need a package that is not installed: cryptography",
            hint="pip install 'holdfast[server]'",
        ) from None
    return AESGCM(key)


def _invalid_tag() -> type[Exception]:
    from cryptography.exceptions import InvalidTag  # noqa: PLC0415 - it comes with an extra

    return InvalidTag
