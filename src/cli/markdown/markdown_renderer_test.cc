#include "cli/markdown/markdown_renderer.h"

#include <gtest/gtest.h>

#include <cctype>
#include <cstddef>
#include <iterator>
#include <random>
#include <regex>
#include <string>
#include <string_view>

#include "cli/markdown/display_width.h"

namespace kvasir::cli::markdown_renderer_test {
namespace {

std::string render(std::string_view source, int columns = 80, bool colours = true,
                   std::size_t piece_bytes = 1000) {
  std::string out;
  MarkdownRenderer renderer([&out](std::string_view bytes) { out += bytes; },
                            {.columns = [columns] { return columns; }, .colours = colours});
  for (std::size_t at = 0; at < source.size(); at += piece_bytes)
    renderer.write(source.substr(at, piece_bytes));
  renderer.finish();
  return out;
}

std::string visible(const std::string& bytes) {
  static const std::regex sgr("\x1b\\[[0-9;]*m");
  return std::regex_replace(bytes, sgr, "");
}

std::string text_of(std::string_view source, int columns = 80) { return visible(render(source, columns)); }

// Markdown of all kinds, and what almost is Markdown.
constexpr std::string_view kDocument =
    "# A title\n"
    "Text with **bold**, *italic*, ***both***, __bold__, _italic_, ~~struck~~ and `code ** in it`.\n"
    "snake_case_name, 5*3*2, 2 * 3, **never closed, a ` mark, [1] and [a link](https://example.org/a_(b)).\n"
    "<https://example.org> <b>not</b> \\*escaped\\* \\( x_1 \\) \xE5\xA4\xA9\xE6\xB0\x94 e\xCC\x81\n\n"
    "- one\n  - two, **in bold**\n* three\n\n1. first\n2) second\n   ```py\n   x = 'a' # b\n   ```\n"
    "> quoted\n> - item\n>> twice\n\n---\n"
    "| a | b |\n|---|:-:|\n| 1 | `x|y` |\n| long cell of words | 2 |\n\n| no table\n\n"
    "```cpp\nint main() { /* a\n b */ return 0; }\n\tx();\n```\n~~~\n```\n~~~\n    indented *code*\n\nThe "
    "end\r\n";

TEST(MarkdownRenderer, ShowsStructureWithoutMarkers) {
  EXPECT_EQ(text_of("# Title\n**bold** and *it* and `code`\n"), "Title\nbold and it and code\n");
  EXPECT_EQ(text_of("- a\n  * b\n"), "• a\n  • b\n");
  EXPECT_EQ(text_of("> a\n> > b\n"), "│ a\n│ │ b\n");
  EXPECT_EQ(text_of("[text](http://x.org/)"), "text (http://x.org/)\n");
  EXPECT_EQ(text_of("[http://x.org/](http://x.org/)"), "http://x.org/\n");
}

TEST(MarkdownRenderer, StylesAreThoseOfTheMarkers) {
  EXPECT_EQ(render("a **b** c"), "a \x1b[0;1mb\x1b[0m c\n");
  EXPECT_EQ(render("*b*"), "\x1b[0;3mb\x1b[0m\n");
  EXPECT_EQ(render("***b***"), "\x1b[0;1;3mb\x1b[0m\n");
  EXPECT_EQ(render("**a *b* c**"), "\x1b[0;1ma \x1b[0;1;3mb\x1b[0;1m c\x1b[0m\n");
  EXPECT_EQ(render("# h"), "\x1b[0;1;4mh\x1b[0m\n");
  EXPECT_EQ(render("`c`"), "\x1b[0;36mc\x1b[0m\n");
}

TEST(MarkdownRenderer, WithoutColoursStructureStays) {
  const std::string out = render(kDocument, 80, false);
  EXPECT_FALSE(std::regex_search(out, std::regex("\x1b\\[[0-9;]*3[0-9]m"))) << out;
  EXPECT_NE(out.find("\x1b[0;1mbold"), std::string::npos);
  EXPECT_NE(out.find("`code ** in it`"), std::string::npos) << "the only sign of code there is";
}

TEST(MarkdownRenderer, WhatIsNoMarkdownStaysAsItIs) {
  for (const std::string_view text :
       {"2 * 3 * 4", "5*3*2", "snake_case_name", "**never closed", "a ` b", "[1] and [a", "#hashtag",
        "1.5 is", "-5", "a | b", "\\[ x \\]", "<b>bold</b>", "!important", "** not bold **", "__", "a\\b",
        "`", "12345"}) {
    EXPECT_EQ(text_of(text), std::string(text) + "\n");
  }
}

TEST(MarkdownRenderer, KeepsCodeByteForByte) {
  EXPECT_EQ(text_of("```python\n# **no** bold_ \\*\n  `x`\n\n```\n", 20),
            "── python ──────────\n# **no** bold_ \\*\n  `x`\n\n────────────────────\n");
  EXPECT_EQ(text_of("````\n```\n````\n", 10), "──────────\n```\n──────────\n");
  EXPECT_EQ(text_of("    a *b*\n"), "    a *b*\n");
  EXPECT_EQ(text_of("1. x\n   ```\n   a\n     b\n   ```\n", 8), "1. x\n   ─────\n   a\n     b\n   ─────\n");
  EXPECT_EQ(text_of("> ```\n> a\nb\n", 6), "│ ────\n│ a\nb\n") << "the code ends with its quote";
}

TEST(MarkdownRenderer, WrapsAtTheWindowWithHangingIndent) {
  EXPECT_EQ(text_of("aaa bbb ccc ddd", 8), "aaa bbb\nccc ddd\n");
  EXPECT_EQ(text_of("- aaa bbb ccc", 8), "• aaa\n  bbb\n  ccc\n");
  EXPECT_EQ(text_of("> aaa bbb", 6), "│ aaa\n│ bbb\n");
  EXPECT_EQ(text_of("abcdefghij", 4), "abcd\nefgh\nij\n");
  EXPECT_EQ(text_of("\xE5\xA4\xA9\xE5\xA4\xA9\xE5\xA4\xA9", 5), "\xE5\xA4\xA9\xE5\xA4\xA9\n\xE5\xA4\xA9\n")
      << "a wide character is never cut";
  EXPECT_EQ(text_of("ae\xCC\x81 b", 4), "ae\xCC\x81 b\n") << "a combining character has no width";
}

TEST(MarkdownRenderer, AlignsTables) {
  EXPECT_EQ(text_of("| a | bb |\n|:--|---:|\n| xyz | 1 |\n| \xE5\xA4\xA9 | 22 |\n"),
            "a   │ bb\n────┼───\nxyz │  1\n\xE5\xA4\xA9  │ 22\n");
  EXPECT_EQ(text_of("| a | b |\n| c | d |\n"), "| a | b |\n| c | d |\n") << "no delimiters, no table";
}

TEST(MarkdownRenderer, ANarrowWindowWrapsCellsOrListsThem) {
  const std::string_view table = "| key | text |\n|---|---|\n| one | some words to wrap |\n";
  EXPECT_EQ(text_of(table, 16), "key │ text\n────┼───────────\none │ some words\n    │ to wrap\n");
  EXPECT_EQ(text_of(table, 12), "key: one\ntext: some\n  words to\n  wrap\n");
}

TEST(MarkdownRenderer, ATableIsWrittenBeforeItEndsOnceItIsLong) {
  std::string out;
  MarkdownRenderer renderer([&out](std::string_view bytes) { out += bytes; }, {.columns = [] { return 80; }});
  renderer.write("| a |\n|---|\n");
  for (std::size_t row = 0; row < MarkdownTable::kMeasuredRows; ++row) {
    EXPECT_EQ(out, "");
    renderer.write("| x |\n");
  }
  EXPECT_NE(out, "");
  renderer.write("| longer than its column |\n");
  EXPECT_NE(visible(out).find("longer\nthan"), std::string::npos) << out;
}

TEST(MarkdownRenderer, AWordIsWrittenWhenItIsWhole) {
  std::string out;
  MarkdownRenderer renderer([&out](std::string_view bytes) { out += bytes; }, {.columns = [] { return 80; }});
  renderer.write("Hello wor");
  EXPECT_EQ(out, "Hello");
  renderer.write("ld **bo");
  EXPECT_EQ(out, "Hello world");
  renderer.write("ld** ");
  EXPECT_EQ(visible(out), "Hello world bold");
}

TEST(MarkdownRenderer, AnElementThatNeverEndsIsNotHeldForever) {
  std::string out;
  MarkdownRenderer renderer([&out](std::string_view bytes) { out += bytes; }, {.columns = [] { return 80; }});
  renderer.write("**");
  for (int i = 0; i < 400; ++i) renderer.write("word ");
  EXPECT_NE(out.find("**word"), std::string::npos);
}

TEST(MarkdownRenderer, BlankLinesAtEitherEndAreLeftOut) {
  EXPECT_EQ(text_of("\n\na\n\nb\n\n\n"), "a\n\nb\n");
  EXPECT_EQ(text_of(""), "");
}

TEST(MarkdownRenderer, HowTheStreamIsCutChangesNothing) {
  for (const int columns : {0, 10, 40, 80}) {
    const std::string whole = render(kDocument, columns);
    for (const std::size_t piece_bytes : {1, 2, 3, 7, 64}) {
      EXPECT_EQ(render(kDocument, columns, true, piece_bytes), whole)
          << columns << " columns, by " << piece_bytes;
    }
  }
}

// Pieces of Markdown in any order are what trips a parser that decides as it goes.
std::string random_markdown(std::mt19937& random) {
  constexpr std::string_view kPieces[] = {"*",
                                          "**",
                                          "***",
                                          "_",
                                          "__",
                                          "`",
                                          "``",
                                          "```",
                                          "~~",
                                          "[",
                                          "](",
                                          ")",
                                          "!",
                                          "<",
                                          "https://",
                                          ">",
                                          "> ",
                                          "# ",
                                          "- ",
                                          "1. ",
                                          "|",
                                          "| a | b |\n",
                                          "|---|---|\n",
                                          "\n",
                                          "\n\n",
                                          "    ",
                                          " ",
                                          "\\",
                                          "word",
                                          "a",
                                          "\t",
                                          "\xE5\xA4\xA9",
                                          "e\xCC\x81",
                                          "\xF0\x9F\x98\x80",
                                          "\xE2\x80\x8D",
                                          "~~~",
                                          "---\n",
                                          "\r\n",
                                          "\r",
                                          "\x1b[31m",
                                          "\xC2\x9B",
                                          "\x07",
                                          "\xFF"};
  std::string text;
  std::uniform_int_distribution<std::size_t> choose(0, std::size(kPieces) - 1);
  for (int i = 0; i < 60; ++i) text += kPieces[choose(random)];
  return text;
}

std::string random_bytes(std::mt19937& random) {
  std::string text;
  std::uniform_int_distribution<int> byte(0, 255);
  for (int i = 0; i < 300; ++i) text += static_cast<char>(byte(random));
  return text;
}

void expect_no_control(const std::string& out) {
  const std::string text = visible(out);  // takes our own sequences out, and nothing that looks else
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    ASSERT_TRUE(byte == '\n' || (byte >= 0x20 && byte != 0x7F)) << "byte " << int{byte};
    const bool is_c1 = byte == 0xC2 && i + 1 < text.size() && static_cast<unsigned char>(text[i + 1]) < 0xA0;
    ASSERT_FALSE(is_c1);
  }
}

TEST(MarkdownRenderer, RandomTextNeverEmitsAControlAndNeverDependsOnTheCut) {
  for (unsigned seed = 0; seed < 600; ++seed) {
    std::mt19937 random(seed);
    const std::string source = seed % 3 == 0 ? random_bytes(random) : random_markdown(random);
    const int columns = static_cast<int>(seed % 5) * 13;
    const std::string out = render(source, columns);
    expect_no_control(out);
    ASSERT_EQ(render(source, columns, true, 1 + seed % 4), out) << "seed " << seed;
  }
}

TEST(MarkdownRenderer, NoSequenceOfTheSourceSurvives) {
  EXPECT_EQ(render("a\x1b[31mred\x07\xC2\x9Bx"), "a\\x1b[31mred\\x07\\xc2\\x9bx\n");
  EXPECT_EQ(render("\x1b]0;title\x07"), "\\x1b]0;title\\x07\n");
  EXPECT_EQ(render("```\n\x1b[2J\r\n```", 4), "\x1b[0;2m────\x1b[0m\n\\x1b[2J\n\x1b[0;2m────\x1b[0m\n");
}

// Letters of the source, in order; everything else may be a marker.
std::string letters_of(std::string_view text) {
  std::string letters;
  for (const char c : text) {
    if (std::isalpha(static_cast<unsigned char>(c)) != 0) letters += c;
  }
  return letters;
}

TEST(MarkdownRenderer, NoLetterIsLostOrMoved) {
  for (unsigned seed = 0; seed < 300; ++seed) {
    std::mt19937 random(seed);
    constexpr std::string_view kPieces[] = {"*",  "**", "_", "`", "~~", "# ",    "- ",    "> ",  "\n",  " ",
                                            "ab", "cd", "e", "1", ". ", "```\n", "**x**", "`y`", "\n\n"};
    std::string source;
    std::uniform_int_distribution<std::size_t> choose(0, std::size(kPieces) - 1);
    for (int i = 0; i < 80; ++i) source += kPieces[choose(random)];
    ASSERT_EQ(letters_of(text_of(source, 30)), letters_of(source)) << "seed " << seed << "\n" << source;
  }
}

TEST(MarkdownRenderer, NoLineIsWiderThanTheWindow) {
  std::string source = "- ";
  for (int i = 0; i < 20; ++i)
    source += "some words, **bold \xE5\xA4\xA9\xE6\xB0\x94** text\xF0\x9F\x98\x80 ";
  source += "\n\n| a table | of two |\n|--|--|\n| with a long cell of words | x |\n";
  for (const int columns : {20, 33, 47}) {
    const std::string out = text_of(source, columns);
    std::string_view rest = out;
    while (!rest.empty()) {
      const std::size_t end = rest.find('\n');
      EXPECT_LE(display_width(rest.substr(0, end)), columns);
      rest.remove_prefix(end + 1);
    }
  }
}

}  // namespace
}  // namespace kvasir::cli::markdown_renderer_test
