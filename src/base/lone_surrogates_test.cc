#include "base/lone_surrogates.h"

#include <gtest/gtest.h>

namespace kvasir {
namespace {

std::string replaced(std::string_view json) { return with_replaced_lone_surrogates(json).value_or("none"); }

TEST(LoneSurrogates, BecomeReplacementCharacters) {
  EXPECT_EQ(replaced(R"("\ud83d")"), R"("\ufffd")");
  EXPECT_EQ(replaced(R"("a\uDC00b\ud83d\ude00")"), R"("a\ufffdb\ud83d\ude00")");
  EXPECT_EQ(replaced(R"("\ud83d\ud83d\ude00")"), R"("\ufffd\ud83d\ude00")");
  EXPECT_EQ(replaced(R"("\ud83d\n\ude00")"), R"("\ufffd\n\ufffd")");
  EXPECT_EQ(replaced(R"("\\\ud83d")"), R"("\\\ufffd")");
}

TEST(LoneSurrogates, AreNoneInOtherTexts) {
  for (const char* const json : {"", "\\", R"({"a":"b"})", R"("\ud83d\ude00")", R"("\\ud83d")", R"("\ud83")",
                                 R"("\u+d83")", R"("\n\u00e9")"}) {
    EXPECT_EQ(replaced(json), "none") << json;
  }
}

}  // namespace
}  // namespace kvasir
