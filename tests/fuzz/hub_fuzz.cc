// Any bytes as what a hub sends and a person writes: the first line is a name, the rest an index of shards.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "store/hub/hub_client.h"
#include "store/hub/hub_name.h"
#include "store/hub/hub_selection.h"

using kvasir::store::HubName;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const std::string_view line = text.substr(0, text.find('\n'));
  const auto name = HubName::parse(line);
  if (name) {
    const auto again = HubName::parse(name->text());
    CHECK(again && again->id() == name->id() && again->revision == name->revision &&
          again->file == name->file);
    CHECK(name->id().find("..") == std::string::npos);
  } else {
    CHECK(name.error().message.find('\n') == std::string::npos);
  }
  const std::string_view rest = line.size() < size ? text.substr(line.size() + 1) : std::string_view();
  CHECK(kvasir::store::next_page(rest).size() <= rest.size());
  const auto shards = kvasir::store::shards_of_index(name ? *name : HubName{"a", "b", "", ""}, rest);
  if (!shards) {
    CHECK(shards.error().message.find('\n') == std::string::npos);
    return 0;
  }
  for (const std::string& shard : *shards)
    CHECK(kvasir::store::is_inside_path(shard) && shard.front() != '/');
  return 0;
}
