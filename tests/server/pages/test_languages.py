"""The operators' pages in every language: no sentence is left out, none is left in English, and the choice is kept."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from contextvars import copy_context
from functools import cache
from html.parser import HTMLParser

import pytest
from jinja2 import Environment, nodes
from starlette.testclient import TestClient

from holdfast import Memory
from holdfast.server.app import create_app
from holdfast.server.pages.home import Counts
from holdfast.server.pages.layout import FOLDER
from holdfast.server.pages.texts import LANGUAGES, LIBRARY_WORDS, _catalog, _form_of, _spoken, plural
from tests.browser.pages import VISITS, filled
from tests.browser.story import bare, opened, rich

from ..conftest import BASE
from .conftest import BROWSER

OTHERS = [language for language in LANGUAGES if language != "en"]
FORMS = {"de": (2,), "es": (2,), "ko": (1,), "ar": (1, 6)}
TEMPLATES = [
    path for path in sorted((FOLDER / "templates").rglob("*.html")) if path.name not in ("me.html", "me-download.html")
]
MARKING = {"mark": 1, "translate": 1, "_": 1, "plural": 2, "_n": 2}  # by how many sentences they take
SHOWN = ("aria-label", "title", "placeholder", "alt", "data-label")  # attributes that people read or hear
NO_SENTENCES = {
    "Holdfast",
    "CSV",
    "JSON",
    "UTC",
    "body",
    "openapi",
    "json",
    "hf",
    "Ctrl",
    "chunk",
}  # names, formats, addresses


@cache
def sentences() -> dict[str, str]:
    """Every sentence of the pages, and a file where it is."""
    found = dict.fromkeys(LIBRARY_WORDS, "texts.py")
    for path in sorted(FOLDER.rglob("*.py")):
        for call in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id in MARKING:
                given = [one.value for one in call.args[: MARKING[call.func.id]] if isinstance(one, ast.Constant)]
                if len(given) == MARKING[call.func.id]:
                    found[" | ".join(map(str, given))] = path.name
    for path in TEMPLATES:
        for call in Environment().parse(path.read_text(encoding="utf-8")).find_all(nodes.Call):
            if isinstance(call.node, nodes.Name) and call.node.name in MARKING:
                given = call.args[: MARKING[call.node.name]]
                assert all(isinstance(one, nodes.Const) for one in given), (path.name, call.lineno)
                found[" | ".join(one.value for one in given)] = path.name
    return found


def holes(text: str) -> list[str]:
    return sorted(re.findall(r"\{(\w+)\}|(</?\w+>)", text))


@pytest.mark.parametrize("language", OTHERS)
def test_a_catalog_has_every_sentence_and_no_other_with_the_same_holes_and_tags(language):
    catalog = _catalog(language)

    assert set(sentences()) - set(catalog) == set()
    assert set(catalog) - set(sentences()) == set()
    assert list(catalog) == sorted(catalog)
    for english, said in catalog.items():
        many, forms = english.rpartition(" | ")[2], said.split(" | ") if " | " in english else [said]
        assert " | " not in english or len(forms) in FORMS[language], english
        for form in forms:
            free = {("count", "")} if " | " in english else set()
            assert set(holes(form)) - free == set(holes(many)) - free, english
            assert not set('"<>&') & set(re.sub(r"</?\w+>", "", form)), english
            assert form == form.strip() != "", english


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: path.name)
def test_a_template_has_no_sentence_that_is_not_marked(path):
    source = re.sub(r"\{#.*?#\}", " ", path.read_text(encoding="utf-8"), flags=re.DOTALL)
    plain = re.sub(r"<(code|pre|kbd)\b.*?</\1>", " ", source, flags=re.DOTALL)
    plain = re.sub(r"\{%.*?%\}|\{\{.*?\}\}", " ", plain, flags=re.DOTALL)
    shown = [words for name in SHOWN for words in re.findall(rf'\b{name}="([^"]*)"', plain)]
    text = re.sub(r"<[^>]*>", " ", plain)
    assert set(re.findall(r"[A-Za-z]{2,}", " ".join((text, *shown)))) - NO_SENTENCES == set()

    marked = set(sentences())
    tree = Environment().parse(source)
    inside = {id(one) for call in tree.find_all(nodes.Call) for one in call.find_all(nodes.Const) if _marks(call)}
    loose = {one.value for one in tree.find_all(nodes.Const) if isinstance(one.value, str) and id(one) not in inside}
    assert {words for words in loose if re.match(r"[A-Z][a-z]+( |$|:)", words)} == set()
    assert loose & {words for words in marked if " " in words} <= {"no longer true", "never true"}


def _marks(call: nodes.Call) -> bool:
    return isinstance(call.node, nodes.Name) and call.node.name in ("_", "_n")


class Shown(HTMLParser):
    """The texts of a page that people read or hear, without those in code font and in other languages."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found, self._open = list[str](), list[tuple[str, bool]]()
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        quiet = any(quiet for _, quiet in self._open) or tag in ("code", "pre", "kbd", "script", "q", "bdi", "option")
        quiet = quiet or (bool(self._open) and ("lang" in given or given.get("dir") == "auto"))
        if not quiet:
            self.found += [str(given[name]).strip() for name in SHOWN if given.get(name)]
        if tag not in ("input", "br", "meta", "link", "rect", "path", "circle", "img"):
            self._open.append((tag, quiet))

    def handle_endtag(self, tag: str) -> None:
        while self._open and self._open.pop()[0] != tag:
            pass

    def handle_data(self, data: str) -> None:
        if data.strip() and not any(quiet for _, quiet in self._open):
            self.found.append(" ".join(data.split()))


