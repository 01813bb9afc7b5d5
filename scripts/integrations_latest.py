"""
Test every adapter against the newest release of its framework, and write down what was found.

    python scripts/integrations_latest.py                 all of them
    python scripts/integrations_latest.py langgraph       some of them
    python scripts/integrations_latest.py --check         whether the page shows what was found

Each framework gets an environment of its own in build/integrations.  The tests there are those that the ordinary run does
not collect, and the framework's page is run as well.  The results are kept in docs/integrations/results.json, from which the
table of docs/integrations/index.md is written.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import re
import subprocess
import sys
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
VERSIONS = "import importlib.metadata as m, sys; print('\\n'.join(m.version(n) for n in sys.argv[1:]))"


def main() -> int:
    """Run what was asked for; return how many frameworks failed."""
    parser = argparse.ArgumentParser(description=__doc__.strip().splitlines()[0])
    parser.add_argument("frameworks", nargs="*", choices=[[], *FRAMEWORKS], metavar="framework")
    parser.add_argument("--check", action="store_true", help="only look whether the page shows the results")
    parser.add_argument("--environments", type=Path, default=ROOT / "build/integrations", help="where they are made")
    options = parser.parse_args()
    results = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else {}
    if options.check:
        return int(PAGE.read_text(encoding="utf-8") != with_table(PAGE.read_text(encoding="utf-8"), results))
    failed = 0
    for name in options.frameworks or FRAMEWORKS:
        found = test(name, options.environments / name)
        failed += not found["ok"]
        results[name] = found
        RESULTS.write_text(json.dumps(dict(sorted(results.items())), indent=1) + "\n", encoding="utf-8")
    PAGE.write_text(with_table(PAGE.read_text(encoding="utf-8"), results), encoding="utf-8")
    return failed


def test(name: str, folder: Path) -> dict[str, object]:
    """Make the environment of a framework, run its tests there, and return what was found."""
    framework = FRAMEWORKS[name]
    python = folder / "bin/python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    install = [str(python), "-m", "pip", "install", "--quiet", "--upgrade", "--upgrade-strategy", "eager"]
    ours = f"{ROOT}[{framework.extra}]" if framework.extra else str(ROOT)
    wanted = ["pytest", "hypothesis", *framework.more, "-e", ours]
    wanted += ["-e", str(ROOT / framework.package)] if framework.package else []
    wanted += () if framework.npm else framework.shown
    subprocess.run([*install, *wanted], check=True)
    command = [str(python), "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--confcutdir={TESTS}"]
    quiet = ["-o", "filterwarnings=default", "-W", "ignore"]  # their deprecations are theirs
    env = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    if framework.npm:
        npm = ["npm", "install", "--no-audit", "--no-fund", "--prefix", str(folder)]
        latest = [f"{package}@latest" for package in framework.npm if package != "node"]
        subprocess.run([*npm, "--ignore-scripts", *latest], check=True)  # theirs want the Node that comes next
        subprocess.run([*npm, "node@latest"], check=True)
        env["HOLDFAST_NPM"] = str(folder)
    done = subprocess.run(
        [*command, *quiet, framework.tests or f"{TESTS}/{name}"], cwd=ROOT, env=env, capture_output=True, text=True
    )
    print(f"{framework.title}\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    passed = re.search(r"(\d+) passed", done.stdout)
    return {
        "versions": javascript_versions(folder, framework.shown)
        if framework.npm
        else versions_of(python, framework.shown),
        "ok": done.returncode == 0,
        "passed": int(passed[1]) if passed else 0,
        "as_of": datetime.now(UTC).date().isoformat(),
    }


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
    found = re.search(r"^```python\n(.*?)^```", page, re.DOTALL | re.MULTILINE)
    tree = ast.parse(found[1]) if found else ast.Module([], [])
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
    lines = ["| framework | install | lines | works with | tests | as of |", "|---|---|--:|---|---|---|"]
    for name, framework in FRAMEWORKS.items():
        found = results.get(name)
        if found is None:
            continue
        versions = ", ".join(f"{package} {version}" for package, version in dict(found["versions"]).items())  # type: ignore[call-overload]
        state = f"{found['passed']} pass" if found["ok"] else "**fail**"
        title = f"[{framework.title}]({framework.page})"
        install = framework.install or f"holdfast[{framework.extra}]"
        ours = lines_of_ours((PAGE.parent / framework.page).read_text(encoding="utf-8")) or "–"
        lines.append(f"| {title} | `{install}` | {ours} | {versions} | {state} | {found['as_of']} |")
    before, _, rest = page.partition(START)
    return "\n".join([before + START, "", *lines, "", END + rest.partition(END)[2]])


if __name__ == "__main__":
    sys.exit(main())
