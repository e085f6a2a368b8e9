#include "io/foreign_file.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace kvasir::io {
namespace {

TEST(ForeignFile, IsNamedByItsFirstBytes) {
  const std::vector<std::pair<std::string, std::string>> files = {
      {"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 5\n", "Git LFS"},
      {"<!DOCTYPE html><html>", "web page"},
      {"\n  <HTML lang=en>", "web page"},
      {"\xef\xbb\xbf<!doctype html>", "web page"},
      {R"({"error":"Repository not found"})", "JSON"},
      {"Entry not found", "no such file"},
      {std::string("\x10\x27\0\0\0\0\0\0{\"__metadata__\"", 23), "safetensors"},
      {"PK\x03\x04model/data.pkl", "PyTorch"},
      {"tjgg\1\0\0\0", "GGML"},
  };
  for (const auto& [begin, named] : files) {
    EXPECT_NE(foreign_file(begin).find(named), std::string_view::npos) << begin << ": " << foreign_file(begin);
  }
}

TEST(ForeignFile, IsNotGuessed) {
  for (const char* const begin : {"", "GGUF", "this is no model", "<3", "versions", "PK"}) {
    EXPECT_EQ(foreign_file(begin), "") << begin;
  }
}

}  // namespace
}  // namespace kvasir::io
