"""A hub on the loopback interface, with a second server as the host that large files are redirected to.

Speaks what `kvasir pull hf:` and the hub's own Python client ask: revisions, lists of files in pages, HEAD and GET of
files, redirects with the headers that belong to them. A test sets the faults that it wants.
"""
import hashlib
import http.server
import json
import re
import secrets
import ssl
import threading
import urllib.parse

LARGE_FILE_BYTES = 1000  # larger files lie with the other host


def git_hash(content):
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()


class Repository:
    def __init__(self, files, license="mit"):
        self.files = files
        self.commit = hashlib.sha1(repr(sorted(files)).encode() + b"".join(files.values())).hexdigest()
        self.license = license
        self.entries = {}

    def is_large(self, path):
        return len(self.files[path]) > LARGE_FILE_BYTES

    def listed(self, path):
        if path not in self.entries:
            self.entries[path] = self.entry(path)
        return self.entries[path]

    def entry(self, path):
        content = self.files[path]
        entry = {"type": "file", "path": path, "size": len(content), "oid": git_hash(content)}
        if self.is_large(path):
            entry["lfs"] = {"oid": hashlib.sha256(content).hexdigest(), "size": len(content), "pointerSize": 134}
        return entry


class Faults:
    """All off. Numbers count down where it says so."""
    def __init__(self):
        self.drop_after = 0  # bytes of a body after which the connection ends; 0: never
        self.ignore_ranges = False  # 200 with everything
        self.uses_of_target = 0  # so many requests, then 403 until a new target is asked for; 0: any number
        self.statuses = []  # (status, headers), for the next requests of content
        self.api_statuses = []  # the same, for the next requests of the API
        self.claimed_bytes = None  # what Content-Length says instead
        self.range_shift = 0  # added to both ends in Content-Range
        self.total_shift = 0  # added to the total in Content-Range
        self.changed_content = None  # what is sent instead
        self.redirect_loop = None  # "hub" or "files"
        self.never_valid = False  # every target is a 403
        self.linked_etag = None  # what the redirect says instead
        self.moved = None  # the id that a model had before
        self.hangs_after = None  # so many requests of content, then connections stay open without a byte


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *args):
        pass

    def do_HEAD(self):
        self.do_GET()

    def do_GET(self):
        hub = self.server.hub
        url = urllib.parse.urlsplit(self.path)
        with hub.lock:
            hub.requests.append((self.server.role, self.command, url.path, dict(self.headers)))
        try:
            if self.server.role == "files":
                self.serve_target(hub, url)
            elif url.path.startswith("/api/models/"):
                self.serve_api(hub, url)
            else:
                self.serve_file(hub, url)
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True

    def answer(self, status, body=b"", headers=()):
        self.send_response(status)
        for name, value in dict(headers).items():
            self.send_header(name, value)
        if "Content-Length" not in dict(headers):
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def may_read(self, hub, repository):
        """Answers and says no where the token or the terms are missing."""
        if repository is None or (hub.token and self.headers.get("Authorization") != f"Bearer {hub.token}"):
            self.answer(401, headers={"X-Error-Code": "RepoNotFound"})
            return False
        if hub.gated:
            self.answer(403, headers={"X-Error-Code": "GatedRepo"})
            return False
        return True

    def serve_api(self, hub, url):
        match = re.fullmatch(r"/api/models/([^/]+/[^/]+)(?:/(revision|tree)/([^/]+))?", url.path)
        if not match:
            return self.answer(404)
        if hub.faults.api_statuses:
            status, headers = hub.faults.api_statuses.pop(0)
            return self.answer(status, headers=headers)
        name, kind, revision = match[1], match[2] or "revision", urllib.parse.unquote(match[3] or "main")
        if hub.faults.moved == name:
            return self.answer(307, headers={"Location": self.path.replace(name, next(iter(hub.repositories)))})
        if hub.faults.redirect_loop == "hub":
            return self.answer(307, headers={"Location": self.path})
        repository = hub.repositories.get(name)
        if not self.may_read(hub, repository):
            return None
        if revision not in ("main", "refs/pr/1", repository.commit):
            return self.answer(404, headers={"X-Error-Code": "RevisionNotFound"})
        if kind == "tree":
            return self.serve_tree(hub, repository, url)
        return self.answer(200, json.dumps({
            "id": name, "modelId": name, "sha": repository.commit, "private": False, "gated": False, "tags": [],
            "cardData": {"license": repository.license}, "siblings": [{"rfilename": path} for path in repository.files],
        }).encode())

    def serve_tree(self, hub, repository, url):
        listed = [repository.listed(path) for path in sorted(repository.files)]
        listed.insert(0, {"type": "directory", "path": "original", "oid": "0" * 40, "size": 0})
        listed += hub.extra_listed
        first = int(urllib.parse.parse_qs(url.query).get("cursor", ["0"])[0])
        headers = {}
        if first + hub.page_size < len(listed):
            next_page = f"{hub.url}{url.path}?recursive=1&cursor={first + hub.page_size}"
            headers["Link"] = f'<{next_page}>; rel="next"'
        self.answer(200, json.dumps(listed[first:first + hub.page_size]).encode(), headers)

    def serve_file(self, hub, url):
        match = re.fullmatch(r"/(?:api/resolve-cache/models/)?([^/]+/[^/]+)(?:/resolve)?/([^/]+)/(.+)", url.path)
        repository = match and hub.repositories.get(match[1])
        if not self.may_read(hub, repository):
            return None
        path = urllib.parse.unquote(match[3])
        if path not in repository.files:
            return self.answer(404, headers={"X-Error-Code": "EntryNotFound"})
        content = repository.files[path]
        headers = {"X-Repo-Commit": repository.commit, "Accept-Ranges": "bytes"}
        if not repository.is_large(path):
            headers["ETag"] = f'"{git_hash(content)}"'
            if "/resolve/" in url.path:  # the hub sends small files on to a place of its own
                place = f"/api/resolve-cache/models/{match[1]}/{repository.commit}/{match[3]}"
                return self.answer(307, headers=headers | {"Location": place})
            return self.send_content(hub, content, headers)
        digest = repository.listed(path)["lfs"]["oid"]
        with hub.lock:
            hub.contents[digest] = content
        headers |= {"X-Linked-Etag": f'"{hub.faults.linked_etag or digest}"', "X-Linked-Size": str(len(content)),
                    "Location": hub.new_target(digest)}
        return self.answer(302, headers=headers)

    def serve_target(self, hub, url):
        if hub.faults.redirect_loop == "files":
            return self.answer(302, headers={"Location": self.path})
        key = urllib.parse.parse_qs(url.query).get("signature", [""])[0]
        with hub.lock:
            left = hub.targets.get(key, 0)
            hub.targets[key] = left - 1
        if left <= 0:
            return self.answer(403, b"expired")
        digest = url.path.rsplit("/", 1)[1]
        return self.send_content(hub, hub.contents[digest], {"ETag": '"another-hash"'})

    def send_content(self, hub, content, headers):
        faults = hub.faults
        with hub.lock:
            if self.command == "GET" and faults.statuses:
                status, extra = faults.statuses.pop(0)
                return self.answer(status, headers=extra)
            if self.command == "GET" and faults.hangs_after is not None:
                faults.hangs_after -= 1
        if faults.hangs_after is not None and faults.hangs_after < 0:
            return hub.closed.wait(20)
        if faults.changed_content is not None:
            content = faults.changed_content
        status, body = 200, memoryview(content)
        match = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range", ""))
        if match and not faults.ignore_ranges:
            first, last = int(match[1]), min(int(match[2] or len(content) - 1), len(content) - 1)
            if first >= len(content):
                return self.answer(416, headers={"Content-Range": f"bytes */{len(content)}"})
            status, body = 206, body[first:last + 1]
            shift = faults.range_shift
            headers["Content-Range"] = f"bytes {first + shift}-{last + shift}/{len(content) + faults.total_shift}"
        headers["Content-Length"] = str(len(body) if faults.claimed_bytes is None else faults.claimed_bytes)
        if self.command == "GET" and 0 < faults.drop_after < len(body):
            self.answer(status, body[:faults.drop_after], headers)
            self.close_connection = True
            return None
        return self.answer(status, body, headers)


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64

    def __init__(self, hub, role, context):
        super().__init__(("127.0.0.1", 0), Handler)
        self.hub, self.role = hub, role
        if context:
            self.socket = context.wrap_socket(self.socket, server_side=True)

    def handle_error(self, request, client_address):
        pass


