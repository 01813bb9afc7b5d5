"""
How soon each page of the dashboard and /me begins to arrive, and how large it is, in a large store.

    python benchmarks/pages.py [--users 2000] [--messages 4000] [--rounds 7] [--store FILE] [--browser CHROMIUM]

Twenty users are recorded and copied until there are so many, ten messages each; one more user has a single conversation of
so many messages. ``--users 100000 --messages 20000`` makes a million messages in all, in some minutes; with ``--store`` the
store is made once, and used again. Told is the median time to the first byte over HTTP after one call that is not counted,
as a multiple of that of the sign-in page, which asks the store for nothing, measured right before and after; and the median
of the processor time of this process until then, of all its threads: it tells more than the time where others use the machine.
With ``--browser`` each page is opened in Chromium as well: told is the median time until it is loaded and its scripts have
run, by the browser's own clock, again as a multiple of that of the sign-in page.
"""

from __future__ import annotations

import argparse
import http.client
import random
import socket
import statistics
import tempfile
import threading
import time
from pathlib import Path

import apsw
from playwright.sync_api import Browser, sync_playwright
from support import machine, statement, talk

from holdfast import Config, Memory
from holdfast.server.app import create_app
from holdfast.server.gate import ServerSettings
from holdfast.server.serve import make_server

TALKER, LONG = "talker", "long"
COPIED = 20  # users who are recorded, and then copied
EMPTY = "/sign-in"
CHAT = f"/dashboard/conversations/{TALKER}/{LONG}"
PAGES = (
    "/dashboard",
    "/dashboard/changes",
    "/dashboard/users",
    "/dashboard/users?q=user00001",
    "/dashboard/users?q=nobody",
    f"/dashboard/users/{TALKER}",
    "/dashboard/conversations",
    f"/dashboard/conversations/{TALKER}",
    CHAT,
    f"{CHAT}?at=100",
    f"{CHAT}?find=rex",
    f"{CHAT}?query=what+is+my+dog+called",
    f"{CHAT}?make=facts&first=1&last=1000",
    f"/dashboard/recall?user={TALKER}&q=dog",
    "/dashboard/jobs",
    "/dashboard/prompts",
    "/dashboard/import",
    "/dashboard/metrics",
    "/dashboard/settings",
    "/dashboard/find?q=rex",
    f"/dashboard/find?q={TALKER}+dog",
    "/me",
    "/me?q=dog",
)


