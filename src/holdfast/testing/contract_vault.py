"""What every store must promise about sealed keys of providers."""

from __future__ import annotations

from dataclasses import replace

from ..store.protocol import Store
from ..store.vault import SealedRow
from .rows import ANA

SEAL = "c2VhbGVkIGFuZCBub3QgcmVhZGFibGUgYnkgYW55Ym9keQ=="
ROW = SealedRow("acme", "ana", "k1", "openai", "m", "https://api.openai.com/v1", "0a1b2c3d", SEAL, "x7qp", 5)
OF_ORG = replace(ROW, user="", id="k2")
OF_BO = replace(ROW, user="bo", id="k3")
ELSEWHERE = replace(ROW, org="other", id="k4")


class VaultContract:
    """Kept per owner, found by nobody else, gone with the user."""

    def test_keys_of_one_owner_come_newest_first_and_nobody_elses_with_them(self, store: Store) -> None:
        assert not store.any_provider_key()
        newer = replace(ROW, id="k5", provider="google", set_at=9)
        for row in (ROW, OF_ORG, OF_BO, ELSEWHERE, newer):
            store.save_provider_key(row)

        assert store.provider_keys("acme", "ana") == [newer, ROW]
        assert store.provider_keys("acme", "") == [OF_ORG]
        assert store.provider_keys("acme", "eve") == []
        assert store.any_provider_key()

    def test_there_is_one_key_for_each_provider(self, store: Store) -> None:
        other = replace(ROW, id="k9", model="n", set_at=7)
        for row in (ROW, OF_BO, other):
            store.save_provider_key(row)

        assert store.provider_keys("acme", "ana") == [other]
        assert store.provider_keys("acme", "bo") == [OF_BO]

    def test_only_its_owner_can_remove_it(self, store: Store) -> None:
        store.save_provider_key(ROW)

        assert not store.remove_provider_key("acme", "bo", "k1")
        assert not store.remove_provider_key("other", "ana", "k1")
        assert store.remove_provider_key("acme", "ana", "k1")
        assert not store.remove_provider_key("acme", "ana", "k1")

    def test_a_new_seal_takes_the_place_of_the_one_it_was_made_from(self, store: Store) -> None:
        store.save_provider_key(ROW)
        again = replace(ROW, master="ffffffff", sealed=SEAL[::-1])

        assert store.sealed_otherwise("ffffffff") == [ROW]
        assert store.reseal_provider_key(again, SEAL)
        assert not store.reseal_provider_key(again, SEAL)
        assert store.sealed_otherwise("ffffffff") == []

    def test_an_erased_user_leaves_no_key(self, store: Store) -> None:
        for row in (ROW, OF_ORG, OF_BO, ELSEWHERE):
            store.save_provider_key(row)
        user = ANA.about(None)
        assert store.write(user, lambda view: view.count_rows())["provider_key"] == 1
        store.write(user, lambda view: view.remove_user())

        assert store.provider_keys("acme", "ana") == []
        assert [store.provider_keys(*owner) for owner in (("acme", ""), ("acme", "bo"), ("other", "ana"))] == [
            [OF_ORG],
            [OF_BO],
            [ELSEWHERE],
        ]
