"""The pages, as a browser without scripts has them: what they show is read, what they ask for is posted."""

from __future__ import annotations

import json
import re
import time
from html import unescape
from typing import Any

from starlette.testclient import TestClient

from holdfast.server.pages.texts import load_texts

from .stories import CHAT

STATES = {"memory on": "active", "paused": "paused", "opted out": "opted-out"}


def texts(pattern: str, page: str) -> list[str]:
    """What *pattern* finds, as it is read on the screen."""
    return [unescape(re.sub(r"<[^>]*>", "", found)).strip() for found in re.findall(pattern, page, re.DOTALL)]


class Browser:
    """Somebody who is signed in; refusals fail."""

    def __init__(self, browser: TestClient) -> None:
        self._browser = browser

    def _get(self, path: str, **query: str) -> str:
        answer = self._browser.get(path, params=query or None)
        assert answer.status_code == 200, answer.text
        return answer.text

    def _post(self, path: str, **form: str) -> str:
        answer = self._browser.post(path, data=form)
        assert answer.status_code == 200, answer.text
        return answer.text


class Dashboard(Browser):
    """What an operator has."""

    USER = "/dashboard/users/ana"
    TALK = f"/dashboard/conversations/ana/{CHAT}"
    PROMPT = "/dashboard/prompts/chunk_summary?user=ana"

    def messages(self) -> list[str]:
        answer = self._browser.get(f"{self.TALK}?plain=1")  # as written, not as Markdown
        if answer.status_code == 404:
            return []
        lines = re.findall(r'<li class="said user".*?</li>', answer.text, re.DOTALL)
        return [words for line in lines for words in texts(r'<div class="words"[^>]*>(.*?)</div>', line)]

    def rate(self, seq: int, score: str) -> None:
        self._post(self.TALK, do="rate", seq=str(seq), score=score)

    def edit(self, seq: int, text: str) -> None:
        self._post(self.TALK, do="edit", seq=str(seq), content=text)

    def forget_message(self, seq: int) -> None:
        self._post(self.TALK, do="forget", seq=str(seq))

    def digest(self) -> None:
        self._post("/dashboard/jobs", do="digest")

    def jobs(self, state: str = "") -> list[str]:
        return texts(r"<code>(job_.*?)</code>", self._get("/dashboard/jobs", state=state))

    def cancel(self, job: str) -> None:
        self._post("/dashboard/jobs", do="cancel", job=job)

    def retry(self, job: str) -> None:
        self._post("/dashboard/jobs", do="retry", job=job)

    def facts(self) -> list[str]:
        return sorted(texts(r'<p class="sentence"[^>]*>(.*?)</p>', self._get(self.USER)))

    def history(self, category: str) -> list[str]:
        page = self._get(f"{self.USER}/fact", category=category)
        table = re.search(r"Values, oldest first.*?</table>", page, re.DOTALL)
        return texts(r'<tr><th scope="row">(.*?)</th>', table[0]) if table else []

    def search(self, query: str) -> list[str]:
        found = texts(r'<p class="words"[^>]*>(.*?)</p>', self._get("/dashboard/recall", user="ana", q=query))
        return [text.removeprefix("user ") for text in found]

    def context(self, query: str) -> str:
        return "\n".join(
            texts(r'<pre class="wrap"[^>]*>(.*?)</pre>', self._get(self.TALK, query=query, shown="messages"))
        )

    def correct(self, fact: str, value: str) -> None:
        self._mend("correct", fact, value=value)

    def never_true(self, fact: str) -> None:
        self._mend("never-true", fact)

    def restore(self, fact: str) -> None:
        self._mend("restore", fact)

    def forget(self, fact: str) -> str:
        return level(self._mend("forget", fact))

    def _mend(self, do: str, fact: str, **more: str) -> str:
        return self._post(self.USER, do=do, fact=fact_id(self._get(self.USER), fact), **more)

    def never(self, topic: str) -> None:
        self._post(self.USER, do="never", topic=topic)

    def allow(self, topic: str) -> None:
        self._post(self.USER, do="allow", topic=topic)

    def pause(self) -> None:
        self._post(self.USER, do="pause")

    def resume(self) -> None:
        self._post(self.USER, do="resume")

    def opt_out(self) -> str:
        return level(self._post(self.USER, do="opt-out", erase="yes"))

    def opt_in(self) -> None:
        self._post(self.USER, do="opt-in")

    def status(self) -> str:
        return STATES[texts(r'<p class="marks">(.*?)</p>', self._get(self.USER))[0]]

    def export(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self._get("/dashboard/export", user="ana", **{"as": "json"}))
        return found

    def import_(self, data: dict[str, Any]) -> None:
        file = ("ana.json", json.dumps(data), "application/json")
        looked_at = self._browser.post("/dashboard/import", files={"file": file})
        path = looked_at.url.path
        self._post(path, do="start", user="ana")
        for _ in range(1_000):
            page = self._get(path)
            if 'value="stop"' not in page:  # it is over
                assert 'value="resume">' in page or "Run again" in page, page
                return
            time.sleep(0.005)
        raise AssertionError("the import does not end")

    def erase(self) -> str:
        return level(self._post(self.USER, do="erase", word="erase"))

    def summaries(self) -> list[str]:
        panel = re.search(r'<(\w+) id="chunks".*?</ol>', self._get(self.TALK), re.DOTALL)
        return texts(r"<li><p class=\"by\">.*?</p><p[^>]*>(.*?)</p></li>", panel[0]) if panel else []

    def rebuild(self) -> None:
        self._post(self.TALK, do="rebuild", make="summaries", first="", last="")

    def put_back(self) -> None:
        made = re.findall(r'name="rebuild" value="([^"]+)"', self._get(self.TALK))
        self._post(self.TALK, do="revert", rebuild=made[0])

    def versions(self) -> int:
        chunks = re.findall(
            r'chunk=([^"&#]+)[^"]*#chunk" aria-label="Level 1|chunk=(sum_[a-z0-9]+)', self._get(self.TALK)
        )
        ids = dict.fromkeys(part for pair in chunks for part in pair if part)
        kept: set[str] = set(ids)
        for chunk in ids:
            versions = re.search(r'<ol class="versions">.*?</ol>', self._get(self.TALK, chunk=chunk), re.DOTALL)
            kept |= set(re.findall(r"chunk=(sum_[a-z0-9]+)", versions[0])) if versions else set()
        return len(kept)

    def prompt(self) -> str:
        page = self._get(self.PROMPT)
        field = re.search(r'<textarea class="words-of-prompt"[^>]*>\n?(.*?)</textarea>', page, re.DOTALL)
        assert field is not None
        return unescape(field[1])

    def set_prompt(self, text: str) -> None:
        self._post(self.PROMPT, do="use", text=text)

    def reset_prompt(self) -> None:
        self._post(self.PROMPT, do="reset", text="")


