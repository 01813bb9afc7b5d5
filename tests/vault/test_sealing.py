"""Sealed keys: nothing opens without its master key, or in another place than its own; and a secret is never shown."""

from __future__ import annotations

import base64
import copy
import io
import itertools
import json
import logging
import os
import pickle
import secrets
import traceback

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.errors import ConfigError, VaultLocked
from holdfast.llm.sealing import MASTER, MASTER_FILE, Keyring, Master, keyring, new_master
from holdfast.types import Secret

from .conftest import KEY, MASTER_KEY, OTHER_MASTER_KEY

ONE, OTHER = Master.of(MASTER_KEY), Master.of(OTHER_MASTER_KEY)
PLACE = ("acme", "ana", "pk_1", "openai", "https://api.openai.com/v1")


@given(st.text(alphabet=st.characters(codec="utf-8"), max_size=500), st.lists(st.text(max_size=20), max_size=6))
def test_what_was_sealed_opens_in_its_place(text, bound):
    ring = Keyring((ONE,))
    assert ring.open(*ring.seal(Secret(text), bound), bound).reveal() == text


def test_every_seal_is_another():
    sealed = {Keyring((ONE,)).seal(Secret(KEY), PLACE)[1] for _ in range(200)}
    assert len(sealed) == len({base64.b64decode(one)[:12] for one in sealed}) == 200
    assert not any(KEY.encode() in base64.b64decode(one) for one in sealed)


@pytest.mark.parametrize("part", range(len(PLACE)))
def test_a_row_that_was_moved_does_not_open(part):
    ring = Keyring((ONE,))
    master, sealed = ring.seal(Secret(KEY), PLACE)
    moved = [*PLACE[:part], PLACE[part] + "x", *PLACE[part + 1 :]]
    with pytest.raises(VaultLocked, match="changed or moved"):
        ring.open(master, sealed, moved)


def test_no_two_places_are_taken_for_one_another():
    """Swapped between a hundred owners, whose names run into each other, no key opens at another's."""
    ring, names = Keyring((ONE,)), ["a", "ab", "b", "", 'a"', "a,b", "a\x00", "[", "é", "e\u0301"]
    places = list(itertools.product(names, repeat=2))
    sealed = {place: ring.seal(Secret(KEY), place) for place in places}
    for place, other in zip(places, places[1:] + places[:1], strict=True):
        with pytest.raises(VaultLocked):
            ring.open(*sealed[place], other)


@pytest.mark.parametrize("at", [0, 11, 12, 30, -1])
def test_a_seal_that_was_changed_does_not_open(at):
    ring = Keyring((ONE,))
    master, sealed = ring.seal(Secret(KEY), PLACE)
    raw = bytearray(base64.b64decode(sealed))
    raw[at] ^= 1
    for broken in (base64.b64encode(bytes(raw)).decode(), sealed[:10], "", "not base64!", KEY):
        with pytest.raises(VaultLocked):
            ring.open(master, broken, PLACE)


def test_without_its_master_key_nothing_is_sealed_or_opened():
    master, sealed = Keyring((ONE,)).seal(Secret(KEY), PLACE)
    for ring in (Keyring(), Keyring((OTHER,))):
        with pytest.raises(VaultLocked) as caught:
            ring.open(master, sealed, PLACE)
        assert MASTER in str(caught.value)
    with pytest.raises(VaultLocked):
        Keyring().seal(Secret(KEY), PLACE)
    with pytest.raises(VaultLocked):  # and not by a row that names another one's id
        Keyring((OTHER,)).open(OTHER.id, sealed, PLACE)


def test_the_first_master_key_seals_and_the_others_still_open():
    old = Keyring((ONE,)).seal(Secret(KEY), PLACE)
    both = Keyring((OTHER, ONE))
    assert both.open(*old, PLACE).reveal() == KEY
    assert both.seal(Secret(KEY), PLACE)[0] == OTHER.id != ONE.id == old[0]


def test_a_master_key_is_read_in_base64_and_in_hexadecimal():
    raw = secrets.token_bytes(32)
    plain, url = base64.b64encode(raw).decode(), base64.urlsafe_b64encode(raw).decode().rstrip("=")
    assert len({Master.of(text).id for text in (plain, url, raw.hex(), f" {raw.hex().upper()}\n")}) == 1


@pytest.mark.parametrize(
    "text", ["", "password", "x" * 32, "0" * 64, "A" * 43 + "=", MASTER_KEY[:-5], MASTER_KEY + MASTER_KEY, "é" * 43]
)
def test_what_is_no_key_is_refused_and_not_repeated(text):
    with pytest.raises(ConfigError) as caught:
        Master.of(text)
    assert not text or text not in str(caught.value)


