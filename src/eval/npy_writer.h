// Writes a matrix of floats in NumPy's .npy format, row by row.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "kvasir/result.h"

namespace kvasir::eval {

enum class NpyType : std::uint8_t { kFloat32, kFloat16 };

// The header says no rows until close() counts those that came, so a file that was cut off never claims more
// than it has. Not thread-safe.
class NpyWriter {
 public:
  // Errors: kMachine when the file cannot be written.
  static Result<NpyWriter> create(const std::string& path, std::int64_t num_columns, NpyType type = NpyType::kFloat32);
  // Requires: row.size() == num_columns. A write error is reported by close().
  void write_row(std::span<const float> row);
  std::int64_t num_rows() const { return num_rows_; }
  Status close();

 private:
  struct CloseFile {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  NpyWriter(std::FILE* file, std::string path, std::int64_t num_columns, NpyType type)
      : file_(file), path_(std::move(path)), num_columns_(num_columns), type_(type) {}
  void write_header();
  void write(const void* data, std::size_t num_bytes);
  // Remembers errno unless an earlier failure did: later calls overwrite it.
  void note_failure();

  std::unique_ptr<std::FILE, CloseFile> file_;
  std::string path_;
  std::int64_t num_columns_ = 0;
  NpyType type_ = NpyType::kFloat32;
  std::vector<std::uint16_t> halves_;
  std::int64_t num_rows_ = 0;
  int error_number_ = 0;  // of the first failure
};

}  // namespace kvasir::eval