def build(path: Path, users: int, messages: int) -> None:
    """Record some users and the long conversation, and copy the former."""
    with Memory(path, embedder=None, config=Config(durable=False)) as memory:
        for number in range(COPIED):
            rng = random.Random(number)
            chat = memory.conversation("chat", user=f"user{number:06}")
            chat.append([{"role": "user", "content": statement(rng)}, *talk(rng, 9, 0.3)[1:]])
            chat.end()
        chat, rng = memory.conversation(LONG, user=TALKER), random.Random(5)
        for _ in range(0, messages, 100):
            chat.append(talk(rng, 100, 0.05))
        memory.digest()
    db = apsw.Connection(str(path))
    db.execute("PRAGMA synchronous = OFF")
    copies = []
    for (table,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
        columns = [str(row[1]) for row in db.execute(f"PRAGMA table_info({table})")]
        if "user_id" in columns:
            values = ", ".join("?1" if name == "user_id" else name for name in columns)
            copies.append(f"INSERT INTO {table} SELECT {values} FROM {table} WHERE org = 'default' AND user_id = ?2")
    with db:
        for number in range(COPIED, users):
            for sql in copies:
                db.execute(sql, (f"user{number:06}", f"user{number % COPIED:06}"))
    db.close()


def fetch(port: int, path: str, key: str) -> tuple[float, float, int, int]:
    """Return the milliseconds to the first byte, those of processors until then, the bytes, and the status of one page."""
    connection = http.client.HTTPConnection("127.0.0.1", port)
    began, worked = time.perf_counter(), time.process_time()
    connection.request("GET", path, headers={"Authorization": f"Bearer {key}", "Accept": "text/html"})
    answer = connection.getresponse()
    first, work = 1000 * (time.perf_counter() - began), 1000 * (time.process_time() - worked)
    size = len(answer.read())
    connection.close()
    return first, work, size, answer.status


def median_of(port: int, path: str, key: str, rounds: int) -> tuple[float, float, int, int]:
    """Return the same over some rounds, after one call that is not counted."""
    fetch(port, path, key)
    found = [fetch(port, path, key) for _ in range(rounds)]
    return statistics.median(one[0] for one in found), statistics.median(one[1] for one in found), *found[-1][2:]


def usable(browser: Browser, origin: str, path: str, key: str, rounds: int) -> float:
    """Return the median milliseconds until a page is loaded, and its scripts have run, over some rounds in one tab."""
    context = browser.new_context(extra_http_headers={"Accept": "text/html"})
    context.add_cookies([{"name": "holdfast_key", "value": key, "url": origin}])
    tab, found = context.new_page(), []
    for _ in range(rounds + 1):  # the first fills the caches
        tab.goto(origin + path, wait_until="load")
        found.append(tab.evaluate("() => performance.getEntriesByType('navigation')[0].domContentLoadedEventEnd"))
    context.close()
    return statistics.median(found[1:])


def measure_in_browser(chromium: str, port: int, keys: dict[bool, str], rounds: int) -> None:
    """Tell how soon each page is usable."""
    origin = f"http://127.0.0.1:{port}"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        print(f"{'page, usable in a browser':60} {'ms':>7} {'× empty':>8}")
        for path in PAGES:
            key = keys[path.startswith("/me")]
            before = usable(browser, origin, EMPTY, key, rounds)
            ready = usable(browser, origin, path, key, rounds)
            empty = (before + usable(browser, origin, EMPTY, key, rounds)) / 2
            print(f"{path:60} {ready:7.1f} {ready / empty:8.1f}", flush=True)
        browser.close()


def measure(memory: Memory, rounds: int, chromium: str | None) -> None:
    """Serve the memory and tell of each page."""
    with socket.create_server(
        ("127.0.0.1", 0)
    ) as found:  # the server must know its port: scripts are for its own pages alone
        port = found.getsockname()[1]
    settings = ServerSettings(port=port, requests_per_minute=10_000_000, org_requests_per_minute=10_000_000)
    running = make_server(create_app(memory, settings), settings)
    thread = threading.Thread(target=running.run)
    thread.start()
    while not running.started:
        time.sleep(0.01)
    keys = {True: memory.admin.keys.create("user", user=TALKER).key, False: memory.admin.keys.create("operator").key}
    print(f"{'page':60} {'ms':>7} {'× empty':>8} {'cpu ms':>7} {'kB':>7}")
    for path in PAGES:
        key = keys[path.startswith("/me")]
        before = median_of(port, EMPTY, key, rounds)[0]
        first, work, size, status = median_of(port, path, key, rounds)
        empty = (before + median_of(port, EMPTY, key, rounds)[0]) / 2
        wrong = "" if status == 200 else f"  {status}"
        print(f"{path:60} {first:7.1f} {first / empty:8.1f} {work:7.1f} {size / 1000:7.1f}{wrong}", flush=True)
    if chromium:
        measure_in_browser(chromium, port, keys, rounds)
    running.should_exit = True
    thread.join()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--users", type=int, default=2000)
    parser.add_argument("--messages", type=int, default=4000, help="of the long conversation")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--store", type=Path, help="is made where it is not there")
    parser.add_argument("--browser", metavar="CHROMIUM", help="its path: how soon each page is usable in it")
    args = parser.parse_args()
    print(machine())
    with tempfile.TemporaryDirectory() as folder:
        path = args.store or Path(folder, "memory.db")
        if not path.exists():
            build(path, args.users, args.messages)
        with Memory(path, embedder=None) as memory:
            measure(memory, args.rounds, args.browser)


if __name__ == "__main__":
    main()
