"""The dashboard, the alerts and the autoscaler name only what a server exports.

    metrics_test.py

Starts `kvasir serve` with a tiny model, asks it a few things and reads /metrics. Every metric, label, label's value and
legend in deploy/ must be there, what is a rate must be of a counter, and docs/OPERATIONS.md must have a section for each
alert. That the expressions parse is for deploy.alerts, which needs promtool.
"""
import itertools
import re
import unittest

from exported_metrics import ROOT, exported_metrics
from expressions import DASHBOARD, alert_expressions, alerts, dashboard, faults, panel_expressions


class Metrics(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.exported = exported_metrics()

    def test_every_panel_shows_what_there_is(self):
        expressions = list(panel_expressions())
        self.assertGreater(len(expressions), 50)
        self.assertEqual([], [fault for where, expression, legend in expressions
                              for fault in faults(where, expression, legend, self.exported)])

    def test_every_alert_watches_what_there_is(self):
        expressions = list(alert_expressions())
        self.assertGreater(len(expressions), 10)
        self.assertEqual([], [fault for name, expression, notes in expressions
                              for fault in faults(name, expression, notes.replace("$value", ""), self.exported)])

    def test_a_wrong_name_would_be_found(self):
        for expression, legend in (("kvasir_request_running", ""), ('kvasir_requests_running{tenant="a"}', ""),
                                   ('kvasir_start_stage_seconds_bucket{stage="prefil"}', ""),
                                   ("rate(kvasir_requests_running[5m])", ""),
                                   ("sum by (root) (kvasir_http_responses_total)", ""),
                                   ("sum by (code) (kvasir_http_responses_total)", "{{route}}"),
                                   ("histogram_quantile(0.5, kvasir_requests_running)", "")):
            with self.subTest(expression):
                self.assertEqual(len(list(faults("", expression, legend, self.exported))), 1)

    def test_all_else_that_is_named_in_deploy_is_exported(self):
        files = [path for folder in ("deploy/kubernetes", "deploy/prometheus") for path in (ROOT / folder).iterdir()]
        for path in [*files, DASHBOARD, ROOT / "docs/OPERATIONS.md"]:
            named = set(re.findall(r"\bkvasir_[a-z]\w+", path.read_text()))
            exported = set(self.exported.labels) | set(self.exported.types)
            self.assertEqual(set(), named - exported, path)

    def test_the_dashboard_has_every_kind_of_what_is_exported(self):
        shown = {name for _, expression, _ in panel_expressions() for name in re.findall(r"kvasir_\w+", expression)}
        for name in ("draining", "kv_format_bytes", "queue_age_seconds", "step_seconds_bucket", "step_sequences_bucket",
                     "start_stage_seconds_bucket", "inter_token_seconds_bucket", "prefix_cache_hits_tokens_total",
                     "requests_too_late_total", "requests_beyond_queue_total", "resident_bytes", "log_lines_dropped_total"):
            self.assertIn("kvasir_" + name, shown)

    def test_panels_have_ids_descriptions_and_places_of_their_own(self):
        panels = dashboard()["panels"]
        self.assertEqual(len({panel["id"] for panel in panels}), len(panels))
        self.assertEqual([], [panel["title"] for panel in panels
                              if panel["type"] != "row" and not (panel["description"] and panel["targets"])])
        for one, other in itertools.combinations([panel["gridPos"] for panel in panels], 2):
            apart = (one["x"] + one["w"] <= other["x"] or other["x"] + other["w"] <= one["x"]
                     or one["y"] + one["h"] <= other["y"] or other["y"] + other["h"] <= one["y"])
            self.assertTrue(apart, f"{one} and {other} overlap")
            self.assertLessEqual(one["x"] + one["w"], 24)

    def test_what_to_do_about_each_alert_is_written_down(self):
        text = (ROOT / "docs/OPERATIONS.md").read_text()
        for name, rule in alerts().items():
            self.assertIn(f"docs/OPERATIONS.md#{name.lower()}\"", rule)
            self.assertRegex(text, rf"(?m)^### {name}$")


if __name__ == "__main__":
    unittest.main()
