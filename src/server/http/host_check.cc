#include "server/http/host_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <boost/asio/ip/address.hpp>
#include <boost/beast/core/string.hpp>

#include "base/printable.h"

namespace kvasir::server::http {
namespace {

// "[::1]:8080" and "localhost:8080" without port and brackets; empty when what follows the name is no port.
std::string_view name_of(std::string_view host) {
  const bool is_bracketed = host.starts_with('[');
  const std::size_t end = std::min(is_bracketed ? host.find(']') : host.find(':'), host.size());
  std::string_view port = host.substr(std::min(end + is_bracketed, host.size()));
  if (port.starts_with(':')) port.remove_prefix(1);
  if (port.find_first_not_of("0123456789") != std::string_view::npos) return {};
  return host.substr(is_bracketed, end - is_bracketed);
}

bool equal(std::string_view a, std::string_view b) {
  return boost::beast::iequals({a.data(), a.size()}, {b.data(), b.size()});
}

// Names that no name server of a stranger can let point here. The containers' names lead to their host.
bool is_local_name(std::string_view name) {
  if (name.ends_with('.')) name.remove_suffix(1);
  constexpr std::string_view kUnderLocalhost = ".localhost";
  if (name.size() > kUnderLocalhost.size() &&
      equal(name.substr(name.size() - kUnderLocalhost.size()), kUnderLocalhost)) {
    return true;
  }
  constexpr std::array<std::string_view, 4> kNames = {"localhost", "host.docker.internal",
                                                      "gateway.docker.internal", "host.containers.internal"};
  return std::ranges::any_of(kNames, [&](std::string_view known) { return equal(name, known); });
}

std::unexpected<ApiError> refuse(std::string_view what, const std::string& value, std::string_view remedy) {
  return std::unexpected(
      ApiError{403,
               fmt::format("{} \"{}\" may not use this server{}", what, printable_line(value), remedy),
               {},
               "forbidden"});
}

}  // namespace

bool HostCheck::allows(std::string_view host) const {
  const std::string_view name = name_of(host);
  if (is_local_name(name)) return true;
  boost::system::error_code error;
  boost::asio::ip::make_address(std::string(name), error);
  if (!error) return true;  // an address is what it is: no name server lets it point elsewhere
  return std::ranges::any_of(allowed_hosts_,
                             [&](const std::string& allowed) { return equal(name, allowed); });
}

ApiStatus HostCheck::check(const Request& request) const {
  if (!is_loopback_) return {};
  const std::string* host = request.header("Host");
  if (host != nullptr && !allows(*host)) {
    return refuse("the host", *host, ", which listens on this machine alone; --allowed-host names others");
  }
  return check_page(request);
}

ApiStatus HostCheck::check_page(const Request& request) const {
  const std::string* host = request.header("Host");
  const std::string* origin = request.header("Origin");
  if (origin == nullptr || cors_.allows(request)) return {};
  const std::size_t scheme = origin->find("://");
  const bool is_own_page = host != nullptr && scheme != std::string::npos &&
                           equal(origin->substr(scheme + 3), *host);
  if (!is_own_page) return refuse("pages of", *origin, "; --cors-origin allows them");
  return {};
}

}  // namespace kvasir::server::http
