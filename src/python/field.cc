#include "python/field.h"

#include <limits>

#include "base/nearest_name.h"
#include "base/printable.h"

namespace kvasir::python {
namespace {

std::string type_name_of(nb::handle value) {
  if (value.is_none()) return "None";
  return text_of("type", nb::str(value.type().attr("__name__")));
}

// A class that is a number of sorts, numpy's for instance; not a truth value, though that is an int to
// Python.
bool is_whole_number(nb::handle value) {
  return PyIndex_Check(value.ptr()) != 0 && PyBool_Check(value.ptr()) == 0;
}

// Python iterates over these too, but not over what a list of values means.
bool is_list_like(nb::handle value) {
  const bool is_other = PyUnicode_Check(value.ptr()) != 0 || PyBytes_Check(value.ptr()) != 0 ||
                        PyByteArray_Check(value.ptr()) != 0 || PyDict_Check(value.ptr()) != 0;
  return !is_other && nb::isinstance<nb::iterable>(value);
}

}  // namespace

void raise_wrong_type(std::string_view field, std::string_view wanted, nb::handle value) {
  raise_usage(fmt::format("{}: must be {}, got {}", field, wanted, type_name_of(value)), std::string(field));
}

void raise_unknown(std::string_view what, std::string_view name, std::span<const std::string_view> known) {
  const std::string_view nearest = nearest_name(name, known);
  const std::string hint = nearest.empty() ? "" : fmt::format("; did you mean {}?", nearest);
  raise_usage(fmt::format("{}: there is no such {}{}", printable(name), what, hint), std::string(name));
}

bool truth_of(std::string_view field, nb::handle value) {
  if (PyBool_Check(value.ptr()) == 0) raise_wrong_type(field, "True or False", value);
  return value.ptr() == Py_True;
}

std::int64_t whole_number_of(std::string_view field, nb::handle value) {
  if (!is_whole_number(value)) raise_wrong_type(field, "a whole number", value);
  const nb::object index = nb::steal(PyNumber_Index(value.ptr()));
  if (!index.is_valid()) throw nb::python_error();
  int overflow = 0;
  const long long number = PyLong_AsLongLongAndOverflow(index.ptr(), &overflow);
  if (overflow != 0) raise_usage(fmt::format("{}: is beyond 64 bits", field), std::string(field));
  return number;
}

std::int32_t int32_of(std::string_view field, nb::handle value) {
  constexpr std::int64_t kMin = std::numeric_limits<std::int32_t>::min();
  constexpr std::int64_t kMax = std::numeric_limits<std::int32_t>::max();
  const std::int64_t number = whole_number_of(field, value);
  if (number >= kMin && number <= kMax) return static_cast<std::int32_t>(number);
  raise_usage(fmt::format("{}: must be between {} and {}, got {}", field, kMin, kMax, number),
              std::string(field));
}

double number_of(std::string_view field, nb::handle value) {
  if (PyBool_Check(value.ptr()) == 0) {
    const double number = PyFloat_AsDouble(value.ptr());
    if (PyErr_Occurred() == nullptr) return number;
    const bool is_beyond = PyErr_ExceptionMatches(PyExc_OverflowError) != 0;
    PyErr_Clear();
    if (is_beyond) raise_usage(fmt::format("{}: is beyond what a float holds", field), std::string(field));
  }
  raise_wrong_type(field, "a number", value);
}

std::string text_of(std::string_view field, nb::handle value) {
  if (PyUnicode_Check(value.ptr()) == 0) raise_wrong_type(field, "a text", value);
  Py_ssize_t size = 0;
  const char* bytes = PyUnicode_AsUTF8AndSize(value.ptr(), &size);
  if (bytes != nullptr) return {bytes, static_cast<std::size_t>(size)};
  PyErr_Clear();
  raise_usage(fmt::format("{}: has half of a surrogate pair, which is no character", field),
              std::string(field));
}

std::vector<std::string> texts_of(std::string_view field, nb::handle value) {
  if (PyUnicode_Check(value.ptr()) != 0) return {text_of(field, value)};
  if (!is_list_like(value)) raise_wrong_type(field, "a text or several", value);
  std::vector<std::string> texts;
  for (const nb::handle item : nb::borrow<nb::iterable>(value)) texts.push_back(text_of(field, item));
  return texts;
}

std::vector<TokenId> token_ids_of(std::string_view field, nb::handle value) {
  if (!is_list_like(value)) raise_wrong_type(field, "token ids", value);
  std::vector<TokenId> ids;
  for (const nb::handle item : nb::borrow<nb::iterable>(value)) ids.push_back(int32_of(field, item));
  return ids;
}

}  // namespace kvasir::python
