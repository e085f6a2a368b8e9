// Errors that input can cause are values: Result<T> carries either T or an Error.
#pragma once

#include <cstdint>
#include <expected>
#include <string>
#include <utility>

namespace kvasir {

// The kind of an error, as far as callers must act differently. The command line maps each kind to an exit
// code (docs of `kvasir help`), the server to an HTTP status.
enum class ErrorKind : std::uint8_t {
  kUsage,        // wrong flag, field or value                          exit 2, HTTP 400
  kBadFile,      // a model or input file is missing, broken, unsupported   exit 3
  kUnmet,        // the request is well-formed but beyond a limit       exit 4, HTTP 400
  kMachine,      // memory, port, permission, disk                      exit 5, HTTP 503
  kNotFound,     // a named model or object does not exist              exit 3, HTTP 404
  kUnavailable,  // full, loading or draining: try again later          exit 5, HTTP 503
  kCancelled,    // the caller asked to stop                            exit 130
  kInternal,     // our own fault, contained to one request             exit 1, HTTP 500
};

// One line for a person: names the thing, the limit and the actual value.
struct Error {
  ErrorKind kind = ErrorKind::kInternal;
  std::string message;
  std::string param;               // the request field or flag at fault; empty when there is none
  std::int32_t retry_after_s = 0;  // kUnavailable: when it may be worth another try; 0: not known
};

template <class T>
using Result = std::expected<T, Error>;
using Status = Result<void>;

inline std::unexpected<Error> make_error(ErrorKind kind, std::string message, std::string param = {}) {
  return std::unexpected(Error{kind, std::move(message), std::move(param)});
}

}  // namespace kvasir

#define KVASIR_CONCAT_INNER(a, b) a##b
#define KVASIR_CONCAT(a, b) KVASIR_CONCAT_INNER(a, b)

// KVASIR_TRY(auto x, f()): x = *f(), or return f()'s error. (GCC 12's std::expected has no and_then.)
#define KVASIR_TRY(decl, ...) KVASIR_TRY_IMPL(KVASIR_CONCAT(kvasir_result_, __LINE__), decl, __VA_ARGS__)
#define KVASIR_TRY_IMPL(tmp, decl, ...)                     \
  auto tmp = (__VA_ARGS__);                                 \
  if (!tmp) return std::unexpected(std::move(tmp).error()); \
  decl = std::move(*tmp)

// KVASIR_CHECKED(f()): return f()'s error if it has one.
#define KVASIR_CHECKED(...)                                     \
  do {                                                          \
    if (auto kvasir_status = (__VA_ARGS__); !kvasir_status)     \
      return std::unexpected(std::move(kvasir_status).error()); \
  } while (false)
