// How --help looks: names in one column, what they mean wrapped beside them.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace kvasir::cli {

class HelpFormatter : public CLI::Formatter {
 public:
  static constexpr std::size_t kNameColumns = 30;
  static constexpr std::size_t kLineColumns = 100;

  std::string make_option(const CLI::Option* option, bool is_positional) const override;
};

}  // namespace kvasir::cli
