// A message's body for Beast's parser, as it comes.
#pragma once

#include <boost/beast/core/buffer_traits.hpp>
#include <boost/beast/core/buffers_range.hpp>
#include <boost/beast/http/error.hpp>
#include <boost/optional.hpp>
#include <cstddef>
#include <cstdint>
#include <string>

namespace kvasir::server::http {

// Unlike Beast's string_body it takes no memory for a length that is only announced, and its bytes may be taken away
// while more come.
struct GrowingBody {
  using value_type = std::string;

  class reader {
   public:
    template <class Header>
    reader(Header&, value_type& body) : body_(body) {}

    void init(const boost::optional<std::uint64_t>&, boost::beast::error_code& error) { error = {}; }

    template <class Buffers>
    std::size_t put(const Buffers& buffers, boost::beast::error_code& error) {
      for (const auto buffer : boost::beast::buffers_range_ref(buffers)) {
        body_.append(static_cast<const char*>(buffer.data()), buffer.size());
      }
      error = {};
      return boost::beast::buffer_bytes(buffers);
    }

    void finish(boost::beast::error_code& error) { error = {}; }

   private:
    value_type& body_;
  };
};

}  // namespace kvasir::server::http
