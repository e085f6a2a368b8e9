#!/usr/bin/env python3
"""Traces of a real server, read by OpenTelemetry's own definitions and libraries.

A collector of this file takes what `kvasir serve --otlp-endpoint` posts and parses every body as an
ExportTraceServiceRequest of the package opentelemetry-proto. Requests carry the context of spans that the package
opentelemetry-sdk makes, and the server's spans must be their children. Names of attributes must be those that
opentelemetry-semantic-conventions knows, samplers must decide as the SDK's do, and no text, key or query may leave.

Usage: traces_test.py
Exits 0 when all of it holds, 1 when not, 77 when something is missing.
"""
import http.server
import importlib
import json
import os
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request

import served

MODEL = str(served.ROOT / "tests/cases/models/llama-f32.gguf")
SERVER, INTERNAL = 2, 1  # SpanKind
SECRETS = ("secretword", "secretkey", "secretquery")
failures = []


def check(holds, what):
    if not holds:
        failures.append(what)
        print(f"not so: {what}")


class Collector:
    """Takes traces at `url`, and keeps the requests and the bytes they came as."""

    def __init__(self):
        self.requests, self.bodies, self.heads = [], [], []
        self.changed = threading.Condition()
        collector = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                collector.take(self)

            def log_message(self, *arguments):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server.server_port}"

    def take(self, handler):
        from opentelemetry.proto.collector.trace.v1 import trace_service_pb2
        body = handler.rfile.read(int(handler.headers["Content-Length"]))
        request = trace_service_pb2.ExportTraceServiceRequest()
        request.ParseFromString(body)
        answer = trace_service_pb2.ExportTraceServiceResponse().SerializeToString()
        handler.send_response(200)
        handler.send_header("Content-Type", "application/x-protobuf")
        handler.send_header("Content-Length", str(len(answer)))
        handler.end_headers()
        handler.wfile.write(answer)
        with self.changed:
            self.requests.append(request)
            self.bodies.append(body)
            self.heads.append((handler.path, handler.headers))
            self.changed.notify_all()

    def spans(self):
        return [span for request in self.requests for resource in request.resource_spans
                for scope in resource.scope_spans for span in scope.spans]

    def wait_for(self, wanted, what):
        """The spans, once `wanted` holds of them."""
        with self.changed:
            if not self.changed.wait_for(lambda: wanted(self.spans()), 20):
                check(False, f"{what}: got {[span.name for span in self.spans()]}")
            return self.spans()


def attributes(owner):
    def plain(value):
        kind = value.WhichOneof("value")
        if kind == "array_value":
            return [plain(element) for element in value.array_value.values]
        return getattr(value, kind)
    return {pair.key: plain(pair.value) for pair in owner.attributes}


def post(server, path, body, headers=None):
    request = urllib.request.Request(server.url + path, json.dumps(body).encode(),
                                     {"Content-Type": "application/json", **(headers or {})})
    try:
        with urllib.request.urlopen(request) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def by_name(spans, trace_id):
    return {span.name: span for span in spans if int.from_bytes(span.trace_id, "big") == trace_id}


def under_a_client(server, collector, path, body):
    """The server's spans of a request below a span of the SDK's, and that span."""
    from opentelemetry import propagate
    from opentelemetry.sdk.trace import TracerProvider
    tracer = TracerProvider().get_tracer("client")
    with tracer.start_as_current_span("client") as span:
        headers = {"Authorization": "Bearer secretkey", "tracestate": "vendor=1"}
        propagate.inject(headers)
        status, _ = post(server, path + "?q=secretquery", body, headers)
    trace_id = span.get_span_context().trace_id
    name = f"POST {path}"
    spans = collector.wait_for(lambda all: name in by_name(all, trace_id), f"spans of {name}")
    return status, by_name(spans, trace_id), span.get_span_context()


