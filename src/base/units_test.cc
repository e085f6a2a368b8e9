#include "base/units.h"

#include <gtest/gtest.h>

namespace kvasir::units_test {
namespace {

TEST(Units, ReadsBinaryAndDecimalSizes) {
  EXPECT_EQ(parse_bytes("0").value(), 0);
  EXPECT_EQ(parse_bytes("4096").value(), 4096);
  EXPECT_EQ(parse_bytes("12B").value(), 12);
  EXPECT_EQ(parse_bytes("8G").value(), std::int64_t{8} << 30);
  EXPECT_EQ(parse_bytes("512MiB").value(), std::int64_t{512} << 20);
  EXPECT_EQ(parse_bytes("1.5 gb").value(), 1'500'000'000);
  EXPECT_EQ(parse_bytes("0.5k").value(), 512);
  EXPECT_EQ(parse_bytes("2T").value(), std::int64_t{2} << 40);
}

TEST(Units, RefusesWhatIsNoSizeInOneLineWithTheValue) {
  for (const char* text :
       {"", "G", "-1", "-0", "8X", "8GG", "8Gi", "nan", "inf", "1e3", "8 G B", " 8", "0x10"}) {
    const auto result = parse_bytes(text);
    ASSERT_FALSE(result) << text;
    EXPECT_EQ(result.error().kind, ErrorKind::kUsage);
    EXPECT_NE(result.error().message.find(text), std::string::npos);
  }
  EXPECT_FALSE(parse_bytes("8388608T"));  // 2^63
  EXPECT_TRUE(parse_bytes("8388607T"));
}

TEST(Units, FormatsThreeDigits) {
  EXPECT_EQ(format_bytes(0), "0 B");
  EXPECT_EQ(format_bytes(999), "999 B");
  EXPECT_EQ(format_bytes(1000), "0.98 KiB");
  EXPECT_EQ(format_bytes(512 << 10), "512 KiB");
  EXPECT_EQ(format_bytes((3LL << 30) / 2), "1.50 GiB");
  EXPECT_EQ(format_bytes(12'900'000), "12.3 MiB");
  EXPECT_EQ(format_bytes(1023LL << 20), "1.00 GiB");
  EXPECT_EQ(format_bytes(INT64_MAX), "8.00 EiB");
}

}  // namespace
}  // namespace kvasir::units_test
