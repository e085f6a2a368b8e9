#include "cli/markdown/code_highlighter.h"

#include <gtest/gtest.h>

#include <random>
#include <string>

namespace kvasir::cli::code_highlighter_test {
namespace {

constexpr TextStyle kPlain, kComment{.dim = true}, kString{.colour = TextColour::kGreen},
    kNumber{.colour = TextColour::kCyan}, kWord{.colour = TextColour::kMagenta};

using Parts = std::vector<StyledText>;

TEST(CodeHighlighter, ColoursWordsStringsNumbersAndComments) {
  CodeHighlighter python("Python");
  EXPECT_EQ(
      python.highlight("if x == 'a\\'b': # c"),
      Parts({{"if", kWord}, {" x == ", kPlain}, {"'a\\'b'", kString}, {": ", kPlain}, {"# c", kComment}}));
  EXPECT_EQ(python.highlight("ifs = 12"), Parts({{"ifs = ", kPlain}, {"12", kNumber}}));
  EXPECT_EQ(CodeHighlighter("sql").highlight("SELECT x"), Parts({{"SELECT", kWord}, {" x", kPlain}}));
}

TEST(CodeHighlighter, CommentsAndStringsGoOnOverLines) {
  CodeHighlighter cpp("c++");
  EXPECT_EQ(cpp.highlight("a /* b"), Parts({{"a ", kPlain}, {"/* b", kComment}}));
  EXPECT_EQ(cpp.highlight("if"), Parts({{"if", kComment}}));
  EXPECT_EQ(cpp.highlight("c */ d"), Parts({{"c */", kComment}, {" d", kPlain}}));
  CodeHighlighter python("py");
  EXPECT_EQ(python.highlight("\"\"\"doc"), Parts({{"\"\"\"doc", kString}}));
  EXPECT_EQ(python.highlight("if\"\"\""), Parts({{"if\"\"\"", kString}}));
}

TEST(CodeHighlighter, ADiffHasAColourPerLine) {
  CodeHighlighter diff("diff");
  EXPECT_EQ(diff.highlight("+a"), Parts({{"+a", {.colour = TextColour::kGreen}}}));
  EXPECT_EQ(diff.highlight("-a"), Parts({{"-a", {.colour = TextColour::kRed}}}));
}

TEST(CodeHighlighter, AnUnknownLanguageIsPlain) {
  EXPECT_EQ(CodeHighlighter("brainfuck").highlight("if"), Parts({{"if", kPlain}}));
  EXPECT_EQ(CodeHighlighter("").highlight(""), Parts());
}

TEST(CodeHighlighter, ThePiecesAreTheLine) {
  for (const char* name : {"c", "python", "js", "rust", "bash", "html", "css", "diff", "json", "x"}) {
    CodeHighlighter highlighter(name);
    std::mt19937 random(7);
    for (int i = 0; i < 300; ++i) {
      constexpr std::string_view kBytes = "ab 1'\"`/*#<!->\\\xC3\xA4_+";
      std::string line, joined;
      for (int j = 0; j < 20; ++j) line += kBytes[random() % kBytes.size()];
      for (const StyledText& part : highlighter.highlight(line)) joined += part.text;
      ASSERT_EQ(joined, line) << name;
    }
  }
}

}  // namespace
}  // namespace kvasir::cli::code_highlighter_test
