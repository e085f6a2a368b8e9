// Any bytes as a structural tag: an error of one line, or a guide without dead ends.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

#include "grammar/tags/structural_tag.h"
#include "guide_walk.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace kvasir::grammar;
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  auto store = std::make_unique<TermStore>(3'000);
  auto made = grammar_from_structural_tag(*store, input, {.schema = {}, .tokens = {.find = {}, .num_tokens = 256}});
  if (!made) {
    check_message(made.error());
  } else {
    walk_guide(std::move(store), std::move(*made), static_cast<std::uint32_t>(size));
  }
  return 0;
}
