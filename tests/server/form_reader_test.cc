// Forms that clients upload: what is read, and that nothing malformed passes.
#include "server/http/form_reader.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace kvasir::server::form_reader_test {
namespace {

constexpr char kType[] = "multipart/form-data; boundary=b";

http::Request form(std::string body, std::string type = kType) {
  return {.method = "POST", .path = "/v1/files", .headers = {{"content-type", std::move(type)}}, .body = std::move(body)};
}

std::string part(const std::string& head, const std::string& content) {
  return "--b\r\nContent-Disposition: form-data; " + head + "\r\n\r\n" + content + "\r\n";
}

struct Part {
  std::string name, file_name, content;
  bool operator==(const Part&) const = default;
};

class KeptParts final : public http::FormParts {
 public:
  ApiStatus begin_part(std::string name, std::string file_name) override {
    parts.push_back({.name = std::move(name), .file_name = std::move(file_name), .content = {}});
    return {};
  }
  ApiStatus content(std::string_view bytes) override {
    parts.back().content += bytes;
    return {};
  }

  std::vector<Part> parts;
};

// The form's parts, whose body comes in pieces of these sizes in turn; 0: as a whole.
ApiResult<std::vector<Part>> read_form(const http::Request& request, std::vector<std::size_t> sizes = {0}) {
  auto reader = http::FormReader::open(request);
  if (!reader) return std::unexpected(reader.error());
  KeptParts kept;
  std::string_view rest = request.body;
  for (std::size_t i = 0; !rest.empty(); ++i) {
    const std::size_t size = sizes[i % sizes.size()];
    const std::string piece(rest.substr(0, size == 0 ? rest.size() : size));
    if (const ApiStatus read = reader->read(piece, kept); !read) return std::unexpected(read.error());
    rest.remove_prefix(piece.size());
  }
  if (const ApiStatus finished = reader->finish(); !finished) return std::unexpected(finished.error());
  return kept.parts;
}

TEST(FormReader, PartsHaveTheirNamesAndContents) {
  const auto request = form(part(R"(name="purpose")", "batch") +
                            part(R"(name="file"; filename="a \"b\".jsonl")", "x\r\n--c\r\n\n--\r\n") + "--b--\r\nafter");
  const auto parts = read_form(request);
  ASSERT_TRUE(parts) << parts.error().message;
  ASSERT_EQ(parts->size(), 2u);
  EXPECT_EQ((*parts)[0].name, "purpose");
  EXPECT_EQ((*parts)[0].content, "batch");
  EXPECT_EQ((*parts)[0].file_name, "");
  EXPECT_EQ((*parts)[1].file_name, "a \"b\".jsonl");
  EXPECT_EQ((*parts)[1].content, "x\r\n--c\r\n\n--\r\n");
}

TEST(FormReader, ContentsMayBeEmptyOrAnyBytes) {
  const std::string bytes("\0\xff\r\n-b\r", 7);
  const auto request = form(part("name=a", bytes) + "--b\r\nContent-Type: text/plain\r\ncontent-disposition:form-data;name=e"
                                                    "\r\n\r\n\r\n--b--");
  const auto parts = read_form(request);
  ASSERT_TRUE(parts) << parts.error().message;
  EXPECT_EQ((*parts)[0].content, bytes);
  EXPECT_EQ((*parts)[1].name, "e");
  EXPECT_EQ((*parts)[1].content, "");
}

TEST(FormReader, TheBoundaryMayBeQuoted) {
  EXPECT_TRUE(read_form(form(part("name=a", "x") + "--b--", "Multipart/Form-Data; charset=utf-8; boundary=\"b\"")));
}

TEST(FormReader, WhatIsMalformedIsRefusedInOneLine) {
  const std::string whole = part("name=a", "x") + "--b--\r\n";
  const http::Request refused[] = {
      form(whole, "application/json"),
      form(whole, "multipart/form-data"),
      form(whole, "multipart/form-data; boundary="),
      form(whole, "multipart/form-data; boundary=\"b"),
      form(whole, "multipart/form-data; boundary=" + std::string(71, 'b')),
      form(""),
      form("x" + whole),
      form("--b\n" + whole),
      form("--bx\r\n\r\n--b--"),
      form("--b\r\n\r\nx\r\n--b--"),
      form("--b\r\nContent-Disposition: attachment; name=a\r\n\r\nx\r\n--b--"),
      form("--b\r\nContent-Disposition: form-data\r\n\r\nx\r\n--b--"),
      form("--b\r\nContent-Disposition: form-data; name=\"a\r\n\r\nx\r\n--b--"),
      form("--b\r\nContent-Disposition: form-data; name=a; x=" + std::string(9000, 'y') + "\r\n\r\nx\r\n--b--"),
      form(part("name=a", "x")),
      form("--b\r\nContent-Disposition: form-data; name=a\r\n\r\nx"),
      {.method = "POST", .path = "/v1/files", .body = whole},
  };
  for (const http::Request& request : refused) {
    const auto parts = read_form(request);
    ASSERT_FALSE(parts) << request.body;
    EXPECT_EQ(parts.error().status, 400);
    EXPECT_EQ(parts.error().message.find('\n'), std::string::npos);
  }
  std::string many;
  for (std::size_t i = 0; i <= static_cast<std::size_t>(http::FormReader::kMaxParts); ++i) many += part("name=a", "x");
  EXPECT_FALSE(read_form(form(many + "--b--")));
}

// Changed at random, and cut into pieces at random: each way of cutting reads the same.
TEST(FormReader, PiecesOfAnySizeAreReadAsTheWhole) {
  std::mt19937 random(7);
  const std::string whole = part("name=\"purpose\"", "batch") + part(R"(name="file"; filename="f")", "line\r\nline\r\n-") +
                            part("name=e", "") + "--b--\r\n";
  for (int round = 0; round < 20'000; ++round) {
    std::string body = whole.substr(0, random() % 3 == 0 ? random() % (whole.size() + 1) : whole.size());
    for (std::uint32_t i = random() % 4; i > 0 && !body.empty(); --i) {
      body[random() % body.size()] = "\r\n-b;\"\\=\0 "[random() % 10];
    }
    const http::Request request = form(body);
    const auto read = read_form(request), in_pieces = read_form(request, {1 + random() % 4, 1 + random() % 40});
    ASSERT_EQ(read.has_value(), in_pieces.has_value()) << body;
    if (read.has_value()) {
      ASSERT_TRUE(*read == *in_pieces) << body;
    }
  }
}

// Whatever its content's size.
TEST(FormReader, HoldsLittle) {
  struct Counted final : http::FormParts {
    ApiStatus begin_part(std::string, std::string) override { return {}; }
    ApiStatus content(std::string_view bytes) override {
      num_bytes += bytes.size();
      return {};
    }
    std::size_t num_bytes = 0;
  };
  Counted counted;
  auto reader = http::FormReader::open(form("")).value();
  ASSERT_TRUE(reader.read("--b\r\nContent-Disposition: form-data; name=file\r\n\r\n", counted));
  for (std::size_t i = 1; i <= 100; ++i) {
    ASSERT_TRUE(reader.read(std::string(1000, '\r'), counted));
    EXPECT_GT(counted.num_bytes + 10, i * 1000);
  }
}

}  // namespace
}  // namespace kvasir::server::form_reader_test
