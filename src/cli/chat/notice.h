// The chat's own messages.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace kvasir::cli {

// On the standard output, wrapped at the window where that is a terminal; a text of any origin steers none.
void print_notice(std::string_view text);

struct NoticeEntry {
  std::string name;
  std::string text;
};
// In two columns; names above their texts where the window is narrow.
void print_notice_list(const std::vector<NoticeEntry>& entries);

}  // namespace kvasir::cli
