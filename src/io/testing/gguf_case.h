// Test support: GGUF files written down as text, so that broken ones can say exactly what is wrong with them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace kvasir::io {

// One case of a file in tests/cases/gguf: a title, the lines that describe a file, and the message that
// opening it must give (empty: it must open). The lines, in any order, each at most once except kv, array and
// tensor:
//   magic TEXT | version N | num_entries N | num_tensors N    the header fields, when not the true ones
//   kv KEY TYPE VALUE                                          TYPE: a number, or u32 i32 u64 f32 bool string
//   array KEY TYPE COUNT VALUE...                              COUNT may differ from the values that follow
//   tensor NAME TYPE DIMxDIM OFFSET                            TYPE: the number in the file
//   data N                                                     bytes of the data section (zeros)
//   cut N                                                      the file ends after N bytes
struct GgufCase {
  std::string title;
  std::vector<std::string> lines;
  std::string expected_error;
};

// Reads every case of `path`: "# TITLE", its lines, then "error MESSAGE" or "opens". CHECKs that the text is
// right.
std::vector<GgufCase> read_gguf_cases(const std::string& path);

// The bytes of the file that `lines` describe.
std::string write_gguf(const std::vector<std::string>& lines);

}  // namespace kvasir::io
