#include "compress/quantizer.h"

#include <fmt/format.h>

#include <filesystem>
#include <span>
#include <system_error>
#include <utility>

#include "base/printable.h"
#include "compress/journal.h"
#include "compress/tensor_encoder.h"
#include "io/gguf_writer.h"
#include "store/sha256.h"

namespace kvasir::compress {
namespace {

constexpr std::int64_t kPieceBytes = std::int64_t{4} << 20;

// Calls `take` with all bytes of a tensor that the writer has, in pieces.
template <class Take>
Status read_back(const io::GgufWriter& writer, std::size_t tensor, std::int64_t num_bytes, const Take& take) {
  std::vector<std::byte> piece;
  for (std::int64_t begin = 0; begin < num_bytes; begin += kPieceBytes) {
    piece.resize(static_cast<std::size_t>(std::min(kPieceBytes, num_bytes - begin)));
    KVASIR_CHECKED(writer.read(tensor, begin, piece));
    take(std::span<const std::byte>(piece));
  }
  return {};
}

class Run {
 public:
  Run(const io::WeightSource& source, const QuantizePlan& plan, const io::Imatrix* imatrix, ThreadPool& pool,
      const QuantizeProgress& progress)
      : source_(source), plan_(plan), imatrix_(imatrix), pool_(pool), progress_(progress), layout_(plan.entries, plan.views()) {
    for (const PlannedTensor& tensor : plan.tensors) all_bytes_ += tensor.source.num_bytes();
  }

  Result<QuantizedFile> make(const std::string& fingerprint, const std::string& path) {
    const std::string journal_path = path + ".part", part_path = path + ".part.gguf";
    KVASIR_TRY(Journal journal, Journal::open(journal_path, fingerprint));
    KVASIR_TRY(io::GgufWriter writer, io::GgufWriter::open(part_path, layout_));
    QuantizedFile file;
    file.began_anew = journal.began_anew();
    for (std::size_t i = 0; i < plan_.tensors.size(); ++i) {
      const PlannedTensor& tensor = plan_.tensors[i];
      KVASIR_TRY(const bool is_done, is_finished(journal, writer, i));
      if (is_done) {
        ++file.num_resumed;
        file.errors.push_back(journal.finished().at(tensor.source.name).error);
        KVASIR_CHECKED(advance(tensor.source.num_bytes()));
        continue;
      }
      KVASIR_TRY(const FinishedTensor finished, encode(writer, i));
      KVASIR_CHECKED(journal.add(tensor.source.name, finished));
      file.errors.push_back(finished.error);
    }
    KVASIR_CHECKED(writer.finish());
    KVASIR_TRY(file.sha256, sum_of(part_path));
    std::error_code error;
    std::filesystem::rename(part_path, path, error);
    if (error) return make_error(ErrorKind::kMachine, fmt::format("{}: {}", printable_line(path), error.message()));
    std::filesystem::remove(journal_path, error);
    return file;
  }

 private:
  Status advance(std::int64_t num_bytes) {
    done_bytes_ += num_bytes;
    if (!progress_ || progress_(done_bytes_, all_bytes_)) return {};
    return make_error(ErrorKind::kCancelled, "stopped; the same command goes on where it was");
  }

  // Whether an earlier run has made the tensor, and its bytes are still there.
  Result<bool> is_finished(const Journal& journal, const io::GgufWriter& writer, std::size_t index) {
    const PlannedTensor& tensor = plan_.tensors[index];
    const auto found = journal.finished().find(tensor.source.name);
    if (found == journal.finished().end()) return false;
    store::Sha256 sum;
    KVASIR_CHECKED(read_back(writer, index, tensor.num_bytes(), [&](std::span<const std::byte> piece) { sum.update(piece); }));
    return sum.hex_digest() == found->second.sha256;
  }

  std::span<const float> importance_of(const PlannedTensor& tensor) const {
    if (tensor.method != Method::kImatrix) return {};
    return imatrix_->mean_squares.find(tensor.source.name)->second;
  }

  Result<FinishedTensor> encode(io::GgufWriter& writer, std::size_t index) {
    const PlannedTensor& tensor = plan_.tensors[index];
    store::Sha256 sum;
    const std::int64_t done_before = done_bytes_;
    const auto sink = [&](std::int64_t begin, std::span<const std::byte> bytes) -> Status {
      sum.update(bytes);
      KVASIR_CHECKED(writer.write(index, begin, bytes));
      const double share = static_cast<double>(begin + std::ssize(bytes)) / static_cast<double>(tensor.num_bytes());
      const auto reached = done_before + static_cast<std::int64_t>(share * static_cast<double>(tensor.source.num_bytes()));
      return advance(reached - done_bytes_);
    };
    FinishedTensor finished;
    if (tensor.method == Method::kCopy) {
      KVASIR_CHECKED(copy(tensor.source, sink));
    } else {
      KVASIR_TRY(const EncodingError error, encode_tensor(source_, tensor.source, tensor.choice.type, importance_of(tensor), pool_, sink));
      finished.error = error.relative();
    }
    finished.sha256 = sum.hex_digest();
    return finished;
  }

  Status copy(const TensorView& tensor, const EncodedSink& sink) {
    const std::int64_t row_bytes_of = row_bytes(tensor.dtype, tensor.row_length());
    const std::int64_t rows_at_once = std::max<std::int64_t>(1, kPieceBytes / std::max<std::int64_t>(1, row_bytes_of));
    std::vector<std::byte> scratch;
    for (std::int64_t begin = 0; begin < tensor.num_rows(); begin += rows_at_once) {
      const std::int64_t end = std::min(begin + rows_at_once, tensor.num_rows());
      const TensorView rows = source_.rows(tensor, begin, end, scratch);
      KVASIR_CHECKED(sink(begin * row_bytes_of, {rows.data, static_cast<std::size_t>(rows.num_bytes())}));
    }
    return {};
  }

  // Of the whole file, read back from where it was written.
  static Result<std::string> sum_of(const std::string& path) {
    const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "rb"), &std::fclose);
    if (file == nullptr) return make_error(ErrorKind::kMachine, fmt::format("{}: cannot be read", printable_line(path)));
    store::Sha256 sum;
    std::vector<std::byte> piece(static_cast<std::size_t>(kPieceBytes));
    while (const std::size_t count = std::fread(piece.data(), 1, piece.size(), file.get())) {
      sum.update(std::span(piece).first(count));
    }
    return sum.hex_digest();
  }

  const io::WeightSource& source_;
  const QuantizePlan& plan_;
  const io::Imatrix* imatrix_;
  ThreadPool& pool_;
  const QuantizeProgress& progress_;
  const io::GgufLayout layout_;
  std::int64_t done_bytes_ = 0, all_bytes_ = 0;
};

}  // namespace

Result<QuantizedFile> quantize(const io::WeightSource& source, const QuantizePlan& plan, const io::Imatrix* imatrix,
                               const std::string& fingerprint, const std::string& path, ThreadPool& pool,
                               const QuantizeProgress& progress) {
  return Run(source, plan, imatrix, pool, progress).make(fingerprint, path);
}

}  // namespace kvasir::compress
