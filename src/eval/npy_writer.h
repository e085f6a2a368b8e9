// Writes a float32 matrix in NumPy's .npy format, row by row.
#pragma once

#include <cstdint>
#include <cstdio>
#include <memory>
#include <span>
#include <string>

#include "kvasir/result.h"

namespace kvasir::eval {

// The number of rows is fixed when the file is opened; close() checks that all came.
class NpyWriter {
 public:
  // Errors: kMachine when the file cannot be written.
  static Result<NpyWriter> create(const std::string& path, std::int64_t num_rows, std::int64_t num_columns);
  // Requires: row.size() == num_columns. A write error is reported by close().
  void write_row(std::span<const float> row);
  Status close();

 private:
  struct CloseFile {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  NpyWriter(std::FILE* file, std::string path, std::int64_t num_rows)
      : file_(file), path_(std::move(path)), rows_left_(num_rows) {}

  std::unique_ptr<std::FILE, CloseFile> file_;
  std::string path_;
  std::int64_t rows_left_ = 0;
  bool failed_ = false;
};

}  // namespace kvasir::eval
