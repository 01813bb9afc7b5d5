"""What a browser's request says of itself: the cookie of who signed in, and which page it comes from."""

from __future__ import annotations

from collections.abc import Mapping
from http.cookies import CookieError, SimpleCookie
from urllib.parse import urlsplit

COOKIE = "holdfast_key"
SAFE_METHODS = frozenset(("GET", "HEAD", "OPTIONS"))


def cookie_of(headers: Mapping[str, str]) -> str:
    """The key in the cookie, or nothing."""
    try:
        found = SimpleCookie(headers.get("cookie", "")).get(COOKIE)
    except CookieError:
        return ""
    return "" if found is None else found.value


def from_own_page(method: str, headers: Mapping[str, str]) -> bool:
    """
    Whether the request comes from a page of this very server, or from the user at the browser.

    A cookie goes with every request to this address, whoever causes it.  So what changes something has to name
    this server as its origin, which no page elsewhere can do; what only reads may also be a link or a bookmark.
    """
    site, origin = headers.get("sec-fetch-site"), headers.get("origin")
    own = origin is not None and urlsplit(origin).netloc.lower() == headers.get("host", "").lower()
    if method in SAFE_METHODS:
        read = site in (None, "none", "same-origin") or headers.get("sec-fetch-mode") == "navigate"
        return read and (origin is None or own)  # a script of another page says whose it is
    if origin is None:
        return site == "same-origin"
    return site in (None, "same-origin") and own


def names_another_page(headers: Mapping[str, str]) -> bool:
    """Whether the request says that a page elsewhere sent it; a program says nothing."""
    known = "origin" in headers or "sec-fetch-site" in headers
    return known and not from_own_page("POST", headers)


def browses(method: str, headers: Mapping[str, str]) -> bool:
    """Whether a user opens an address, which then deserves a page, even when there is nothing at it."""
    return method == "GET" and "text/html" in headers.get("accept", "") and "authorization" not in headers
