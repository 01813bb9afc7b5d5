"""
Every page there is, in every state that it can be in: what `test_every_page.py` and `test_no_script_gets_in.py` visit.

To have a page looked at, add a line to the list of its group. The path may hold the names of the memory that it is visited in,
``{user}``, ``{conversation}``, ``{chunk}``, ``{fact}``, ``{job}``, ``{org}``, ``{bot}``, ``{paused}``, ``{gone}`` (see `story.py`);
they are put in percent-encoded, and ``?org=`` and ``?bot=`` are added where they are not ``default``. ``ready`` is a selector that must be there before the page is judged.

The page is then looked at in light and dark, at 1,280 and 320 pixels, and with hostile text in every stored field.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from string import Formatter
from urllib.parse import quote, urlencode


@dataclass(frozen=True)
class Visit:
    """
    One page in one state.

    ``who`` signs in: ``operator``, ``user`` (about whom the name ``user`` names) or nobody. ``world`` is the
    memory: ``rich`` or ``bare``. ``hostile`` says whether it makes sense with the hostile names, too. ``status`` is what the
    page answers.
    """

    name: str
    path: str
    who: str | None = "operator"
    world: str = "rich"
    user: str = "user"
    ready: str = "main"
    hostile: bool = True
    status: int = 200

    def amiss(self, seen: list[str]) -> list[str]:
        """What of *seen* should not have been; browsers log every answer that is a refusal."""
        return [line for line in seen if self.status == 200 or "responded with a status of" not in line]


SHELL: list[Visit] = [
    Visit("sign in", "/sign-in", who=None),
    Visit("sign in to a page", "/sign-in?next=%2Fme", who=None),
    Visit("find", "/dashboard/find?q={user}", ready="#found"),
    Visit("find: of a user", "/dashboard/find?q=a&user={user}", ready="#found"),
    Visit("find: nothing", "/dashboard/find?q=zzz", world="bare", ready="#found", hostile=False),
    Visit("find: mine", "/me/find?q=a", who="user", ready="#found"),
    Visit("no such page", "/dashboard/{user}", status=404),
]
TALK = "/dashboard/conversations/{user}/{conversation}"
CONVERSATIONS: list[Visit] = [
    Visit("conversations", "/dashboard/conversations"),
    Visit("conversations: none", "/dashboard/conversations", world="bare"),
    Visit("conversations: nobody of that name", "/dashboard/conversations?name=zzz"),
    Visit("conversations of a user", "/dashboard/conversations/{user}"),
    Visit("conversations of a user: none of that name", "/dashboard/conversations/{user}?name={fact}"),
    Visit("conversation", TALK, ready="#transcript"),
    Visit("conversation: a chunk", TALK + "?chunk={chunk}", ready="#chunk h2"),
    Visit("conversation: an estimate", TALK + "?make=chunk&first=1&last=12", ready=".estimate"),
    Visit("conversation: what cannot be made", TALK + "?make=meta&first=1&last=1", ready=".estimate"),
    Visit("conversation: a context", TALK + "?query={user}", ready="#context .total"),
    Visit("conversation: a comparison", TALK + "?query={user}&against=1", ready="#comparison"),
    Visit("conversation: searched", TALK + "?find={user}", ready="#search-title"),
    Visit("conversation: plain text", TALK + "?plain=1", ready="#transcript"),
    Visit("conversation: just changed", TALK + "?said=edited", ready="#notice"),
    Visit("conversation: paused", "/dashboard/conversations/{paused}/c1", hostile=False),
    Visit("conversation: opted out", "/dashboard/conversations/{user}/web-42", hostile=False),
    Visit("conversation: failed", "/dashboard/conversations/tomasz/broken", hostile=False, ready=".callout.bad"),
    Visit("conversation: not there", "/dashboard/conversations/{user}/{fact}", status=404),
]
USERS: list[Visit] = [
    Visit("users", "/dashboard/users"),
    Visit("users: searched", "/dashboard/users?q=pri", hostile=False),
    Visit("users: none", "/dashboard/users", world="bare", hostile=False),
    Visit("user", "/dashboard/users/{user}"),
    Visit("user: pets", "/dashboard/users/{owner}", hostile=False),
    Visit("user: paused", "/dashboard/users/{paused}", hostile=False),
    Visit("user: opted out", "/dashboard/users/{gone}", hostile=False),
    Visit("user: nobody", "/dashboard/users/{user}", world="bare", hostile=False),
    Visit("fact", "/dashboard/users/{user}/fact?category=dietary"),
    Visit("fact: many values", "/dashboard/users/{user}/fact?category=hobby&key={user}"),
    Visit("fact: none", "/dashboard/users/{user}/fact?category=nothing", hostile=False),
]
ME: list[Visit] = [
    Visit("me", "/me", who="user"),
    Visit("me: just changed", "/me?done=changed&undo={fact}", who="user"),
    Visit("me: searched", "/me?q={user}", who="user"),
    Visit("me: refused", "/me?done=refused&why=paused", who="user", hostile=False),
    Visit("me: pets", "/me", who="user", user="owner", hostile=False),
    Visit("me: paused", "/me", who="user", user="paused", hostile=False),
    Visit("me: opted out", "/me", who="user", user="gone", hostile=False),
    Visit("me: nothing yet", "/me", who="user", world="bare", hostile=False),
]
OPERATING: list[Visit] = [
    Visit("home", "/dashboard", ready="#week .figures"),
    Visit("home, none", "/dashboard", world="bare"),
    Visit("changes", "/dashboard/changes", ready="#changes table"),
    Visit("changes of one kind", "/dashboard/changes?kind=fact.added", ready="#changes table"),
    Visit("recall lab", "/dashboard/recall"),
    Visit("recall lab, found", "/dashboard/recall?user={user}&q=What+should+I+cook%3F&conversation={conversation}"),
    Visit("recall lab, earlier", "/dashboard/recall?user={user}&q=diet&at=2026-09-01T10%3A00"),
    Visit("recall lab, paused", "/dashboard/recall?user={paused}&q=cello"),
    Visit("recall lab, no time", "/dashboard/recall?user={user}&q=diet&at=never", status=422),
    Visit("jobs", "/dashboard/jobs"),
    Visit("jobs, none", "/dashboard/jobs", world="bare"),
    Visit("jobs, dead", "/dashboard/jobs?state=dead"),
    Visit("prompts", "/dashboard/prompts"),
    Visit("prompts of somebody", "/dashboard/prompts?user={user}"),
    Visit("prompt", "/dashboard/prompts/chunk_summary?user={user}"),
    Visit("import and export", "/dashboard/import"),
    Visit("import and export, none", "/dashboard/import", world="bare"),
    Visit("import that is gone", "/dashboard/import/{user}", status=404),
    Visit("metrics", "/dashboard/metrics", ready="#measures table"),
    Visit("metrics of somebody", "/dashboard/metrics?user={user}", ready="#measures table"),
    Visit("metrics, none", "/dashboard/metrics", world="bare"),
    Visit("settings", "/dashboard/settings"),
    Visit("settings, none", "/dashboard/settings", world="bare"),
]

VISITS = [*SHELL, *CONVERSATIONS, *USERS, *ME, *OPERATING]


def filled(pattern: str, names: Mapping[str, str], *, scoped: bool = True) -> str:
    """*pattern* with its names put in, percent-encoded, and in the query whose memory is meant where it is not the usual."""
    wanted = {name for _, name, _, _ in Formatter().parse(pattern) if name}
    path = pattern.format_map({name: quote(names[name], safe="") for name in wanted})
    unusual = [(name, names[name]) for name in ("org", "bot") if scoped and names.get(name, "default") != "default"]
    if not unusual:
        return path
    return path + ("&" if "?" in path else "?") + urlencode(unusual, quote_via=quote)
