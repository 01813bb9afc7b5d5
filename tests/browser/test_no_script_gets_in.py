"""120 payloads in every stored field, on every page: none runs, none is stopped by the policy alone, none asks anybody."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from holdfast import Memory

from .chromium import go
from .hostile import GROUPS, hostile, model
from .pages import VISITS, Visit, filled
from .payloads import FOREIGN, PAYLOADS
from .served import Site, serve
from .story import opened

# What no page of ours holds: it would have come out of a stored text.
OUT_OF_PLACE = """
() => {
    const found = [];
    // A link that a message holds leads where it says, tells nothing, and is followed by nobody but the reader.
    const link = element => element.matches('.formatted a[target="_blank"][rel="noopener noreferrer nofollow ugc"]')
        && /^(https?:\\/\\/|mailto:)/.test(element.getAttribute('href'));
    for (const element of document.querySelectorAll('*')) {
        if (element.closest('.uplot')) continue;  // a plot sizes its own layers; no text of users is in it
        for (const {name, value} of element.attributes) {
            if (name.startsWith('on') || name === 'style' || name === 'srcdoc') found.push(`${element.tagName} ${name}`);
            if (name === 'href' && link(element)) continue;
            if (['href', 'src', 'action', 'formaction', 'data', 'xlink:href'].includes(name)
                && !value.startsWith('#') && new URL(value, location.href).origin !== location.origin
                && !value.startsWith('data:image/') && !value.startsWith('data:,')) found.push(`${name} ${value}`);
        }
    }
    const odd = 'iframe, object, embed, base, style, marquee, script:not([src]), meta[http-equiv], math, foreignObject, '
        + 'animate, noembed, listing, plaintext';
    for (const element of document.querySelectorAll(odd)) found.push(element.outerHTML.slice(0, 120));
    return found;
}
"""


@pytest.fixture(scope="module")
def told() -> Iterator[tuple[Site, list[dict[str, str]]]]:
    with opened(model()) as memory:
        users = hostile(memory)
        with serve(memory) as site:
            yield site, users


def test_the_payloads_are_all_there():
    assert len(set(PAYLOADS)) == 120
    assert {payload for group in GROUPS for payload in PAYLOADS if payload in group} == set(PAYLOADS)
    assert sum("canary(" in payload for payload in PAYLOADS) > 90
    assert sum(FOREIGN in payload for payload in PAYLOADS) > 10


def test_every_stored_field_is_hostile(told):
    """What the pages show has the payloads in it: names, words, facts, their past, summaries, topics, errors."""
    site, users = told
    memory: Memory = site.memory
    first = users[1]
    words = first["user"]
    user = memory.user(words, bot=words)
    chat = memory.conversation(words, user=words, bot=words)
    assert words in user.conversations()
    assert {message.name for message in chat.load()} >= {words}
    assert any(words in summary.text for summary in chat.summaries())
    assert all(PAYLOADS[0] in summary.source for summary in chat.summaries())
    assert any(words in episode.text for episode in user.facts(kind="episode"))
    assert any(fact.key == words and fact.value == words for fact in user.facts())
    assert any(fact.category == words for fact in user.facts())
    assert [fact.value for fact in user.history("hobby")] == ["before", words]
    assert user.status().never == (f"never {words}",)
    assert user.prompts.get("chunk_summary") == words
    assert any(words in job.reason for job in memory.jobs("dead"))
    assert words in [key.name for key in memory.admin.keys.list()]


@pytest.mark.parametrize("visit", [visit for visit in VISITS if visit.hostile], ids=lambda visit: visit.name)
def test_no_payload_does_anything(visit: Visit, told, visitor):
    site, users = told
    everywhere = "{" in visit.path or visit.who == "user"
    usual = {**users[1], "org": "default", "bot": "default"}
    user = users[0]["user"] if visit.who == "user" else None
    someone = visitor(site, visit.who, user, org=users[0]["org"], bot=users[0]["bot"])
    page = someone.context.new_page()
    for names in users if everywhere else (users[0], usual):
        if visit.who == "user":
            page.goto("about:blank")  # what the page of the user before still asks for would be refused
            someone.sign_in(site.key("user", user=names["user"], org=names["org"], bot=names["bot"]))
        status = go(page, site.origin + filled(visit.path, names))
        assert status == visit.status, names
        assert page.evaluate(OUT_OF_PLACE) == [], names
        assert visit.amiss(someone.watch.all) == [], names
