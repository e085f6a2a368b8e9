#!/usr/bin/env python3
"""check_layers.py finds each kind of fault where one is planted, and nothing in a tree without any."""
import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import check_layers

MAY_SEE = {
    "base": set(),
    "kv": {"base"},
    "runtime": {"base", "kv/cell.h", "kv::Allowed"},
    "engine": {"base", "runtime", "kv"},
    "server": {"base", "engine", "server/http"},
    "server/http": {"base"},
}
MAY_USE = {"base": {"libc", "fmt/"}, "kv": {"fmt/"}, "runtime": set(), "engine": set(), "server": {"kvasir/v1/"},
           "server/http": {"boost/"}}
CLEAN = {
    "include/kvasir/engine.h": '#include <string>\n#include "kvasir/result.h"\n',
    "src/base/file.cc": "#include <fcntl.h>\n#include <sys/mman.h>\n#include <fmt/format.h>\n#include <vector>\n",
    "src/kv/cell.h": "namespace kvasir::kv {\nstruct Cell {};\nconstexpr int kCellTokens = 16;\n}\n",
    "src/kv/pool.h": '#include "kv/cell.h"\nnamespace kvasir::kv {\nclass Pool {};\nclass Allowed {};\n}\n',
    "src/runtime/runner.h": '#include "kv/cell.h"\nkv::Cell cell; kv::Allowed* allowed;  // kv::Pool is only spoken of\n',
    "src/engine/engine.h": '#include "kv/pool.h"\n#include "runtime/runner.h"\nkv::Pool pool;\n',
    "src/server/server.cc": '#include "engine/engine.h"\n#include "server/http/router.h"\n#include "kvasir/engine.h"\n',
    "src/server/http/router.h": "#include <boost/asio.hpp>\n",
    "src/kv/pool_test.cc": '#include <gtest/gtest.h>\n#include "engine/engine.h"\n',
}


def faults(**changes):
    """The faults of the clean tree with these files in it: name=(path, text)."""
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        for path, text in {**CLEAN, **dict(changes.values())}.items():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text(text, encoding="utf-8")
        return check_layers.check(root, MAY_SEE, MAY_USE)[0]


class CheckLayers(unittest.TestCase):
    def assert_fault(self, path, text, expected):
        self.assertEqual(faults(planted=(path, text)), [f"{path}:1: {expected}"])

    def test_a_clean_tree_has_no_fault(self):
        self.assertEqual(faults(), [])

    def test_an_include_of_a_layer_above(self):
        self.assert_fault("src/kv/bad.h", '#include "engine/engine.h"\n', "kv may not see engine/engine.h")

    def test_an_include_of_a_header_beside_the_allowed_one(self):
        self.assert_fault("src/runtime/bad.cc", '#include "kv/pool.h"\n', "runtime may not see kv/pool.h")

    def test_a_name_that_another_layers_header_brings(self):
        self.assert_fault("src/server/bad.cc", "int n = kv::kCellTokens;\n", "server may not see kv::kCellTokens")
        self.assert_fault("src/runtime/bad.cc", "void f(const kvasir::kv::Pool& pool);\n", "runtime may not see kv::Pool")

    def test_a_forward_declaration(self):
        self.assert_fault("src/server/bad.h", "namespace kvasir::kv { class Pool; }\n", "server may not see kv::Pool")
        self.assert_fault("src/server/bad.h", "namespace kvasir::kv {\n", "server may not open namespace kv")

    def test_a_room_reaches_out_of_its_room(self):
        self.assert_fault("src/server/http/bad.cc", '#include "engine/engine.h"\n',
                          "server/http may not see engine/engine.h")

    def test_a_third_party_header_that_is_not_listed(self):
        self.assert_fault("src/engine/bad.cc", "#include <zlib.h>\n", "engine may not use zlib.h")
        self.assert_fault("src/kv/bad.cc", "#include <unistd.h>\n", "kv may not use unistd.h")
        self.assert_fault("src/kv/bad.cc", "#include <gtest/gtest.h>\n", "kv may not use gtest/gtest.h")
        self.assert_fault("src/engine/bad.cc", '#include "kvasir/v1/kvasir.pb.h"\n',
                          "engine may not use kvasir/v1/kvasir.pb.h")

    def test_a_quoted_header_that_is_nowhere(self):
        self.assert_fault("src/kv/bad.cc", '#include "cells/cell.h"\n', "kv: no layer has cells/cell.h")

    def test_the_public_api(self):
        self.assert_fault("include/kvasir/bad.h", '#include "kv/cell.h"\n', "the public API may not see kv/cell.h")
        self.assert_fault("include/kvasir/bad.h", "#include <fmt/format.h>\n",
                          "the public API may not see fmt/format.h")

    def test_a_folder_without_a_row(self):
        self.assertEqual(faults(planted=("src/extra/a.h", "")), ["src/extra/a.h: its folder is not in the table"])

    def test_every_layer_has_both_rows(self):
        self.assertEqual(set(check_layers.MAY_SEE), set(check_layers.MAY_USE))


if __name__ == "__main__":
    unittest.main()
