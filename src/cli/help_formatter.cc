#include "cli/help_formatter.h"

#include <sstream>
#include <string>
#include <utility>

#include "cli/option_value.h"

namespace kvasir::cli {

std::string HelpFormatter::make_option(const CLI::Option* option, bool is_positional) const {
  std::string name = "  " + make_option_name(option, is_positional);
  if (!is_positional && option->get_expected_max() > 0) name += " " + value_of(*option).word;
  std::string out = name, line;
  std::istringstream words(full_description(*option));
  const std::string indent(kNameColumns, ' ');
  bool is_beside = name.size() + 1 < kNameColumns;
  const auto end_line = [&] {
    if (line.empty()) return;
    out += is_beside ? std::string(kNameColumns - name.size(), ' ') : "\n" + indent;
    is_beside = false;
    out += std::exchange(line, {});
  };
  for (std::string word; words >> word;) {
    if (!line.empty() && kNameColumns + line.size() + 1 + word.size() > kLineColumns) end_line();
    if (!line.empty()) line += ' ';
    line += word;
  }
  end_line();
  return out + '\n';
}

}  // namespace kvasir::cli
