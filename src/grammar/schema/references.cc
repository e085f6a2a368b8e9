#include "grammar/schema/references.h"

#include <fmt/format.h>

#include <charconv>

#include "base/printable.h"

namespace kvasir::grammar {
namespace {

std::string without_percent_signs(std::string_view text) {
  std::string decoded;
  for (std::size_t i = 0; i < text.size(); ++i) {
    unsigned value = 0;
    if (text[i] == '%' && i + 2 < text.size() + 0 &&
        std::from_chars(text.data() + i + 1, text.data() + i + 3, value, 16).ptr == text.data() + i + 3) {
      decoded += static_cast<char>(value);
      i += 2;
    } else {
      decoded += text[i];
    }
  }
  return decoded;
}

// A reference against the id around it (RFC 3986, without dots in paths).
std::string absolute(const std::string& base, std::string_view reference) {
  if (reference.find(':') != std::string_view::npos || base.empty()) return std::string(reference);
  if (reference.starts_with('#')) return base.substr(0, base.find('#')) + std::string(reference);
  const std::size_t scheme = base.find("://");
  if (reference.starts_with('/')) {
    const std::size_t path = scheme == std::string::npos ? 0 : base.find('/', scheme + 3);
    return base.substr(0, path == std::string::npos ? base.size() : path) + std::string(reference);
  }
  const std::size_t slash = base.rfind('/');
  return slash == std::string::npos ? std::string(reference) : base.substr(0, slash + 1) + std::string(reference);
}

// Members whose values are no schemas, though they may look like some.
bool holds_data(std::string_view key) {
  return key == "enum" || key == "const" || key == "default" || key == "examples" || key == "example";
}

}  // namespace

References::References(const JsonValue& root) : root_(root) {
  const JsonValue* schema = root.find("$schema");
  if (schema != nullptr && schema->is_string()) {
    for (const std::string_view draft : {"draft-04", "draft-05", "draft-06", "draft-07"}) {
      if (schema->text.find(draft) != std::string::npos) draft_ = SchemaDraft::kUpTo7;
    }
  }
  collect(root, {});
}

void References::collect(const JsonValue& value, const std::string& base) {
  std::string own = base;
  if (value.is_object()) {
    for (const std::string_view name : {"$id", "id"}) {
      const JsonValue* id = value.find(name);
      const bool is_property = value.parent != nullptr && value.key == "properties";
      const bool is_beside_reference = draft_ == SchemaDraft::kUpTo7 && value.find("$ref") != nullptr;
      if (id == nullptr || !id->is_string() || is_property || is_beside_reference) continue;
      own = absolute(base, id->text);
      if (own.ends_with('#')) own.pop_back();
      by_id_.emplace(own, &value);
      has_inner_ids_ = has_inner_ids_ || value.parent != nullptr;
    }
    for (const std::string_view name : {"$anchor", "$dynamicAnchor"}) {
      const JsonValue* anchor = value.find(name);
      if (anchor == nullptr || !anchor->is_string()) continue;
      by_id_.emplace(own + "#" + anchor->text, &value);
      if (name == "$dynamicAnchor") ++num_dynamic_anchors_[anchor->text];
    }
    const JsonValue* recursive = value.find("$recursiveAnchor");
    if (recursive != nullptr && recursive->kind == JsonValue::Kind::kTrue) ++num_recursive_anchors_;
  }
  for (const auto& child : value.children) {
    if (!holds_data(child->key)) collect(*child, own);
  }
}

Result<const JsonValue*> References::resolve(const JsonValue& reference) const {
  const auto fail = [&](std::string_view what) {
    return make_error(ErrorKind::kUsage, fmt::format("'{}' {}", printable(reference.text, 80), what));
  };
  if (!reference.is_string()) return fail("is no reference");
  const auto dynamic = num_dynamic_anchors_.find(reference.text.substr(reference.text.find('#') + 1));
  const bool is_ambiguous =
      (reference.key == "$dynamicRef" && dynamic != num_dynamic_anchors_.end() && dynamic->second > 1) ||
      (reference.key == "$recursiveRef" && num_recursive_anchors_ > 1);
  if (is_ambiguous) {
    return make_error(ErrorKind::kUnmet, fmt::format("'{}' may lead to several places", printable(reference.text, 80)));
  }
  std::string base;
  for (const JsonValue* value = &reference; value != nullptr; value = value->parent) {
    for (const auto& [id, schema] : by_id_) {
      if (schema == value && base.empty() && id.find('#') == std::string::npos) base = id;
    }
    if (!base.empty()) break;
  }
  const std::string whole = absolute(base, without_percent_signs(reference.text));
  if (const auto found = by_id_.find(whole); found != by_id_.end()) return found->second;
  const std::size_t hash = whole.find('#');
  const std::string document = whole.substr(0, hash);
  const std::string fragment = hash == std::string::npos ? std::string() : whole.substr(hash + 1);
  const auto known = by_id_.find(document);
  const bool is_pointer = fragment.empty() || fragment.starts_with('/');
  const JsonValue* target = nullptr;
  if (is_pointer && (known != by_id_.end() || (document.empty() && hash != std::string::npos))) {
    target = find_pointer(known != by_id_.end() ? *known->second : root_, fragment);
  }
  // "/$defs/X" is what some clients send.
  if (target == nullptr && reference.text.starts_with('/')) target = find_pointer(root_, reference.text);
  if (target == nullptr && reference.text.starts_with("#/")) target = find_pointer(root_, whole.substr(hash + 1));
  if (target == nullptr) return fail("is not in this document");
  return target;
}

}  // namespace kvasir::grammar
