#include "eval/npy_writer.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>

#include "base/half.h"
#include "base/printable.h"

namespace kvasir::eval {

namespace {

constexpr std::size_t kHeaderBytes =
    128;  // room for any two 64-bit sizes, a multiple of 64 as the format wants

}  // namespace

Result<NpyWriter> NpyWriter::create(const std::string& path, std::int64_t num_columns, NpyType type) {
  std::FILE* file = std::fopen(path.c_str(), "wb");
  if (file == nullptr) {
    return make_error(ErrorKind::kMachine,
                      fmt::format("{}: cannot be written: {}", printable_line(path), std::strerror(errno)));
  }
  NpyWriter writer(file, path, num_columns, type);
  writer.write_header();
  return writer;
}

// Version 1.0: magic, version, length of the rest, then a Python dict padded with spaces.
void NpyWriter::write_header() {
  std::string header("\x93NUMPY\x01\x00", 8);
  constexpr std::size_t rest = kHeaderBytes - 10;
  header.push_back(static_cast<char>(rest & 0xff));
  header.push_back(static_cast<char>(rest >> 8));
  header +=
      fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}, {}), }}",
                  type_ == NpyType::kFloat16 ? "<f2" : "<f4", num_rows_, num_columns_);
  header.resize(kHeaderBytes - 1, ' ');
  header.push_back('\n');
  write(header.data(), header.size());
}

void NpyWriter::write(const void* data, std::size_t num_bytes) {
  if (std::fwrite(data, 1, num_bytes, file_.get()) != num_bytes) note_failure();
}

void NpyWriter::note_failure() {
  if (error_number_ == 0) error_number_ = errno != 0 ? errno : EIO;
}

void NpyWriter::write_row(std::span<const float> row) {
  if (type_ == NpyType::kFloat16) {
    halves_.clear();
    for (const float value : row) halves_.push_back(float_to_half(value));
    write(halves_.data(), halves_.size() * sizeof halves_.front());
  } else {
    write(row.data(), row.size_bytes());
  }
  ++num_rows_;
}

Status NpyWriter::close() {
  if (std::fseek(file_.get(), 0, SEEK_SET) != 0) note_failure();
  write_header();
  if (std::fclose(file_.release()) != 0) note_failure();
  if (error_number_ != 0) {
    return make_error(ErrorKind::kMachine, fmt::format("{}: writing failed: {}", printable_line(path_),
                                                       std::strerror(error_number_)));
  }
  return {};
}

}  // namespace kvasir::eval
