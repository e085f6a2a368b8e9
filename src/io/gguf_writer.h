// Writes GGUF files (version 3), tensor by tensor.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "io/gguf_entries.h"
#include "kvasir/result.h"
#include "quant/dtype.h"
#include "tensor/tensor_view.h"

namespace kvasir::io {

// Where everything lies in a file with these entries and tensors: known before a byte of a tensor is.
class GgufLayout {
 public:
  // `tensors`: names, types and shapes; their data are not read.
  GgufLayout(std::span<const GgufEntry> entries, std::vector<TensorView> tensors);

  const std::string& header() const { return header_; }  // what lies before the first tensor, padding included
  std::span<const TensorView> tensors() const { return tensors_; }
  std::int64_t offset(std::size_t tensor) const { return offsets_[tensor]; }  // from the begin of the file
  std::int64_t num_bytes() const { return num_bytes_; }                       // of the file

 private:
  std::vector<TensorView> tensors_;
  std::vector<std::int64_t> offsets_;
  std::string header_;
  std::int64_t num_bytes_ = 0;
};

// A file that grows to its layout. Tensors may come in any order. Thread safety: none.
class GgufWriter {
 public:
  // Opens `path` for reading and writing, makes it where there is none, and writes the header. What else it holds stays, for
  // those who go on with it. Errors: kMachine.
  static Result<GgufWriter> open(const std::string& path, const GgufLayout& layout);
  GgufWriter(GgufWriter&& other) noexcept;
  GgufWriter& operator=(GgufWriter&&) = delete;
  ~GgufWriter();

  // Writes bytes of a tensor, from its byte `begin` on. Errors: kMachine.
  Status write(std::size_t tensor, std::int64_t begin, std::span<const std::byte> bytes);
  // The same bytes back. Error (kMachine): the file has fewer.
  Status read(std::size_t tensor, std::int64_t begin, std::span<std::byte> bytes) const;
  // Bytes of the file, from its byte `offset` on, the header's too. Error (kMachine): the file has fewer.
  Status read_at(std::int64_t offset, std::span<std::byte> bytes) const;
  // Makes everything durable. Errors: kMachine.
  Status finish();

 private:
  GgufWriter(int descriptor, std::string path, const GgufLayout& layout)
      : descriptor_(descriptor), path_(std::move(path)), layout_(&layout) {}
  Status write_at(std::int64_t offset, std::span<const std::byte> bytes);

  int descriptor_ = -1;
  std::string path_;
  const GgufLayout* layout_;
};

}  // namespace kvasir::io
