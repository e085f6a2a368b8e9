// Values that come from Python, checked for their types.
#pragma once

#include <fmt/format.h>
#include <nanobind/nanobind.h>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kvasir/ids.h"
#include "python/python_error.h"

namespace kvasir::python {

// Each raises a UsageError that names the field, what it must be and what it is.
bool truth_of(std::string_view field, nb::handle value);
std::int64_t whole_number_of(std::string_view field, nb::handle value);
std::int32_t int32_of(std::string_view field, nb::handle value);
double number_of(std::string_view field, nb::handle value);
std::string text_of(std::string_view field, nb::handle value);
// A text alone counts as a list of one.
std::vector<std::string> texts_of(std::string_view field, nb::handle value);
// Any iterable of whole numbers, but no text.
std::vector<TokenId> token_ids_of(std::string_view field, nb::handle value);

[[noreturn]] void raise_wrong_type(std::string_view field, std::string_view wanted, nb::handle value);

// How a value of a mapping gets into a structure.
template <class T>
struct Field {
  std::string_view name;
  void (*read)(std::string_view name, nb::handle value, T& into);
};

// Which of the known names was meant. Raises a UsageError.
[[noreturn]] void raise_unknown(std::string_view what, std::string_view name,
                                std::span<const std::string_view> known);

template <class T>
std::vector<std::string_view> names_of(std::span<const Field<T>> fields) {
  std::vector<std::string_view> names;
  for (const Field<T>& field : fields) names.push_back(field.name);
  return names;
}

// Puts each value of `mapping` where its field says. Raises a UsageError for an unknown name, which is called
// a `what`.
template <class T>
void read_fields(std::string_view what, const nb::dict& mapping, std::span<const Field<T>> fields, T& into) {
  for (const auto& [key, value] : mapping) {
    const std::string name = text_of(what, key);
    const Field<T>* found = nullptr;
    for (const Field<T>& field : fields) {
      if (field.name == name) found = &field;
    }
    if (found == nullptr) raise_unknown(what, name, names_of(fields));
    found->read(found->name, value, into);
  }
}

}  // namespace kvasir::python
