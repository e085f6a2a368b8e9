#include "server/request_memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace kvasir::server {
namespace {

ApiError no_room(std::string message) {
  return {.status = 503, .message = std::move(message), .code = "out_of_request_memory"};
}

ApiError all_used(std::int64_t limit_bytes) {
  return no_room(fmt::format("the requests being answered have all of the {} bytes that there are for them (--request-memory)",
                             limit_bytes));
}

ApiError left_to_others(const std::string& tenant, std::int64_t tenant_bytes, std::int64_t limit_bytes) {
  return no_room(fmt::format(
      "the requests of {} have {} of the {} bytes that there are for all (--request-memory), and the rest is left for others",
      tenant, tenant_bytes, limit_bytes));
}

ApiError never_fits(std::int64_t limit_bytes, std::int64_t wanted_bytes) {
  return {.status = 413,
          .message = fmt::format("the request or its answer takes {} bytes of memory, the limit for all "
                                 "together is {} (--request-memory)",
                                 wanted_bytes, limit_bytes),
          .code = "limit_exceeded"};
}

}  // namespace

std::int64_t body_memory_bytes(std::string_view body) {
  constexpr std::int64_t kBytesPerItem = 24;  // simdjson's tape and index of a number and its comma
  return kBytesPerTextByte * std::ssize(body) + kBytesPerItem * std::ranges::count(body, ',');
}

std::int64_t RequestMemory::used_by(const std::string& tenant) const {
  const auto found = tenants_.find(tenant);
  return found == tenants_.end() ? 0 : found->second;
}

void RequestMemory::add(const std::string& tenant, std::int64_t bytes) {
  used_bytes_ += bytes;
  if (tenant.empty() || bytes == 0) return;
  const auto account = tenants_.try_emplace(tenant).first;
  account->second += bytes;
  if (account->second == 0) tenants_.erase(account);
}

void RequestMemory::Share::belong_to(const std::string& tenant) {
  if (tenant == tenant_) return;
  const std::int64_t bytes = bytes_;
  set(0);
  tenant_ = tenant;
  set(bytes);
}

ApiStatus RequestMemory::Share::resize(std::int64_t bytes, std::int64_t beside_bytes) {
  const std::lock_guard lock(memory_->mutex_);
  const std::int64_t growth = bytes - bytes_;
  const std::int64_t limit = memory_->limit_bytes_;
  const std::int64_t free_bytes = limit - memory_->used_bytes_ - growth;
  if (growth > 0 && limit > 0) {
    if (bytes + beside_bytes > limit) return std::unexpected(never_fits(limit, bytes + beside_bytes));
    if (free_bytes < 0) return std::unexpected(all_used(limit));
    const std::int64_t tenant_bytes = tenant_.empty() ? 0 : memory_->used_by(tenant_);
    const bool has_others = tenant_bytes > bytes_ + beside_bytes;
    if (has_others && tenant_bytes + growth > free_bytes) {
      return std::unexpected(left_to_others(tenant_, tenant_bytes, limit));
    }
  }
  memory_->add(tenant_, growth);
  bytes_ = bytes;
  return {};
}

void RequestMemory::Share::set(std::int64_t bytes) {
  const std::lock_guard lock(memory_->mutex_);
  memory_->add(tenant_, bytes - bytes_);
  bytes_ = bytes;
}

}  // namespace kvasir::server
