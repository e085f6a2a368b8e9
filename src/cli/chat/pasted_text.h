// Text that the terminal reports as pasted.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace kvasir::cli {

// A paste as text for a message: line ends of any kind become newlines, those at its end go, and so do
// controls other than tabs.
std::string clean_paste(std::string_view text);

// Long texts, each with a short name that stands for it in a line that is being edited. It keeps them all.
//
// Thread safety: none.
class PastedTexts {
 public:
  // Returns the text for the line: the paste itself, or "[paste 1: 40 lines]".
  std::string add(std::string text);
  // The line with each paste in the place of its name.
  std::string expand(std::string_view line) const;

  // A longer paste would fill the window.
  static constexpr int kMaxShownLines = 8;
  static constexpr std::size_t kMaxShownBytes = 800;

 private:
  struct Paste {
    std::string name;
    std::string text;
  };
  std::vector<Paste> pastes_;
};

}  // namespace kvasir::cli
