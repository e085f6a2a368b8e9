// Formats of a structural tag that are made of tags.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

#include "base/printable.h"
#include "grammar/tags/format_lowering.h"

namespace kvasir::grammar {
namespace {

bool is_token_format(const JsonValue& value) { return value.is_object(); }

}  // namespace

// Content and end of a tag.
Result<Part> FormatLowering::tag_body(const JsonValue& format) {
  KVASIR_TRY(const JsonValue* content, member(format, "content"));
  KVASIR_TRY(const JsonValue* end, member(format, "end"));
  if (is_token_format(*end)) {
    KVASIR_TRY(const Part token, lower(*end, {}));
    const std::optional<TokenId> outer = end_token_;
    if (const JsonValue* id = end->find("token")) {
      KVASIR_TRY(end_token_, token_of(*id));
    }
    KVASIR_TRY(const Part inside, lower(*content, {}));
    end_token_ = outer;
    return builder_.sequence(std::array{inside, token});
  }
  Ends ends;
  bool may_lack_end = false;
  const auto add = [&](const JsonValue& text) -> Status {
    if (!text.is_string()) return tag_fault(text, "this is neither a string nor a token");
    if (text.text.empty()) {
      may_lack_end = true;
    } else {
      ends.push_back(text.text);
    }
    return {};
  };
  if (end->is_array()) {
    if (end->children.empty()) return tag_fault(*end, "this list is empty");
    for (const auto& text : end->children) KVASIR_CHECKED(add(*text));
  } else {
    KVASIR_CHECKED(add(*end));
  }
  if (!may_lack_end) return lower(*content, ends);
  KVASIR_TRY(const Part open, lower(*content, {}));
  if (ends.empty()) return open;
  KVASIR_TRY(const Part closed, lower(*content, ends));
  return builder_.choice(std::array{open, closed});
}

Result<Part> FormatLowering::lower_tag(const JsonValue& format, const Ends& ends) {
  KVASIR_TRY(const JsonValue* begin, member(format, "begin"));
  Part opening = builder_.text(kEmptyText);
  if (is_token_format(*begin)) {
    KVASIR_TRY(opening, lower(*begin, {}));
  } else {
    KVASIR_TRY(const std::string text, string_member(format, "begin"));
    opening = builder_.text(store_.literal(text));
  }
  KVASIR_TRY(const Part body, tag_body(format));
  return with_end(builder_.sequence(std::array{opening, body}), ends);
}

Result<FormatLowering::Tag> FormatLowering::read_tag(const JsonValue& format) {
  if (!format.is_object()) return tag_fault(format, "this is no tag");
  KVASIR_TRY(std::string begin, string_member(format, "begin"));
  KVASIR_TRY(Part body, tag_body(format));
  return Tag{.begin = std::move(begin), .behind = std::move(body)};
}

// Text in which each trigger leads on to the tags that begin with it.
Result<Part> FormatLowering::triggered(const JsonValue& format, const Triggered& wanted, const std::vector<Tag>& tags,
                                       const Ends& ends) {
  if (wanted.triggers.empty()) return tag_fault(format, "there are no triggers");
  std::map<std::string_view, std::vector<Part>> by_trigger;
  std::vector<Part> whole;
  for (const Tag& tag : tags) {
    const auto begins = [&](std::string_view trigger) { return tag.begin.starts_with(trigger); };
    const auto found = std::ranges::find_if(wanted.triggers, begins);
    if (found == wanted.triggers.end() || std::ranges::count_if(wanted.triggers, begins) > 1) {
      return tag_fault(format, fmt::format("the tag '{}' begins with {}", printable(tag.begin, 60),
                                           found == wanted.triggers.end() ? "no trigger" : "several triggers"));
    }
    const Part rest = builder_.text(store_.literal(std::string_view(tag.begin).substr(found->size())));
    by_trigger[*found].push_back(builder_.sequence(std::array{rest, tag.behind}));
    whole.push_back(builder_.sequence(std::array{builder_.text(store_.literal(tag.begin)), tag.behind}));
  }
  const Part first = builder_.choice(whole);
  if (wanted.at_least_one && wanted.stop_after_first) return with_end(first, ends);
  TextDispatch dispatch = {.triggers = {}, .excludes = wanted.excludes, .ends = ends, .loops = !wanted.stop_after_first};
  for (const std::string& trigger : wanted.triggers) {
    dispatch.triggers.push_back({.mark = trigger, .behind = builder_.choice(by_trigger[trigger])});
  }
  const Part text = text_dispatch(builder_, store_, derivatives_, dispatch);
  return wanted.at_least_one ? builder_.sequence(std::array{first, text}) : text;
}

Result<Part> FormatLowering::lower_triggered_tags(const JsonValue& format, const Ends& ends) {
  Triggered wanted;
  KVASIR_TRY(wanted.triggers, strings_member(format, "triggers"));
  KVASIR_TRY(wanted.excludes, strings_member(format, "excludes"));
  KVASIR_TRY(wanted.at_least_one, bool_member(format, "at_least_one"));
  KVASIR_TRY(wanted.stop_after_first, bool_member(format, "stop_after_first"));
  KVASIR_TRY(const JsonValue* list, member(format, "tags"));
  if (!list->is_array()) return tag_fault(*list, "this is no list of tags");
  std::vector<Tag> tags;
  for (const auto& element : list->children) {
    KVASIR_TRY(Tag tag, read_tag(*element));
    tags.push_back(std::move(tag));
  }
  return triggered(format, wanted, tags, ends);
}

Result<Part> FormatLowering::lower_structures(const JsonValue& format) {
  Triggered wanted;
  KVASIR_TRY(wanted.triggers, strings_member(format, "triggers"));
  KVASIR_TRY(const JsonValue* list, member(format, "structures"));
  if (!list->is_array()) return tag_fault(*list, "this is no list of structures");
  std::vector<Tag> tags;
  for (const auto& element : list->children) {
    if (!element->is_object()) return tag_fault(*element, "this is no structure");
    KVASIR_TRY(std::string begin, string_member(*element, "begin"));
    KVASIR_TRY(const std::string end, string_member(*element, "end"));
    KVASIR_TRY(const JsonValue* value, member(*element, "schema"));
    KVASIR_TRY(const Part inside, schema(*value));
    Part body = with_end(inside, end.empty() ? Ends{} : Ends{end});
    tags.push_back({.begin = std::move(begin), .behind = std::move(body)});
  }
  return triggered(format, wanted, tags, {});
}

Result<Part> FormatLowering::lower_tags_with_separator(const JsonValue& format, const Ends& ends) {
  KVASIR_TRY(const JsonValue* list, member(format, "tags"));
  KVASIR_TRY(const std::string separator, string_member(format, "separator"));
  KVASIR_TRY(const bool at_least_one, bool_member(format, "at_least_one"));
  KVASIR_TRY(const bool stop_after_first, bool_member(format, "stop_after_first"));
  if (!list->is_array() || list->children.empty()) return tag_fault(*list, "this is no list of tags");
  std::vector<Part> tags;
  for (const auto& element : list->children) {
    if (!element->is_object()) return tag_fault(*element, "this is no tag");
    KVASIR_TRY(Part tag, lower_tag(*element, {}));
    tags.push_back(std::move(tag));
  }
  const RuleId rule = builder_.declare("tag");
  builder_.define(rule, builder_.choice(tags));
  Part all = builder_.rule(rule);
  if (!stop_after_first) {
    const Part next = builder_.sequence(std::array{builder_.text(store_.literal(separator)), builder_.rule(rule)});
    all = builder_.sequence(std::array{all, builder_.repeat(next, 0, kUnbounded)});
  }
  if (!at_least_one) all = builder_.choice(std::array{all, builder_.text(kEmptyText)});
  return with_end(all, ends);
}

// Each rule is a pair: a mark in the text, and what follows it.
Result<Part> FormatLowering::lower_dispatch(const JsonValue& format, const Ends& ends) {
  TextDispatch dispatch = {.triggers = {}, .excludes = {}, .ends = ends};
  KVASIR_TRY(dispatch.excludes, strings_member(format, "excludes"));
  if (format.find("loop") != nullptr) {
    KVASIR_TRY(dispatch.loops, bool_member(format, "loop"));
  }
  KVASIR_TRY(const JsonValue* rules, member(format, "rules"));
  if (!rules->is_array() || rules->children.empty()) return tag_fault(*rules, "this is no list of rules");
  for (const auto& rule : rules->children) {
    if (!rule->is_array() || rule->children.size() != 2) return tag_fault(*rule, "this is no pair of a text and a format");
    const JsonValue& mark = *rule->children[0];
    if (!mark.is_string() || mark.text.empty()) return tag_fault(mark, "this is no string, or an empty one");
    KVASIR_TRY(Part behind, lower(*rule->children[1], {}));
    dispatch.triggers.push_back({.mark = mark.text, .behind = std::move(behind)});
  }
  return text_dispatch(builder_, store_, derivatives_, dispatch);
}

}  // namespace kvasir::grammar
