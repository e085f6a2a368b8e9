// Which web pages may read answers, by their origin.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kvasir/result.h"

namespace kvasir::server::http {

// `*`, `null`, or SCHEME://HOST[:PORT], where HOST may begin with `*.` or be `*`, and PORT may be `*`.
//
// Thread safety: immutable.
class OriginPattern {
 public:
  // Error (kUsage): a text that matches the origin of no page, such as one without a scheme or with a path.
  static Result<OriginPattern> parse(std::string_view text);

  bool matches(std::string_view origin) const;
  bool matches_all() const { return scheme_ == "*"; }

 private:
  std::string scheme_;  // lower case; "*": all origins, "null": that of files and sandboxes
  std::string host_;    // lower case; "*": any, "*.example.com": any name that ends so
  std::string port_;    // "*": any; empty: the scheme's own
};

// The patterns of a list, besides those of this machine's pages and of applications that are web pages inside:
// localhost on any port, app://, tauri:// and vscode-webview://. `none` in the list leaves those out.
Result<std::vector<OriginPattern>> parse_origin_patterns(std::span<const std::string> texts);

}  // namespace kvasir::server::http
