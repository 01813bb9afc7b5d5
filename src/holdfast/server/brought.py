"""``/v1/provider-keys`` and ``/v1/users/{user}/provider-keys``: models and keys that orgs and users bring."""

from __future__ import annotations

from typing import Annotated

from fastapi import Path
from starlette.exceptions import HTTPException

from ..secret import ProviderKey, Secret
from .caller import NAMED, Asked
from .routing import OPERATOR, WHOLE_USER, Table
from .shapes import ProviderKeyFor

table = Table()
OF_ORG, OF_USER = "/v1/provider-keys", "/v1/users/{user:name}/provider-keys"
KeyId = Annotated[str, Path(max_length=200, description="The id that the list tells.")]


@table.add("GET", OF_ORG, OPERATOR, response_model=list[ProviderKey])
def provider_keys_of_org(asked: Asked) -> list[ProviderKey]:
    """What the org has set, without the keys; the one in use comes first."""
    return asked.memory.vault.list(org=asked.grant.org)


@table.add("PUT", OF_ORG, OPERATOR, response_model=ProviderKey)
def provider_keys_set_of_org(asked: Asked, body: ProviderKeyFor) -> ProviderKey:
    """Have the org's users read and summarised by this model; the key is kept sealed and never told."""
    return _set(asked, body, None)


@table.add("DELETE", OF_ORG + "/{key_id}", OPERATOR, status_code=204)
def provider_keys_remove_of_org(asked: Asked, key_id: KeyId) -> None:
    """Delete a key of the org's own."""
    _in_all(asked)
    asked.memory.vault.remove(key_id, org=asked.grant.org)


@table.add("GET", OF_USER, WHOLE_USER, response_model=list[ProviderKey], dependencies=NAMED)
def provider_keys_of_user(asked: Asked) -> list[ProviderKey]:
    """What the user has set, without the keys; the one in use comes first."""
    return asked.memory.vault.list(org=asked.grant.org, user=asked.grant.user)


@table.add("PUT", OF_USER, WHOLE_USER, response_model=ProviderKey, dependencies=NAMED)
def provider_keys_set_of_user(asked: Asked, body: ProviderKeyFor) -> ProviderKey:
    """Have the user read and summarised by this model; the key is kept sealed and never told."""
    return _set(asked, body, asked.grant.user)


@table.add("DELETE", OF_USER + "/{key_id}", WHOLE_USER, status_code=204, dependencies=NAMED)
def provider_keys_remove_of_user(asked: Asked, key_id: KeyId) -> None:
    """Delete a key of the user's own."""
    _in_all(asked)
    asked.memory.vault.remove(key_id, org=asked.grant.org, user=asked.grant.user)


def _in_all(asked: Asked) -> None:
    """
    Raises:
        HTTPException: the key opens one assistant's memory, and what is set here would hold in all of them.
    """
    if asked.grant.key is not None and asked.grant.key.bot is not None:
        raise HTTPException(403, "This key opens one assistant's memory; a model of one's own reads for all of them")


def _set(asked: Asked, body: ProviderKeyFor, user: str | None) -> ProviderKey:
    _in_all(asked)
    key = None if body.key is None else Secret(body.key.get_secret_value())
    return asked.memory.vault.set(body.provider, body.model, key, body.base_url, org=asked.grant.org, user=user)
