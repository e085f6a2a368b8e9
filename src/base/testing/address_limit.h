// A test's limit of its process's addresses.
#pragma once

#include <sys/resource.h>

#include <cstddef>
#include <fstream>

namespace kvasir {

// The process may have what it has, and `bytes` more, while this lives.
class AddressLimit {
 public:
  explicit AddressLimit(std::size_t bytes) {
    std::size_t num_pages = 0;
    std::ifstream("/proc/self/statm") >> num_pages;
    getrlimit(RLIMIT_AS, &before_);
    const rlimit limit{.rlim_cur = num_pages * 4096 + bytes, .rlim_max = before_.rlim_max};
    setrlimit(RLIMIT_AS, &limit);
  }
  ~AddressLimit() { setrlimit(RLIMIT_AS, &before_); }
  AddressLimit(const AddressLimit&) = delete;
  AddressLimit& operator=(const AddressLimit&) = delete;

 private:
  rlimit before_{};
};

}  // namespace kvasir
