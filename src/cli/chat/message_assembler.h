// Typed lines that together are one message.
#pragma once

#include <string>
#include <string_view>

namespace kvasir::cli {

// A line that begins with """ opens a block, which ends with a line that ends with """; behind the name of a
// command it opens one too. Outside of a block a backslash at the end of a line makes the next a part of the
// message.
//
// Thread safety: none.
class MessageAssembler {
 public:
  // True: the message is whole, and text() has it. Requires: it was not whole before; no newline at the end.
  bool add(std::string_view line);

  const std::string& text() const { return text_; }
  // The text of a block is never a command.
  bool is_block() const { return is_block_; }
  bool is_empty() const { return num_lines_ == 0; }

 private:
  bool add_to_block(std::string_view line);

  std::string text_;
  int num_lines_ = 0;
  bool is_open_ = false;      // within a block
  bool is_block_ = false;     // the message is one
  bool has_content_ = false;  // of the block: a newline goes before the next line
};

}  // namespace kvasir::cli
