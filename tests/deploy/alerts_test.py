"""Prometheus' own opinion of the alerts and the dashboard: every expression parses, every alert fires when it should.

    alerts_test.py

Needs promtool, of Debian's package prometheus (.ci/install.sh tests puts it alone into build/deploy/bin). Exit codes: 0,
1, 77 without promtool.
"""
import json
import shutil
import subprocess
import sys
import tempfile
import unittest

from exported_metrics import ROOT, exported_metrics
from expressions import RULES, alerts, panel_expressions

CASES = ROOT / "tests/deploy/alerts.yml"
PROMTOOL = shutil.which("promtool") or shutil.which(str(ROOT / "build/deploy/bin/promtool"))


def promtool(*args, stdin=None):
    return subprocess.run([PROMTOOL, *map(str, args)], input=stdin, capture_output=True, text=True)


class Promtool(unittest.TestCase):
    def check(self, done, says=None):
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        if says:
            self.assertIn(says, done.stdout + done.stderr)

    def test_alerts_are_rules(self):
        self.check(promtool("check", "rules", RULES), f"{len(alerts())} rules found")

    def test_every_alert_fires_on_its_case_and_is_silent_on_others(self):
        self.check(promtool("test", "rules", CASES), "SUCCESS")
        cases = CASES.read_text()
        self.assertEqual([], [name for name in alerts() if f"alertname: {name}\n" not in cases])

    def test_every_panel_parses(self):
        # JSON is YAML, and a recording rule is any expression with a name.
        records = [{"record": f"panel:{number}", "expr": expression}
                   for number, (_, expression, _) in enumerate(panel_expressions())]
        with tempfile.NamedTemporaryFile("w", suffix=".yml") as file:
            json.dump({"groups": [{"name": "panels", "rules": records}]}, file)
            file.flush()
            self.check(promtool("check", "rules", file.name), f"{len(records)} rules found")

    def test_what_the_server_exports_is_in_prometheus_format(self):
        done = promtool("check", "metrics", stdin=exported_metrics().text)
        self.assertEqual([], [line for line in done.stderr.splitlines() if "error" in line.lower()], done.stderr)
        self.assertIn(done.returncode, (0, 3), done.stderr)  # 3: names that its style guide would have otherwise


if __name__ == "__main__":
    if PROMTOOL is None:
        print("skipped: no promtool (.ci/install.sh tests)")
        sys.exit(77)
    unittest.main()
