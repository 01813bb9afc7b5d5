"""The programs that people start from run, remember, and print what the page of examples shows."""

from __future__ import annotations

import json
import re
import textwrap

import pytest
import yaml

from holdfast import Memory
from holdfast.cli.app import command

from . import pictures
from .running import EXAMPLES, model, run

ROOT = EXAMPLES.parent
PAGE = (ROOT / "docs/how-to/examples.md").read_text(encoding="utf-8")
OPEN_WEBUI = (ROOT / "docs/how-to/open-webui.md").read_text(encoding="utf-8")
COMPOSE = yaml.safe_load((EXAMPLES / "open_webui/compose.yaml").read_text(encoding="utf-8"))
FILES = sorted(path for path in EXAMPLES.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
NAMES = sorted({path.relative_to(EXAMPLES).parts[0] for path in FILES})
MAX_LINES, MAX_PICTURE_BYTES = 150, 100_000


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("HOLDFAST_STORE", "MODEL"):
        monkeypatch.delenv(name, raising=False)


def test_the_terminal_bot_knows_the_user_when_it_is_started_again(monkeypatch):
    said = ["I'm vegetarian.", "I'm allergic to peanuts.", "/quit"]
    with model(monkeypatch) as server:
        first = run("terminal_bot.py", "ana", lines=said)
        second = run("terminal_bot.py", "ana", lines=["What shall I cook?", "/facts", "/forget 1", "/facts"])
        other = run("terminal_bot.py", "bo", lines=["What shall I cook?"])

    assert "bot> A lentil curry, without peanuts." in second
    assert "bot> A chicken satay, with peanuts." in other
    assert len(re.findall(r"^\d\. ", second, re.M)) == 3  # two facts, and one after one was forgotten
    assert "vegetarian" not in str(server.asked[-1].body)
    pictures.show(
        "terminal_bot",
        f"$ python examples/terminal_bot.py ana\n{first}\n$ python examples/terminal_bot.py ana\n{second}",
    )


def test_the_terminal_bot_pauses_and_says_when_the_model_fails(monkeypatch):
    with model(monkeypatch) as server:
        paused = run("terminal_bot.py", "ana", lines=["/pause", "I'm vegetarian.", "/resume", "/facts", "/what"])
        server.close()
        monkeypatch.setenv("OPENAI_MAX_RETRIES", "0")
        failed = run("terminal_bot.py", "ana", lines=["I live in Lisbon."])

    assert "Nothing yet." in paused
    assert "/facts: what I know" in paused.splitlines()[-1]
    assert "The model did not answer" in failed


def test_what_is_said_of_one_pet_is_not_known_of_the_other():
    printed = run("household.py")
    luna, _, max_ = printed.partition("A new visit")[0].partition("  Max\n")

    assert "Luna is allergic to chicken." in luna
    assert "kidney" not in luna
    assert "Max has kidney disease." in max_
    assert "chicken" not in max_
    assert "limping" in printed.partition("A new visit")[2]
    assert "kidney" not in printed.partition("A new visit")[2].partition("Said of Max")[0]
    assert "limp" not in printed.partition("Said of Max")[2]
    pictures.show("household", f"$ python examples/household.py\n{printed}")


def test_the_voice_loop_says_how_long_memory_took():
    printed = run("voice_loop.py")
    times = re.findall(r"memory: +([\d.]+) ms before the first word, +([\d.]+) ms after the last", printed)

    assert len(times) == 3
    assert all(0 < float(before) and 0 < float(after) for before, after in times)
    assert "A lentil curry, without peanuts." in printed
    with Memory("voice.db") as memory:
        assert len(memory.conversation(memory.user("ana").conversations()[0], user="ana").load()) == 6
    pictures.show("voice_loop", f"$ python examples/voice_loop.py\n{printed}")


def test_two_agents_of_a_shop_share_a_customer_and_another_shop_does_not(postgres):
    try:
        printed = run("support_desk/desk.py", postgres.at("desk"))
        with Memory(postgres.at("desk")) as memory:
            assert memory.doctor().ok
        rows = str(postgres.rows("desk"))
        assert "My shoe size is 38." in rows
        assert "Porto" not in rows
        assert "broken" not in rows
    finally:
        postgres.give_back()
    bo, lee, paused, erased, kim, shoes = printed.split("\n\n")[1:]

    assert printed.startswith("The network repeated a request. Stored again: no")
    assert "Lives in Porto." in bo
    assert "T-1, Kim" in bo
    assert "Nothing is known" in lee
    assert "Stored: no, paused" in paused
    assert "Porto" not in paused
    assert json.loads(erased.partition(":\n")[2])["rows"]["messages"] == 2
    assert "Nothing is known" in kim
    assert "S-1, Lee" in shoes
    pictures.show("support_desk", f"$ python examples/support_desk/desk.py 'postgresql://…'\n{printed}")


def test_the_server_beside_open_webui_is_started_with_options_that_there_are():
    given = COMPOSE["services"]["holdfast"]["command"]
    parsed = command().get_command(None, given[0])
    options = parsed.make_context("holdfast", given[1:]).params

    assert options["upstream"] == "http://ollama:11434/v1"
    assert options["allow_host"] == ["holdfast"]
    assert (
        EXAMPLES / "open_webui" / COMPOSE["services"]["holdfast"]["build"]["context"] / "deploy/Dockerfile"
    ).exists()


def test_open_webui_is_set_as_its_page_says():
    services = COMPOSE["services"]
    variables = services["open-webui"]["environment"]
    named = dict(re.findall(r"^ +(ENABLE_\w+)=(\w+)$", OPEN_WEBUI, re.M))

    assert named
    assert {name: variables[name] for name in named} == named
    assert variables["OPENAI_API_BASE_URL"] == "http://holdfast:7800/v1"
    assert variables["ENABLE_OLLAMA_API"] == "false"  # else its chats would go past the memory
    assert "ports" not in services["holdfast"]
    assert all(port.startswith("127.0.0.1:") for port in services["open-webui"]["ports"])
    shown = [f"{name:13} {service['image']}" for name, service in services.items()]
    at = [variables["OPENAI_API_BASE_URL"], services["holdfast"]["command"][-1]]
    port = services["open-webui"]["ports"][0].rpartition(":")[0]
    way = ["", f"your browser  → {port}", f"open-webui    → {at[0]}", f"holdfast      → {at[1]}"]
    pictures.show("open_webui", "\n".join(["$ docker compose up --detach --build", *shown, *way]))


def test_every_volume_is_declared():
    services = COMPOSE["services"]
    used = {volume.partition(":")[0] for service in services.values() for volume in service.get("volumes", [])}
    assert used == set(COMPOSE["volumes"])


@pytest.mark.parametrize("name", NAMES)
def test_an_example_is_small_and_says_how_to_run_it(name):
    parts = [path for path in FILES if path.relative_to(EXAMPLES).parts[0] == name]
    head = "".join(path.read_text(encoding="utf-8")[:1_000] for path in parts)

    assert max(len(path.read_text(encoding="utf-8").splitlines()) for path in parts) <= MAX_LINES
    assert re.search(r"^(?:#)?     ?(?:.* )?(?:python examples/|docker compose up)", head, re.M)
    assert f"examples/{name}" in PAGE


def test_the_lines_that_the_page_shows_are_those_of_the_programs():
    code = {path: textwrap.dedent(path.read_text(encoding="utf-8")) for path in FILES if path.suffix == ".py"}
    blocks = re.findall(r"^```py\n(.*?)^```$", PAGE, re.M | re.S)

    assert len(blocks) >= 4
    for block in blocks:
        lines = [line.strip() for line in block.splitlines() if line.strip()]
        assert any(contains([line.strip() for line in text.splitlines()], lines) for text in code.values()), block


def contains(all_lines: list[str], lines: list[str]) -> bool:
    """Whether *lines* are among *all_lines*, in their order, without one between them."""
    kept = [line for line in all_lines if line]
    return any(kept[at : at + len(lines)] == lines for at in range(len(kept)))


def test_pictures_are_small_and_load_nothing():
    shown = re.findall(r"!\[[^\]]{20,}\]\((examples/[\w.]+)\)", PAGE)
    there = list((ROOT / "docs/how-to/examples").iterdir())

    assert sorted(shown) == sorted(f"examples/{path.name}" for path in there)
    assert [path.name for path in there if path.stat().st_size > MAX_PICTURE_BYTES] == []
    drawn = [path.read_text(encoding="utf-8") for path in there if path.suffix == ".svg"]
    assert [text for text in drawn if re.search(r"href|src=|url\(|<script|@import", text)] == []