def check_generation(server, collector):
    status, spans, client = under_a_client(server, collector, "/v1/completions",
                                           {"prompt": "secretword secretword", "max_tokens": 8, "temperature": 0,
                                            "ignore_eos": True})
    check(status == 200, f"a completion is answered, not {status}")
    check(set(spans) == {"POST /v1/completions", "queue", "prefill", "decode"}, f"spans {sorted(spans)}")
    request = spans["POST /v1/completions"]
    check(int.from_bytes(request.parent_span_id, "big") == client.span_id, "the client's span is the parent")
    check(request.kind == SERVER, "it is a server's span")
    check(len(request.span_id) == 8 and request.span_id != request.parent_span_id, "with an id of its own")
    ends = [request.start_time_unix_nano]
    for stage in ("queue", "prefill", "decode"):
        span = spans[stage]
        check(span.parent_span_id == request.span_id and span.kind == INTERNAL, f"{stage} is its child")
        check(ends[-1] <= span.start_time_unix_nano < span.end_time_unix_nano, f"{stage} follows")
        ends.append(span.end_time_unix_nano)
    check(ends[-1] <= request.end_time_unix_nano, "within the request's time")
    check(abs(request.end_time_unix_nano / 1e9 - time.time()) < 30, "by the clock on the wall")
    found = attributes(request)
    for name, value in {"http.request.method": "POST", "http.route": "/v1/completions", "url.scheme": "http",
                        "url.path": "/v1/completions", "http.response.status_code": 200,
                        "gen_ai.operation.name": "text_completion", "gen_ai.usage.output_tokens": 8,
                        "gen_ai.request.max_tokens": 8, "gen_ai.response.finish_reasons": ["length"],
                        "kvasir.preemptions": 0}.items():
        check(found.get(name) == value, f"{name} is {value}, not {found.get(name)}")
    for name in ("gen_ai.server.time_to_first_token", "kvasir.cpu_seconds", "kvasir.kv_byte_seconds"):
        check(found.get(name, 0) > 0, f"{name} is above 0, not {found.get(name)}")


def check_refusal(server, collector):
    status, spans, _ = under_a_client(server, collector, "/v1/completions", {"prompt": "a", "model": "secretword"})
    check(status == 404, f"another model is refused, not {status}")
    check(set(spans) == {"POST /v1/completions"}, f"a refusal has no stages: {sorted(spans)}")
    found = attributes(spans["POST /v1/completions"])
    check(found.get("error.type") == "404", f"error.type is 404, not {found.get('error.type')}")


def check_abort(server, collector):
    body = json.dumps({"prompt": "secretword", "max_tokens": 400, "stream": True, "ignore_eos": True}).encode()
    with socket.create_connection(("127.0.0.1", server.port)) as connection:
        connection.sendall(b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n%s"
                           % (len(body), body))
        connection.recv(64)

    def is_abort(span):
        return attributes(span).get("error.type") == "disconnected"
    spans = collector.wait_for(lambda all: any(map(is_abort, all)), "a span of an answer that nobody took")
    abort = next(span for span in spans if is_abort(span))
    check(abort.parent_span_id == b"", "a request without a context begins a trace")
    check(attributes(abort).get("gen_ai.request.stream") is True, "it was a stream")


def check_unsampled(server, collector):
    trace_id = "4bf92f3577b34da6a3ce929d0e0e4736"
    post(server, "/tokenize", {"prompt": "a"}, {"traceparent": f"00-{trace_id}-00f067aa0ba902b7-00"})
    post(server, "/tokenize", {"prompt": "a"}, {"traceparent": f"00-{trace_id[::-1]}-00f067aa0ba902b7-01"})
    spans = collector.wait_for(lambda all: by_name(all, int(trace_id[::-1], 16)), "a sampled request")
    check(not by_name(spans, int(trace_id, 16)), "what the client does not sample is left out")


