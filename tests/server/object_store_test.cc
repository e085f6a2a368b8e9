// The store: its bounds, whose things are whose, what a restart finds.
#include "server/stored/object_store.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace kvasir::server::object_store_test {
namespace {

using stored::Kind;
using stored::Object;
using stored::ObjectStore;

class StoreFolder : public testing::Test {
 protected:
  StoreFolder() {
    const testing::TestInfo& test = *testing::UnitTest::GetInstance()->current_test_info();
    path_ = (std::filesystem::temp_directory_path() /
             (std::string("kvasir-store-") + test.name() + "-" + std::to_string(::getpid())))
                .string();
    std::filesystem::remove_all(path_);
  }
  ~StoreFolder() override { std::filesystem::remove_all(path_); }

  static ObjectStore::Options options(std::string directory, std::int64_t max_bytes = 1 << 20,
                                      std::int64_t max_objects = 100) {
    const stored::Bounds bounds{.max_bytes = max_bytes, .max_objects = max_objects};
    return {.directory = std::move(directory), .bounds = {bounds, bounds, bounds}};
  }
  std::string file() const { return path_ + "/stored.sqlite"; }

  std::string path_;
};

Object response(std::string id, std::string owner = "ann", std::string json = R"({"status":"queued"})") {
  return {.kind = Kind::kResponse, .id = std::move(id), .owner = std::move(owner), .json = std::move(json)};
}

bool has(ObjectStore& store, const std::string& id, const std::string& owner = "ann") {
  return store.find(Kind::kResponse, owner, id).value().has_value();
}

TEST_F(StoreFolder, GivesBackWhatWasAddedToItsOwnerAlone) {
  auto store = ObjectStore::open(options(path_)).value();
  ASSERT_TRUE(store->add(response("r1"), {{"", "in"}, {"", std::string("pu\0t", 4)}}));
  EXPECT_EQ(store->find(Kind::kResponse, "ann", "r1").value()->json, R"({"status":"queued"})");
  EXPECT_FALSE(has(*store, "r1", "bob"));
  EXPECT_FALSE(has(*store, "r1", ""));
  EXPECT_FALSE(store->find(Kind::kFile, "ann", "r1").value().has_value());
  EXPECT_FALSE(store->erase(Kind::kResponse, "bob", "r1").value());
  const auto piece = store->read("r1", 0, 100).value();
  EXPECT_EQ(piece.bytes, std::string("inpu\0t", 6));
  EXPECT_TRUE(piece.is_last);
  const auto first = store->read("r1", 0, 1).value();
  EXPECT_EQ(first.bytes, "in");
  EXPECT_FALSE(first.is_last);
  EXPECT_EQ(store->read("r1", first.next, 1).value().bytes, std::string("pu\0t", 4));
  EXPECT_TRUE(store->erase(Kind::kResponse, "ann", "r1").value());
  EXPECT_FALSE(has(*store, "r1"));
  EXPECT_EQ(store->used_bytes(Kind::kResponse), 0);
}

TEST_F(StoreFolder, OnlyThisUserMayReadItsFiles) {
  const auto store = ObjectStore::open(options(path_)).value();
  ASSERT_TRUE(store->add(response("r1"), {}));
  for (const auto& entry : std::filesystem::directory_iterator(path_)) {
    struct stat facts {};
    ASSERT_EQ(::stat(entry.path().c_str(), &facts), 0);
    EXPECT_EQ(facts.st_mode & 0777, 0600) << entry.path();
  }
}

TEST_F(StoreFolder, ARestartFindsWhatWasThere) {
  {
    auto store = ObjectStore::open(options(path_)).value();
    Object running = response("running");
    running.is_pinned = true;
    ASSERT_TRUE(store->add(running, {{"", "input"}}));
    ASSERT_TRUE(store->add(response("done"), {}));
  }
  auto store = ObjectStore::open(options(path_)).value();
  EXPECT_EQ(store->num_objects(Kind::kResponse), 2);
  const auto pinned = store->pinned(Kind::kResponse).value();
  ASSERT_EQ(pinned.size(), 1u);
  EXPECT_EQ(pinned[0].id, "running");
  EXPECT_TRUE(store->set_status("running", "failed", R"({"code":"x"})", false).value());
  EXPECT_EQ(store->find(Kind::kResponse, "ann", "running").value()->json,
            R"({"status":"failed","error":{"code":"x"}})");
  EXPECT_FALSE(store->set_status("running", "completed", "", false).value()) << "the first end counts";
}

TEST_F(StoreFolder, AnUnseenObjectIsFoundWhenItIsShown) {
  auto store = ObjectStore::open(options(path_)).value();
  Object file = response("r1", "ann", "{}");
  ASSERT_TRUE(store->begin_unseen(file, 0));
  ASSERT_TRUE(store->append("r1", {"", "in"}));
  ASSERT_TRUE(store->append("r1", {"", "put"}));
  EXPECT_FALSE(has(*store, "r1"));
  EXPECT_FALSE(store->erase(Kind::kResponse, "ann", "r1").value());
  EXPECT_TRUE(store->list(Kind::kResponse, "ann", "", "", 10, false).value().objects.empty());
  EXPECT_TRUE(store->pinned(Kind::kResponse).value().empty());
  file.json = R"({"bytes":5})";
  ASSERT_TRUE(store->show(file));
  EXPECT_EQ(store->find(Kind::kResponse, "ann", "r1").value()->json, file.json);
  EXPECT_EQ(store->read("r1", 0, 100).value().bytes, "input");
  EXPECT_FALSE(store->show(file)) << "it is shown once";
  ASSERT_TRUE(store->erase_unseen("r1")) << "it is seen, so it stays";
  ASSERT_TRUE(store->erase(Kind::kResponse, "ann", "r1").value());
  EXPECT_EQ(store->used_bytes(Kind::kResponse), 0);
}

TEST_F(StoreFolder, AnUnseenObjectLeavesNothingBehind) {
  {
    auto store = ObjectStore::open(options(path_)).value();
    for (const char* const id : {"cut", "open"}) {
      ASSERT_TRUE(store->begin_unseen(response(id), 0));
      ASSERT_TRUE(store->append(id, {"", std::string(1000, 'x')}));
    }
    ASSERT_TRUE(store->erase_unseen("cut"));
    EXPECT_EQ(store->num_objects(Kind::kResponse), 1);
  }
  auto database = sqlite::Database::open(file(), sqlite::Database::Access::kReadWrite).value();
  auto count = database.prepare("SELECT (SELECT count(*) FROM objects) + (SELECT count(*) FROM parts)").value();
  count.bind_all();
  ASSERT_TRUE(count.next().value());
  EXPECT_EQ(count.integer(0), 0);
}

TEST_F(StoreFolder, AnUnseenObjectOfAKilledProcessIsErased) {
  const std::string copy = path_ + "-copy";
  {
    auto store = ObjectStore::open(options(path_)).value();
    ASSERT_TRUE(store->begin_unseen(response("open"), 0));
    std::filesystem::copy(path_, copy);
  }
  auto store = ObjectStore::open(options(copy)).value();
  EXPECT_EQ(store->num_objects(Kind::kResponse), 0);
  EXPECT_EQ(store->used_bytes(Kind::kResponse), 0);
  std::filesystem::remove_all(copy);
}

TEST_F(StoreFolder, WhatComesToTooMuchDrivesNobodyOut) {
  auto store = ObjectStore::open(options("", 10'000)).value();
  ASSERT_TRUE(store->add(response("a"), {}));
  EXPECT_EQ(store->begin_unseen(response("large"), 20'000).error().kind, ErrorKind::kUnmet);
  ASSERT_TRUE(store->begin_unseen(response("grows"), 0));
  ASSERT_TRUE(store->append("grows", {"", std::string(9000, 'x')}));
  EXPECT_EQ(store->append("grows", {"", std::string(1000, 'x')}).error().kind, ErrorKind::kUnmet);
  EXPECT_TRUE(has(*store, "a"));
}

TEST_F(StoreFolder, OneServerAtATimeHasTheFolder) {
  const auto store = ObjectStore::open(options(path_)).value();
  const auto second = ObjectStore::open(options(path_));
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().kind, ErrorKind::kMachine);
  EXPECT_NE(second.error().message.find("another server uses it"), std::string::npos) << second.error().message;
}

TEST_F(StoreFolder, ADamagedFileIsOneLine) {
  std::filesystem::create_directories(path_);
  std::ofstream(file()) << std::string(8192, 'x');
  const auto store = ObjectStore::open(options(path_));
  ASSERT_FALSE(store);
  EXPECT_EQ(store.error().kind, ErrorKind::kBadFile);
  EXPECT_NE(store.error().message.find(file()), std::string::npos) << store.error().message;
  EXPECT_EQ(store.error().message.find('\n'), std::string::npos);
}

TEST_F(StoreFolder, AnotherProgramsDatabaseIsLeftAlone) {
  std::filesystem::create_directories(path_);
  {
    auto other = sqlite::Database::open(file(), sqlite::Database::Access::kReadWrite).value();
    ASSERT_TRUE(other.execute("CREATE TABLE objects(a)"));
  }
  const auto store = ObjectStore::open(options(path_));
  ASSERT_FALSE(store);
  EXPECT_EQ(store.error().kind, ErrorKind::kBadFile);
}

TEST_F(StoreFolder, AFolderThatCannotBeMadeIsNamed) {
  std::ofstream(path_) << "a file";
  const auto store = ObjectStore::open(options(path_ + "/below"));
  ASSERT_FALSE(store);
  EXPECT_EQ(store.error().kind, ErrorKind::kMachine);
  EXPECT_NE(store.error().message.find(path_), std::string::npos);
}

TEST_F(StoreFolder, TheOldestLeavesWhenThereAreTooMany) {
  auto store = ObjectStore::open(options("", 1 << 20, 3)).value();
  for (const char* const id : {"a", "b", "c"}) ASSERT_TRUE(store->add(response(id), {}));
  EXPECT_TRUE(has(*store, "a"));  // and is used last by that
  ASSERT_TRUE(store->add(response("d"), {}));
  EXPECT_FALSE(has(*store, "b"));
  EXPECT_TRUE(has(*store, "a"));
  EXPECT_EQ(store->num_objects(Kind::kResponse), 3);
}

TEST_F(StoreFolder, BytesAreBoundedAndWhatIsPinnedStays) {
  auto store = ObjectStore::open(options("", 10'000)).value();
  Object pinned = response("pinned");
  pinned.is_pinned = true;
  ASSERT_TRUE(store->add(pinned, {{"", std::string(4000, 'x')}}));
  for (int i = 0; i < 20; ++i) {
    ASSERT_TRUE(store->add(response("r" + std::to_string(i)), {{"", std::string(2000, 'x')}}));
    EXPECT_LE(store->used_bytes(Kind::kResponse), 10'000);
  }
  EXPECT_TRUE(has(*store, "pinned"));
  EXPECT_TRUE(has(*store, "r19"));
  EXPECT_FALSE(has(*store, "r0"));
  const auto too_large = store->add(response("large"), {{"", std::string(20'000, 'x')}});
  EXPECT_EQ(too_large.error().kind, ErrorKind::kUnmet);
  const auto no_room = store->add(response("more"), {{"", std::string(7000, 'x')}});
  EXPECT_EQ(no_room.error().kind, ErrorKind::kUnavailable);
  ASSERT_TRUE(store->append("pinned", {"", std::string(4000, 'y')}));
  EXPECT_EQ(store->content_bytes("pinned").value(), 8000);
}

TEST_F(StoreFolder, OneOwnerDoesNotDriveOutAnother) {
  auto store = ObjectStore::open(options("", 1 << 20, 4)).value();
  ASSERT_TRUE(store->add(response("bobs", "bob"), {}));
  for (int i = 0; i < 10; ++i) ASSERT_TRUE(store->add(response("a" + std::to_string(i)), {}));
  EXPECT_TRUE(has(*store, "bobs", "bob"));
}

TEST_F(StoreFolder, WhatHasExpiredIsGone) {
  auto store = ObjectStore::open(options("")).value();
  Object old = response("old");
  old.expires_s = 1;
  ASSERT_TRUE(store->add(old, {}));
  EXPECT_FALSE(has(*store, "old"));
}

TEST_F(StoreFolder, ListsGoOnBehindAnId) {
  auto store = ObjectStore::open(options("")).value();
  for (const char* const id : {"a", "b", "c"}) ASSERT_TRUE(store->add(response(id), {}));
  ASSERT_TRUE(store->add(response("bobs", "bob"), {}));
  const auto page = store->list(Kind::kResponse, "ann", "", "", 2, true).value();
  ASSERT_EQ(page.objects.size(), 2u);
  EXPECT_EQ(page.objects[0].id, "c");
  EXPECT_TRUE(page.has_more);
  const auto next = store->list(Kind::kResponse, "ann", "", "b", 2, true).value();
  ASSERT_EQ(next.objects.size(), 1u);
  EXPECT_EQ(next.objects[0].id, "a");
  EXPECT_FALSE(next.has_more);
  EXPECT_FALSE(store->list(Kind::kResponse, "ann", "", "bobs", 2, true).value().knows_after);
}

}  // namespace
}  // namespace kvasir::server::object_store_test
