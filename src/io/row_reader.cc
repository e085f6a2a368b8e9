#include "io/row_reader.h"

#include <algorithm>
#include <cstring>
#include <span>
#include <utility>

#include "io/mmap_file.h"

namespace kvasir::io {
namespace {

class StoredRows final : public RowReader {
 public:
  StoredRows(DType dtype, std::int64_t num_rows, std::int64_t row_length, const std::byte* data)
      : RowReader(dtype, num_rows, row_length), data_(data) {}

  void read(std::int64_t begin, std::int64_t end, std::byte* out) const override {
    std::memcpy(out, data_ + begin * row_bytes(), static_cast<std::size_t>((end - begin) * row_bytes()));
  }
  const std::byte* stored() const override { return data_; }
  void release(std::int64_t begin, std::int64_t end) const override {
    MmapFile::release_pages({data_ + begin * row_bytes(), static_cast<std::size_t>((end - begin) * row_bytes())});
  }

 private:
  const std::byte* data_;
};

class ComputedRow final : public RowReader {
 public:
  explicit ComputedRow(std::vector<float> values)
      : RowReader(DType::kF32, 1, std::ssize(values)), values_(std::move(values)) {}

  void read(std::int64_t begin, std::int64_t end, std::byte* out) const override {
    if (begin < end) std::memcpy(out, values_.data(), values_.size() * sizeof(float));
  }
  const std::byte* stored() const override { return reinterpret_cast<const std::byte*>(values_.data()); }
  void release(std::int64_t, std::int64_t) const override {}

 private:
  std::vector<float> values_;
};

class ConvertedRows final : public RowReader {
 public:
  ConvertedRows(RowReaderPtr from, FloatFunction function)
      : RowReader(DType::kF32, from->num_rows(), from->row_length()), from_(std::move(from)), function_(function) {}

  void read(std::int64_t begin, std::int64_t end, std::byte* out) const override {
    std::vector<std::byte> row(static_cast<std::size_t>(from_->row_bytes()));
    std::vector<float> values(static_cast<std::size_t>(row_length()));
    for (std::int64_t i = begin; i < end; ++i, out += row_bytes()) {
      from_->read(i, i + 1, row.data());
      info_of(from_->dtype()).unpack_row(row.data(), row_length(), values.data());
      std::ranges::transform(values, values.begin(), function_);
      std::memcpy(out, values.data(), values.size() * sizeof(float));
    }
  }
  void release(std::int64_t begin, std::int64_t end) const override { from_->release(begin, end); }

 private:
  RowReaderPtr from_;
  FloatFunction function_;
};

class SelectedRows final : public RowReader {
 public:
  SelectedRows(RowReaderPtr from, RowSelection selection)
      : RowReader(from->dtype(), from->num_rows() / selection.rows_per_matrix * selection.count, from->row_length()),
        from_(std::move(from)),
        selection_(selection) {}

  void read(std::int64_t begin, std::int64_t end, std::byte* out) const override {
    for (std::int64_t i = begin; i < end; ++i, out += row_bytes()) {
      const std::int64_t row = source_row(i);
      from_->read(row, row + 1, out);
    }
  }
  // Rows between them may belong to another reader, and are read again from the file.
  void release(std::int64_t begin, std::int64_t end) const override {
    if (begin < end) from_->release(source_row(begin), source_row(end - 1) + 1);
  }

 private:
  std::int64_t source_row(std::int64_t row) const {
    const std::int64_t matrix = row / selection_.count, in_matrix = row % selection_.count;
    return matrix * selection_.rows_per_matrix + selection_.begin + in_matrix * selection_.step;
  }

  RowReaderPtr from_;
  RowSelection selection_;
};

class TransposedRows final : public RowReader {
 public:
  TransposedRows(RowReaderPtr from, std::int64_t inputs)
      : RowReader(from->dtype(), from->num_rows() / inputs * from->row_length(), inputs),
        from_(std::move(from)),
        outputs_(from_->row_length()),
        data_(from_->stored()) {}

