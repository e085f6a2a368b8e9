"""Models of the hub: every download ends whole, or with one true line, and the token goes to the hub alone."""
import hashlib
import json
import os
import pathlib
import random
import shutil
import signal
import subprocess
import time
import unittest

from command_line import BAD_FILE, INTERRUPTED, LLAMA, MACHINE, TIME_LIMIT_S, USAGE, CommandLineTest
from hub_server import Hub, Repository, git_hash

MIB = 1 << 20
TOKEN = "hf_secretTokenOfThisTest"
LARGE = random.Random(1).randbytes(70 * MIB)  # three pieces
MEDIUM = LARGE[:5 * MIB]
INDEX = json.dumps({"weight_map": {"a": "model-00001-of-00002.safetensors", "b": "model-00002-of-00002.safetensors"}})
FOLDER = {
    "config.json": b"{}", "tokenizer.json": b"{}" * 1000, "tokenizer_config.json": b"{}", "chat_template.jinja": b"x",
    "model.safetensors.index.json": INDEX.encode(), "model-00001-of-00002.safetensors": b"a" * 3000,
    "model-00002-of-00002.safetensors": b"b" * 2000, "stray-00003.safetensors": b"c" * 2000,
    "pytorch_model.bin": b"p" * 3000, "original/consolidated.00.pth": b"p" * 3000, "onnx/model.onnx": b"o" * 3000,
    "README.md": b"# Model", ".gitattributes": b"*", "1_Pooling/config.json": b"{}",
}


class HubTest(CommandLineTest):
    def serve(self, files, **kwargs):
        hub = Hub({"owner/model": Repository(files)}, **kwargs)
        self.addCleanup(hub.close)
        self.hub = hub
        return hub

    def environment(self, **changes):
        changes = {"HF_ENDPOINT": self.hub.url, "HF_HOME": str(self.folder / "hf"), "KVASIR_HOME": str(self.folder / "home"),
                   **changes}
        env = {name: value for name, value in super().environment().items()
               if not name.startswith(("HF_", "OLLAMA_")) and not name.lower().endswith("_proxy")}
        return env | changes

    def pull(self, name="hf:owner/model", **kwargs):
        return self.json("pull", name, **kwargs)[0]

    def refused(self, says, name="hf:owner/model", expect=BAD_FILE, **kwargs):
        line = self.kvasir("pull", name, expect=expect, **kwargs).stderr.splitlines()[-1]
        self.assertTrue(line.startswith("kvasir: hf:owner/model: "), line)
        self.assertIn(says, line)
        self.assertEqual(list(self.folder.glob("home/hub/*/snapshots/*/*.gguf")), [])

    def assert_is(self, path, content):
        self.assertEqual(pathlib.Path(path).read_bytes(), content)
        self.assertEqual([p for p in self.folder.rglob(".*") if p.suffix in (".incomplete", ".pieces")], [])


