// Any bytes as a pattern and, behind a line feed, a text: an error of one line, or matches that lie inside the text.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "base/utf8.h"
#include "text/regex/automaton.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const std::size_t end = std::min(input.find('\n'), input.size());
  const auto automaton = kvasir::text::regex::Automaton::compile(input.substr(0, end));
  if (!automaton) {
    CHECK(!automaton.error().message.empty() &&
          automaton.error().message.find('\n') == std::string_view::npos);
    return 0;
  }
  const std::string text = kvasir::to_valid_utf8(input.substr(std::min(end + 1, size)));
  std::size_t position = 0;
  automaton->for_each_match(text, [&](std::size_t begin, std::size_t match_end) {
    CHECK(begin >= position && begin < match_end && match_end <= text.size());
    position = match_end;
  });
  return 0;
}