def check_names(collector):
    """Checks the names of all attributes; kvasir.* are the server's own, and a GenAI metric has the name of one."""
    import opentelemetry.semconv.attributes as stable
    known = {"gen_ai.server.time_to_first_token", "process.pid", "host.name", "service.instance.id"}
    for package in (stable, importlib.import_module("opentelemetry.semconv._incubating.attributes")):
        for file in os.listdir(package.__path__[0]):
            if not file.endswith("_attributes.py"):
                continue
            module = importlib.import_module(f"{package.__name__}.{file[:-3]}")
            known |= {value for value in vars(module).values() if isinstance(value, str)}
    used = {name for span in collector.spans() for name in attributes(span)}
    unknown = {name for name in used if name not in known and not name.startswith("kvasir.")}
    check(len(used) > 20 and not unknown, f"no conventions know {sorted(unknown)}")


def check_resource(collector):
    from opentelemetry.sdk.resources import OTELResourceDetector
    found = attributes(collector.requests[0].resource_spans[0].resource)
    for name, value in OTELResourceDetector().detect().attributes.items():
        check(found.get(name) == value, f"the resource's {name} is {value}, not {found.get(name)}")
    for path, headers in collector.heads:
        check(path == "/v1/traces" and headers.get("X-Tenant") == "a b", f"a post to {path} with {headers.items()}")


def check_secrets(collector):
    for body in collector.bodies:
        for secret in SECRETS:
            check(secret.encode() not in body, f"{secret} left the server")


def check_sampling():
    from opentelemetry.sdk.trace.sampling import Decision, TraceIdRatioBased
    collector, num_requests = Collector(), 60
    sampler = TraceIdRatioBased(0.5)
    with served.serving(MODEL, options=("--otlp-endpoint", collector.url, "--otlp-sample", "0.5")) as server:
        for _ in range(num_requests):
            post(server, "/tokenize", {"prompt": "a"})
    spans = collector.spans()  # all there is: the server has ended
    check(num_requests * 0.2 < len(spans) < num_requests * 0.8, f"{len(spans)} of {num_requests} are about half")
    for span in spans:
        decision = sampler.should_sample(None, int.from_bytes(span.trace_id, "big"), "").decision
        check(decision == Decision.RECORD_AND_SAMPLE, f"the SDK samples {span.trace_id.hex()} too")


def check_usage_errors():
    for flags, said in ((["--otlp-endpoint", "localhost:4318"], "begins with http:// or https://"),
                        (["--otlp-endpoint", "http://a", "--otlp-sample", "1.5"], "1.5")):
        done = subprocess.run([served.BINARY, "serve", MODEL, "--port", "0", *flags], capture_output=True, text=True,
                              timeout=60)
        lines = done.stderr.strip().splitlines()
        check(done.returncode == 2 and len(lines) == 1 and said in lines[0], f"{flags}: {done.returncode} {lines}")


def main():
    served.run_in_venv(["opentelemetry"])
    served.run_in_venv(["opentelemetry.sdk", "opentelemetry.proto"])
    served.need_model(MODEL)
    for name in [name for name in os.environ if name.startswith("OTEL_")]:
        del os.environ[name]
    os.environ["OTEL_RESOURCE_ATTRIBUTES"] = "service.name=other,deployment.environment=north%20west"
    os.environ["OTEL_SERVICE_NAME"] = "kvasir-under-test"
    os.environ["OTEL_EXPORTER_OTLP_HEADERS"] = "x-tenant=a%20b"
    collector = Collector()
    with served.serving(MODEL, options=("--otlp-endpoint", collector.url)) as server:
        check_generation(server, collector)
        check_refusal(server, collector)
        check_abort(server, collector)
        check_unsampled(server, collector)
    check_names(collector)
    check_resource(collector)
    check_secrets(collector)
    check_sampling()
    check_usage_errors()
    print(f"{len(collector.spans())} spans in {len(collector.bodies)} posts, {len(failures)} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