class Downloads(HubTest):
    def test_a_large_file_arrives_over_four_connections(self):
        hub = self.serve({"m.gguf": LARGE})
        pulled = self.pull()
        self.assert_is(pulled["path"], LARGE)
        self.assertEqual(pulled["sha256"], hashlib.sha256(LARGE).hexdigest())
        self.assertEqual((pulled["revision"], pulled["license"], pulled["source"], pulled["was_present"]),
                         (hub.repositories["owner/model"].commit, "mit", "hf", False))
        ranges = sorted(headers["Range"] for _, _, _, headers in hub.asked("files", "GET"))
        self.assertEqual(ranges, [f"bytes=0-{32 * MIB - 1}", f"bytes={32 * MIB}-{64 * MIB - 1}",
                                  f"bytes={64 * MIB}-{70 * MIB - 1}"])
        self.assertTrue(self.pull()["was_present"])
        self.assertEqual(len(hub.asked("files", "GET")), 3)

    def test_drops_at_every_64_kib(self):
        hub = self.serve({"m.gguf": LARGE})
        hub.faults.drop_after = 64 << 10
        self.assert_is(self.pull()["path"], LARGE)
        self.assertGreater(len(hub.asked("files", "GET")), 1100)

    def test_a_refused_range_is_one_line(self):
        hub = self.serve({"m.gguf": MEDIUM})
        hub.faults.statuses = [(416, {})]
        self.refused("m.gguf: the server refuses a range inside of the file (416)")
        hub.faults.statuses = [(416, {"Content-Range": "bytes */5"})]
        self.refused(f"m.gguf: the server's file has 5 bytes, the hub says {len(MEDIUM)}")
        self.assert_is(self.pull()["path"], MEDIUM)

    def test_the_cache_of_the_hubs_own_client_gets_its_layout(self):
        hub = self.serve({"m.gguf": MEDIUM, "sub/other.gguf": MEDIUM[1:]})
        commit, digest = hub.repositories["owner/model"].commit, hashlib.sha256(MEDIUM).hexdigest()
        cache = self.folder / "hf/hub/models--owner--model"
        pulled = self.json("pull", "hf:owner/model:m.gguf", "--to", "hub-cache")[0]
        place = cache / "snapshots" / commit / "m.gguf"
        self.assertEqual((pulled["path"], pulled["was_present"]), (str(place), False))
        self.assertEqual(os.readlink(place), f"../../blobs/{digest}")
        self.assertEqual((cache / "blobs" / digest).read_bytes(), MEDIUM)
        self.assertEqual((cache / "refs/main").read_text(), commit)
        self.json("pull", "hf:owner/model:sub/other.gguf", "--to", "hub-cache")
        self.assertEqual((cache / "snapshots" / commit / "sub/other.gguf").read_bytes(), MEDIUM[1:])
        asked = len(hub.asked("files", "GET"))
        self.assertTrue(self.json("pull", "hf:owner/model:m.gguf", "--to", "hub-cache")[0]["was_present"])
        self.assertTrue(self.json("pull", "hf:owner/model:m.gguf")[0]["was_present"])  # the store uses it from there
        self.assertEqual(len(hub.asked("files", "GET")), asked)
        self.assertFalse((self.folder / "home/hub").exists())
        self.refusal(USAGE, "pull", "smollm2:135m", "--to", "hub-cache", says="is for models of the hub")

    def test_targets_that_expire_are_asked_for_again(self):
        hub = self.serve({"m.gguf": MEDIUM})
        hub.faults.drop_after, hub.faults.uses_of_target = 64 << 10, 3
        self.assert_is(self.pull()["path"], MEDIUM)
        self.assertGreater(len(hub.asked("hub", "HEAD")), 20)

    def test_targets_that_are_never_valid(self):
        self.serve({"m.gguf": MEDIUM}).faults.never_valid = True
        self.refused("m.gguf: 127.0.0.1 refuses access (403), also at new addresses")

    def test_whole_files_instead_of_ranges(self):
        hub = self.serve({"m.gguf": LARGE})
        hub.faults.ignore_ranges = True
        self.assert_is(self.pull()["path"], LARGE)

    def test_whole_files_that_drop_end_with_the_reason(self):
        hub = self.serve({"m.gguf": MEDIUM})
        hub.faults.ignore_ranges, hub.faults.drop_after = True, 64 << 10
        self.refused("the server knows no ranges, so that each try starts at the beginning", expect=MACHINE)

    def test_wrong_lengths(self):
        hub = self.serve({"m.gguf": MEDIUM})
        for fault, value, says in (("claimed_bytes", 7 * MIB, f"the server sends {7 * MIB} bytes, the hub says {5 * MIB}"),
                                   ("claimed_bytes", 7, f"the server sends 7 bytes, the hub says {5 * MIB}"),
                                   ("changed_content", b"short", "the server sends 5 bytes"),
                                   ("changed_content", bytes(5 * MIB), "the checksum of what arrived is ")):
            with self.subTest(fault=fault, value=value if isinstance(value, int) else len(value)):
                setattr(hub.faults, fault, value)
                self.refused(says)
                setattr(hub.faults, fault, None)
        self.assert_is(self.pull()["path"], MEDIUM)

    def test_wrong_ranges(self):
        hub = self.serve({"m.gguf": LARGE})
        for fault, says in (("range_shift", "the server sends the bytes "), ("total_shift", "the server's file has ")):
            with self.subTest(fault):
                setattr(hub.faults, fault, 1)
                self.refused(says)
                setattr(hub.faults, fault, 0)
        hub.faults.changed_content = LARGE[:33 * MIB]  # the third piece begins behind its end: 416, or a shorter total
        self.refused(f"the server's file has {33 * MIB} bytes, the hub says {70 * MIB}")

    def test_a_target_that_redirects_in_a_circle(self):
        self.serve({"m.gguf": MEDIUM}).faults.redirect_loop = "files"
        self.refused("m.gguf: the server redirects more than 10 times")

    def test_busy_servers_are_asked_again(self):
        hub = self.serve({"m.gguf": MEDIUM})
        again = {"Retry-After": "0"}
        hub.faults.api_statuses = [(503, again), (429, again), (500, again)]
        hub.faults.statuses = [(429, again), (503, again), (408, again), (502, {})]
        self.assert_is(self.pull()["path"], MEDIUM)

    def test_servers_that_stay_busy(self):
        hub = self.serve({"m.gguf": MEDIUM})
        again = {"Retry-After": "0"}
        hub.faults.api_statuses = [(429, again)] * 6
        self.refused("127.0.0.1 allows no more requests for now (429)", expect=MACHINE)
        hub.faults.api_statuses = [(429, {"Retry-After": "86400"})]
        self.refused("127.0.0.1 allows no more requests for now (429)", expect=MACHINE)
        hub.faults.api_statuses = [(503, again)] * 6
        self.refused("127.0.0.1 answers with status 503", expect=MACHINE)
        hub.faults.api_statuses = []
        hub.faults.statuses = [(500, again)] * 6
        self.refused("m.gguf: 127.0.0.1 answers with status 500", expect=MACHINE)

    def test_an_interrupted_pull_goes_on_where_it_was(self):
        hub = self.serve({"m.gguf": LARGE})
        hub.faults.drop_after, hub.faults.hangs_after = 20 * MIB, 3
        process = self.start("pull", "hf:owner/model")
        deadline = time.monotonic() + TIME_LIMIT_S
        while len(hub.asked("files", "GET")) < 5:  # two of the three pieces drop; the third is smaller
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(TIME_LIMIT_S), INTERRUPTED)
        self.assertEqual(len(list(self.folder.glob("home/hub/*/incomplete/.*.pieces"))), 1)
        hub.faults.hangs_after, hub.faults.drop_after = None, 0
        before = len(hub.asked("files", "GET"))
        self.assert_is(self.pull()["path"], LARGE)
        firsts = {headers["Range"].split("-")[0] for _, _, _, headers in hub.asked("files", "GET")[before:]}
        self.assertLessEqual({f"bytes={20 * MIB}", f"bytes={52 * MIB}"}, firsts)

    def test_what_lies_there_of_another_commit_or_is_damaged_is_not_used(self):
        hub = self.serve({"m.gguf": MEDIUM})
        digest, commit = hashlib.sha256(MEDIUM).hexdigest(), hub.repositories["owner/model"].commit
        incomplete = self.folder / "home/hub/models--owner--model/incomplete"
        for at, done in (("0" * 40, 4096), (commit, 4096), (commit, 1 << 40)):
            with self.subTest(at=at, done=done):
                shutil.rmtree(self.folder / "home", ignore_errors=True)
                incomplete.mkdir(parents=True)
                (incomplete / f".{digest}.00000000.incomplete").write_bytes(bytes(len(MEDIUM)))
                header = f"kvasir-pieces-1 {at} {digest} {len(MEDIUM)} {32 * MIB}\n".encode()
                (incomplete / f".{digest}.00000000.pieces").write_bytes(header + done.to_bytes(8, "little"))
                self.assert_is(self.pull()["path"], MEDIUM)

    def test_a_damaged_file_is_mended(self):
        self.serve({"m.gguf": MEDIUM})
        path = pathlib.Path(self.pull()["path"])
        for damaged in (MEDIUM[:-1], bytes(len(MEDIUM))):
            path.write_bytes(damaged)
            self.assertFalse(self.pull()["was_present"])
            self.assert_is(path, MEDIUM)
        self.assertFalse(self.pull("hf:owner/model", env={"KVASIR_FORCE": "true"})["was_present"])


