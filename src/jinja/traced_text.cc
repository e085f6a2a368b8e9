#include "jinja/traced_text.h"

#include <algorithm>
#include <utility>

namespace kvasir::jinja {

void TracedText::add_span(std::size_t begin, std::size_t end) {
  if (begin == end) return;
  if (!foreign_.empty() && foreign_.back().end == begin) {
    foreign_.back().end = end;
  } else {
    foreign_.push_back({begin, end});
  }
}

void TracedText::append_foreign(std::string_view text) {
  add_span(bytes_.size(), bytes_.size() + text.size());
  bytes_ += text;
}

void TracedText::append_part(const Text& text, std::size_t begin, std::size_t size) {
  const std::size_t end = begin + size, offset = bytes_.size();
  auto span = std::ranges::partition_point(text.foreign, [&](const TextSpan& s) { return s.end <= begin; });
  for (; span != text.foreign.end() && span->begin < end; ++span) {
    add_span(offset + std::max(span->begin, begin) - begin, offset + std::min(span->end, end) - begin);
  }
  bytes_.append(text.bytes, begin, size);
}

void TracedText::cut(std::size_t size) {
  bytes_.resize(size);
  while (!foreign_.empty() && foreign_.back().begin >= size) foreign_.pop_back();
  if (!foreign_.empty()) foreign_.back().end = std::min(foreign_.back().end, size);
}

Value TracedText::to_value(bool is_markup) && {
  return Value::traced(std::move(bytes_), std::move(foreign_), is_markup);
}

Value part_of(const Text& text, std::string_view view, bool is_markup) {
  TracedText part;
  if (!view.empty()) {
    part.append_part(text, static_cast<std::size_t>(view.data() - text.bytes.data()), view.size());
  }
  return std::move(part).to_value(is_markup);
}

Value as_foreign(const Value& value) {
  if (value.is_string()) {
    const std::string& text = value.as_string();
    std::vector<TextSpan> whole;
    if (!text.empty()) whole.push_back({0, text.size()});
    return Value::traced(text, std::move(whole));
  }
  if (value.is_list()) {
    std::vector<Value> items;
    for (const Value& item : value.as_list().items) items.push_back(as_foreign(item));
    return Value::list(std::move(items), value.as_list().kind);
  }
  if (value.is_dict()) {
    std::vector<Value::Entry> entries;
    for (const auto& [key, item] : value.as_dict().entries()) {
      entries.emplace_back(as_foreign(key), as_foreign(item));
    }
    return Value::dict(std::move(entries));
  }
  return value;
}

bool has_foreign(const Value& value) {
  if (value.is_string()) return !value.text().foreign.empty();
  if (value.is_list()) return std::ranges::any_of(value.as_list().items, has_foreign);
  if (!value.is_dict()) return false;
  return std::ranges::any_of(value.as_dict().entries(), [](const Value::Entry& entry) {
    return has_foreign(entry.first) || has_foreign(entry.second);
  });
}

}  // namespace kvasir::jinja
