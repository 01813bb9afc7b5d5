"""
Order new vectors for everybody whose vectors another embedder made.

Who was embedded by whom stands on the user's row, so that the look takes microseconds when nobody
is left, whatever the population.  The job is the same as for new messages: it embeds all of a
user's documents whose current vector is not by the embedder of this memory.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ..embed.protocol import Embedder
from ..scope import Scope
from ..store import Store, WriteView

USERS_AT_ONCE = 100


@dataclass(frozen=True, slots=True)
class Reembed:
    """Looks for users of another embedder, and orders what they need."""

    store: Store
    embedder: Embedder
    now_ms: Callable[[], int]

    def order(self) -> int:
        """How many users were found; each is found once."""
        found = 0
        while users := self.store.users_to_embed(self.embedder.id, limit=USERS_AT_ONCE):
            for org, user, bot in users:
                self.store.write(Scope(org, bot, user, None), self._order_for)
            found += len(users)
        return found

    def _order_for(self, view: WriteView) -> None:
        if view.unembedded(self.embedder.id, limit=1):
            now_ms = self.now_ms()
            view.want("embed", "", wanted=view.user().version, run_at_ms=now_ms, now_ms=now_ms)
        view.note_embedder(self.embedder.id)
