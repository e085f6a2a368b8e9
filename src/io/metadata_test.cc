#include "io/metadata.h"

#include <gtest/gtest.h>

#include <limits>

namespace kvasir::io::metadata_test {
namespace {

Metadata sample() {
  return Metadata({{"int", std::int64_t{7}},
                   {"huge", std::numeric_limits<std::uint64_t>::max()},
                   {"float", 0.5},
                   {"nan", std::numeric_limits<double>::quiet_NaN()},
                   {"text", std::string("llama")},
                   {"flag", true},
                   {"texts", std::vector<std::string>{"a", "b"}}});
}

TEST(Metadata, TellsAbsentFromWrong) {
  const Metadata metadata = sample();
  EXPECT_EQ(metadata.find_int("none", 0, 9)->has_value(), false);
  EXPECT_EQ(metadata.get_int("none", 0, 9).error().message, "metadata: none is missing");
  EXPECT_EQ(metadata.find_int("text", 0, 9).error().message,
            "metadata: text must be an integer, but it is a string");
  EXPECT_EQ(metadata.find_bool("int").error().message,
            "metadata: int must be a boolean, but it is an integer");
  EXPECT_EQ(
      metadata.find_string("texts").error().message,
      "metadata: texts must be a string, but it is a string array of different values, or an empty one");
  EXPECT_EQ(*metadata.find_ints("absent"), std::nullopt);
  EXPECT_EQ(metadata.find_ints("texts").error().message,
            "metadata: texts must be an integer array, but it is a string array");
  EXPECT_EQ(metadata.find_floats("flag").error().message,
            "metadata: flag must be a number array, but it is a boolean");
}

TEST(Metadata, ChecksTheRangeOfIntegers) {
  const Metadata metadata = sample();
  EXPECT_EQ(*metadata.get_int("int", 7, 7), 7);
  EXPECT_EQ(metadata.get_int("int", 8, 9).error().message,
            "metadata: int must be between 8 and 9, but it is 7");
  EXPECT_EQ(metadata.get_int("huge", 0, 9).error().message,
            "metadata: huge must be between 0 and 9, but it is 18446744073709551615");
}

TEST(Metadata, TakesIntegersAsNumbersButNoNan) {
  const Metadata metadata = sample();
  EXPECT_EQ(*metadata.get_float("int"), 7.0);
  EXPECT_EQ(*metadata.get_float("float"), 0.5);
  EXPECT_EQ(metadata.get_float("nan").error().message,
            "metadata: nan must be a finite number, but it is nan");
  EXPECT_EQ(*metadata.get_string("text"), "llama");
  EXPECT_TRUE(**metadata.find_bool("flag"));
  EXPECT_EQ((*metadata.find_strings("texts"))->size(), 2u);
}

// Writers differ in the type of a value, and in whether it stands once or for each layer.
TEST(Metadata, TakesAValueInEveryTypeThatSaysTheSame) {
  const Metadata metadata({{"whole", 7.0},
                           {"broken", 7.5},
                           {"one", std::int64_t{1}},
                           {"none", 0.0},
                           {"ints", std::vector<std::int64_t>{4, 4, 4}},
                           {"floats", std::vector<double>{4.0, 4.0}},
                           {"flags", std::vector<bool>{true, true}},
                           {"texts", std::vector<std::string>{"linear"}},
                           {"mixed", std::vector<std::int64_t>{4, 8}},
                           {"halves", std::vector<double>{0.5, 1.0}},
                           {"nothing", std::vector<std::int64_t>{}}});
  EXPECT_EQ(*metadata.get_int("whole", 0, 9), 7);
  EXPECT_FALSE(metadata.get_int("broken", 0, 9));
  EXPECT_TRUE(**metadata.find_bool("one"));
  EXPECT_FALSE(**metadata.find_bool("none"));
  EXPECT_FALSE(metadata.find_bool("whole"));
  EXPECT_EQ(*metadata.get_int("ints", 0, 9), 4);
  EXPECT_EQ(*metadata.get_int("floats", 0, 9), 4);
  EXPECT_EQ(*metadata.get_float("ints"), 4.0);
  EXPECT_TRUE(**metadata.find_bool("flags"));
  EXPECT_EQ(*metadata.get_string("texts"), "linear");
  for (const char* key : {"mixed", "nothing"}) {
    EXPECT_EQ(metadata.get_int(key, 0, 9).error().message,
              std::string("metadata: ") + key +
                  " must be an integer, but it is an integer array of different values, or an empty one");
  }
  EXPECT_EQ(**metadata.find_ints("floats"), (std::vector<std::int64_t>{4, 4}));
  EXPECT_EQ(**metadata.find_ints("flags"), (std::vector<std::int64_t>{1, 1}));
  EXPECT_FALSE(metadata.find_ints("halves"));
  EXPECT_EQ(**metadata.find_floats("mixed"), (std::vector<double>{4.0, 8.0}));
  EXPECT_TRUE(metadata.is_array("texts"));
  EXPECT_FALSE(metadata.is_array("one"));
}

}  // namespace
}  // namespace kvasir::io::metadata_test
