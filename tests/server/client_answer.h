// Answers as the official clients read them: whole, or built from a stream's events.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace kvasir::server {

// What a client hands to its program.
struct ClientAnswer {
  struct Call {
    std::string id;
    std::string name;
    std::string space;      // the namespace; empty: none
    std::string arguments;  // JSON, or a custom tool's text
    bool is_custom = false;
  };
  std::string text;
  std::vector<Call> calls;
  std::string end;  // why it ended, in the API's word
};

// By the path of the request. A member that is missing, an event out of its order and a piece that belongs to
// nothing are failures of the test.
ClientAnswer read_whole_answer(std::string_view path, const std::string& body);
ClientAnswer read_streamed_answer(std::string_view path, const std::string& body);

}  // namespace kvasir::server