class Refusals(HubTest):
    def test_models_that_are_not_there_or_not_for_everybody(self):
        hub = self.serve({"m.gguf": MEDIUM})
        hub.token = TOKEN
        self.refused("no such model, or it needs HF_TOKEN")
        self.refused("no such model, or the token of HF_TOKEN may not read it", env={"HF_TOKEN": "hf_wrong"})
        hub.token, hub.gated = None, True
        self.refused(f"accept the terms on its page first: {hub.url}/owner/model")
        hub.gated = False
        self.refused("no revision is called 'v7'", "hf:owner/model@v7")
        hub.repositories = {}
        self.refused("no such model, or it needs HF_TOKEN")

    def test_an_unknown_file_names_the_nearest(self):
        self.serve({"model-Q8_0.gguf": MEDIUM, "sub/model-F16.gguf": MEDIUM})
        self.refused("no file is called 'model-Q8_1.gguf'; did you mean model-Q8_0.gguf?", "hf:owner/model:model-Q8_1.gguf")
        self.refused("there are model-Q8_0.gguf, sub/model-F16.gguf", "hf:owner/model:other")

    def test_lists_that_lead_elsewhere(self):
        hub = self.serve({"m.gguf": MEDIUM})
        hub.extra_listed = [{"type": "file", "path": "../../evil.gguf", "size": 5, "oid": "0" * 40}]
        self.refused("the hub lists a file outside of the model: '../../evil.gguf'")
        hub.extra_listed = [{"type": "file", "path": "x.gguf", "size": 5, "oid": "none"}]
        self.refused("the hub lists x.gguf without a checksum")
        hub.extra_listed = []
        hub.faults.linked_etag = "1" * 64
        self.refused("m.gguf: the hub's checksum is ")
        hub.faults.linked_etag, hub.faults.redirect_loop = None, "hub"
        self.refused("the hub redirects more than 10 times")

    def test_names_that_are_none(self):
        self.serve({"m.gguf": MEDIUM})
        for name, says in (("hf:model", "the owner or the name is missing"), ("hf:../x", "the owner is no name"),
                           ("hf:owner/model@", "no revision follows"), ("hf:owner/model@a b", "the revision is no name"),
                           ("hf:owner/model:../x", "the file is no path"), ("hf:owner/mo del", "the model is no name")):
            with self.subTest(name):
                self.refusal(USAGE, "pull", name, says=says)
        self.assertEqual(self.hub.requests, [])

    def test_a_hub_that_is_not_there(self):
        self.serve({"m.gguf": MEDIUM}).close()
        self.refused("Failed to connect to 127.0.0.1", expect=MACHINE)
        self.refusal(USAGE, "pull", "hf:owner/model", env={"HF_ENDPOINT": "ftp://x"}, says="HF_ENDPOINT must be an address")


