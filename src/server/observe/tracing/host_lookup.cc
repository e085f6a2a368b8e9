#include "server/observe/tracing/host_lookup.h"

#include <boost/asio/post.hpp>
#include <mutex>
#include <thread>
#include <utility>

namespace kvasir::server::observe {

namespace asio = boost::asio;

struct HostLookup::Shared {
  std::mutex mutex;
  std::optional<Result> result;  // guarded
};

void HostLookup::begin(const std::string& host, std::uint16_t port) {
  if (shared_ != nullptr) return;
  shared_ = std::make_shared<Shared>();
  boost::system::error_code not_an_address;
  const auto address = asio::ip::make_address(host, not_an_address);
  if (!not_an_address) {
    shared_->result = Result{{}, {Endpoint(address, port)}};
    return;
  }
  std::thread([io = io_, shared = shared_, host, port] {
    Result result;
    asio::io_context own;
    asio::ip::tcp::resolver resolver(own);
    for (const auto& found : resolver.resolve(host, std::to_string(port), result.error)) {
      result.endpoints.push_back(found.endpoint());
    }
    {
      const std::lock_guard lock(shared->mutex);
      shared->result = std::move(result);
    }
    asio::post(*io, [] {});
  }).detach();
}

std::optional<HostLookup::Result> HostLookup::take_result() {
  if (shared_ == nullptr) return {};
  std::optional<Result> result;
  {
    const std::lock_guard lock(shared_->mutex);
    result = std::move(shared_->result);
  }
  if (result) shared_ = nullptr;
  return result;
}

}  // namespace kvasir::server::observe
