"""Adapters of frameworks, as seen where the frameworks are not installed."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
ADAPTERS = {
    "agent_framework": ("agent_framework", "agent-framework"),
    "agno": ("agno", "agno"),
    "agents.memory_tool": ("anthropic", "anthropic"),
    "agents.claude": ("claude_agent_sdk", "claude-agent"),
    "crewai": ("crewai", "crewai"),
    "google_adk": ("google.adk", "google-adk"),
    "haystack": ("haystack", "haystack"),
    "langchain": ("langchain", "langchain"),
    "langgraph": ("langgraph", "langgraph"),
    "litellm": ("litellm", "litellm"),
    "llamaindex": ("llama_index", "llamaindex"),
    "openai_agents": ("agents", "openai-agents"),
    "pydantic_ai": ("pydantic_ai", "pydantic-ai"),
    "strands": ("strands", "strands"),
    "voice.livekit": ("livekit", "livekit"),
    "voice.pipecat": ("pipecat", "pipecat"),
}


def run(code):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)


def test_every_adapter_is_listed_here():
    folder = ROOT / "src/holdfast/integrations"
    files = [path for path in folder.rglob("*.py") if "raise missing_package(" in path.read_text(encoding="utf-8")]
    adapters = {".".join(path.relative_to(folder).with_suffix("").parts) for path in files}

    assert adapters == set(ADAPTERS)


@pytest.mark.parametrize("adapter", ADAPTERS)
def test_a_missing_framework_is_an_error_that_says_how_to_install_it(adapter):
    framework, extra = ADAPTERS[adapter]
    done = run(f"import sys; sys.modules[{framework!r}] = None; import holdfast.integrations.{adapter}")

    assert "ConfigError" in done.stderr
    assert f"pip install 'holdfast[{extra}]'" in done.stderr


def test_the_package_needs_no_framework():
    blocked = "".join(f"sys.modules[{name!r}] = None; " for name in {name for name, _ in ADAPTERS.values()})
    done = run(f"import sys; {blocked}import holdfast; holdfast.Memory; holdfast.with_memory; print('ok')")

    assert done.stdout == "ok\n"


def test_each_adapter_has_tests_a_page_and_an_extra():
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    for adapter, (_, extra) in ADAPTERS.items():
        assert f"\n{extra} = [" in project
        assert (ROOT / f"docs/integrations/{extra}.md").exists()
        folder = ROOT / "tests/integrations/frameworks" / extra.replace("-", "_")
        assert any(f"integrations.{adapter} import" in path.read_text(encoding="utf-8") for path in folder.glob("*.py"))


def test_the_table_of_the_docs_shows_the_results():
    done = subprocess.run([sys.executable, "scripts/integrations_latest.py", "--check"], cwd=ROOT)

    assert done.returncode == 0
    results = json.loads((ROOT / "docs/integrations/results.json").read_text(encoding="utf-8"))
    assert all(found["ok"] for found in results.values())


@pytest.mark.parametrize("page", ["index", "strands", "crewai"])
def test_pages_say_what_does_not_install_beside_the_server(page):
    text = (ROOT / f"docs/integrations/{page}.md").read_text(encoding="utf-8")

    assert "older `mcp`" in text
    assert "from a clone" in text
    assert page != "index" or "on PyPI is another project" in text
