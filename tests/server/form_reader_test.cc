// Forms that clients upload: what is read, and that nothing malformed passes.
#include "server/http/form_reader.h"

#include <gtest/gtest.h>

#include <random>
#include <string>

namespace kvasir::server::multipart_test {
namespace {

constexpr char kType[] = "multipart/form-data; boundary=b";

http::Request form(std::string body, std::string type = kType) {
  return {.method = "POST", .path = "/v1/files", .headers = {{"content-type", std::move(type)}}, .body = std::move(body)};
}

std::string part(const std::string& head, const std::string& content) {
  return "--b\r\nContent-Disposition: form-data; " + head + "\r\n\r\n" + content + "\r\n";
}

TEST(Multipart, PartsHaveTheirNamesAndContents) {
  const auto request = form(part(R"(name="purpose")", "batch") +
                            part(R"(name="file"; filename="a \"b\".jsonl")", "x\r\n--c\r\n\n--\r\n") + "--b--\r\nafter");
  const auto parts = http::parse_form(request);
  ASSERT_TRUE(parts) << parts.error().message;
  ASSERT_EQ(parts->size(), 2u);
  EXPECT_EQ((*parts)[0].name, "purpose");
  EXPECT_EQ((*parts)[0].content, "batch");
  EXPECT_EQ((*parts)[0].file_name, "");
  EXPECT_EQ((*parts)[1].file_name, "a \"b\".jsonl");
  EXPECT_EQ((*parts)[1].content, "x\r\n--c\r\n\n--\r\n");
}

TEST(Multipart, ContentsMayBeEmptyOrAnyBytes) {
  const std::string bytes("\0\xff\r\n-b\r", 7);
  const auto request = form(part("name=a", bytes) + "--b\r\nContent-Type: text/plain\r\ncontent-disposition:form-data;name=e"
                                                    "\r\n\r\n\r\n--b--");
  const auto parts = http::parse_form(request);
  ASSERT_TRUE(parts) << parts.error().message;
  EXPECT_EQ((*parts)[0].content, bytes);
  EXPECT_EQ((*parts)[1].name, "e");
  EXPECT_EQ((*parts)[1].content, "");
}

TEST(Multipart, TheBoundaryMayBeQuoted) {
  EXPECT_TRUE(http::parse_form(form(part("name=a", "x") + "--b--", "Multipart/Form-Data; charset=utf-8; boundary=\"b\"")));
}

TEST(Multipart, WhatIsMalformedIsRefusedInOneLine) {
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
    const auto parts = http::parse_form(request);
    ASSERT_FALSE(parts) << request.body;
    EXPECT_EQ(parts.error().status, 400);
    EXPECT_EQ(parts.error().message.find('\n'), std::string::npos);
  }
  std::string many;
  for (std::size_t i = 0; i <= http::kMaxFormParts; ++i) many += part("name=a", "x");
  EXPECT_FALSE(http::parse_form(form(many + "--b--")));
}

// Cut and changed at random: it is refused, or its parts lie within the body.
TEST(Multipart, AnyBytesAreReadOrRefused) {
  std::mt19937 random(7);
  const std::string whole = part("name=\"purpose\"", "batch") + part(R"(name="file"; filename="f")", "line\r\nline") + "--b--\r\n";
  for (int round = 0; round < 20'000; ++round) {
    std::string body = whole.substr(0, random() % (whole.size() + 1));
    for (std::uint32_t i = random() % 4; i > 0 && !body.empty(); --i) {
      body[random() % body.size()] = "\r\n-b;\"\\=\0 "[random() % 10];
    }
    const http::Request request = form(body);
    const auto parts = http::parse_form(request);
    if (!parts) continue;
    for (const http::FormPart& read : *parts) {
      ASSERT_GE(read.content.data(), request.body.data());
      ASSERT_LE(read.content.data() + read.content.size(), request.body.data() + request.body.size());
    }
  }
}

}  // namespace
}  // namespace kvasir::server::multipart_test
