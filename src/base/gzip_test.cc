#include "base/gzip.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace kvasir::gzip_test {
namespace {

std::string from_hex(std::string_view hex) {
  std::string bytes;
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2) {
    bytes += static_cast<char>(std::stoi(std::string(hex.substr(i, 2)), nullptr, 16));
  }
  return bytes;
}

// With fixed codes and a name; with codes of its own; as it is.
constexpr std::string_view kFixed =
    "1f8b0808000000000003612e74787400cb48cdc9c957c840905c003b7c8adf12000000";
constexpr std::string_view kDynamic =
    "1f8b08000000000000031591c901002108035ba10411e4e8bf31272f5d0961c21e734b5bf3b2fb2cca72add2c6cdcf31bf9c9954"
    "512c1234f771ce5adc444f37ba4cce497b77ed7559a12bcee6bb791fea8b6e4bbe34fac1c11d2b97a75fcc3d342535ee696e09a0"
    "44d210f9a41820bc47142ee27bd66e9cb49bc721a3e3966eadb75175d1853a027f41431ef845e21c9a11cdb418e6c64290079614"
    "55067c999066c19cadb48af10e799e2b702831157bcafc5ab7e5ad0e55ba9c6dd2518fde6a5c6af0ebf3b41c3a9a99d68fb9dd10"
    "f4c2325afd5cf826f52f0ae619e85739507083926d927287bc1ff65c509cc6010000";
constexpr std::string_view kStored =
    "1f8b0800000000000003010600f9ff73746f7265640bf9435606000000";

std::string numbers() {
  std::string text;
  for (int i = 0; i < 100; ++i) text += std::to_string(i * i) + " ";
  return text;
}

TEST(Gzip, ReadsEveryKindOfBlock) {
  EXPECT_EQ(gunzip(from_hex(kFixed), 100).value(), "hello hello hello\n");
  EXPECT_EQ(gunzip(from_hex(kDynamic), 10'000).value(), numbers());
  EXPECT_EQ(gunzip(from_hex(kStored), 100).value(), "stored");
}

TEST(Gzip, MembersFollowOneAnother) {
  EXPECT_EQ(gunzip(from_hex(kFixed) + from_hex(kStored), 100).value(), "hello hello hello\nstored");
}

TEST(Gzip, RefusesWhatIsBroken) {
  const std::string whole = from_hex(kDynamic);
  for (std::size_t size = 0; size < whole.size(); ++size) EXPECT_FALSE(gunzip(whole.substr(0, size), 10'000)) << size;
  for (std::size_t i = 10; i < whole.size(); ++i) {
    std::string broken = whole;
    broken[i] = static_cast<char>(broken[i] ^ 0x10);
    EXPECT_FALSE(gunzip(broken, 10'000)) << i;
  }
  EXPECT_EQ(gunzip(whole, 100).error().message, "gzip: the contents are larger than 100 bytes");
  EXPECT_EQ(gunzip("text", 100).error().kind, ErrorKind::kBadFile);
}

}  // namespace
}  // namespace kvasir::gzip_test