class Token(HubTest):
    def test_it_goes_to_the_hub_and_nowhere_else(self):
        hub = self.serve({"m.gguf": LARGE})
        hub.token, hub.faults.uses_of_target, hub.faults.drop_after = TOKEN, 2, 20 * MIB
        self.file("token", f"{TOKEN}\n".encode())
        (self.folder / "hf").mkdir()
        self.file("hf/token", TOKEN.encode())
        for env in ({"HF_TOKEN": TOKEN}, {"HF_TOKEN_PATH": str(self.folder / "token")}, {}):
            with self.subTest(env):
                hub.requests.clear()
                done = self.kvasir("pull", "hf:owner/model", "--force", "--verbose", "--json", env=env)
                self.assertNotIn(TOKEN, done.stdout.decode() + done.stderr)
                self.assertTrue(all(headers["Authorization"] == f"Bearer {TOKEN}" for *_, headers in hub.asked("hub")))
                self.assertGreater(len(hub.asked("files")), 3)
                self.assertFalse(any("Authorization" in headers for *_, headers in hub.asked("files")))

    def test_it_is_in_no_error(self):
        hub = self.serve({"m.gguf": MEDIUM})
        hub.token = "another"
        self.assertNotIn(TOKEN, self.kvasir("pull", "hf:owner/model", env={"HF_TOKEN": TOKEN}, expect=BAD_FILE).stderr)
        line = self.refusal(USAGE, "pull", "hf:owner/model", env={"HF_TOKEN": "hf_a\r\nX-Evil: 1"}, says="HF_TOKEN: a token is")
        self.assertNotIn("Evil", line)

    def test_a_moved_model_is_followed_with_the_token(self):
        hub = self.serve({"m.gguf": MEDIUM})
        hub.token, hub.faults.moved = TOKEN, "owner/model"
        hub.repositories = {"owner/renamed": Repository({"m.gguf": MEDIUM})}
        hub.repositories["owner/model"] = hub.repositories["owner/renamed"]  # files are still there by the old name
        self.assert_is(self.pull(env={"HF_TOKEN": TOKEN})["path"], MEDIUM)