def test_a_new_master_key_is_one_each_time():
    made = [new_master() for _ in range(20)]
    assert len({Master.of(one.reveal()).id for one in made}) == 20


def test_the_environment_names_one_key_or_several_or_none():
    assert keyring({}).masters == ()
    ring = keyring({MASTER: f"{OTHER_MASTER_KEY} {MASTER_KEY}"})
    assert [one.id for one in ring.masters] == [OTHER.id, ONE.id]
    with pytest.raises(ConfigError):
        keyring({MASTER: MASTER_KEY, MASTER_FILE: "x"})


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="files have no owners here")
def test_a_file_is_read_when_it_is_its_owners_alone(tmp_path):
    path = tmp_path / "master"
    path.write_text(f"{OTHER_MASTER_KEY}\n{MASTER_KEY}\n")
    for mode in (0o600, 0o400):
        path.chmod(mode)
        assert [one.id for one in keyring({MASTER_FILE: str(path)}).masters] == [OTHER.id, ONE.id]
    for mode in (0o640, 0o604, 0o660, 0o644, 0o700, 0o620, 0o601):
        path.chmod(mode)
        with pytest.raises(ConfigError, match="chmod 600"):
            keyring({MASTER_FILE: str(path)})


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="files have no owners here")
def test_a_file_of_somebody_else_is_refused(tmp_path, monkeypatch):
    path = tmp_path / "master"
    path.write_text(MASTER_KEY)
    path.chmod(0o600)
    os.chown(path, 4_711, -1) if os.geteuid() == 0 else None
    owner = path.stat().st_uid
    monkeypatch.setattr(os, "geteuid", lambda: owner + 1)
    with pytest.raises(ConfigError, match="belongs to another user"):
        keyring({MASTER_FILE: str(path)})


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can give a file to itself")
def test_a_secret_that_root_mounts_for_our_group_is_read(tmp_path, monkeypatch):
    """Kubernetes hands a secret to a process that is not root as root's file, which the group of the volume may read."""
    path = tmp_path / "master"
    path.write_text(MASTER_KEY)
    monkeypatch.setattr(os, "geteuid", lambda: 10_001)
    for mode in (0o440, 0o400, 0o640):
        path.chmod(mode)
        assert [one.id for one in keyring({MASTER_FILE: str(path)}).masters] == [ONE.id]
    for mode in (0o444, 0o460, 0o604):
        path.chmod(mode)
        with pytest.raises(ConfigError, match="others may use"):
            keyring({MASTER_FILE: str(path)})


def test_what_is_no_file_is_refused(tmp_path):
    for path in (tmp_path, tmp_path / "missing"):
        with pytest.raises(ConfigError):
            keyring({MASTER_FILE: str(path)})


def test_a_fingerprint_tells_keys_apart_and_says_nothing_without_the_master_key():
    ring, other = Keyring((ONE,)), Keyring((OTHER,))
    prints = [ring.print_of(Secret(f"sk-{n}")) for n in range(50)]
    assert len(set(prints)) > 45
    assert all(len(one) == 4 for one in prints)
    assert ring.print_of(Secret(KEY)) == ring.print_of(Secret(KEY)) != other.print_of(Secret(KEY))
    assert ring.print_of(Secret(KEY)) not in KEY


def test_a_secret_is_never_shown():
    secret, heard = Secret(KEY), io.StringIO()
    handler = logging.StreamHandler(heard)
    log = logging.Logger("heard", logging.DEBUG)
    log.addHandler(handler)
    log.error("%s %r %s", secret, secret, {"key": secret, "all": [secret]})
    try:
        raise ValueError(secret)
    except ValueError as error:
        told = "".join(traceback.format_exception(error))
    shown = [repr(secret), str(secret), f"{secret}", f"{secret:>40}", "%s" % secret, told, heard.getvalue()]  # noqa: UP031
    assert not any(KEY in text for text in shown)
    assert secret == Secret(KEY) != Secret("other")
    assert not Secret("")
    assert copy.deepcopy(secret) is copy.copy(secret) is secret


@pytest.mark.parametrize("value", [Secret(KEY), ONE])
def test_a_secret_is_not_written_down(value):
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        with pytest.raises(TypeError):
            pickle.dumps(value, protocol)
    with pytest.raises(TypeError):
        json.dumps(value)
    assert MASTER_KEY not in repr(value)
    assert vars(type(value)).get("__dict__") is None
