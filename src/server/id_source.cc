#include "server/id_source.h"

#include <fmt/format.h>

#include <random>

namespace kvasir::server {
namespace {

std::uint64_t random_bits() {
  std::random_device entropy;
  return (std::uint64_t{entropy()} << 32) | entropy();
}

}  // namespace

IdSource::IdSource() : process_(random_bits()) {}

std::string IdSource::next(std::string_view prefix) {
  return fmt::format("{}{:016x}{:08x}", prefix, process_, count_++);
}

}  // namespace kvasir::server
