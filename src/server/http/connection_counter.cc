#include "server/http/connection_counter.h"

#include <algorithm>

namespace kvasir::server::http {
namespace {

ConnectionCounter::Client client_of(const boost::asio::ip::address& address) {
  ConnectionCounter::Client client{};
  if (address.is_v6() && !address.to_v6().is_v4_mapped()) {
    std::ranges::copy_n(address.to_v6().to_bytes().begin(), client.size(), client.begin());
    return client;
  }
  const auto v4 = address.is_v4()
                      ? address.to_v4()
                      : boost::asio::ip::make_address_v4(boost::asio::ip::v4_mapped, address.to_v6());
  std::ranges::copy(v4.to_bytes(), client.begin() + 4);  // 0.0.0.0/8 as a network of IPv6 is nobody's
  return client;
}

}  // namespace

std::optional<ConnectionCounter::Slot> ConnectionCounter::admit(const boost::asio::ip::address& address) {
  const Client client = client_of(address);
  const std::scoped_lock lock(mutex_);
  if (num_connections_ >= max_) return std::nullopt;
  const auto place = num_per_client_.try_emplace(client, 0).first;
  if (place->second >= max_per_address_) return std::nullopt;
  ++place->second;
  ++num_connections_;
  return Slot(*this, client, num_admitted_++);
}

void ConnectionCounter::release(const Client& client) {
  const std::scoped_lock lock(mutex_);
  --num_connections_;
  const auto place = num_per_client_.find(client);
  if (--place->second == 0) num_per_client_.erase(place);
}

}  // namespace kvasir::server::http
