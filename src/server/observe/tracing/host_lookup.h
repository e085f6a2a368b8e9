// Looks a host up without waiting for it longer than one wants.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace kvasir::server::observe {

// The system's look-up cannot be interrupted and may take half a minute where a name server is dead. So it
// runs on a thread of its own, which nobody waits for: whoever gives up leaves it behind. There is at most
// one.
//
// Thread safety: none; `io` is run by the caller.
class HostLookup {
 public:
  using Endpoint = boost::asio::ip::tcp::endpoint;

  struct Result {
    boost::system::error_code error;
    std::vector<Endpoint> endpoints;
  };

  // `io` gets a task when there is a result, so that running it returns.
  explicit HostLookup(std::shared_ptr<boost::asio::io_context> io) : io_(std::move(io)) {}

  // Begins unless one is under way.
  void begin(const std::string& host, std::uint16_t port);
  // Once there is one; then the next may begin.
  std::optional<Result> take_result();

 private:
  struct Shared;

  const std::shared_ptr<boost::asio::io_context> io_;
  std::shared_ptr<Shared> shared_;  // of the look-up under way
};

}  // namespace kvasir::server::observe
