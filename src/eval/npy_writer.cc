#include "eval/npy_writer.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>

namespace kvasir::eval {

Result<NpyWriter> NpyWriter::create(const std::string& path, std::int64_t num_rows,
                                    std::int64_t num_columns) {
  std::FILE* file = std::fopen(path.c_str(), "wb");
  if (file == nullptr) {
    return make_error(ErrorKind::kMachine,
                      fmt::format("{}: cannot be written: {}", path, std::strerror(errno)));
  }
  NpyWriter writer(file, path, num_rows);
  // Version 1.0: magic, version, header length, then a dict padded with spaces to a multiple of 64 in all.
  std::string header =
      fmt::format("{{'descr': '<f4', 'fortran_order': False, 'shape': ({}, {}), }}", num_rows, num_columns);
  const std::size_t unpadded = 10 + header.size() + 1;
  header.append((64 - unpadded % 64) % 64, ' ').push_back('\n');
  std::string prefix("\x93NUMPY\x01\x00", 8);
  prefix.push_back(static_cast<char>(header.size() & 0xff));
  prefix.push_back(static_cast<char>(header.size() >> 8));
  const std::string all = prefix + header;
  writer.failed_ = std::fwrite(all.data(), 1, all.size(), file) != all.size();
  return writer;
}

void NpyWriter::write_row(std::span<const float> row) {
  if (std::fwrite(row.data(), sizeof(float), row.size(), file_.get()) != row.size()) failed_ = true;
  --rows_left_;
}

Status NpyWriter::close() {
  if (std::fclose(file_.release()) != 0 || failed_) {
    return make_error(ErrorKind::kMachine,
                      fmt::format("{}: writing failed: {}", path_, std::strerror(errno)));
  }
  if (rows_left_ != 0) {
    return make_error(ErrorKind::kInternal, fmt::format("{}: {} rows are missing", path_, rows_left_));
  }
  return {};
}

}  // namespace kvasir::eval
