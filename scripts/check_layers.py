#!/usr/bin/env python3
"""Fails when a file includes a header of a layer it may not see.

The table is the architecture (docs/ARCHITECTURE.md): a layer sees itself and what is listed.
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent

# layer -> what it may include: whole layers ("base") or single headers ("kv/block_table.h").
MAY_SEE = {
    "base": set(),
    "quant": {"base"},
    "tensor": {"base", "quant"},
    "kernels": {"base", "quant", "kv/cell.h"},
    "backend": {"base", "tensor", "quant", "kernels", "kv/cell.h", "kv/attention_mass.h"},
    "io": {"base", "tensor", "quant"},
    "store": {"base", "io"},
    "jinja": {"base"},
    "text": {"base", "jinja"},
    "kv": {"base"},
    "journal": {"base", "kv"},
    "admission": {"base", "kv"},
    "sched": {"base", "kv", "admission"},
    "sampling": {"base"},
    "model": {"base", "tensor", "quant", "backend", "io/weight_source.h", "io/metadata.h", "io/finite_check.h"},
    "runtime": {"base", "tensor", "backend", "model", "sampling", "kv/block_table.h", "kv/cell.h", "kv/cell_disk.h",
                "kv/sequence_scores.h",
                "sched/scheduler_output.h"},
    "engine": {"base", "tensor", "quant", "backend", "io", "text", "kv", "admission", "sched", "sampling", "model", "runtime"},
    "capi": {"base", "engine"},
    "eval": {"base", "engine", "text"},
    "server": {"base", "engine", "text", "jinja"},
    "python": {"base", "engine", "text", "store"},
    "cli": {"base", "engine", "text", "eval", "store", "journal", "server", "io/kv_calibration.h",
            "io/model_fingerprint.h"},
}
# Third-party headers and the layers that may include them; fmt and std are free for all but kernels.
THIRD_PARTY = {
    "boost/": {"server"},
    "simdjson": {"io", "jinja", "text", "server", "cli", "eval", "store"},
    "CLI/": {"cli"},
    "zip.h": {"store"},
    "openssl/": {"store", "server"},
    "toml++/": {"store", "cli"},
    "sqlite3.h": {"journal"},
    "grpc/": {"server"},
    "grpcpp/": {"server"},
    "google/protobuf/": {"server"},
    "nanobind/": {"python"},
}
# The rooms of src/server/, its sub folders, by the same rules. Files in the folder itself compose the rooms and
# see all of them. Every room sees SERVER_OPEN; only ENGINE_ROOMS see the engine.
SERVER_ROOMS = {
    "observe": {"http/message.h", "http/abort_cause.h", "auth/tenant.h"},
    "http": {"observe", "auth/tenant.h"},
    "auth": {"http"},
    "api": {"http", "auth", "observe"},
    "carriers": {"http", "api", "observe", "auth/tenant.h"},
    "page": {"http", "api/endpoint.h"},
}
SERVER_OPEN = {"limits.h", "api_error.h", "request_memory.h", "id_source.h"}
ENGINE_ROOMS = {"api", "observe"}
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')


def third_party_fault(layer, name):
    for prefix, layers in THIRD_PARTY.items():
        if name.startswith(prefix) and layer not in layers:
            return f"{layer} may not use {name}"
    return None


def layer_fault(layer, name):
    target = name.split("/")[0]
    if target == layer or target not in MAY_SEE:
        return None
    if target in MAY_SEE[layer] or name in MAY_SEE[layer]:
        return None
    return f"{layer} may not see {name}"


def room_fault(path, name):
    """Of a file below src/server/ROOM/."""
    parts = path.relative_to(ROOT / "src").parts
    if parts[0] != "server" or len(parts) < 3:
        return None
    room = parts[1]
    if room not in SERVER_ROOMS:
        return f"room 'server/{room}' is not in the table"
    if name == "kvasir/engine.h" or name.startswith(("engine/", "text/")):
        return None if room in ENGINE_ROOMS else f"server/{room} may not see {name}"
    if not name.startswith("server/"):
        return None
    target = name.removeprefix("server/")
    seen = target.split("/")[0] in SERVER_ROOMS[room] | {room} or target in SERVER_ROOMS[room] | SERVER_OPEN
    return None if seen else f"server/{room} may not see {name}"


def main():
    faults, files = [], 0
    for path in sorted((ROOT / "src").rglob("*")):
        if path.suffix not in {".h", ".cc"}:
            continue
        files += 1
        layer = path.relative_to(ROOT / "src").parts[0]
        if layer not in MAY_SEE:
            faults.append(f"{path.relative_to(ROOT)}: layer '{layer}' is not in the table")
            continue
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            match = INCLUDE.match(line)
            if not match:
                continue
            name = match.group(2)
            check = layer_fault if match.group(1) == '"' else third_party_fault
            fault = check(layer, name) or room_fault(path, name)
            if fault and not path.name.endswith("_test.cc"):
                faults.append(f"{path.relative_to(ROOT)}:{number}: {fault}")
    for header in sorted((ROOT / "include").rglob("*.h")):
        files += 1
        for number, line in enumerate(header.read_text(encoding="utf-8").splitlines(), 1):
            match = INCLUDE.match(line)
            if match and match.group(1) == '"' and not match.group(2).startswith("kvasir/"):
                faults.append(f"{header.relative_to(ROOT)}:{number}: the public API may not see {match.group(2)}")
    print("\n".join(faults) or f"{files} files, every include allowed")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