class Me(Browser):
    """What users have about themselves."""

    def facts(self) -> list[str]:
        return sorted(texts(r'<p class="sentence"[^>]*>(.*?)</p>', self._get("/me")))

    def history(self, category: str) -> list[str]:
        title = load_texts("me").topic(category)
        for card in re.findall(
            r'<div class="card topic"><h3>.*?(?=<div class="card topic">|</section>)', self._get("/me"), re.DOTALL
        ):
            if texts(r"<h3>(.*?)</h3>", card) == [title]:
                return [*reversed(texts(r"<s>(.*?)</s>", card)), *texts(r'<p class="sentence"[^>]*>(.*?)</p>', card)]
        return []

    def correct(self, fact: str, value: str) -> None:
        self._mend("change", fact, value=value)

    def restore(self, fact: str) -> None:
        self._mend("restore", fact)

    def forget(self, fact: str) -> str:
        return level(self._mend("forget", fact))

    def _mend(self, do: str, fact: str, **more: str) -> str:
        return self._post("/me", do=do, fact=fact_id(self._get("/me"), fact), **more)

    def never(self, topic: str) -> None:
        self._post("/me", do="never", topic=topic)

    def allow(self, topic: str) -> None:
        self._post("/me", do="allow", topic=topic)

    def pause(self) -> None:
        self._post("/me", do="pause")

    def resume(self) -> None:
        self._post("/me", do="resume")

    def opt_out(self) -> str:
        return level(self._post("/me", do="opt-out"))

    def opt_in(self) -> None:
        self._post("/me", do="opt-in")

    def status(self) -> str:
        said, page = load_texts("me"), self._get("/me")
        section = re.search(r'<section id="status".*?</section>', page, re.DOTALL)
        assert section is not None
        words = {said("status.on"): "active", said("status.paused"): "paused", said("status.off"): "opted-out"}
        return next(state for text, state in words.items() if text in unescape(section[0]))

    def export(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self._get("/me/download", **{"as": "json"}))
        return found

    def erase(self) -> str:
        return level(self._post("/me", do="forget-all", word=load_texts("me")("data.forget_all_word")))


def level(page: str) -> str:
    """How thoroughly something was erased, by what the page says of it."""
    said = load_texts("me")
    return next(name for name in ("E2", "E1", "E0") if said(f"receipt.{name}") in unescape(page))


def fact_id(page: str, text: str) -> str:
    """The id in the first form that follows the sentence *text*."""
    for found in re.finditer(r'<p class="sentence"[^>]*>(.*?)</p>|<s>(.*?)</s>', page, re.DOTALL):
        if texts(r"^.*$", found[1] or found[2]) == [text]:
            return re.findall(r'name="fact" value="([^"]+)"', page[found.end() :])[0]
    raise AssertionError(f"the page does not show {text!r}")