class Choice(HubTest):
    def paths(self, name="hf:owner/model"):
        pulled = self.pull(name)
        root = pathlib.Path(next(self.folder.glob("home/hub/models--owner--model/snapshots/*")))
        return [str(pathlib.Path(file["path"]).relative_to(root)) for file in pulled["files"]], pulled

    def test_of_several_quantizations(self):
        self.serve({f"m-{type}.gguf": type.encode() * 500 for type in ("Q4_K_M", "Q8_0", "IQ4_XS")} |
                   {"mmproj-F16.gguf": b"x" * 2000})
        self.assertEqual(self.paths()[0], ["m-Q4_K_M.gguf"])
        self.assertEqual(self.paths("hf:owner/model:Q8_0")[0], ["m-Q8_0.gguf"])
        self.assertEqual(self.paths("hf:owner/model@main:m-IQ4_XS.gguf")[0], ["m-IQ4_XS.gguf"])
        names = [model["name"] for model in self.json("list") if model["source"] == "hub"]
        self.assertEqual(names, [f"hf:owner/model:m-{type}.gguf" for type in ("IQ4_XS", "Q4_K_M", "Q8_0")])

    def test_none_of_several_is_the_usual(self):
        self.serve({"m-Q5_0.gguf": b"x" * 2000, "m-Q8_0.gguf": b"y" * 2000})
        self.refused("has 2 GGUF models, none of them Q4_K_M; choose one as hf:owner/model:FILE from: m-Q5_0.gguf, m-Q8_0.gguf")

    def test_a_split_set_is_fetched_whole(self):
        files = {f"q/m-Q4_K_M-0000{part}-of-00003.gguf": b"%d" % part * 2000 for part in (1, 2, 3)}
        self.serve(files | {"m-Q8_0.gguf": b"x" * 2000})
        paths, pulled = self.paths()
        self.assertEqual(paths, list(files))
        self.assertTrue(pulled["path"].endswith("q/m-Q4_K_M-00001-of-00003.gguf"))
        self.assertEqual(self.paths("hf:owner/model:q/m-Q4_K_M-00002-of-00003.gguf")[0], list(files))
        del self.hub.repositories["owner/model"].files["q/m-Q4_K_M-00002-of-00003.gguf"]
        shutil.rmtree(self.folder / "home")
        self.refused("belongs to a set of 3 files, and q/m-Q4_K_M-00002-of-00003.gguf is missing")

    def test_a_folder_of_safetensors(self):
        self.serve(FOLDER).page_size = 3
        paths, pulled = self.paths()
        left_out = {"stray-00003.safetensors", "pytorch_model.bin", "original/consolidated.00.pth", "onnx/model.onnx",
                    "README.md", ".gitattributes"}
        self.assertEqual(set(paths), set(FOLDER) - left_out)
        self.assertEqual(paths[-1], "config.json")
        for path in paths:
            self.assert_is(pathlib.Path(pulled["path"]) / path, FOLDER[path])

    def test_folders_that_are_no_models(self):
        hub = self.serve({"pytorch_model.bin": b"p" * 3000, "config.json": b"{}"})
        self.refused("has no GGUF and no safetensors weights; pickle files (.bin, .pt) are never read")
        for files, says in (({"model.safetensors": b"x" * 2000}, "has safetensors but no config.json"),
                            (FOLDER | {"model.safetensors.index.json": b'{"weight_map": {"a": "../x.safetensors"}}'},
                             "does not say which files hold the tensors"),
                            ({k: v for k, v in FOLDER.items() if "00002-of" not in k},
                             "the index names model-00002-of-00002.safetensors, which is not there")):
            hub.repositories["owner/model"] = Repository(files)
            self.refused(says)

    def test_a_dry_run_fetches_nothing(self):
        hub = self.serve({"m.gguf": MEDIUM})
        said = self.kvasir("pull", "hf:owner/model", "--dry-run").stdout.decode()
        self.assertIn("5.00 MiB", said)
        self.assertEqual((hub.asked("files"), list(self.folder.glob("home/hub/*/snapshots"))), ([], []))


