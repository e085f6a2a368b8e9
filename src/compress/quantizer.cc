#include "compress/quantizer.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <system_error>
#include <utility>
#include <vector>

#include "base/printable.h"
#include "compress/gptq.h"
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
  Run(const io::WeightSource& source, const QuantizePlan& plan, const Calibration& calibration, ThreadPool& pool,
      const QuantizeProgress& progress)
      : source_(source), plan_(plan), calibration_(calibration), pool_(pool), progress_(progress), layout_(plan.entries, plan.views()) {
    for (const PlannedTensor& tensor : plan.tensors) {
      all_bytes_ += tensor.source.num_bytes();
      if (tensor.method == Method::kGptq) ++num_users_[calibration.statistics->input_of(tensor.source.name)];
    }
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
      } else {
        KVASIR_TRY(const FinishedTensor finished, encode(writer, i));
        KVASIR_CHECKED(journal.add(tensor.source.name, finished));
        file.errors.push_back(finished.error);
      }
      if (tensor.method == Method::kGptq) forget_geometry(tensor.source.name);
    }
    file.num_uncorrected = num_uncorrected_;
    KVASIR_CHECKED(sum_until(writer, layout_.num_bytes()));
    KVASIR_CHECKED(writer.finish());
    file.sha256 = file_sum_.hex_digest();
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
    return calibration_.imatrix->mean_squares.find(tensor.source.name)->second;
  }

  // Made once for the tensors that share an input. Null where its products have no inverse.
  const InputGeometry* geometry_for(const std::string& tensor) {
    const std::int32_t input = calibration_.statistics->input_of(tensor);
    auto found = geometries_.find(input);
    if (found == geometries_.end()) {
      found = geometries_.emplace(input, geometry_of(*calibration_.statistics->products_of(tensor), pool_)).first;
    }
    return found->second ? &*found->second : nullptr;
  }

  // A tensor of the input is done; after the last one its geometry goes.
  void forget_geometry(const std::string& tensor) {
    const std::int32_t input = calibration_.statistics->input_of(tensor);
    if (--num_users_[input] == 0) geometries_.erase(input);
  }

  Result<EncodingError> encode_corrected(const PlannedTensor& tensor, const EncodedSink& sink) {
    const InputGeometry* geometry = geometry_for(tensor.source.name);
    if (geometry == nullptr) {
      ++num_uncorrected_;
      const std::vector<float>& importance = calibration_.imatrix->mean_squares.find(tensor.source.name)->second;
      return encode_tensor(source_, tensor.source, tensor.choice.type, importance, pool_, sink);
    }
    constexpr std::int64_t kFloatsAtOnce = std::int64_t{1} << 21;
    const DType type = tensor.choice.type;
    const std::int64_t length = tensor.source.row_length(), num_rows = tensor.source.num_rows();
    const std::int64_t rows_at_once = std::max<std::int64_t>(1, kFloatsAtOnce / length);
    std::vector<float> rows;
    std::vector<std::byte> encoded;
    EncodingError total;
    for (std::int64_t begin = 0; begin < num_rows; begin += rows_at_once) {
      const std::int64_t count = std::min(rows_at_once, num_rows - begin);
      rows.resize(static_cast<std::size_t>(count * length));
      encoded.resize(static_cast<std::size_t>(count * row_bytes(type, length)));
      KVASIR_CHECKED(read_rows(source_, tensor.source, begin, count, rows));
      encode_rows_gptq(type, *geometry, rows, pool_, encoded);
      const EncodingError error = error_of_rows(type, rows.data(), geometry->mean_squares.data(), count, length, encoded.data());
      total.errors += error.errors;
      total.squares += error.squares;
      KVASIR_CHECKED(sink(begin * row_bytes(type, length), encoded));
      source_.release_rows(tensor.source, begin, begin + count);
    }
    return total;
  }

  Result<FinishedTensor> encode(io::GgufWriter& writer, std::size_t index) {
    const PlannedTensor& tensor = plan_.tensors[index];
    store::Sha256 sum;
    const std::int64_t done_before = done_bytes_;
    const auto sink = [&](std::int64_t begin, std::span<const std::byte> bytes) -> Status {
      sum.update(bytes);
      KVASIR_CHECKED(writer.write(index, begin, bytes));
      KVASIR_CHECKED(sum_until(writer, layout_.offset(index) + begin + std::ssize(bytes)));
      const double share = static_cast<double>(begin + std::ssize(bytes)) / static_cast<double>(tensor.num_bytes());
      const auto reached = done_before + static_cast<std::int64_t>(share * static_cast<double>(tensor.source.num_bytes()));
      return advance(reached - done_bytes_);
    };
    FinishedTensor finished;
    if (tensor.method == Method::kCopy) {
      KVASIR_CHECKED(copy(tensor.source, sink));
    } else if (tensor.method == Method::kGptq) {
      KVASIR_TRY(const EncodingError error, encode_corrected(tensor, sink));
      finished.error = error.relative();
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

  // The file's bytes up to `end` are final: adds them to its sum, as they are read back.
  Status sum_until(const io::GgufWriter& writer, std::int64_t end) {
    while (num_summed_bytes_ < end) {
      piece_.resize(static_cast<std::size_t>(std::min(kPieceBytes, end - num_summed_bytes_)));
      KVASIR_CHECKED(writer.read_at(num_summed_bytes_, piece_));
      file_sum_.update(piece_);
      num_summed_bytes_ += std::ssize(piece_);
    }
    return {};
  }

  const io::WeightSource& source_;
  const QuantizePlan& plan_;
  const Calibration calibration_;
  ThreadPool& pool_;
  const QuantizeProgress& progress_;
  const io::GgufLayout layout_;
  std::int64_t done_bytes_ = 0, all_bytes_ = 0;
  store::Sha256 file_sum_;
  std::int64_t num_summed_bytes_ = 0;
  std::vector<std::byte> piece_;  // of sum_until(), kept for its memory
  std::map<std::int32_t, std::optional<InputGeometry>> geometries_;  // by input
  std::map<std::int32_t, std::int32_t> num_users_;                   // tensors of an input that are not done
  std::int32_t num_uncorrected_ = 0;
};

}  // namespace

Result<QuantizedFile> quantize(const io::WeightSource& source, const QuantizePlan& plan, const Calibration& calibration,
                               const std::string& fingerprint, const std::string& path, ThreadPool& pool,
                               const QuantizeProgress& progress) {
  return Run(source, plan, calibration, pool, progress).make(fingerprint, path);
}

}  // namespace kvasir::compress
