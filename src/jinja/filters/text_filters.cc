#include <algorithm>

#include "base/code_point.h"
#include "jinja/access.h"
#include "jinja/filters/filter_tables.h"
#include "jinja/json_form.h"
#include "jinja/percent_format.h"
#include "jinja/python_string.h"
#include "jinja/text_form.h"
#include "jinja/traced_text.h"

namespace kvasir::jinja {
namespace {

template <std::string (*kTransform)(std::string_view)>
Result<Value> transform(Runtime& runtime, const Value& self, const Arguments&) {
  KVASIR_TRY(const std::string text, to_text(runtime, self));
  return runtime.make_string(kTransform(text));
}

bool starts_word_after(char c) { return std::string_view("-({[<").find(c) != std::string_view::npos; }

// Jinja's title: a capital after whitespace, a hyphen or an opening bracket.
std::string titled(std::string_view text) {
  std::string out;
  std::size_t word = 0;
  const auto finish_word = [&](std::size_t end) {
    if (word == end) return;
    const std::size_t first = code_point_at(text, word).size_bytes;
    out += to_upper(text.substr(word, first)) + to_lower(text.substr(word + first, end - word - first));
  };
  for (std::size_t i = 0; i < text.size();) {
    const CodePoint c = code_point_at(text, i);
    const bool separates = c.size_bytes == 1 && starts_word_after(text[i]);
    if (separates || has_property(c.value, kSpace)) {
      finish_word(i);
      out += text.substr(i, c.size_bytes);
      word = i + c.size_bytes;
    }
    i += c.size_bytes;
  }
  finish_word(text.size());
  return out;
}

Result<Value> trim(Runtime& runtime, const Value& self, const Arguments& arguments) {
  KVASIR_TRY(const Value subject, to_text_value(runtime, self));
  return invoke(*find_method(subject, "strip"), runtime, subject, arguments);
}

Result<Value> replace(Runtime& runtime, const Value& self, const Arguments& arguments) {
  KVASIR_TRY(const Value text, to_text_value(runtime, self));
  KVASIR_TRY(const std::string old_text, to_text(runtime, arguments.positional[0]));
  KVASIR_TRY(const Value new_text, to_text_value(runtime, arguments.positional[1]));
  const Value& count = arguments.positional[2];
  KVASIR_TRY(const std::int64_t limit, int_argument(count.is_none() ? Value::missing() : count, "count", -1));
  return replace_text(runtime, text.text(), old_text, new_text.text(), limit);
}

// Every line but the first (unless `first`) and blank ones (unless `blank`) moves right.
Result<Value> indent(Runtime& runtime, const Value& self, const Arguments& arguments) {
  if (!self.is_string()) return template_error("indent needs a string, not '{}'", self.type_name());
  const std::string& text = self.as_string();
  KVASIR_CHECKED(runtime.charge_bytes(text.size()));
  const Value& width = arguments.positional[0];
  std::string indention;
  if (width.is_string()) {
    indention = width.as_string();
  } else {
    KVASIR_TRY(const std::int64_t spaces, int_argument(width, "width", 4));
    KVASIR_CHECKED(runtime.charge_bytes(static_cast<std::size_t>(std::max<std::int64_t>(spaces, 0))));
    indention.assign(static_cast<std::size_t>(std::max<std::int64_t>(spaces, 0)), ' ');
  }
  const bool first = flag_argument(arguments.positional[1], false);
  const bool blank = flag_argument(arguments.positional[2], false);
  const std::string terminated = text + "\n";
  const auto lines = split_lines(terminated);
  KVASIR_CHECKED(runtime.charge(lines.size()));
  TracedText out;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (i > 0) out.append("\n");
    if (i == 0 ? first : (blank || !lines[i].empty())) {
      KVASIR_CHECKED(runtime.charge(indention.size() / 64));
      out.append(indention);
    }
    out.append_part(self.text(), static_cast<std::size_t>(lines[i].data() - terminated.data()),
                    lines[i].size());
  }
  return runtime.make_string(std::move(out));
}

Result<Value> truncate(Runtime& runtime, const Value& self, const Arguments& arguments) {
  if (!self.is_string()) return template_error("truncate needs a string, not '{}'", self.type_name());
  const std::string_view text = self.as_string();
  KVASIR_CHECKED(runtime.charge_bytes(2 * text.size()));
  KVASIR_TRY(const std::int64_t length, int_argument(arguments.positional[0], "length", 255));
  const bool kill_words = flag_argument(arguments.positional[1], false);
  KVASIR_TRY(const std::string end, string_argument(arguments.positional[2], "end", "..."));
  const Value& slack = arguments.positional[3];
  KVASIR_TRY(const std::int64_t leeway,
             int_argument(slack.is_none() ? Value::missing() : slack, "leeway", 5));
  const auto end_length = static_cast<std::int64_t>(num_code_points(end));
  if (length < end_length)
    return template_error("truncate: expected length >= {}, got {}", end_length, length);
  if (leeway < 0) return template_error("truncate: expected leeway >= 0, got {}", leeway);
  if (static_cast<std::int64_t>(self.text().num_code_points) - leeway <= length) return self;
  std::string_view kept = text.substr(0, byte_offset(text, static_cast<std::size_t>(length - end_length)));
  if (!kill_words) kept = kept.substr(0, std::min(kept.rfind(' '), kept.size()));
  TracedText out;
  out.append_part(self.text(), 0, kept.size());
  out.append(end);
  return runtime.make_string(std::move(out));
}

Result<Value> center(Runtime& runtime, const Value& self, const Arguments& arguments) {
  KVASIR_TRY(const Value subject, to_text_value(runtime, self));
  KVASIR_TRY(const std::int64_t width, int_argument(arguments.positional[0], "width", 80));
  return invoke(*find_method(subject, "center"), runtime, subject, {{Value::integer(width)}, {}});
}

Result<Value> format(Runtime& runtime, const Value& self, const Arguments& arguments) {
  KVASIR_TRY(const Value text, to_text_value(runtime, self));
  if (!arguments.positional.empty() && !arguments.keywords.empty()) {
    return template_error("format takes positional or keyword arguments, not both");
  }
  Value values;
  if (arguments.keywords.empty()) {
    KVASIR_TRY(values, runtime.make_list(arguments.positional, ListKind::kTuple));
  } else {
    std::vector<Value::Entry> entries;
    for (const auto& [name, value] : arguments.keywords) entries.emplace_back(Value::string(name), value);
    KVASIR_TRY(values, runtime.make_dict(std::move(entries)));
  }
  return percent_format(runtime, text, values);
}

Result<Value> escape(Runtime& runtime, const Value& self, const Arguments&) {
  if (self.is_string() && self.text().is_markup) return self;
  KVASIR_TRY(const std::string text, to_text(runtime, self));
  return Value::markup(escape_html(text));
}

Result<Value> force_escape(Runtime& runtime, const Value& self, const Arguments&) {
  KVASIR_TRY(const std::string text, to_text(runtime, self));
  return Value::markup(escape_html(text));
}

Result<Value> safe(Runtime& runtime, const Value& self, const Arguments&) {
  TracedText text;
  KVASIR_CHECKED(append_text(runtime, self, text));
  return std::move(text).to_value(/*is_markup=*/true);
}

Result<Value> string(Runtime& runtime, const Value& self, const Arguments&) {
  if (self.is_string()) return self;
  KVASIR_TRY(std::string text, to_text(runtime, self));
  return runtime.make_string(std::move(text));
}

Result<Value> wordcount(Runtime& runtime, const Value& self, const Arguments&) {
  KVASIR_TRY(const std::string text, to_text(runtime, self));
  std::int64_t words = 0;
  bool inside = false;
  for (std::size_t i = 0; i < text.size();) {
    const CodePoint c = code_point_at(text, i);
    const bool is_word = c.value == '_' || has_property(c.value, kAlphabetic | kDecimal | kDigit | kNumeric);
    words += is_word && !inside ? 1 : 0;
    inside = is_word;
    i += c.size_bytes;
  }
  return Value::integer(words);
}

void append_quoted(std::string_view text, bool is_path, std::string& out) {
  constexpr std::string_view kUnreserved = "_.-~";
  for (const char c : text) {
    const bool alnum = (c >= '0' && c <= '9') || ((c | 32) >= 'a' && (c | 32) <= 'z');
    if (alnum || kUnreserved.find(c) != std::string_view::npos || (is_path && c == '/')) {
      out += c;
    } else if (!is_path && c == ' ') {
      out += '+';
    } else {
      out += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    }
  }
}

// A string is quoted as a path; a dict or pairs become a query.
Result<Value> urlencode(Runtime& runtime, const Value& self, const Arguments&) {
  std::string out;
  if (!self.is_dict() && (self.is_string() || !self.is_list())) {
    KVASIR_TRY(const std::string text, to_text(runtime, self));
    append_quoted(text, true, out);
    return runtime.make_string(std::move(out));
  }
  std::vector<Value::Entry> pairs;
  if (self.is_dict()) pairs = self.as_dict().entries();
  if (self.is_list()) {
    for (const Value& pair : self.as_list().items) {
      KVASIR_TRY(const auto items, iterate(runtime, pair));
      if (items->items.size() != 2) return template_error("urlencode needs pairs");
      pairs.emplace_back(items->items[0], items->items[1]);
    }
  }
  for (const auto& [key, value] : pairs) {
    KVASIR_TRY(const std::string name, to_text(runtime, key));
    KVASIR_TRY(const std::string text, to_text(runtime, value));
    if (!out.empty()) out += '&';
    append_quoted(name, false, out);
    out += '=';
    append_quoted(text, false, out);
  }
  return runtime.make_string(std::move(out));
}

// Jinja 2 refuses a generator; templates that were written for llama.cpp have some.
Result<Value> without_generator(Runtime& runtime, const Value& value) {
  if (value.type_name() != "generator") return value;
  KVASIR_TRY(const auto list, iterate(runtime, value));
  return Value::list(list->items);
}

Result<Value> tojson(Runtime& runtime, const Value& self, const Arguments& arguments) {
  JsonStyle style;
  style.ensure_ascii = flag_argument(arguments.positional[0], false);
  const Value& width = arguments.positional[1];
  if (width.is_string()) {
    style.pretty = true;
    style.indent = width.as_string();
  } else if (!width.is_missing() && !width.is_none()) {
    KVASIR_TRY(const std::int64_t spaces, int_argument(width, "indent", 0));
    style.pretty = true;
    KVASIR_CHECKED(runtime.charge_bytes(static_cast<std::size_t>(std::max<std::int64_t>(spaces, 0))));
    style.indent.assign(static_cast<std::size_t>(std::max<std::int64_t>(spaces, 0)), ' ');
  }
  if (style.pretty) style.item_separator = ",";
  const Value& separators = arguments.positional[2];
  if (!separators.is_missing() && !separators.is_none()) {
    KVASIR_TRY(const auto pair, iterate(runtime, separators));
    if (pair->items.size() != 2) return template_error("tojson: separators must be a pair of strings");
    KVASIR_TRY(style.item_separator, string_argument(pair->items[0], "separators", ""));
    KVASIR_TRY(style.key_separator, string_argument(pair->items[1], "separators", ""));
  }
  style.sort_keys = flag_argument(arguments.positional[3], false);
  std::string out;
  KVASIR_TRY(const Value value, without_generator(runtime, self));
  KVASIR_CHECKED(append_json(runtime, value, style, out));
  return runtime.make_string(std::move(out));
}

constexpr Builtin kTextFilters[] = {
    {"capitalize", 0, {}, transform<capitalized>},
    {"center", 0, {"width"}, center},
    {"e", 0, {}, escape},
    {"escape", 0, {}, escape},
    {"forceescape", 0, {}, force_escape},
    {"format", 0, {kAnyArguments}, format},
    {"indent", 0, {"width", "first", "blank"}, indent},
    {"lower", 0, {}, transform<to_lower>},
    {"replace", 2, {"old", "new", "count"}, replace},
    {"safe", 0, {}, safe},
    {"string", 0, {}, string},
    {"title", 0, {}, transform<titled>},
    {"tojson", 0, {"ensure_ascii", "indent", "separators", "sort_keys"}, tojson},
    {"trim", 0, {"chars"}, trim},
    {"truncate", 0, {"length", "killwords", "end", "leeway"}, truncate},
    {"upper", 0, {}, transform<to_upper>},
    {"urlencode", 0, {}, urlencode},
    {"wordcount", 0, {}, wordcount},
};

}  // namespace

std::span<const Builtin> text_filters() { return kTextFilters; }

}  // namespace kvasir::jinja