class Use(HubTest):
    def setUp(self):
        super().setUp()
        self.model = pathlib.Path(LLAMA).read_bytes()
        self.serve({"tiny.gguf": self.model})

    def test_run_takes_such_a_name(self):
        args = ["run", "hf:owner/model", "Hi", "--max-tokens", "4", "--temperature", "0"]
        expected = self.json("run", LLAMA, *args[2:])["token_ids"]
        self.assertEqual(self.json(*args)["token_ids"], expected)
        self.hub.close()
        self.assertEqual(self.json(*args)["token_ids"], expected)  # it is here now
        self.assertEqual(self.json(*args, env={"HF_HUB_OFFLINE": "1"})["token_ids"], expected)

    def test_serve_takes_such_a_name(self):
        process = self.start("serve", "hf:owner/model", "--port", "0", "--json")
        ready = json.loads(process.stdout.readline())
        self.assertIn("owner/model", json.dumps(ready))
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(TIME_LIMIT_S), 0)

    def test_offline(self):
        self.refusal(BAD_FILE, "pull", "hf:owner/model", env={"HF_HUB_OFFLINE": "1"},
                     says="hf:owner/model is not on this machine, and HF_HUB_OFFLINE is set")
        self.assertEqual(self.hub.requests, [])
        self.refusal(BAD_FILE, "tokenize", "hf:owner/model", "x", says="get it with: kvasir pull hf:owner/model")

    def test_list_and_rm(self):
        path = self.pull()["path"]
        listed = [model for model in self.json("list") if model["source"] == "hub"]
        self.assertEqual([(m["name"], m["path"], m["size_bytes"], m["state"]) for m in listed],
                         [("hf:owner/model:tiny.gguf", path, len(self.model), "pulled")])
        self.assertIn("hf:owner/model:tiny.gguf", self.kvasir("list").stdout.decode())
        self.assertEqual(self.json("rm", listed[0]["name"])[0]["freed_bytes"], len(self.model))
        self.assertEqual(list((self.folder / "home/hub").iterdir()), [])
        self.pull()
        self.kvasir("rm", "hf:owner/model")
        self.assertEqual(list((self.folder / "home/hub").iterdir()), [])
        self.refusal(BAD_FILE, "rm", "hf:owner/model", says="hf:owner/model is not in the store")

    def test_the_cache_of_the_hubs_own_client(self):
        commit = self.hub.repositories["owner/model"].commit
        cache = self.folder / "hf/hub/models--owner--model"
        for folder in ("blobs", "refs", f"snapshots/{commit}"):
            (cache / folder).mkdir(parents=True)
        digest = hashlib.sha256(self.model).hexdigest()
        (cache / "blobs" / digest).write_bytes(self.model)
        (cache / "refs/main").write_text(commit)
        link = cache / "snapshots" / commit / "tiny.gguf"
        link.symlink_to(f"../../blobs/{digest}")
        listed = [model for model in self.json("list") if model["source"] == "hub_cache"]
        self.assertEqual([(m["name"], m["path"], m["state"]) for m in listed],
                         [("hf:owner/model:tiny.gguf", str(link), "hub cache")])
        self.assertEqual(self.json("show", "hf:owner/model")[0]["path"], str(link))
        self.refusal(BAD_FILE, "rm", "hf:owner/model", says="is in the cache of the hub's own client, which is only read here")
        self.assertEqual(self.hub.requests, [])
        pulled = self.pull()
        self.assertEqual((pulled["path"], pulled["was_present"]), (str(link), True))
        (cache / "blobs" / digest).write_bytes(bytes(len(self.model)))  # damaged: ours, then
        self.assert_is(self.pull()["path"], self.model)
        self.assertTrue(link.is_symlink())

    def test_over_https(self):
        self.hub.close()
        openssl = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=127.0.0.1",
                   "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", "key.pem", "-out", "certificate.pem"]
        subprocess.run(openssl, cwd=self.folder, check=True, capture_output=True)
        pem = self.file("both.pem", (self.folder / "key.pem").read_bytes() + (self.folder / "certificate.pem").read_bytes())
        self.serve({"tiny.gguf": self.model}, certificate=pem)
        self.refused("certificate", expect=MACHINE)
        self.assert_is(self.pull(env={"SSL_CERT_FILE": str(self.folder / "certificate.pem")})["path"], self.model)


