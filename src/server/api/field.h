// A request is a table: one row a field, with its type, range, meaning and how it is read. The rows drive the
// validation, the suggestions for misspelt names and the API reference.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "server/api/json_input.h"

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

// A known field that changes nothing here, but is what it should be by `Of`: string_of, object_of, ...
template <auto Of, class Target>
ApiStatus read_unused(const FieldInput& field, Target&) {
  const auto value = Of(field);
  if (!value) return std::unexpected(value.error());
  return {};
}
// A field that is read when others are known.
template <class Target>
ApiStatus read_later(const FieldInput&, Target&) {
  return {};
}
// A promise that cannot be kept yet; what asks for nothing (false, "", [], {}) is fine.
ApiStatus refuse_unless_empty(const FieldInput& field);
template <class Target>
ApiStatus read_unsupported(const FieldInput& field, Target&) {
  return refuse_unless_empty(field);
}

// Facts that the client should know although its request is accepted. They go into a response header.
struct Warnings {
  static constexpr std::size_t kMaxWarnings = 8;
  std::vector<std::string> messages;
};

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
    FieldInput field{std::string(key), json, limits};
    if (index < own.size()) {
      field.range = own[index].range;
      KVASIR_CHECKED(own[index].read(field, target));
    } else {
      field.range = shared[index - own.size()].range;
      KVASIR_CHECKED(shared[index - own.size()].read(field, target));
    }
  }
  return {};
}

}  // namespace kvasir::server::api
