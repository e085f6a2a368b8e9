#!/usr/bin/env python3
"""Fails when a file reaches what its layer may not see. The tables are the architecture (docs/ARCHITECTURE.md).

A layer is a folder of src/, or a room in one ("server/http"), which has a row of its own; a file belongs to the longest
row that its path begins with. Four rules:

1. Includes: a file includes headers of its own layer and of the layers and single headers in its row of MAY_SEE.
2. Transitive names: a header of a layer that is seen brings the headers that it includes, but not the right to use
   them. A name qualified with the namespace of a layer (`kv::BlockPool`) counts as if the header that declares it
   were included here, and so does a forward declaration (`namespace kvasir::kv { class BlockPool; }`).
   MAY_SEE can allow a single name ("kernels::RopeStyle").
3. Third-party headers: a layer uses the standard library, and of the rest what its row of MAY_USE lists. "libc" there
   is every header of the C library and the kernel: a layer without it asks the operating system for nothing.
4. The public API (include/kvasir) includes the standard library and itself.

Tests (`*_test.cc`, folders `testing/`) and test support may use GoogleTest and are free of rules 1 to 3.
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent

# The rooms of src/server/. Files in the folder itself compose the rooms and see all of them; every room sees
# SERVER_OPEN. Only `api` and `observe` see the engine.
SERVER_OPEN = {"base", "server/limits.h", "server/api_error.h", "server/request_memory.h", "server/id_source.h"}
SERVER_ROOMS = {
    "observe": {"engine", "text", "jinja", "server/http/message.h", "server/http/abort_cause.h", "server/auth/tenant.h"},
    "http": {"server/observe", "server/auth/tenant.h"},
    "auth": {"server/http"},
    "stored": {"sqlite"},
    "api": {"engine", "text", "jinja", "grammar/compile/ignored_keywords.h", "grammar/regex/term_store.h", "grammar/tags/tool_call_syntax.h", "grammar/tags/tool_grammar.h", "search/answer_extractor.h", "search/ballot.h", "server/http", "server/auth", "server/observe",
            "server/stored"},
    "carriers": {"server/http", "server/api", "server/observe", "server/auth/tenant.h"},
    "page": {"server/http", "server/api/endpoint.h"},
}
# layer -> what it may see: layers ("base"), headers ("kv/cells/cell.h"), single names ("kernels::RopeStyle").
MAY_SEE = {
    "base": set(),
    "quant": {"base"},
    "tensor": {"base", "quant"},
    "kernels": {"base", "quant", "kv/cells/cell.h", "kv/cells/key_basis.h"},
    "backend": {"base", "tensor", "quant", "kernels", "kv/cells/cell.h", "kv/cells/key_basis.h", "kv/cells/attention_scores.h",
                "backend/guarded", "backend/gpu"},
    "backend/observing": {"base", "tensor", "kernels", "backend"},
    "backend/gpu": {"base", "tensor", "quant", "kernels", "backend", "backend/cuda/kernels/launch_args.h", "kv/cells/cell.h",
                    "kv/cells/attention_scores.h"},
    "backend/guarded": {"base", "tensor", "kernels", "backend", "kv/cells/cell.h", "kv/cells/attention_scores.h"},
    # Kernels have check_kernels.py besides.
    "backend/cuda/simt": {"base"},
    "backend/cuda/kernels": {"backend/cuda/simt", "kernels", "quant", "kv/cells/cell.h"},
    "backend/cuda/cases": {"base", "quant", "kernels", "kv/cells/cell.h", "backend/cuda/simt", "backend/cuda/kernels"},
    "backend/cuda/runtime": {"quant", "backend/gpu/gpu_device.h", "backend/cuda/simt", "backend/cuda/kernels"},
    "backend/cuda/device": {"quant", "kernels", "backend/cuda/simt", "backend/cuda/kernels", "backend/cuda/cases",
                            "backend/cuda/runtime", "backend/gpu/cuda_devices.h", "backend/gpu/gpu_device.h"},
    "io": {"base", "tensor", "quant"},
    "store": {"base", "io"},
    "jinja": {"base"},
    "text": {"base", "jinja"},
    "grammar": {"base", "text"},
    "kv": {"base"},
    "sqlite": {"base"},
    "journal": {"base", "kv", "sqlite"},
    "admission": {"base", "kv"},
    "sched": {"base", "kv", "admission"},
    "sampling": {"base"},
    "spec": {"base"},
    "model": {"base", "tensor", "quant", "backend", "io/weight_source.h", "io/metadata.h", "io/finite_check.h",
              "io/hf_mapping.h", "io/packed_copy.h"},
    "runtime": {"base", "tensor", "backend", "model", "sampling", "kv/blocks/block_table.h",
                "kv/cells/attention_scores.h", "kv/cells/cell.h", "kv/cells/cell_conversions.h",
                "kv/cells/sequence_scores.h", "sched/scheduler_output.h"},
    "lora": {"base", "tensor", "quant", "io", "model", "backend::RopeStyle"},
    "engine": {"base", "tensor", "quant", "backend", "io", "lora", "text", "grammar", "kv", "admission", "sched", "sampling", "spec",
               "model", "runtime"},
    "compress": {"base", "quant", "tensor", "io", "text", "backend", "backend/observing", "kernels::KernelTable", "store/sha256.h"},
    "capi": {"base", "engine"},
    "search": {"base", "engine", "text"},
    "learn": {"base", "kv"},
    "quality": {"base", "engine", "learn", "io/kv_calibration.h", "io/model_fingerprint.h", "kv/blocks/siphash.h", "kv/policy/journal.h", "text::ChatTemplate", "text::Tokenizer"},
    "eval": {"base", "engine", "grammar", "text", "search", "kv", "learn", "backend/observing", "spec", "io/draft_file.h", "io/kv_calibration.h", "io/model_fingerprint.h"},
    "server": {"base", "engine", "text", "jinja", "sqlite"} | {f"server/{room}" for room in SERVER_ROOMS},
    "python": {"base", "engine", "text", "store", "quant", "compress/tensor_encoder.h"},
    "cli": {"base", "engine", "grammar", "text", "quality", "eval", "search", "compress", "store", "journal", "server", "backend/observing",
            "backend/registry.h", "kernels::KernelTable", "io/gguf_entries.h",
            "io/draft_file.h", "io/imatrix_file.h", "io/kv_calibration.h", "io/key_components_file.h", "io/mmap_file.h", "io/model_fingerprint.h", "io/model_summary.h",
            "io/weight_source.h", "server/http/message.h", "server/observe/health_probe.h",
            "server/observe/tracing/tracing_config.h", "server/auth/key_file.h",
            "server/api/model_library.h", "server/api/served_models.h", "server/api/thinking.h", "server/api/tool_calls/detect_syntax.h", "server/api/tool_calls/reasoning_block.h",
            "server/api/tool_calls/tool_call_syntax.h"},
}
MAY_SEE |= {f"server/{room}": seen | SERVER_OPEN for room, seen in SERVER_ROOMS.items()}
# layer -> the third-party headers it may use, by prefix. Names of the standard library have neither dot nor slash.
MAY_USE = {
    "base": {"libc", "fmt/"},
    "tensor": set(),
    "quant": set(),
    "kernels": {"libc", "immintrin.h", "arm_neon.h"},
    "backend": {"fmt/"},
    "backend/guarded": {"libc", "fmt/"},
    "backend/observing": set(),
    "backend/gpu": {"fmt/"},
    "backend/cuda/runtime": set(),
    "backend/cuda/simt": {"libc", "boost/context/", "cuda_fp16.h", "cuda_runtime.h"},
    "backend/cuda/kernels": set(),
    "backend/cuda/cases": {"libc"},
    "backend/cuda/device": {"cuda_runtime.h"},
    "io": {"libc", "fmt/", "simdjson.h"},
    "store": {"libc", "fmt/", "simdjson.h", "curl/", "openssl/", "toml++/", "zip.h"},
    "jinja": {"fmt/", "simdjson.h"},
    "text": {"fmt/", "simdjson.h"},
    "grammar": {"fmt/", "simdjson.h"},
    "kv": {"fmt/"},
    "sqlite": {"libc", "fmt/", "sqlite3.h"},
    "journal": {"libc", "fmt/"},
    "admission": {"fmt/"},
    "sched": {"fmt/"},
    "sampling": {"fmt/"},
    "spec": {"fmt/"},
    "model": {"fmt/"},
    "lora": {"fmt/", "simdjson.h"},
    "runtime": {"libc", "fmt/"},
    "engine": {"libc", "fmt/"},
    "capi": {"fmt/"},
    "compress": {"libc", "fmt/", "simdjson.h"},
    "search": {"fmt/"},
    "learn": {"libc", "fmt/"},
    "quality": {"fmt/"},
    "eval": {"libc", "fmt/", "simdjson.h"},
    "server": {"libc", "fmt/", "boost/", "simdjson.h", "openssl/", "grpc/", "grpcpp/", "google/protobuf/", "kvasir/v1/"},
    "python": {"libc", "fmt/", "nanobind/"},
    "cli": {"libc", "fmt/", "CLI/", "histedit.h", "simdjson.h", "toml++/"},
}
for room in SERVER_ROOMS:
    MAY_USE[f"server/{room}"] = MAY_USE["server"] - (set() if room == "carriers" else {"grpc/", "grpcpp/"})
LIBC = re.compile(r"(sys|linux|netinet|arpa|net)/\w+\.h$|(cpuid|dirent|dlfcn|fcntl|fnmatch|langinfo|locale|malloc|netdb|"
                  r"poll|pthread|pwd|sched|signal|spawn|stdlib|string|termios|time|unistd|wchar)\.h$")
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')
NAMESPACE = re.compile(r"^\s*namespace kvasir::([\w:]+) \{(.*)")
DECLARATION = re.compile(r"\b(?:class|struct|enum class|enum|concept)\s+(\w+)|\busing\s+(\w+)\s*=|\b(\w+)\(|\b(k[A-Z]\w*)\b")
FORWARD = re.compile(r"\b(?:class|struct|enum class)\s+(\w+)[^;{]*;")
NOISE = re.compile(r'//.*|"(?:\\.|[^"\\])*"')


def is_test(path):
    return path.name.endswith(("_test.cc", "_fixture.h", "_problem.cc", "_problem.h", "every_isa.h", "bit_cases.cc")) or "testing" in path.parts


class Tree:
    def __init__(self, root, may_see, may_use):
        self.root, self.src, self.may_see, self.may_use = root, root / "src", may_see, may_use
        self.declared = {}  # layer -> name -> the headers that declare it
        layers = "|".join(sorted((re.escape(layer) for layer in may_see if "/" not in layer), key=len, reverse=True))
        self.qualified = re.compile(rf"(?<![\w:.>])(?:::)?(?:kvasir::)?({layers})::(\w+)")

    def layer_of(self, name):
        """The longest row of the table that this path under src/ lies in."""
        parts = name.split("/")[:-1]
        for length in range(len(parts), 0, -1):
            if "/".join(parts[:length]) in self.may_see:
                return "/".join(parts[:length])
        return None

    def sees(self, layer, target, header):
        return target == layer or target in self.may_see[layer] or header in self.may_see[layer]

    def include_fault(self, layer, mark, name):
        target = self.layer_of(name)
        if mark == '"' and target:
            return None if self.sees(layer, target, name) else f"{layer} may not see {name}"
        if name == "kvasir/engine.h" and "/" in layer and "engine" not in self.may_see[layer]:
            return f"{layer} may not see {name}"
        if mark == '"' and name.startswith("kvasir/") and not name.startswith("kvasir/v1/"):
            return None
        if mark == '"' and not any(name.startswith(prefix) for prefix in ("kvasir/v1/", "grpc/")):
            return None if (self.src / layer / name).exists() else f"{layer}: no layer has {name}"
        if "." not in name and "/" not in name:
            return None
        allowed = self.may_use[layer]
        if any(name.startswith(prefix) for prefix in allowed) or ("libc" in allowed and LIBC.match(name)):
            return None
        return f"{layer} may not use {name}"

    def headers_declaring(self, layer, name):
        if layer not in self.declared:
            index = self.declared[layer] = {}
            for header in sorted((self.src / layer).rglob("*.h")):
                for match in DECLARATION.finditer(NOISE.sub("", header.read_text(encoding="utf-8"))):
                    index.setdefault(next(group for group in match.groups() if group), set()).add(
                        header.relative_to(self.src).as_posix())
        return self.declared[layer].get(name, set())

    def name_fault(self, layer, target, name):
        if target == layer.split("/")[0] or f"{target}::{name}" in self.may_see[layer] or target in self.may_see[layer]:
            return None
        if any(self.sees(layer, self.layer_of(header), header) for header in self.headers_declaring(target, name)):
            return None
        return f"{layer} may not see {target}::{name}"

    def line_faults(self, layer, line):
        include = INCLUDE.match(line)
        if include:
            yield self.include_fault(layer, *include.groups())
            return
        line = NOISE.sub("", line)
        space = NAMESPACE.match(line)
        if space:
            target = space.group(1).split("::")[0]
            if target in self.may_see:
                for name in FORWARD.findall(space.group(2)) or [None] * (target not in layer.split("/")):
                    yield self.name_fault(layer, target, name) if name else f"{layer} may not open namespace {target}"
            return
        for target, name in self.qualified.findall(line):
            yield self.name_fault(layer, target, name)

    def faults(self):
        """(faults as "path:line: what", number of files read)"""
        faults, files = [], 0
        for path in sorted(self.src.rglob("*")):
            if path.suffix not in {".h", ".cc"}:
                continue
            files += 1
            where = path.relative_to(self.root)
            layer = self.layer_of(path.relative_to(self.src).as_posix())
            if layer is None:
                faults.append(f"{where}: its folder is not in the table")
                continue
            if is_test(path):
                continue
            for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
                faults += [f"{where}:{number}: {fault}" for fault in self.line_faults(layer, line) if fault]
        for path in sorted((self.root / "include").rglob("*.h")):
            files += 1
            for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
                match = INCLUDE.match(line)
                if match and not (match.group(2).startswith("kvasir/") if match.group(1) == '"' else
                                  re.fullmatch(r"\w+|std\w+\.h", match.group(2))):
                    faults.append(f"{path.relative_to(self.root)}:{number}: the public API may not see {match.group(2)}")
        return faults, files


def check(root=ROOT, may_see=None, may_use=None):
    return Tree(root, MAY_SEE if may_see is None else may_see, MAY_USE if may_use is None else may_use).faults()


def main():
    faults, files = check()
    print("\n".join(faults) or f"{files} files, every include and name allowed")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
