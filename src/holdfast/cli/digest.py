"""``holdfast digest``."""

from __future__ import annotations

import time

from . import models
from .changes import digest_words, print_changes
from .models import BaseUrl, Llm
from .options import STORE, Json, Store, commands, reading
from .plain import CommandError
from .screen import QUIET, Screen, print_json
from .values import plain
from .words import seconds
from .work import digest_all, raise_if_failed

app = commands()


@app.command()
def digest(llm: Llm = None, base_url: BaseUrl = None, store: Store = STORE, as_json: Json = False) -> int:
    """
    Do the background work that is due, of everybody in the store: facts, summaries, vectors.

    Safe to stop with Ctrl-C at any time: what is done is kept, the rest waits for the next run.

    \b
    Examples:
      holdfast digest
      holdfast digest --llm openai:gpt-5-mini
      holdfast digest --json
    """
    began = time.monotonic()
    try:
        with models.model(llm, base_url) as model, reading(store, model) as memory:
            report = digest_all(memory, show=not as_json)
    except KeyboardInterrupt:
        raise CommandError(
            "interrupted",
            "stopped; what was done is kept",
            hint="`holdfast digest` goes on with the rest",
            exit_code=130,
        ) from None
    if as_json:
        print_json(plain(report))
    else:
        screen = Screen()
        if not (report.jobs or report.failed or report.waiting):
            screen.line("nothing was due")
        else:
            print_changes(screen, report.changes)
            screen.line(*digest_words(report), (f"   {seconds(time.monotonic() - began)}", QUIET))
    return raise_if_failed(report)
