#include "cli/chat/pasted_text.h"

#include <gtest/gtest.h>

namespace kvasir::cli::pasted_text_test {
namespace {

TEST(PastedText, ControlsGoAndLineEndsAreOne) {
  EXPECT_EQ(clean_paste("a\r\nb\rc\n\n"), "a\nb\nc");
  EXPECT_EQ(clean_paste("\tx\x1b[31m\x03\x7F \xC2\x9B \xE5\xA4\xA9"), "\tx[31m  \xE5\xA4\xA9");
  EXPECT_EQ(clean_paste("\xFF"), "\xEF\xBF\xBD");
  EXPECT_EQ(clean_paste("\n"), "");
}

TEST(PastedTexts, ALongPasteHasANameUntilTheLineIsDone) {
  PastedTexts pastes;
  EXPECT_EQ(pastes.add("a\nb"), "a\nb");
  const std::string lines(20, '\n'), bytes(5000, 'x');
  const std::string first = pastes.add(lines), second = pastes.add(bytes);
  EXPECT_EQ(first, "[paste 1: 21 lines]");
  EXPECT_EQ(second, "[paste 2: 5000 bytes]");
  EXPECT_EQ(pastes.expand("a " + second + first + first + " b"), "a " + bytes + lines + lines + " b");
  EXPECT_EQ(pastes.expand("[paste 1: 21 lines"), "[paste 1: 21 lines");
}

TEST(PastedTexts, APasteThatLooksLikeANameIsText) {
  PastedTexts pastes;
  const std::string text = "[paste 1: 21 lines]" + std::string(20, '\n');
  EXPECT_EQ(pastes.expand(pastes.add(text)), text);
}

}  // namespace
}  // namespace kvasir::cli::pasted_text_test
