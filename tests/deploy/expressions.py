"""The expressions in the files for Grafana, Prometheus and Kubernetes, and what they name. Not a test itself."""
import json
import pathlib
import re

from exported_metrics import OF_PROMETHEUS

ROOT = pathlib.Path(__file__).resolve().parents[2]
DASHBOARD = ROOT / "deploy/grafana/kvasir.json"
RULES = ROOT / "deploy/prometheus/kvasir.rules.yml"
SELECTOR = re.compile(r"\b(kvasir_\w+)(?:\{([^}]*)\})?")
MATCHER = re.compile(r'(\w+)\s*(=~|!~|!=|=)\s*"([^"]*)"')
GROUPING = re.compile(r"\b(?:by|without|on|ignoring|group_left|group_right)\s*\(([^)]*)\)")
COUNTED = re.compile(r"\b(?:rate|irate|increase)\(\s*(kvasir_\w+)")
QUANTILE = re.compile(r"histogram_quantile\(")
LEGEND = re.compile(r"\{\{\s*(?:\$labels\.)?(\w+)\s*\}\}")


def dashboard():
    return json.loads(DASHBOARD.read_text())


def panel_expressions():
    """(where it stands, expression, legend) of every target; Grafana's variables as Prometheus would get them."""
    for panel in dashboard()["panels"]:
        for target in panel.get("targets", []):
            expression = target["expr"].replace("$__rate_interval", "5m").replace("$instance", ".*")
            yield f"{panel['title']} {target['refId']}", expression, target["legendFormat"]


def alerts():
    """name -> the text of its rule. The file's own form is simple enough to be cut at `- alert:`."""
    rules = {}
    for part in RULES.read_text().split("- alert: ")[1:]:
        name, _, rest = part.partition("\n")
        rules[name] = rest
    return rules


def alert_expressions():
    """(alert, expression, annotations)."""
    for name, rule in alerts().items():
        found = re.search(r"expr: (.*?)\n {8}(?=for:|labels:)", rule, re.DOTALL)
        yield name, " ".join(found[1].removeprefix(">-").split()), rule[found.end():]


def faults(where, expression, text, exported):
    """The parts of an expression, and of its legend, that the server does not export."""
    known = set(OF_PROMETHEUS)
    for series, matchers in SELECTOR.findall(expression):
        if series not in exported.labels:
            yield f"{where}: {series} is not exported"
            continue
        labels = exported.labels[series]
        known |= set(labels)
        for label, operator, value in MATCHER.findall(matchers):
            if label in OF_PROMETHEUS:
                continue
            if label not in labels:
                yield f"{where}: {series} has no label {label}"
            elif operator == "=" and value not in labels[label] and not (label == "code" and value.isdigit()):
                yield f"{where}: {series} never has {label}=\"{value}\", but {sorted(labels[label])}"
    for series in COUNTED.findall(expression):
        if exported.type_of(series) not in (None, "counter"):
            yield f"{where}: the rate of {series}, which is a {exported.type_of(series)}"
    if QUANTILE.search(expression) and "le" not in known:
        yield f"{where}: a quantile of what has no buckets"
    for labels in GROUPING.findall(expression):
        for label in filter(None, (name.strip() for name in labels.split(","))):
            if label not in known:
                yield f"{where}: nothing in it has the label {label}"
    # Labels that a sum is not grouped by are gone.
    groups = [set(re.split(r"\s*,\s*", labels.strip())) for labels in re.findall(r"\bby\s*\(([^)]*)\)", expression)]
    shown = known if not groups else set.intersection(*groups)
    for label in LEGEND.findall(text):
        if label not in shown:
            yield f"{where}: shows {label}, which its result does not have"