@pytest.fixture(scope="module")
def served() -> Iterator[dict[str, tuple[TestClient, dict[str, str]]]]:
    """A signed-in browser of a full memory and of an empty one, with the names in it."""
    browsers, memories = {}, list[Memory]()
    for world, fill in (("rich", rich), ("bare", bare)):
        opening = opened()
        memory = opening.__enter__()
        memories.append(opening)
        names, app = fill(memory), create_app(memory)
        app.state.counts = Counts(patience_s=60)
        browser = TestClient(app, base_url=BASE, headers=BROWSER)
        browser.post("/sign-in", data={"key": memory.admin.keys.create("operator").key})
        browsers[world] = browser, names
    yield browsers
    for browser, _ in browsers.values():
        browser.close()
    for opening in memories:
        opening.__exit__(None, None, None)


@pytest.mark.parametrize("language", OTHERS)
@pytest.mark.parametrize("visit", [one for one in VISITS if one.who == "operator"], ids=lambda visit: visit.name)
def test_no_page_shows_an_english_sentence_in_another_language(served, visit, language):
    browser, names = served[visit.world]
    page = browser.get(filled(visit.path, names), headers={"Accept-Language": language})

    assert page.status_code == visit.status
    direction = ' dir="rtl"' if language == "ar" else ""
    assert f'<html lang="{language}"{direction}>' in page.text
    catalog, shown = _catalog(language), Shown(page.text).found
    english = (
        {words for words in shown if catalog.get(words, words) != words} - set(catalog.values()) - {"default"}
    )  # the name of an org
    assert english == set()


def test_the_chosen_language_is_kept_and_goes_before_the_browsers(sign_in):
    browser = sign_in()

    def shown(path="/dashboard/users"):
        return browser.get(path, headers={"Accept-Language": "es"}).text

    assert '<html lang="es">' in shown()
    answer = browser.post("/language", data={"language": "de", "next": "/dashboard/users?q=x"}, follow_redirects=False)
    assert (answer.status_code, answer.headers["location"]) == (303, "/dashboard/users?q=x")
    assert {"Path=/", "Max-Age=31536000", "SameSite=lax"} <= set(answer.headers["set-cookie"].split("; "))
    assert "<h1>Benutzer</h1>" in shown()
    assert '<option value="de" lang="de" selected>Deutsch</option>' in shown()
    assert "<h1>Einstellungen</h1>" in shown("/dashboard/settings")
    browser.post("/language", data={"language": "xx"})
    assert "<h1>Benutzer</h1>" in shown()
    browser.cookies.delete("holdfast_language")
    assert '<html lang="es">' in shown()


@pytest.mark.parametrize("address", ["https://elsewhere.test/", "//elsewhere.test", "/\\elsewhere.test", ""])
def test_a_choice_of_the_language_leads_nowhere_else(sign_in, address):
    answer = sign_in(None).post("/language", data={"language": "de", "next": address}, follow_redirects=False)
    assert answer.headers["location"] == "/"


def test_a_refusal_is_told_in_the_language_of_the_page(sign_in):
    answer = sign_in().get("/dashboard/nowhere", headers={"Accept-Language": "de"})
    assert answer.status_code == 404
    assert "<h1>Diesen Pfad gibt es nicht</h1>" in answer.text


def test_counts_that_are_kept_are_shown_in_the_language_of_who_looks(sign_in, memory):
    memory.conversation("c", user="ana").record("I live in Porto.", "Noted.")
    browser = sign_in()
    for language, title in (("de", "Nachrichten und Benutzer je Tag"), ("en", "Messages and users a day")):
        for path in ("/dashboard", "/dashboard/metrics"):
            assert title in browser.get(path, headers={"Accept-Language": language}).text


def test_what_a_sentence_is_filled_with_is_escaped_in_every_language(sign_in, memory):
    memory.conversation("c", user="<b>ana</b>").record("I live in Porto.", "Noted.")
    for language in LANGUAGES:
        page = sign_in().get("/dashboard/users/%3Cb%3Eana%3C%2Fb%3E", headers={"Accept-Language": language}).text
        assert "<b>ana" not in page
        assert "&lt;b&gt;ana&lt;/b&gt;" in page


@pytest.mark.parametrize(
    ("language", "number", "said"),
    [
        ("en", 1, "1 message"),
        ("en", 1204, "1,204 messages"),
        ("de", 1, "1 Nachricht"),
        ("de", 1204, "1.204 Nachrichten"),
        ("ko", 2, "메시지 2개"),
        ("es", 1, "1 mensaje"),
    ],
)
def test_numbers_take_the_form_of_the_language(language, number, said):
    def asked() -> str:
        _spoken.set(language)
        return plural("{count} message", "{count} messages", number)

    assert copy_context().run(asked) == said


def test_arabic_has_a_form_for_each_kind_of_number():
    counts = {0: 0, 1: 1, 2: 2, 3: 3, 10: 3, 11: 4, 99: 4, 100: 5, 102: 5, 103: 3, 111: 4}
    assert {count: _form_of("ar", count) for count in counts} == counts
