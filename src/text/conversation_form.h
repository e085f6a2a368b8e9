// Normal forms of a conversation, for chat templates that take not every one.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "jinja/value.h"

namespace kvasir::text {

struct ConversationForm {
  // What becomes of system messages.
  enum class System : std::uint8_t {
    kInPlace,
    kLeadingJoined,  // those that lead the conversation are one
    kLaterAsUser,    // and later ones are the user's, as all with roles of their own: their place stays, and
                     // with it what is cached of the prompt
    kAllJoined,      // all are one, which leads
    kInUser,         // for templates without any: all go before the first text of the user
  };
  // What a content is.
  enum class Contents : std::uint8_t {
    kText,
    kAsCame,  // text or parts
    kParts,
  };
  enum class Tools : std::uint8_t {
    kAsCame,
    kTextInResults,  // what the user says behind a result goes with it, for templates that want an answer first
    kOneCallEach,    // a message for each call, with its result behind it
    kCallsApart,     // what is said with calls is a message before theirs, whose content is none
    kCallsAsText,
    kAllAsText,  // calls and results (see generic_tools.h)
  };
  System system = System::kInPlace;
  Contents contents = Contents::kText;
  Tools tools = Tools::kAsCame;
  bool has_text_arguments = false;  // of calls: JSON instead of an object
  bool merges_roles = false;        // neighbours of one role are one message
  bool starts_with_user = false;    // with nothing said, before an assistant that speaks first
};

// `messages` is a list of dicts with a role. `tools_text` goes to the system message unless it is empty.
jinja::Value in_form(const jinja::Value& messages, const ConversationForm& form,
                     const std::string& tools_text);

// The text of a content: a string, or the texts of its parts in lines; nothing for any other value.
std::string content_text(const jinja::Value& content);

// A member of the message; null when it has none.
const jinja::Value* find_message_member(const jinja::Value& message, std::string_view name);
std::string role_of(const jinja::Value& message);

// The message with one member put in the place of the old one, or added.
jinja::Value with_member(const jinja::Value& message, std::string_view name, jinja::Value value);

}  // namespace kvasir::text
