#include "text/hf/match_finder.h"

#include <utility>

#include "base/code_point.h"

namespace kvasir::text::hf {

MatchFinder find_text(std::string wanted) {
  return [wanted = std::move(wanted)](std::string_view text, const VisitMatch& visit) {
    for (std::size_t at = text.find(wanted); at != std::string_view::npos; at = text.find(wanted, at)) {
      visit(at, at + wanted.size());
      at += wanted.size();
    }
  };
}

MatchFinder find_characters(bool (*is_wanted)(char32_t code_point)) {
  return [is_wanted](std::string_view text, const VisitMatch& visit) {
    for (std::size_t at = 0; at < text.size();) {
      const auto [code_point, size_bytes] = code_point_at(text, at);
      if (is_wanted(code_point)) visit(at, at + size_bytes);
      at += size_bytes;
    }
  };
}

}  // namespace kvasir::text::hf
