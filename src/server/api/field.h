// A request is a table: one row a field, with its type, range, meaning and how it is read. The rows drive the
// validation, the suggestions for misspelt names and the API reference.
//
// A row's reader sorts its field: honoured; left out with a warning (read_ignored); refused where leaving it
// out would give another answer than the one demanded (read_unsupported). The meaning of a field that is left
// out begins with "left out: ", of one that is refused with "refused: ".
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "server/api/json_input.h"
#include "server/api/warnings.h"

namespace kvasir::server::api {

template <class Target>
struct Field {
  std::string_view name;
  std::string_view type;  // for the API reference
  Range range;            // of numbers
  std::string_view meaning;
  ApiStatus (*read)(const FieldInput& field, Target& target);
};

namespace detail {

template <class Pointer>
struct MemberPointer;
template <class Class, class Member>
struct MemberPointer<Member Class::*> {
  using Owner = Class;
};

template <class T>
struct Unwrapped {
  using Type = T;
};
template <class T>
struct Unwrapped<std::optional<T>> {
  using Type = T;
};

// ApiResult<T> -> target member, converted to its type; the row's range makes sure that it fits.
template <auto First, auto... Rest, class T>
ApiStatus assign(ApiResult<T> value, typename MemberPointer<decltype(First)>::Owner& target) {
  if (!value) return std::unexpected(std::move(value).error());
  auto& member = ((target.*First).*....*Rest);
  member =
      static_cast<typename Unwrapped<std::remove_reference_t<decltype(member)>>::Type>(*std::move(value));
  return {};
}

}  // namespace detail

template <auto First>
using OwnerOf = typename detail::MemberPointer<decltype(First)>::Owner;

// A word as a template argument.
template <std::size_t N>
struct Word {
  char text[N] = {};
  consteval Word(const char (&word)[N]) { std::ranges::copy(word, text); }
};

// Whether the value is what a field without a wish has: null, false, 0, "", [], {} or an object of such.
bool asks_for_nothing(JsonElement json);
void warn_left_out(const FieldInput& field);
void warn_left_out_unless(const FieldInput& field, std::initializer_list<std::string_view> words);
void warn_ignored(const FieldInput& field, std::string_view why);

// Readers for members of the target, and members of its members.
template <auto First, auto... Rest>
ApiStatus read_number(const FieldInput& field, OwnerOf<First>& target) {
  return detail::assign<First, Rest...>(number_of(field), target);
}
template <auto First, auto... Rest>
ApiStatus read_integer(const FieldInput& field, OwnerOf<First>& target) {
  return detail::assign<First, Rest...>(integer_of(field), target);
}
template <auto First, auto... Rest>
ApiStatus read_boolean(const FieldInput& field, OwnerOf<First>& target) {
  return detail::assign<First, Rest...>(boolean_of(field), target);
}
template <auto First, auto... Rest>
ApiStatus read_string(const FieldInput& field, OwnerOf<First>& target) {
  return detail::assign<First, Rest...>(string_of(field), target);
}

// A known field that changes nothing here. A warning says when it is not what it should be by `Of`, such as
// string_of.
template <auto Of, class Target>
ApiStatus read_unused(const FieldInput& field, Target&) {
  const auto value = Of(field);
  if (!value) warn_ignored(field, value.error().message);
  return {};
}
// A wish that is left out: a warning says so, with the row's meaning, unless the field asks for nothing.
template <class Target>
ApiStatus read_ignored(const FieldInput& field, Target&) {
  warn_left_out(field);
  return {};
}
// The same of a number that asks for nothing when it is 1.
template <class Target>
ApiStatus read_ignored_but_one(const FieldInput& field, Target&) {
  if (!field.json.is_number() || field.json.get_double().value() != 1) warn_left_out(field);
  return {};
}
// The same of a word: one of `Words` asks for what there is.
template <Word... Words, class Target>
ApiStatus read_ignored_unless(const FieldInput& field, Target&) {
  warn_left_out_unless(field, std::initializer_list<std::string_view>{Words.text...});
  return {};
}
// A field that is read when others are known.
template <class Target>
ApiStatus read_later(const FieldInput&, Target&) {
  return {};
}
// A promise that cannot be kept yet; what asks for nothing (false, "", []) is fine.
ApiStatus refuse_unless_empty(const FieldInput& field);
template <class Target>
ApiStatus read_unsupported(const FieldInput& field, Target&) {
  return refuse_unless_empty(field);
}

// Warns of a field that no table has, naming the nearest that one has.
void warn_unknown_field(std::string_view name, std::span<const std::string_view> known, Warnings& warnings);

// Reads every field of the object through the row of its name, that of `own` before that of `shared`; a null
// counts as absent. Errors (400): what a row refuses.
template <class Target, class Base>
ApiStatus read_fields(JsonObject object, std::span<const Field<Base>> shared,
                      std::span<const Field<Target>> own, const Limits& limits, Target& target,
                      Warnings& warnings) {
  std::vector<std::string_view> known;
  for (const Field<Target>& row : own) known.push_back(row.name);
  for (const Field<Base>& row : shared) known.push_back(row.name);
  for (const auto [key, json] : object) {
    std::size_t index = 0;
    while (index < known.size() && known[index] != key) ++index;
    if (index == known.size()) {
      warn_unknown_field(key, known, warnings);
      continue;
    }
    if (json.is_null()) continue;
    FieldInput field{std::string(key), json, limits, {}, &warnings};
    if (index < own.size()) {
      field.range = own[index].range;
      field.meaning = own[index].meaning;
      KVASIR_CHECKED(own[index].read(field, target));
    } else {
      field.range = shared[index - own.size()].range;
      field.meaning = shared[index - own.size()].meaning;
      KVASIR_CHECKED(shared[index - own.size()].read(field, target));
    }
  }
  return {};
}

}  // namespace kvasir::server::api