  void read(std::int64_t begin, std::int64_t end, std::byte* out) const override {
    const std::int64_t size = info_of(dtype()).block_bytes;
    for (std::int64_t row = begin; row < end; ++row) {
      const std::byte* matrix = data_ + row / outputs_ * row_length() * outputs_ * size;
      const std::byte* column = matrix + row % outputs_ * size;
      for (std::int64_t i = 0; i < row_length(); ++i, out += size) {
        std::memcpy(out, column + i * outputs_ * size, static_cast<std::size_t>(size));
      }
    }
  }
  void release(std::int64_t, std::int64_t) const override {}  // other columns lie on the same pages

 private:
  RowReaderPtr from_;
  std::int64_t outputs_;
  const std::byte* data_;
};

class JoinedRows final : public RowReader {
 public:
  JoinedRows(RowReaderPtr from, std::int64_t length)
      : RowReader(from->dtype(), from->num_rows() / length, from->row_length() * length),
        from_(std::move(from)),
        length_(length) {}

  void read(std::int64_t begin, std::int64_t end, std::byte* out) const override {
    from_->read(begin * length_, end * length_, out);
  }
  void release(std::int64_t begin, std::int64_t end) const override {
    from_->release(begin * length_, end * length_);
  }

 private:
  RowReaderPtr from_;
  std::int64_t length_;
};

class StackedRows final : public RowReader {
 public:
  StackedRows(std::int64_t num_rows, std::vector<RowReaderPtr> parts)
      : RowReader(parts.front()->dtype(), num_rows, parts.front()->row_length()), parts_(std::move(parts)) {}

  void read(std::int64_t begin, std::int64_t end, std::byte* out) const override {
    for_each_part(begin, end, [&](const RowReader& part, std::int64_t first, std::int64_t last) {
      part.read(first, last, out);
      out += (last - first) * row_bytes();
    });
  }
  void release(std::int64_t begin, std::int64_t end) const override {
    for_each_part(begin, end, [](const RowReader& part, std::int64_t first, std::int64_t last) {
      part.release(first, last);
    });
  }

 private:
  // Calls visit(part, first, last) for the rows of each part that lie in [begin, end).
  template <class Visit>
  void for_each_part(std::int64_t begin, std::int64_t end, const Visit& visit) const {
    std::int64_t start = 0;
    for (const RowReaderPtr& part : parts_) {
      const std::int64_t first = std::max(begin, start) - start;
      const std::int64_t last = std::min(end, start + part->num_rows()) - start;
      if (first < last) visit(*part, first, last);
      start += part->num_rows();
    }
  }

  std::vector<RowReaderPtr> parts_;
};

}  // namespace

RowReaderPtr stored_rows(DType dtype, std::int64_t num_rows, std::int64_t row_length, const std::byte* data) {
  return std::make_unique<StoredRows>(dtype, num_rows, row_length, data);
}

RowReaderPtr computed_row(std::vector<float> values) { return std::make_unique<ComputedRow>(std::move(values)); }

RowReaderPtr converted_rows(RowReaderPtr from, FloatFunction function) {
  return std::make_unique<ConvertedRows>(std::move(from), function);
}

RowReaderPtr selected_rows(RowReaderPtr from, RowSelection selection) {
  return std::make_unique<SelectedRows>(std::move(from), selection);
}

RowReaderPtr transposed_rows(RowReaderPtr from, std::int64_t inputs) {
  return std::make_unique<TransposedRows>(std::move(from), inputs);
}

RowReaderPtr joined_rows(RowReaderPtr from, std::int64_t length) {
  return std::make_unique<JoinedRows>(std::move(from), length);
}

RowReaderPtr stacked_rows(std::vector<RowReaderPtr> parts) {
  std::int64_t num_rows = 0;
  for (const RowReaderPtr& part : parts) num_rows += part->num_rows();
  return std::make_unique<StackedRows>(num_rows, std::move(parts));
}

}  // namespace kvasir::io
