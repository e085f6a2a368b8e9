// Any bytes as a JSON Schema: an error of one line, or a guide without dead ends.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

#include "grammar/schema/json_schema.h"
#include "guide_walk.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  auto store = std::make_unique<kvasir::grammar::TermStore>(3'000);
  auto made = kvasir::grammar::grammar_from_schema(*store, input);
  if (!made) {
    kvasir::grammar::check_message(made.error());
  } else {
    kvasir::grammar::walk_guide(std::move(store), std::move(made->grammar), static_cast<std::uint32_t>(size));
  }
  return 0;
}
