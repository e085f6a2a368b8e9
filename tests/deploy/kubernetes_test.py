"""The Kubernetes manifest: every object fits its schema, and what its parts say of each other is true.

    kubernetes_test.py

Needs build/deploy/venv with kubernetes-validate, whose schemas come with it (tests/deploy/install.sh). Exit codes: 0, 1,
77 skipped.
"""
import os
import pathlib
import subprocess
import sys
import tempfile
import tomllib
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
VENV = ROOT / "build/deploy/venv"
MANIFEST = ROOT / "deploy/kubernetes/kvasir.yaml"
ADAPTER = ROOT / "deploy/kubernetes/prometheus-adapter.yaml"
VERSIONS = ("1.27", "1.31", "1.34")
STEP_GRACE_S = 15  # kCancelGrace of src/cli/serve.cc


class Manifest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        import yaml
        cls.objects = {thing["kind"] + "/" + thing["metadata"]["name"]: thing
                       for thing in yaml.safe_load_all(MANIFEST.read_text())}
        cls.pods = cls.objects["StatefulSet/kvasir"]["spec"]["template"]
        [cls.container] = cls.pods["spec"]["containers"]
        cls.settings = tomllib.loads(cls.objects["ConfigMap/kvasir"]["data"]["kvasir.toml"])
        cls.rules = yaml.safe_load(ADAPTER.read_text())["rules"]["custom"]

    def test_objects_fit_their_schemas(self):
        for version in VERSIONS:
            done = subprocess.run([VENV / "bin/kubernetes-validate", "--strict", "-k", version, MANIFEST],
                                  capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_a_wrong_field_would_be_found(self):
        with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
            file.write(MANIFEST.read_text().replace("terminationGracePeriodSeconds", "terminationGrace"))
            file.flush()
            done = subprocess.run([VENV / "bin/kubernetes-validate", "--strict", file.name], capture_output=True)
            self.assertNotEqual(done.returncode, 0)

    def test_everybody_means_the_same_pods(self):
        labels = self.pods["metadata"]["labels"]
        for name in ("Service/kvasir", "Service/kvasir-replicas"):
            self.assertEqual(self.objects[name]["spec"]["selector"], labels)
        for name in ("StatefulSet/kvasir", "PodDisruptionBudget/kvasir"):
            self.assertEqual(self.objects[name]["spec"]["selector"]["matchLabels"], labels)
        scaled = self.objects["HorizontalPodAutoscaler/kvasir"]["spec"]["scaleTargetRef"]
        self.assertIn(f"{scaled['kind']}/{scaled['name']}", self.objects)
        self.assertIn("Service/" + self.objects["StatefulSet/kvasir"]["spec"]["serviceName"], self.objects)
        ports = {port["name"]: port["containerPort"] for port in self.container["ports"]}
        for name in ("startupProbe", "livenessProbe", "readinessProbe"):
            self.assertIn(self.container[name]["httpGet"]["port"], ports)
        self.assertEqual(ports["http"], self.settings["serve"]["port"])

    def test_the_drain_fits_into_the_time_that_a_pod_has_to_end(self):
        pre_stop = int(self.container["lifecycle"]["preStop"]["exec"]["command"][1])
        takes = pre_stop + self.settings["serve"]["drain-timeout"] + STEP_GRACE_S
        self.assertLess(takes, self.pods["spec"]["terminationGracePeriodSeconds"])
        # No request reaches the server any more before it refuses.
        probe = self.container["readinessProbe"]
        self.assertLessEqual(probe["periodSeconds"] * probe["failureThreshold"], pre_stop)

    def test_what_is_mounted_is_where_the_settings_look(self):
        mounts = {mount["mountPath"]: mount for mount in self.container["volumeMounts"]}
        keys = pathlib.PurePath(self.settings["serve"]["api-keys"])
        self.assertIn(str(keys.parent), mounts)
        volumes = {volume["name"] for volume in self.pods["spec"]["volumes"]}
        claims = self.objects["StatefulSet/kvasir"]["spec"]["volumeClaimTemplates"]
        volumes |= {claim["metadata"]["name"] for claim in claims}
        self.assertEqual({mount["name"] for mount in mounts.values()} - volumes, set())
        [pull] = self.pods["spec"]["initContainers"]
        self.assertEqual(pull["args"], ["pull", self.settings["serve"]["model"]])
        self.assertEqual(pull["image"], self.container["image"])

    def test_the_program_takes_the_settings(self):
        with tempfile.NamedTemporaryFile("w", suffix=".toml") as file:
            file.write(self.objects["ConfigMap/kvasir"]["data"]["kvasir.toml"])
            file.flush()
            subprocess.run([os.environ["KVASIR_BINARY"], "config"], check=True, stdout=subprocess.DEVNULL,
                           env={"KVASIR_CONFIG": file.name})
        limit = self.container["resources"]["limits"]
        self.assertEqual((limit["memory"], self.settings["memory"]), ("8Gi", "7GiB"))
        self.assertEqual(limit, self.container["resources"]["requests"])  # guaranteed: whole cores of its own

    def test_the_autoscaler_asks_for_what_the_adapter_offers(self):
        [metric] = self.objects["HorizontalPodAutoscaler/kvasir"]["spec"]["metrics"]
        self.assertIn(metric["pods"]["metric"]["name"], [rule["name"]["as"] for rule in self.rules])

    def test_pods_keep_to_the_restricted_standard(self):
        pod = self.pods["spec"]["securityContext"]
        self.assertTrue(pod["runAsNonRoot"])
        self.assertEqual(pod["seccompProfile"], {"type": "RuntimeDefault"})
        for container in [self.container, *self.pods["spec"]["initContainers"]]:
            self.assertEqual(container["securityContext"], {
                "allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True, "capabilities": {"drop": ["ALL"]}})


if __name__ == "__main__":
    os.environ.setdefault("KVASIR_BINARY", str(ROOT / "build/release/bin/kvasir"))
    if not (VENV / "bin/kubernetes-validate").exists():
        print("skipped: no build/deploy/venv (tests/deploy/install.sh)")
        sys.exit(77)
    if pathlib.Path(sys.prefix).resolve() != VENV.resolve():
        os.execv(VENV / "bin/python", [str(VENV / "bin/python"), "-B", *sys.argv])
    unittest.main()
