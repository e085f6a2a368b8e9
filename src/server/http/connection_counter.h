// How many connections there are, and how many of each address.
#pragma once

#include <array>
#include <boost/asio/ip/address.hpp>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <utility>

#include "server/limits.h"

namespace kvasir::server::http {

// An IPv6 client counts by its network of 64 bits, whose addresses are all its own to choose from.
//
// Thread safety: any thread.
class ConnectionCounter {
 public:
  using Client = std::array<std::uint8_t, 8>;

  // One connection, counted as long as this lives; the counter outlives it.
  class Slot {
   public:
    Slot(Slot&& other) noexcept
        : counter_(std::exchange(other.counter_, nullptr)), client_(other.client_), number_(other.number_) {}
    Slot& operator=(Slot&&) = delete;
    ~Slot() {
      if (counter_ != nullptr) counter_->release(client_);
    }
    // Which one it is of all that ever came.
    std::uint32_t number() const { return number_; }

   private:
    friend class ConnectionCounter;
    Slot(ConnectionCounter& counter, Client client, std::uint32_t number)
        : counter_(&counter), client_(client), number_(number) {}

    ConnectionCounter* counter_;
    Client client_;
    std::uint32_t number_;
  };

  explicit ConnectionCounter(const Limits& limits)
      : max_(limits.connections.max), max_per_address_(limits.connections_per_address.max) {}

  // None where there are too many already.
  std::optional<Slot> admit(const boost::asio::ip::address& address);

 private:
  void release(const Client& client);

  const std::int64_t max_;
  const std::int64_t max_per_address_;
  std::mutex mutex_;
  std::int64_t num_connections_ = 0;
  std::uint32_t num_admitted_ = 0;                 // ever
  std::map<Client, std::int64_t> num_per_client_;  // only those that have one
};

}  // namespace kvasir::server::http
