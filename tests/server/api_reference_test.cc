// docs/API.md is what the tables say.
#include "server/api_reference.h"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "server/routes.h"

namespace kvasir::server::api_reference_test {
namespace {

TEST(ApiReference, IsWhatTheDocumentationSays) {
  std::stringstream written;
  written << std::ifstream(std::string(KVASIR_SOURCE_DIR) + "/docs/API.md").rdbuf();
  EXPECT_EQ(written.str(), api_reference()) << "write it anew: kvasir serve --api-reference > docs/API.md";
}

TEST(ApiReference, NamesEveryEndpointAndLimit) {
  const std::string text = api_reference();
  for (const api::Endpoint* const endpoint : endpoints()) {
    EXPECT_NE(text.find("`" + std::string(endpoint->pattern) + "`"), text.npos) << endpoint->pattern;
    EXPECT_FALSE(endpoint->meaning.empty());
  }
  EXPECT_NE(text.find("| bytes in the body | 8388608 | 413 | `--max-body-bytes` |"), text.npos);
  EXPECT_NE(text.find("| `temperature` | number | at least 0 |"), text.npos);
  EXPECT_NE(text.find("| `top_p` | number | 0 to 1 |"), text.npos);
  EXPECT_NE(text.find("| `n` | integer | at least 1 |"), text.npos);
}

// Every limit of the struct is in the list: none is left out of the reference when it is added.
TEST(ApiReference, ListsAllLimits) {
  constexpr std::size_t kRate = sizeof(std::int64_t), kFlag = sizeof(std::int64_t);  // the flag is padded
  constexpr std::size_t kOthers = 4 * sizeof(std::chrono::milliseconds) + kRate + kFlag;
  EXPECT_EQ(sizeof(Limits), kLimits.size() * sizeof(Limit) + kOthers);
}

}  // namespace
}  // namespace kvasir::server::api_reference_test
