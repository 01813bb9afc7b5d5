"""
Test every adapter against the newest release of its framework, and write down what was found.

    python scripts/integrations_latest.py                 all of them
    python scripts/integrations_latest.py langgraph       some of them
    python scripts/integrations_latest.py --check         whether the page shows what was found

Each framework gets an empty environment in build/integrations.  First a newcomer's way is timed there: what the framework's page
says to install, and its first example.  Then come the tests that the ordinary run does not collect, and the whole page.  The
results are kept in docs/integrations/results.json, from which the table of docs/integrations/index.md is written.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "docs/integrations/results.json"
PAGE = ROOT / "docs/integrations/index.md"
START, END = "<!-- results: written by scripts/integrations_latest.py -->", "<!-- end of the results -->"
TESTS = "tests/integrations/frameworks"


@dataclass(frozen=True)
class Framework:
    """A framework: its title, the extra of ours or a package, further packages for its tests, the distributions whose versions count."""

    title: str
    extra: str
    shown: tuple[str, ...]
    page: str
    more: tuple[str, ...] = ()
    package: str = ""  # the folder of a package of its own, in place of an extra
    install: str = ""  # what the table names in place of the extra
    npm: tuple[str, ...] = ()  # packages of npm, the versions of which count in place of distributions'
    tests: str = ""  # the tests, where they are not in the folder of the framework's name


CLIENTS = ("openai", "anthropic")  # what the tests of a served memory need

FRAMEWORKS = {
    "langgraph": Framework(
        "LangGraph",
        "langgraph",
        ("langgraph", "langgraph-checkpoint"),
        "langgraph.md",
        ("langgraph-checkpoint-conformance",),
    ),
    "langchain": Framework("LangChain", "langchain", ("langchain", "langchain-core"), "langchain.md"),
    "openai_agents": Framework("OpenAI Agents SDK", "openai-agents", ("openai-agents",), "openai-agents.md"),
    "pydantic_ai": Framework("Pydantic AI", "pydantic-ai", ("pydantic-ai-slim",), "pydantic-ai.md"),
    "claude_agent": Framework("Claude Agent SDK", "claude-agent", ("claude-agent-sdk",), "claude-agent.md"),
    "google_adk": Framework("Google ADK", "google-adk", ("google-adk",), "google-adk.md"),
    "llamaindex": Framework("LlamaIndex", "llamaindex", ("llama-index-core",), "llamaindex.md"),
    "agent_framework": Framework(
        "Microsoft Agent Framework", "agent-framework", ("agent-framework-core",), "agent-framework.md"
    ),
    "anthropic": Framework("Anthropic's memory tool", "anthropic", ("anthropic",), "anthropic.md"),
    "strands": Framework("Strands", "strands", ("strands-agents",), "strands.md"),
    "haystack": Framework("Haystack", "haystack", ("haystack-ai",), "haystack.md"),
    "crewai": Framework("CrewAI", "crewai", ("crewai",), "crewai.md"),
    "agno": Framework("Agno", "agno", ("agno",), "agno.md", ("agno[sqlite]", "greenlet")),
    "litellm": Framework(
        "LiteLLM",
        "litellm,server",
        ("litellm",),
        "litellm.md",
        ("litellm[proxy]", *CLIENTS),
        install="holdfast[litellm]",
    ),
    "pipecat": Framework("Pipecat", "pipecat", ("pipecat-ai",), "pipecat.md"),
    "livekit": Framework("LiveKit Agents", "livekit", ("livekit-agents",), "livekit.md"),
    "mem0": Framework("mem0's client", "server", ("mem0ai",), "mem0.md", CLIENTS),
    "zep": Framework("Zep's client", "server", ("zep-cloud",), "zep.md", CLIENTS),
    "clients": Framework(
        "Agents and clients that are given another address",
        "server",
        ("openai-agents", "pydantic-ai-slim", "langchain-openai", "langchain-anthropic", "openai", "anthropic"),
        "../how-to/proxy.md",
        ("pydantic-ai-slim[openai,anthropic]", "langchain"),
    ),
    "npm": Framework(
        "OpenAI's and Vercel's clients for JavaScript",
        "server",
        ("openai", "ai", "@ai-sdk/openai"),
        "ai-sdk.md",
        CLIENTS,
        install="holdfast-memory",
        npm=("openai", "ai", "@ai-sdk/openai", "@ai-sdk/provider", "typescript", "zod", "node"),
        tests="tests/npm",
    ),
    "openclaw": Framework(
        "OpenClaw",
        "server",
        ("openclaw",),
        "openclaw.md",
        CLIENTS,
        install="holdfast-memory",
        npm=("openclaw", "node"),
    ),
    "hermes": Framework("Hermes Agent", "", ("hermes-agent",), "hermes.md", (), "hermes", "hermes-holdfast"),
}
# The first example of a page, and what it says.
FIRST = re.compile(r"^```(python|js)\n(.*?)^```\n(?:\s*^```text output\n(.*?)^```)?", re.DOTALL | re.MULTILINE)
VERSIONS = "import importlib.metadata as m, sys; print('\\n'.join(m.version(n) for n in sys.argv[1:]))"


def main() -> int:
    """Run what was asked for; return how many frameworks failed."""
    parser = argparse.ArgumentParser(description=__doc__.strip().splitlines()[0])
    parser.add_argument("frameworks", nargs="*", choices=[[], *FRAMEWORKS], metavar="framework")
    parser.add_argument("--check", action="store_true", help="only look whether the page shows the results")
    parser.add_argument("--environments", type=Path, default=ROOT / "build/integrations", help="where they are made")
    options = parser.parse_args()
    if options.check:
        results = json.loads(RESULTS.read_text(encoding="utf-8"))
        return int(PAGE.read_text(encoding="utf-8") != with_table(PAGE.read_text(encoding="utf-8"), results))
    failed = 0
    for name in options.frameworks or FRAMEWORKS:
        found = test(name, options.environments / name)
        failed += not found["ok"]
        results = json.loads(RESULTS.read_text(encoding="utf-8"))  # another run may write its own meanwhile
        results[name] = found
        RESULTS.write_text(json.dumps(dict(sorted(results.items())), indent=1) + "\n", encoding="utf-8")
        PAGE.write_text(with_table(PAGE.read_text(encoding="utf-8"), results), encoding="utf-8")
    return failed


def test(name: str, folder: Path) -> dict[str, object]:
    """Make the environment of a framework, follow its page and run its tests there, and return what was found."""
    framework = FRAMEWORKS[name]
    python = folder / "bin/python"
    subprocess.run([sys.executable, "-m", "venv", "--clear", str(folder)], check=True)
    env = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    if framework.npm:
        npm = ["npm", "install", "--no-audit", "--no-fund", "--prefix", str(folder)]
        latest = [f"{package}@latest" for package in framework.npm if package != "node"]
        subprocess.run([*npm, "--ignore-scripts", *latest], check=True)  # theirs want the Node that comes next
        subprocess.run([*npm, "node@latest"], check=True)
        env["HOLDFAST_NPM"] = str(folder)
    elif framework.package:
        subprocess.run([str(python), "-m", "pip", "install", "--quiet", *framework.shown], check=True)
    with tempfile.TemporaryDirectory() as place:
        seconds = newcomer(framework, folder, Path(place))
    install = [str(python), "-m", "pip", "install", "--quiet", "--upgrade", "--upgrade-strategy", "eager"]
    ours = f"{ROOT}[{framework.extra}]" if framework.extra else str(ROOT)
    wanted = ["pytest", "hypothesis", *framework.more, "-e", ours]
    wanted += ["-e", str(ROOT / framework.package)] if framework.package else []
    wanted += () if framework.npm else framework.shown
    subprocess.run([*install, *wanted], check=True)
    command = [str(python), "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--confcutdir={TESTS}", "--durations=0"]
    quiet = ["-o", "filterwarnings=default", "-W", "ignore"]  # their deprecations are theirs
    done = subprocess.run(
        [*command, *quiet, framework.tests or f"{TESTS}/{name}"], cwd=ROOT, env=env, capture_output=True, text=True
    )
    print(f"{framework.title}\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    passed = re.search(r"(\d+) passed", done.stdout)
    if seconds and "example_s" not in seconds:  # the page has no example: what it installed, in two processes
        took = re.search(r"([\d.]+)s call +\S+_in_another_process", done.stdout)
        seconds["example_s"] = round(float(took[1])) if took else 0
    return {
        "versions": javascript_versions(folder, framework.shown)
        if framework.npm
        else versions_of(python, framework.shown),
        "ok": done.returncode == 0,
        "passed": int(passed[1]) if passed else 0,
        "as_of": datetime.now(UTC).date().isoformat(),
        **seconds,
    }


def newcomer(framework: Framework, folder: Path, place: Path) -> dict[str, int]:
    """Follow a page in an empty environment; return the seconds until all is installed, and until its example has answered."""
    page = (PAGE.parent / framework.page).read_text(encoding="utf-8")
    found = FIRST.search(page)
    if found is None:
        return follow_commands(framework, page, folder, place)
    kind, example, shown = found.groups()
    if shown is None:
        return {}
    says = re.findall(r"^\$ pip install '(holdfast.*)'$", page, re.MULTILINE)[:1] or [f"holdfast[{framework.extra}]"]
    began = time.monotonic()
    pip_install(folder, *says)
    if kind == "js":
        npm = ["npm", "install", "--no-audit", "--no-fund", "--prefix", str(place), "--cache", f"{place}/cache"]
        subprocess.run([*npm, str(ROOT / "npm"), "ai"], check=True)
    installed = time.monotonic()
    printed = (run_served if kind == "js" else run_alone)(folder, place, example)
    answered = time.monotonic()
    for line in shown.splitlines():
        assert re.search(".*".join(re.escape(part) for part in line.split("…")), printed), printed
    return {"install_s": round(installed - began), "example_s": round(answered - installed)}


def follow_commands(framework: Framework, page: str, folder: Path, place: Path) -> dict[str, int]:
    """Run the commands of a page without an example, where its framework is installed; return the seconds that they took."""
    block = re.search(r"^```console no-run\n(.*?)^```", page, re.DOTALL | re.MULTILINE)
    assert block is not None, "the page has neither an example nor commands"
    path = f"{folder}/bin:{folder}/node_modules/.bin:{os.environ['PATH']}"
    own = {"PATH": path, "HERMES_HOME": f"{place}/.hermes", "PIP_NO_CACHE_DIR": "1", "HOLDFAST_SERVE_PORT": "0"}
    own |= {"HOME": str(place)} if framework.npm else {}  # OpenClaw's settings are there
    servers, began = [], time.monotonic()
    if framework.extra:
        pip_install(folder, f"holdfast[{framework.extra}]")
    for line in re.findall(r"^\$ (.*)$", block[1], re.MULTILINE):
        command = line.replace("install . ", f"install {ROOT} ").replace("./", f"{ROOT}/")
        if command.endswith("&"):
            servers.append(subprocess.Popen(command[:-1].split(), cwd=place, env={**os.environ, **own}))
            while not (place / "holdfast.db").exists():
                time.sleep(0.1)
        else:
            subprocess.run(command.split(), cwd=place, env={**os.environ, **own}, check=True)
    took = time.monotonic() - began
    for server in servers:
        server.terminate()
        server.wait()
    return {"install_s": round(took)}


def pip_install(folder: Path, *packages: str) -> None:
    """Install packages of ours in an environment, as somebody does whose pip has nothing in its cache."""
    asked = [package.replace("holdfast", str(ROOT), 1) for package in packages]
    env = {**os.environ, "PIP_NO_CACHE_DIR": "1"}
    subprocess.run([str(folder / "bin/python"), "-m", "pip", "install", "--quiet", *asked], env=env, check=True)


def run_alone(folder: Path, place: Path, example: str) -> str:
    """Run a program of Python in the environment; return what it says."""
    (place / "first.py").write_text(example, encoding="utf-8")
    command = [str(folder / "bin/python"), "first.py"]
    done = subprocess.run(command, cwd=place, capture_output=True, text=True, timeout=600)
    return done.stdout + done.stderr


def run_served(folder: Path, place: Path, example: str) -> str:
    """Start a server and run a program of JavaScript beside it, with the address and the key that the server says."""
    (place / "first.mjs").write_text(example, encoding="utf-8")
    serve = [str(folder / "bin/holdfast"), "serve", "--store", "chat.db", "--port", "0"]
    with subprocess.Popen(serve, cwd=place, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            address = server.stdout.readline().split()[2]
            key = next(found[0] for line in server.stdout if (found := re.search(r"hf_[\w-]+", line)))
            env = {**os.environ, "HOLDFAST_URL": address, "HOLDFAST_KEY": key}
            done = subprocess.run(
                ["node", "first.mjs"], cwd=place, env=env, capture_output=True, text=True, timeout=600
            )
        finally:
            server.terminate()
    return done.stdout + done.stderr


def versions_of(python: Path, shown: tuple[str, ...]) -> dict[str, str]:
    """Return the versions of distributions in an environment."""
    found = subprocess.run([str(python), "-c", VERSIONS, *shown], capture_output=True, text=True, check=True)
    return dict(zip(shown, found.stdout.split(), strict=True))


def javascript_versions(folder: Path, shown: tuple[str, ...]) -> dict[str, str]:
    """Return the versions of the npm packages that the table shows."""
    places = {name: folder / "node_modules" / name / "package.json" for name in shown}
    return {name: json.loads(place.read_text(encoding="utf-8"))["version"] for name, place in places.items()}


def lines_of_ours(page: str) -> int:
    """Return how many lines of a page's first example name something of Holdfast: what it adds to the framework's own."""
    found = FIRST.search(page)
    whole = found is not None and found[1] == "python" and found[3] is not None
    tree = ast.parse(found[2]) if found is not None and whole else ast.Module([], [])
    ours, lines = set[str](), set[int]()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("holdfast"):
            ours.update(name.asname or name.name for name in node.names)
            lines.add(node.lineno)
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call):
            made = node.value.func
            if isinstance(made, ast.Name) and made.id in ours and made.id.endswith("Memory"):
                ours.update(target.id for target in node.targets if isinstance(target, ast.Name))
    return len(lines | {node.lineno for node in ast.walk(tree) if isinstance(node, ast.Name) and node.id in ours})


def with_table(page: str, results: dict[str, dict[str, object]]) -> str:
    """Return the page with the table of the results in it."""
    lines = [
        "| framework | install | lines | seconds | works with | tests | as of |",
        "|---|---|--:|--:|---|---|---|",
    ]
    for name, framework in FRAMEWORKS.items():
        found = results.get(name)
        if found is None:
            continue
        versions = ", ".join(f"{package} {version}" for package, version in dict(found["versions"]).items())  # type: ignore[call-overload]
        state = f"{found['passed']} pass" if found["ok"] else "**fail**"
        title = f"[{framework.title}]({framework.page})"
        install = framework.install or f"holdfast[{framework.extra}]"
        ours = lines_of_ours((PAGE.parent / framework.page).read_text(encoding="utf-8")) or "–"
        seconds = f"{found['install_s']} + {found['example_s']}" if "install_s" in found else "–"
        lines.append(f"| {title} | `{install}` | {ours} | {seconds} | {versions} | {state} | {found['as_of']} |")
    before, _, rest = page.partition(START)
    return "\n".join([before + START, "", *lines, "", END + rest.partition(END)[2]])


if __name__ == "__main__":
    sys.exit(main())