class Ollama(HubTest):
    def test_a_model_that_ollama_has_pulled(self):
        self.serve({})
        models = self.folder / "ollama"
        content = pathlib.Path(LLAMA).read_bytes()
        digest = hashlib.sha256(content).hexdigest()
        (models / "blobs").mkdir(parents=True)
        (models / "blobs" / f"sha256-{digest}").write_bytes(content)
        env = {"OLLAMA_MODELS": str(models)}

        def manifest(place, **changes):
            layer = {"mediaType": "application/vnd.ollama.image.model", "digest": f"sha256:{digest}", "size": len(content)}
            path = models / "manifests" / place
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps({"schemaVersion": 2, "layers": [layer | changes]}))

        manifest("registry.ollama.ai/library/tiny/latest")
        manifest("registry.ollama.ai/me/tiny/1b")
        manifest("hf.co/owner/model/Q8_0")
        manifest("registry.ollama.ai/library/short/latest", size=5)
        for name in ("ollama:tiny", "ollama:tiny:latest", "ollama:me/tiny:1b", "ollama:hf.co/owner/model:Q8_0"):
            self.assertEqual(self.json("show", name, env=env)[0]["path"], str(models / "blobs" / f"sha256-{digest}"))
        self.assertEqual(len(self.json("run", "ollama:tiny", "Hi", "--max-tokens", "2", env=env)["token_ids"]), 2)
        self.refusal(BAD_FILE, "show", "ollama:tiny:7b", env=env, says="here are the tags latest")
        self.refusal(BAD_FILE, "show", "ollama:short", env=env, says=f"has {len(content)} bytes, Ollama's manifest says 5")
        self.refusal(USAGE, "show", "ollama:../x", env=env, says="a model of Ollama is ollama:NAME[:TAG]")
        self.refusal(BAD_FILE, "rm", "ollama:tiny", env=env, says="belongs to Ollama; remove it with: ollama rm tiny")


if __name__ == "__main__":
    unittest.main()
