#include "io/foreign_file.h"

#include <algorithm>
#include <array>
#include <string>

namespace kvasir::io {
namespace {

struct ForeignFile {
  std::string_view begin;  // in lower case
  std::string_view what;
};

constexpr std::string_view kPage = "a web page (HTML): the download got it instead of the model, perhaps for want of a login";

constexpr auto kForeignFiles = std::to_array<ForeignFile>({
    {"version https://git-lfs", "a Git LFS pointer: `git lfs pull` in its folder fetches the model"},
    {"version https://hawser", "a Git LFS pointer: `git lfs pull` in its folder fetches the model"},
    {"<!doctype html", kPage},
    {"<html", kPage},
    {"<head", kPage},
    {"<!--", kPage},
    {"<?xml", "an XML text: the download got it instead of the model"},
    {"{", "a JSON text: a configuration, whose folder is the model, or an error that the download got instead of it"},
    {"entry not found", "the answer \"Entry not found\": there is no such file where it was downloaded from"},
    {"pk\x03\x04", "a ZIP archive, perhaps a PyTorch checkpoint: convert it to GGUF"},
    {"\x1f\x8b", "a gzip archive: unpack it"},
    {"\x28\xb5\x2f\xfd", "a zstd archive: unpack it"},
    {"\xfd\x37zxz", "an xz archive: unpack it"},
    {"\x80\x02", "a Python pickle, perhaps a PyTorch checkpoint: convert it to GGUF"},
    {"\x7f" "elf", "a program"},
    {"tjgg", "a GGML file of 2023, from before GGUF: convert the model again"},
    {"fmgg", "a GGML file of 2023, from before GGUF: convert the model again"},
    {"lmgg", "a GGML file of 2023, from before GGUF: convert the model again"},
    {"algg", "a GGML adapter of 2023, from before GGUF"},
});

// The length of a JSON header, and its brace.
bool is_safetensors(std::string_view begin) {
  return begin.size() > 8 && begin[8] == '{' && begin.substr(4, 4) == std::string_view("\0\0\0\0", 4);
}

}  // namespace

std::string_view foreign_file(std::string_view begin) {
  if (is_safetensors(begin)) return "a safetensors file: a model is the folder that has it beside its config.json";
  constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
  if (begin.starts_with(kByteOrderMark)) begin.remove_prefix(kByteOrderMark.size());
  begin.remove_prefix(std::min(begin.find_first_not_of(" \t\r\n"), begin.size()));
  std::string lower(begin.substr(0, 64));
  std::ranges::transform(lower, lower.begin(), [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  const auto found = std::ranges::find_if(
      kForeignFiles, [&](const ForeignFile& file) { return lower.starts_with(file.begin); });
  return found == kForeignFiles.end() ? std::string_view() : found->what;
}

}  // namespace kvasir::io
