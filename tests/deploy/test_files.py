"""The files in deploy/ say what the code knows: every command, option, variable, path, metric."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from holdfast import Memory
from holdfast.cli import SECRET_NAMES
from holdfast.cli.app import command
from holdfast.server.metrics import Meters

ROOT = Path(__file__).parent.parent.parent
DEPLOY = ROOT / "deploy"
DOCKERFILE = (DEPLOY / "Dockerfile").read_text(encoding="utf-8")
COMPOSE = yaml.safe_load((DEPLOY / "compose" / "compose.yaml").read_text(encoding="utf-8"))
MANIFESTS = {
    path.name: list(yaml.safe_load_all(path.read_text(encoding="utf-8")))
    for path in sorted((DEPLOY / "kubernetes").glob("*.yaml"))
}
UNITS = {path.name: path.read_text(encoding="utf-8") for path in sorted((DEPLOY / "systemd").iterdir())}
RUNBOOK = ROOT / "docs" / "how-to" / "runbook.md"
UID = 10_001
# Variables that are read without being an option's.
OTHERS = {"HOLDFAST_MASTER_KEY", "HOLDFAST_MASTER_KEY_FILE", "PYTHONDONTWRITEBYTECODE", "PYTHONUNBUFFERED", "PATH"}
ELSEWHERE = {"up", "kube_cronjob_status_last_successful_time"}  # Prometheus' own, and those of kube-state-metrics


def objects(kind: str) -> list[dict[str, Any]]:
    return [one for many in MANIFESTS.values() for one in many if one["kind"] == kind]


def pods() -> dict[str, dict[str, Any]]:
    """The pod of everything that makes pods, by name."""
    found = {}
    for kind in ("Deployment", "Job", "CronJob"):
        for one in objects(kind):
            spec = one["spec"]["jobTemplate"]["spec"] if kind == "CronJob" else one["spec"]
            found[one["metadata"]["name"]] = spec["template"]["spec"]
    return found


OURS = {name: one for name, one in COMPOSE["services"].items() if one["image"].startswith("holdfast:")}
PODS = pods()


def shell_lines(text: str) -> Iterator[list[str]]:
    """The arguments of each ``holdfast`` in a script."""
    for line in text.splitlines():
        words = line.replace('"', "").split()
        if words[:1] == ["holdfast"]:
            yield words[1:]


def command_lines() -> dict[str, list[str]]:
    """Every command line of ``holdfast`` that is started anywhere, by where it stands."""
    found = {"Dockerfile": json.loads(re.search(r"^CMD (\[.*\])", DOCKERFILE, re.M)[1])}
    for name, one in OURS.items():
        given = one.get("command", [])
        lines = list(shell_lines(given[0])) if "entrypoint" in one else [given] if given else []
        found |= {f"compose {name} {number}": line for number, line in enumerate(lines)}
    for name, pod in PODS.items():
        for box in pod["containers"]:
            lines = list(shell_lines(box["args"][0])) if "command" in box else [box["args"]]
            found |= {f"kubernetes {name} {number}": line for number, line in enumerate(lines)}
    for name, text in UNITS.items():
        found[name] = re.search(r"^ExecStart=/opt/holdfast/bin/holdfast (.*)$", text, re.M)[1].split()
    return found


LINES = command_lines()


def parsed(args: list[str]) -> tuple[Any, dict[str, Any]]:
    """The command and what its real parser makes of the arguments; an option that it does not know raises."""
    at, rest = command(), [re.sub(r"\$\{[^}]*:-([^}]*)\}", r"\1", arg).replace("%i", "9465") for arg in args]
    while hasattr(at, "get_command"):
        at, rest = at.get_command(None, rest[0]), rest[1:]
        assert at is not None, args
    context = at.make_context("holdfast", list(rest))
    return at, context.params


@pytest.fixture(autouse=True)
def _nothing_in_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOLDFAST_ADMIN_STORE", "postgresql://admin@db/memory")
    for name in ("HOLDFAST_STORE", "HOLDFAST_LLM", "HOLDFAST_OPERATIONS"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize("where", LINES)
def test_a_command_that_is_started_is_one_that_there_is(where: str) -> None:
    parsed(LINES[where])


def test_the_parser_refuses_what_is_not_there() -> None:
    with pytest.raises(Exception, match="such option"):
        parsed(["serve", "--no-such-option"])


def variables() -> dict[str, set[str]]:
    """Every variable that is set for Holdfast, by where."""
    found = {"Dockerfile": set(re.findall(r"\b(HOLDFAST_\w+)=", DOCKERFILE))}
    for name, one in OURS.items():
        found[f"compose {name}"] = set(one.get("environment", {}))
    for name, pod in PODS.items():
        found[f"kubernetes {name}"] = {item["name"] for box in pod["containers"] for item in box.get("env", [])}
    for name, text in UNITS.items():
        found[name] = {
            part.split("=")[0] for line in re.findall(r"^Environment=(.*)$", text, re.M) for part in line.split()
        }
    return found


def test_a_variable_that_is_set_is_one_that_is_read() -> None:
    known = OTHERS | set(SECRET_NAMES) | {f"{name}_FILE" for name in SECRET_NAMES}
    for group in (("serve",), ("worker",), ("store", "init"), ("keys",)):
        at = command()
        for word in group:
            at = at.get_command(None, word)
        known |= {name for option in at.params for name in [option.envvar] if isinstance(name, str)}
        known |= {name for option in at.params if isinstance(option.envvar, list) for name in option.envvar}

    assert {where: names - known for where, names in variables().items() if names - known} == {}


def test_the_image_is_locked_pinned_and_nobodys_root() -> None:
    assert re.search(r"^ARG PYTHON=python:\d+\.\d+\.\d+-slim-\w+$", DOCKERFILE, re.M)
    assert "--no-deps --require-hashes" in DOCKERFILE
    assert re.findall(r"^USER (.*)$", DOCKERFILE, re.M) == [f"{UID}:{UID}"]
    assert DOCKERFILE.count("\nFROM ") == 2
    assert not re.search(r"^(ADD|ENV .*(KEY|PASSWORD|SECRET)\b)", DOCKERFILE, re.M)
    assert "STOPSIGNAL SIGTERM" in DOCKERFILE


def test_nothing_but_the_package_gets_into_a_build() -> None:
    lines = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    rules = [line for line in lines if line and not line.startswith("#")]
    copied = set(re.findall(r"^COPY (?!--from)(.*) \S+$", DOCKERFILE, re.M))

    assert rules[0] == "*"
    assert {line[1:] for line in rules if line.startswith("!")} == {name for names in copied for name in names.split()}


def test_the_lock_of_the_image_holds_what_its_extras_need_and_no_test_tool() -> None:
    pinned = dict(re.findall(r"^([\w.-]+)==([^ ;\\]+)", (ROOT / "requirements" / "serve.lock").read_text(), re.M))
    tested = dict(re.findall(r"^([\w.-]+)==([^ ;\\]+)", (ROOT / "requirements" / "dev.lock").read_text(), re.M))

    assert {"apsw", "numpy", "fastapi", "uvicorn", "psycopg-binary", "pydantic-ai-slim", "hatchling"} <= set(pinned)
    assert not {"pytest", "hypothesis", "playwright", "schemathesis", "mypy"} & set(pinned)
    assert {name: at for name, at in pinned.items() if tested.get(name, at) != at} == {}


@pytest.mark.parametrize("name", COMPOSE["services"])
def test_a_service_has_no_more_rights_than_it_needs(name: str) -> None:
    one = COMPOSE["services"][name]

    assert one["read_only"] is True
    assert one["cap_drop"] == ["ALL"]
    assert one["security_opt"] == ["no-new-privileges:true"]
    assert not {"privileged", "cap_add", "pid", "network_mode"} & set(one)
    assert name == "prometheus" or int(one["user"].split(":")[0]) > 0
    assert set(one.get("secrets", [])) <= set(COMPOSE["secrets"])
    assert all(port.startswith("127.0.0.1:") for port in one.get("ports", []))
    assert ":latest" not in one["image"]
    assert ":" in one["image"]


def test_secrets_of_compose_are_files_that_are_made_and_never_kept() -> None:
    made = (DEPLOY / "compose" / "make-secrets").read_text(encoding="utf-8")
    ignored = (DEPLOY / "compose" / ".gitignore").read_text(encoding="utf-8").split()

    assert "secrets/" in ignored
    for name, one in COMPOSE["secrets"].items():
        assert one == {"file": f"./secrets/{name}"}
        assert re.search(rf"^keep {name} ", made, re.M)
    for name, one in COMPOSE["services"].items():
        for value in one.get("environment", {}).values():
            if value.startswith("/run/secrets/"):
                assert value.removeprefix("/run/secrets/") in one["secrets"], name


def test_only_the_step_that_makes_the_tables_may_make_tables() -> None:
    assert [n for n, one in COMPOSE["services"].items() if "admin_store" in one.get("secrets", [])] == ["init"]
    holders = [
        name
        for name, pod in PODS.items()
        for volume in pod["volumes"]
        if volume.get("secret", {}).get("secretName") == "holdfast-admin"
    ]
    assert holders == ["holdfast-init"]


@pytest.mark.parametrize("name", PODS)
def test_a_pod_is_admitted_where_only_restricted_ones_are(name: str) -> None:
    """By the rules of the level `restricted` of Kubernetes' pod security standards, which the namespace asks for."""
    pod = PODS[name]

    assert pod["automountServiceAccountToken"] is False
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["securityContext"]["runAsUser"] == UID
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert not {"hostNetwork", "hostPID", "hostIPC"} & set(pod)
    assert all(set(volume) - {"name"} <= {"secret", "emptyDir", "persistentVolumeClaim"} for volume in pod["volumes"])
    volumes = {volume["name"] for volume in pod["volumes"]}
    for box in pod["containers"]:
        assert box["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }
        assert {"/tmp", "/data"} <= {mount["mountPath"] for mount in box["volumeMounts"]}
        assert {mount["name"] for mount in box["volumeMounts"]} == volumes
        assert "memory" in box["resources"]["limits"]
        assert not box["image"].endswith(":latest")


@pytest.mark.parametrize("name", [name for name, pod in PODS.items() if "ports" in pod["containers"][0]])
def test_probes_ask_what_there_is_at_the_port_that_is_open(name: str) -> None:
    (box,) = PODS[name]["containers"]
    ports = {port["name"]: port["containerPort"] for port in box["ports"]}
    _, options = parsed(box["args"])

    assert options["operations"] == f":{ports['operations']}"
    for kind, path in (("startupProbe", "/healthz"), ("livenessProbe", "/healthz"), ("readinessProbe", "/readyz")):
        assert box[kind]["httpGet"] == {"path": path, "port": "operations"}
    assert options.get("grace", 10) < PODS[name]["terminationGracePeriodSeconds"]
    if "http" in ports:
        assert options["port"] == ports["http"]


def test_what_points_to_another_points_to_something() -> None:
    named = {(one["kind"], one["metadata"]["name"]) for many in MANIFESTS.values() for one in many}
    keys = {one["metadata"]["name"]: set(one["stringData"]) for one in objects("Secret")}
    for one in objects("HorizontalPodAutoscaler"):
        target = one["spec"]["scaleTargetRef"]
        assert (target["kind"], target["name"]) in named
    for pod in PODS.values():
        assert ("ServiceAccount", pod["serviceAccountName"]) in named
        mounts = {mount["name"]: mount["mountPath"] for mount in pod["containers"][0]["volumeMounts"]}
        for volume in pod["volumes"]:
            if "persistentVolumeClaim" in volume:
                assert ("PersistentVolumeClaim", volume["persistentVolumeClaim"]["claimName"]) in named
            if "secret" not in volume:
                continue
            held = {f"{mounts[volume['name']]}/{key}" for key in keys[volume["secret"]["secretName"]]}
            used = {item["value"] for item in pod["containers"][0]["env"] if item["name"].endswith("_FILE")}
            assert used <= held
    (service,) = objects("Service")
    serve = next(one for one in objects("Deployment") if one["metadata"]["name"] == "holdfast-serve")
    assert service["spec"]["selector"] == serve["spec"]["template"]["metadata"]["labels"]
    assert all(
        one["metadata"].get("namespace", "holdfast") == "holdfast" for many in MANIFESTS.values() for one in many
    )


@pytest.mark.parametrize("name", UNITS)
def test_a_unit_gives_away_every_right(name: str) -> None:
    unit = UNITS[name].splitlines()

    assert {"DynamicUser=yes", "NoNewPrivileges=yes", "ProtectSystem=strict", "CapabilityBoundingSet="} <= set(unit)
    options = parsed(LINES[name])[1]
    stop = next(int(line.split("=")[1]) for line in unit if line.startswith("TimeoutStopSec="))
    assert options.get("grace", 10) < stop


@pytest.fixture(scope="module")
def metrics() -> dict[str, set[str]]:
    """``{sample name: its labels}`` of everything that a process can tell."""
    with Memory(embedder=None) as memory:
        meters = Meters(memory)
        work, labelled = meters.work, [meters, meters.work]
        for part in labelled:
            for meter in vars(part).values():
                names = getattr(meter, "_labelnames", ())
                if names:
                    meter.labels(*("x" for _ in names))
        work.look = lambda: None  # what stands in the store does not take the examples away
        text = meters.text().decode()
    found: dict[str, set[str]] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            found.setdefault(sample.name, set()).update(sample.labels)
    return found


def rules() -> list[dict[str, Any]]:
    found = yaml.safe_load((DEPLOY / "prometheus" / "alerts.yaml").read_text(encoding="utf-8"))
    return [rule for group in found["groups"] for rule in group["rules"]]


def questions() -> dict[str, str]:
    """Every expression that is asked of Prometheus, by what asks it."""
    found = {rule["alert"]: rule["expr"] for rule in rules()}
    board = json.loads((DEPLOY / "grafana" / "holdfast.json").read_text(encoding="utf-8"))
    for one in board["panels"]:
        found |= {f"{one['title']} {target['refId']}": target["expr"] for target in one.get("targets", [])}
    text = (DEPLOY / "kubernetes" / "worker-by-queue.yaml").read_text(encoding="utf-8")
    return found | {"worker-by-queue": re.search(r"metricsQuery: (.*)", text)[1]}


QUESTIONS = questions()
_NO_NAMES = frozenset(
    "sum rate max count by le increase histogram_quantile topk time predict_linear without on ignoring".split()
)


def asked(expression: str) -> dict[str, set[str]]:
    """``{metric: labels that are asked of it}``; labels after ``by`` belong to every metric of the expression."""
    grouped = {word for group in re.findall(r"\bby \(([^)]*)\)", expression) for word in re.findall(r"\w+", group)}
    bare = re.sub(r"\bby \([^)]*\)|\[[^\]]*\]", " ", expression)
    found = {}
    for name, selector in re.findall(r"\b([a-z_]+)\b(?!\()\s*(\{[^}]*\})?", re.sub(r'"[^"]*"', '""', bare)):
        if name not in _NO_NAMES and not re.search(rf"\{{[^}}]*\b{name}\s*[=!~]", bare):
            found[name] = grouped | set(re.findall(r"(\w+)\s*(?:=|!=|=~|!~)", selector))
    return found


@pytest.mark.parametrize("name", QUESTIONS)
def test_what_is_asked_of_prometheus_is_told_by_the_code(name: str, metrics: dict[str, set[str]]) -> None:
    found = {metric: labels for metric, labels in asked(QUESTIONS[name]).items() if metric not in ELSEWHERE}

    for metric, labels in found.items():
        assert metric in metrics, metric
        assert labels - {"instance", "job"} <= metrics[metric] | {"le"}
    assert found or set(asked(QUESTIONS[name])) & ELSEWHERE


def test_the_reader_of_expressions_finds_names_and_labels() -> None:
    expression = 'histogram_quantile(0.99, sum by (le, route) (rate(a_bucket{status=~"5..", x!="y"}[10m]))) / max(b)'

    assert asked(expression) == {"a_bucket": {"le", "route", "status", "x"}, "b": {"le", "route"}}


def test_a_figure_of_the_store_is_never_added_up() -> None:
    """Every process tells the same depth of the queue."""
    of_the_store = ("holdfast_jobs_open", "holdfast_jobs_due", "holdfast_jobs_overdue", "holdfast_store_bytes")
    for name, expression in QUESTIONS.items():
        for metric in of_the_store:
            assert not re.search(rf"sum[^(]*\((?!max)[^()]*{metric}\b", expression), name


def test_every_alert_has_its_chapter_in_the_runbook() -> None:
    chapters = set(re.findall(r"^### (\w+)$", RUNBOOK.read_text(encoding="utf-8"), re.M))

    assert chapters >= {rule["alert"] for rule in rules()}
    assert {chapter for chapter in chapters if chapter.startswith("Holdfast")} == {rule["alert"] for rule in rules()}
    for rule in rules():
        assert rule["annotations"]["runbook"] == f"docs/how-to/runbook.md#{rule['alert'].lower()}"
        assert rule["labels"]["severity"] in ("warning", "critical")


def test_panels_of_the_dashboard_do_not_lie_on_each_other() -> None:
    board = json.loads((DEPLOY / "grafana" / "holdfast.json").read_text(encoding="utf-8"))
    cells: set[tuple[int, int]] = set()
    for one in board["panels"]:
        place = one["gridPos"]
        own = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert not own & cells, one["title"]
        assert place["x"] + place["w"] <= 24
        cells |= own
    assert len({one["id"] for one in board["panels"]}) == len(board["panels"])
