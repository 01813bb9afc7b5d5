"""The door to keys of providers that users and orgs bring: set, listed without the key, removed, sealed anew."""

from __future__ import annotations

import secrets
from dataclasses import replace

from .clock import from_ms
from .errors import BadInput, NotFound
from .llm.addresses import address_for_key
from .llm.sealing import Keyring, Master
from .pipeline import Pipeline
from .scope import checked_name
from .secret import ProviderKey, Secret, Upstream
from .store.vault import SealedRow

_PAGE = 100


class Vault:
    """
    Provider, model and key of a user's or an org's own; made by `Memory.vault`.

    Keys are sealed with AES-256-GCM under a master key from the environment (``HOLDFAST_MASTER_KEY``, or a file
    that ``HOLDFAST_MASTER_KEY_FILE`` names) and bound to their owner and to one address.  No call gives one back.
    """

    def __init__(self, pipeline: Pipeline) -> None:
        self._pipeline = pipeline

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
        Use this model and this key from now on; it takes the place of what the owner had set for that provider.

        Args:
            provider: ``openai``, ``anthropic``, ``google`` or ``ollama``.
            model: the provider's name of the model.
            key: the key; ``None`` keeps the one that is there, for the same address only.
            base_url: another address; with ``openai`` any server that speaks its protocol.  The provider's own when
                not given.
            org: the tenant.
            user: whose it is; the org's own when not given.

        Raises:
            BadInput: a name, an address or a key that cannot be used.
            EndpointRefused: the address is private and the operator does not allow it, or it is not plain.
            VaultLocked: there is no master key: nothing was stored.
            ConfigError: there is a budget in dollars and the price of the model is not known.
        """
        org, name, own = checked_name("org", org), _user(user), self._pipeline.own
        before = next((row for row in self._pipeline.store.provider_keys(org, name) if row.provider == provider), None)
        given = self._key_of(before) if key is None else key if isinstance(key, Secret) else Secret(key)
        address = address_for_key(provider, model, base_url, given, own.guard)
        if key is None and before is not None and address.base_url != before.base_url:
            hint = "give the key again with the new address"
            raise BadInput("a key belongs to the address that it was set for", hint=hint)
        self._pipeline.check_price(address)
        ring = own.keyring()
        row = SealedRow(
            org=org,
            user=name,
            id=before.id if before is not None else f"pk_{secrets.token_hex(8)}",
            provider=provider,
            model=model,
            base_url=str(address.base_url),
            master=ring.first().id,
            sealed="",
            print=ring.print_of(given),
            set_at=self._pipeline.now_ms(),
        )
        row = replace(row, sealed=ring.seal(given, row.bound)[1])
        self._pipeline.store.save_provider_key(row)
        self._pipeline.own_changed()
        return _told(row, ring, in_use=True)

    def list(self, *, org: str = "default", user: str | None = None) -> list[ProviderKey]:
        """What a user, or without one the org itself, has set, without the keys; the one in use comes first."""
        ring = self._pipeline.own.keyring()
        rows = self._pipeline.store.provider_keys(checked_name("org", org), _user(user))
        return [_told(row, ring, in_use=not number) for number, row in enumerate(rows)]

    def remove(self, key_id: str, *, org: str = "default", user: str | None = None) -> None:
        """
        Delete a key of a user, or without one of the org itself.

        Raises:
            NotFound: they have none of that id.
        """
        if not self._pipeline.store.remove_provider_key(checked_name("org", org), _user(user), key_id):
            raise NotFound(f"no key of a provider has the id {key_id!r} here", hint="list() shows them")
        self._pipeline.own_changed()

    def upstream(self, *, org: str = "default", user: str | None = None) -> Upstream | None:
        """
        The model that is asked for a user, or for the org: the user's own, else the org's own, else ``None``.

        Raises:
            VaultLocked: the key cannot be opened; another one is not used in its place.
            EndpointRefused: the operator does not allow its address any more.
        """
        own = self._pipeline.own
        row = own.row(checked_name("org", org), _user(user))
        if row is None:
            return None
        address = own.address(row)
        whose = "user" if row.user else "org"
        return Upstream(row.provider, row.model, row.base_url, Secret(address.api_key or ""), whose, row.id)

    def rotate(self, new: str | Secret | None = None) -> int:
        """
        Seal every key anew; how many.

        Args:
            new: the master key to seal with, in base64 or hexadecimal; the first one of the environment when not
                given.  Other processes must be given it, too, before they open what it sealed.

        Raises:
            VaultLocked: a key does not open with the master keys that are here; the others were sealed anew.
            ConfigError: *new* is no key.
        """
        own = self._pipeline.own
        ring = own.keyring()
        if new is not None:
            first = Master.of(new.reveal() if isinstance(new, Secret) else new)
            ring = Keyring((first, *(one for one in ring.masters if one.id != first.id)))
        master, done = ring.first(), 0
        while rows := self._pipeline.store.sealed_otherwise(master.id, limit=_PAGE):
            for row in rows:
                key = ring.open(row.master, row.sealed, row.bound)
                new_row = replace(row, master=master.id, sealed=ring.seal(key, row.bound)[1], print=ring.print_of(key))
                done += self._pipeline.store.reseal_provider_key(new_row, row.sealed)
        own.rotated(ring)
        return done

    def _key_of(self, row: SealedRow | None) -> Secret:
        if row is None:
            raise BadInput("there is no key yet", hint="give one")
        return self._pipeline.own.keyring().open(row.master, row.sealed, row.bound)


def _user(user: str | None) -> str:
    return "" if user is None else checked_name("user", user)


def _told(row: SealedRow, ring: Keyring, *, in_use: bool) -> ProviderKey:
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
