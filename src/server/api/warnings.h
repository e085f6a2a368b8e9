// Facts that the client should know although its request is accepted. They go into a response header.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace kvasir::server::api {

struct Warnings {
  static constexpr std::size_t kMaxWarnings = 16;
  std::vector<std::string> messages;

  // Each once; one beyond the limit is dropped.
  void add(std::string message) {
    if (messages.size() >= kMaxWarnings || std::ranges::find(messages, message) != messages.end()) return;
    messages.push_back(std::move(message));
  }
};

}  // namespace kvasir::server::api
