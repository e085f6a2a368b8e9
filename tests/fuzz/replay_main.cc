// Runs a fuzz target without libFuzzer: every file of its corpus, then seeded mutations of them for some
// seconds.
//
//   replay CORPUS_FOLDER SECONDS [SEED]
// A crash leaves the input in crash-<target> under the working folder; give that file instead of a folder to
// see it again.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <utility>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

namespace fs = std::filesystem;
using Input = std::vector<std::uint8_t>;

constexpr std::size_t kMaxInputBytes = 1 << 16;

Input read_input(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return Input(std::istreambuf_iterator<char>(file), {});
}

std::vector<Input> read_corpus(const fs::path& path) {
  if (fs::is_regular_file(path)) return {read_input(path)};
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(path)) files.push_back(entry.path());
  std::ranges::sort(files);
  std::vector<Input> corpus;
  for (const fs::path& file : files) corpus.push_back(read_input(file));
  return corpus;
}

class Mutator {
 public:
  Mutator(const std::vector<Input>& corpus, std::uint64_t seed) : corpus_(corpus), rng_(seed) {}

  // A corpus input with one to eight changes.
  Input next() {
    Input input = corpus_[below(corpus_.size())];
    for (std::size_t left = 1 + below(8); left > 0; --left) change(input);
    input.resize(std::min(input.size(), kMaxInputBytes));
    return input;
  }

 private:
  std::size_t below(std::size_t limit) { return rng_() % limit; }

  void change(Input& input) {
    static constexpr std::uint8_t kEdges[] = {0x00, 0x01, 0x7f, 0x80, 0xff};
    if (input.empty()) {
      input.push_back(static_cast<std::uint8_t>(rng_()));
      return;
    }
    const std::size_t at = below(input.size());
    const std::size_t length = std::min(input.size() - at, 1 + below(16));
    const auto here = input.begin() + static_cast<std::ptrdiff_t>(at);
    switch (below(6)) {
      case 0:
        *here ^= static_cast<std::uint8_t>(1u << below(8));
        break;
      case 1:
        *here = static_cast<std::uint8_t>(rng_());
        break;
      case 2:
        std::fill_n(here, length, kEdges[below(std::size(kEdges))]);
        break;
      case 3:
        input.erase(here, here + static_cast<std::ptrdiff_t>(length));
        break;
      case 4: {
        const Input copy(here, here + static_cast<std::ptrdiff_t>(length));
        input.insert(input.begin() + static_cast<std::ptrdiff_t>(below(input.size())), copy.begin(),
                     copy.end());
        break;
      }
      default:
        splice(input, at);
        break;
    }
  }

  // The tail from `at` on becomes a piece of another corpus input.
  void splice(Input& input, std::size_t at) {
    const Input& other = corpus_[below(corpus_.size())];
    if (other.empty()) return;
    const std::size_t from = below(other.size());
    input.resize(at);
    input.insert(input.end(), other.begin() + static_cast<std::ptrdiff_t>(from), other.end());
  }

  const std::vector<Input>& corpus_;
  std::mt19937_64 rng_;
};

// Holds the input that is running: a crash leaves it behind.
class CrashFile {
 public:
  explicit CrashFile(std::string path)
      : path_(std::move(path)), fd_(::open(path_.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644)) {}
  CrashFile(const CrashFile&) = delete;
  CrashFile& operator=(const CrashFile&) = delete;
  ~CrashFile() {
    ::close(fd_);
    fs::remove(path_);
  }

  bool write(const Input& input) const {
    return ::ftruncate(fd_, 0) == 0 &&
           ::pwrite(fd_, input.data(), input.size(), 0) == static_cast<ssize_t>(input.size());
  }

 private:
  std::string path_;
  int fd_;
};

// Runs from an allocation of exactly the input's size, so that a sanitizer sees reads beyond it.
bool run(const Input& input, const CrashFile& crash_file) {
  const Input exact(input.begin(), input.end());
  if (!crash_file.write(exact)) {
    std::perror("cannot write the crash file");
    return false;
  }
  LLVMFuzzerTestOneInput(exact.data(), exact.size());
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr, "usage: %s CORPUS_FOLDER SECONDS [SEED]\n", argv[0]);
    return 2;
  }
  const std::vector<Input> corpus = read_corpus(argv[1]);
  if (corpus.empty()) {
    std::fprintf(stderr, "%s: no files\n", argv[1]);
    return 2;
  }
  const CrashFile crash_file("crash-" + fs::path(argv[0]).filename().string());
  for (const Input& input : corpus) {
    if (!run(input, crash_file)) return 2;
  }
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(std::atof(argv[2]));
  Mutator mutator(corpus, argc > 3 ? std::strtoull(argv[3], nullptr, 10) : 1);
  std::int64_t num_runs = 0;
  for (; std::chrono::steady_clock::now() < end; ++num_runs) {
    if (!run(mutator.next(), crash_file)) return 2;
  }
  std::printf("%zu corpus files and %lld mutations\n", corpus.size(), static_cast<long long>(num_runs));
  return 0;
}
