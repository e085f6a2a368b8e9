#include "text/number_groups.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace kvasir::text {
namespace {

std::vector<std::string> groups_of(std::string_view text) {
  std::vector<std::string> groups;
  visit_grouped_digits(
      text, [&groups](std::string_view group) { groups.emplace_back(group); }, [](std::string_view) {});
  return groups;
}

TEST(NumberGroups, CountFromTheEndOfARun) {
  EXPECT_EQ(groups_of("a 1234567."), (std::vector<std::string>{"1", "234", "567"}));
}

TEST(NumberGroups, AreNoneBeforeAWordCharacter) {
  EXPECT_EQ(groups_of("1a 2_ 3\u00e9"), std::vector<std::string>());
}

// Checked against Oniguruma's \b in tokenizers 0.23.
TEST(NumberGroups, CountSomeNumbersAndCircledLettersAsWordCharacters) {
  EXPECT_EQ(groups_of("1\u00b2"), std::vector<std::string>());         // a superscript of Latin-1
  EXPECT_EQ(groups_of("1\u2167"), std::vector<std::string>());         // a letter-like number
  EXPECT_EQ(groups_of("1\u24d0"), std::vector<std::string>());         // a letter in a circle
  EXPECT_EQ(groups_of("1\u2460"), std::vector<std::string>({"1"}));    // a digit in a circle
  EXPECT_EQ(groups_of("1\u2074"), std::vector<std::string>({"1"}));    // a superscript beyond Latin-1
}

}  // namespace
}  // namespace kvasir::text