class Hub:
    """Both servers, until close(). `certificate`: a PEM file with its key, for https."""
    def __init__(self, repositories, certificate=None):
        self.repositories = repositories
        self.requests = []  # (role, method, path, headers)
        self.faults = Faults()
        self.token, self.gated = None, False
        self.page_size = 1000
        self.extra_listed = []
        self.contents = {}  # of large files, by their SHA-256
        self.targets = {}  # signature -> requests that are left
        self.lock = threading.Lock()
        self.closed = threading.Event()
        context = None
        if certificate:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate)
        self.servers = [Server(self, role, context) for role in ("hub", "files")]
        scheme = "https" if certificate else "http"
        self.url, self.files_url = (f"{scheme}://127.0.0.1:{server.server_port}" for server in self.servers)
        for server in self.servers:
            threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()

    def close(self):
        self.closed.set()
        for server in self.servers:
            server.shutdown()
            server.server_close()

    def new_target(self, digest):
        signature = secrets.token_hex(8)
        with self.lock:
            self.targets[signature] = 0 if self.faults.never_valid else self.faults.uses_of_target or 1 << 30
        return f"{self.files_url}/blobs/{digest}?signature={signature}"

    def asked(self, role, method=None):
        with self.lock:
            return [request for request in self.requests
                    if request[0] == role and method in (None, request[1])]
