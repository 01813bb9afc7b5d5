"""The door to the instructions of a user, a bot, or an organization for models."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from .clock import from_ms
from .engine import Engine
from .errors import BadInput, Conflict, NotFound
from .jobs.model_client import CUSTOM_PROMPTS, customized_prompt, prompt_levels
from .privacy.corrections import check_version
from .reports import PromptPreview
from .scope import Scope
from .store import PromptRow, UserRow, WriteView, effective_consent
from .text.validate import checked_count, replace_unstorable
from .types import PromptVersion

MAX_PROMPT_CHARS = 4_000
KEPT_VERSIONS = 50
PromptVersions = int | Collection[int] | None


class Prompts:
    """
    The instructions of one user for models: ``chunk_summary``, ``meta_summary``, ``fact_extraction``, ``episodes``, ``character``, ``story``.

    A user's text replaces our description of the task; the format of the answer and the rule that messages are data stay
    as they are.  It is used from the next call of a model on.  Where the user has none, that of the bot is used, then that
    of the org (`Admin.prompts`), then ours.
    """

    def __init__(self, engine: Engine, scope: Scope) -> None:
        self._engine = engine
        self._scope = scope

    def __repr__(self) -> str:
        scope = self._scope
        return f"Prompts({scope.user!r})" if scope.user else f"Prompts(org={scope.org!r}, bot={scope.bot or None!r})"

    def get(self, name: str) -> str:
        """
        Return the text in use.

        Raises:
            BadInput: there is no such prompt.
        """
        known = _checked(name)
        return customized_prompt(known, prompt_levels(self._engine.store, self._scope)).task

    def set(self, name: str, text: str, *, if_version: PromptVersions = None) -> PromptVersion:
        """
        Use *text* from now on.

        Args:
            name: which prompt.
            text: what the model shall do.
            if_version: the number of the version in use that you saw, or several; 0 for the library's own words.
                Another one is left as it is.

        Raises:
            BadInput: there is no such prompt, or the text is empty or longer than 4,000 characters.
            Conflict: the user opted out.
            Changed: none of these versions is in use.
        """
        return self._next(_checked(name), _words(_fitting(name, text)), if_version=if_version)

    def draft(self, name: str, text: str) -> PromptVersion:
        """
        Save *text* as a version that is not used, to be tried and activated later.

        Raises:
            BadInput, Conflict: as `set`.
        """
        return self._next(_checked(name), _words(_fitting(name, text)), draft=True)

    def activate(self, name: str, version: int) -> PromptVersion:
        """
        Use the text of a version, a draft or an older one, from now on: it becomes the newest version.

        Raises:
            BadInput: there is no such prompt.
            NotFound: there is no such version any more.
            Conflict: the user opted out.
        """
        for row in self.versions(name):
            if row.version == version:
                return self._next(_checked(name), row.text)
        raise NotFound(f"the prompt {name} has no version {version!r}", hint="versions(name) lists them")

    def preview(self, name: str, text: str | None = None, *, limit: int = 3, dry_run: bool = False) -> PromptPreview:
        """
        Try a text on the newest chunks, and return its results beside the current ones.

        Nothing is written but the usage of the calls.

        Args:
            name: which prompt.
            text: the text to try; ours when not given.
            limit: chunks at most, one call each.
            dry_run: make no calls; return the chunks, with an estimate of calls, tokens and cost.

        Raises:
            BadInput: as `set`; or these are the prompts of an org or a bot, which have no chunks of their own.
            ConfigError: the memory was opened without a model.
            Conflict: the user paused memory or opted out.
        """
        words = "" if text is None else _words(_fitting(name, text))
        count = checked_count("limit", limit)
        if not self._scope.user:
            raise BadInput("a prompt is tried on the chunks of one user", hint="use memory.user(…).prompts.preview(…)")
        return self._engine.preview(self._scope, _checked(name), words, count, dry_run=dry_run)

    def reset(self, name: str, *, if_version: PromptVersions = None) -> PromptVersion:
        """
        Use the text of the bot, of the org or of the library again, whichever is the nearest.

        Raises:
            BadInput: there is no such prompt.
            Conflict: the user opted out.
            Changed: as `set`.
        """
        return self._next(_checked(name), "", if_version=if_version)

    def versions(self, name: str) -> list[PromptVersion]:
        """
        Return the versions, oldest first; the newest 50 are kept.

        Raises:
            BadInput: there is no such prompt.
        """
        known = _checked(name)
        rows = self._engine.store.read(self._scope, lambda view: view.prompts())
        return [_version(row) for row in rows if row.name == known]

    def _next(self, name: str, text: str, *, draft: bool = False, if_version: PromptVersions = None) -> PromptVersion:
        now_ms = self._engine.now_ms()

        def work(view: WriteView) -> PromptRow:
            own = [row for row in view.prompts() if row.name == name]
            if if_version is not None:
                check_version(version_in_use(own), (if_version,) if isinstance(if_version, int) else if_version)
            shared = not self._scope.user
            if not shared and effective_consent(view.consent(), None) == "opted-out":
                raise Conflict("the user does not want anything remembered", hint="opt_in() first")
            if not shared and view.user() == UserRow():
                view.save_user(UserRow(epoch=now_ms), now_ms)
            row = PromptRow(name, max((one.version for one in own), default=0) + 1, text, now_ms, draft)
            view.add_prompt(row)
            used = max((one.version for one in (*own, row) if not one.draft), default=row.version)
            view.remove_prompts(name, min(row.version - KEPT_VERSIONS, used - 1))  # what is used is kept
            return row

        return _version(self._engine.store.write(self._scope, work))


def version_in_use(versions: Sequence[PromptRow | PromptVersion]) -> int:
    """Return the number of the version in use among those of one prompt; 0 for the library's own words."""
    newest = max((one for one in versions if not one.draft), key=lambda one: one.version, default=None)
    return newest.version if newest is not None and newest.text else 0


def _checked(name: object) -> str:
    if name not in CUSTOM_PROMPTS:
        raise BadInput(f"there is no prompt {name!r} that you can replace", hint=f"use {', '.join(CUSTOM_PROMPTS)}")
    return str(name)


def _fitting(name: object, text: object) -> str:
    if not isinstance(text, str) or not replace_unstorable(text).strip():
        raise BadInput(f"the prompt {_checked(name)} needs some text", hint="reset(name) takes ours again")
    if len(text) > MAX_PROMPT_CHARS:
        raise BadInput(f"a prompt may have {MAX_PROMPT_CHARS:,} characters, this one has {len(text):,}")
    return text


def _words(text: str) -> str:
    return replace_unstorable(text).strip()


def _version(row: PromptRow) -> PromptVersion:
    digest = customized_prompt(row.name, [[replace(row, draft=False)]]).digest
    return PromptVersion(row.name, row.version, row.text, from_ms(row.since), digest, row.draft)
