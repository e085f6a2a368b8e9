// The common parts of the readers of conversations, whatever the protocol.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "jinja/value.h"
#include "server/api/field.h"
#include "server/api/json_input.h"

namespace kvasir::server::api {

// A content as it came: a text, or the list of its parts, which are all text and have a type and a text as
// templates read them, with what else the client gave them. `reasoning` is the text of parts that are thoughts.
struct MessageContent {
  jinja::Value value = jinja::Value::string("");
  std::string reasoning;
};

// Errors (400) name the part at fault: what is neither text nor a list, a part that is no text.
ApiResult<MessageContent> read_message_content(const FieldInput& content);
// The same of what a tool gave or an assistant said: nobody asks about a picture there, so a part that is no
// text is left out, with a warning, and a note stands in its place. Other JSON is shown as its text.
ApiResult<MessageContent> read_past_content(const FieldInput& content, Warnings& warnings);
// The JSON itself as a text, with a warning.
std::string json_text_of(const FieldInput& content);
// That note: "[image left out]".
std::string left_out_note(std::string_view type);

// Names the members of a message that mean nothing here, each once; a null says nothing.
void warn_unknown_members(const FieldInput& message, JsonObject object,
                          std::span<const std::string_view> known, Warnings& warnings);
// An item or a part is not shown to the model, and its conversation goes on without.
void warn_left_out(const FieldInput& item, std::string_view type, Warnings& warnings);

// Whether an assistant speaks last.
bool ends_with_assistant(const jinja::Value& messages);

}  // namespace kvasir::server::api
