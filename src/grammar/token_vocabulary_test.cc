#include "grammar/token_vocabulary.h"

#include <gtest/gtest.h>

#include <string_view>
#include <vector>

namespace kvasir::grammar::token_vocabulary_test {
namespace {

using Texts = std::vector<std::string_view>;

Texts without_spelled_bytes(const Texts& names, Texts texts) {
  leave_out_spelled_bytes(names, texts);
  return texts;
}

TEST(TokenVocabulary, AByteTokenGivesWayToAnOrdinaryTokenOfItsByte) {
  EXPECT_EQ(without_spelled_bytes({"<0x41>", "A", "AB"}, {"A", "A", "AB"}), (Texts{"", "A", "AB"}));
  EXPECT_EQ(without_spelled_bytes({"A", "<0x41>"}, {"A", "A"}), (Texts{"A", ""}));
}

TEST(TokenVocabulary, AByteThatNothingElseSpellsKeepsItsToken) {
  EXPECT_EQ(without_spelled_bytes({"<0x41>", "AB", "<0xC3>"}, {"A", "AB", "\xC3"}), (Texts{"A", "AB", "\xC3"}));
  // At the start of a text the ordinary token loses its blank.
  EXPECT_EQ(without_spelled_bytes({"<0x20>", "\u2581"}, {" ", ""}), (Texts{" ", ""}));
}

TEST(TokenVocabulary, ATokenThatIsCalledLikeAByteButIsATextStays) {
  EXPECT_EQ(without_spelled_bytes({"<0x41>", "A"}, {"<0x41>", "A"}), (Texts{"<0x41>", "A"}));
  EXPECT_EQ(without_spelled_bytes({"<0xZZ>", "<0x4>", "A"}, {"A", "A", "A"}), (Texts{"A", "A", "A"}));
}

}  // namespace
}  // namespace kvasir::grammar::token_vocabulary_test
