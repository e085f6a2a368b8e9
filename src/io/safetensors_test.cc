#include "io/safetensors.h"

#include <gtest/gtest.h>

#include "io/testing/safetensors_file.h"

namespace kvasir::io::safetensors_test {
namespace {

std::span<const std::byte> span_of(const std::string& bytes) {
  return {reinterpret_cast<const std::byte*>(bytes.data()), bytes.size()};
}

// The message for a file of this header and so many data bytes; empty when it can be read.
std::string error_of(std::string_view header, std::size_t num_data_bytes) {
  const std::string bytes = safetensors_bytes(header, num_data_bytes);
  const auto tensors = parse_safetensors(span_of(bytes), "a");
  return tensors ? "" : tensors.error().message;
}

std::string entry(std::string_view name, std::string_view dtype, std::string_view shape, std::string_view place) {
  std::string text = "\"";
  text.append(name).append("\":{\"dtype\":\"").append(dtype).append("\",\"shape\":[").append(shape);
  return text.append("],\"data_offsets\":[").append(place).append("]}");
}

TEST(Safetensors, GivesTensorsInTheOrderOfTheirBytes) {
  const std::string bytes = safetensors_bytes("{\"__metadata__\":{\"format\":\"pt\"}," + entry("b", "BF16", "2,3", "4,16") +
                                                  "," + entry("a", "F32", "", "0,4") + "," +
                                                  entry("none", "I64", "0,5", "16,16") + "}",
                                              16);
  const auto tensors = parse_safetensors(span_of(bytes), "a");
  ASSERT_TRUE(tensors) << tensors.error().message;
  ASSERT_EQ(tensors->size(), 3u);
  EXPECT_EQ((*tensors)[0].name, "a");
  EXPECT_EQ((*tensors)[0].num_elements(), 1);
  EXPECT_EQ((*tensors)[1].dtype, "BF16");
  EXPECT_EQ((*tensors)[1].shape, (std::vector<std::int64_t>{2, 3}));
  EXPECT_EQ((*tensors)[1].data.size(), 12u);
  EXPECT_EQ((*tensors)[1].data.front(), std::byte{4});
  EXPECT_EQ((*tensors)[2].num_elements(), 0);
}

TEST(Safetensors, RefusesHeadersThatDoNotFitTheFile) {
  const std::string empty;
  EXPECT_EQ(parse_safetensors(span_of(empty), "a").error().message,
            "a: header: the file ends inside it (8 bytes are needed, it has 0)");
  const std::string bytes = safetensors_bytes("{}", 0);
  EXPECT_EQ(parse_safetensors(span_of(bytes).first(9), "a").error().message,
            "a: header: says it has 2 bytes, 1 follow; is the download incomplete?");
  const std::string text = "version https://git-lfs.github.com/spec/v1";
  EXPECT_EQ(parse_safetensors(span_of(text), "a").error().message,
            "a: header: at most 100000000 bytes, says it has 2336927755350992246; is this a safetensors file?");
  EXPECT_EQ(error_of("[]", 0), "a: header: is not a JSON object");
  EXPECT_EQ(error_of("{", 0), "a: header: is not a JSON object");
}

TEST(Safetensors, RefusesEntriesThatAreNotComplete) {
  EXPECT_EQ(error_of(R"({"w":1})", 0), "a: tensor w: must be an object");
  EXPECT_EQ(error_of(R"({"w":{}})", 0), "a: tensor w: has no dtype");
  EXPECT_EQ(error_of(R"({"w":{"dtype":"F32"}})", 0), "a: tensor w: has no shape");
  EXPECT_EQ(error_of(R"({"w":{"dtype":"F32","shape":[1]}})", 0), "a: tensor w: must have two data_offsets, has 0");
  EXPECT_EQ(error_of(R"({"w":{"dtype":"F32","dtype":"F32"}})", 0), "a: tensor w: has the unexpected field dtype");
  EXPECT_EQ(error_of("{" + entry("w", "F32", "-1", "0,4") + "}", 4),
            "a: tensor w: shape must hold whole numbers from 0 on, holds -1");
  EXPECT_EQ(error_of("{" + entry("w", "F32", "1", "0,4.5") + "}", 4),
            "a: tensor w: data_offsets must hold whole numbers from 0 on, holds 4.5");
  EXPECT_EQ(error_of("{" + entry("w", "F32", "1,1,1,1,1,1,1,1,1", "0,4") + "}", 4),
            "a: tensor w: has 9 axes, allowed are at most 8");
}

TEST(Safetensors, ChecksPlacesBeforeTheType) {
  EXPECT_EQ(error_of("{" + entry("w", "NEW", "1", "8,4") + "}", 8), "a: tensor w: begins at byte 8 and ends at 4");
  EXPECT_EQ(error_of("{" + entry("w", "NEW", "1", "0,9") + "}", 8),
            "a: tensor w: ends at byte 9, but 8 bytes of data follow; is the download incomplete?");
  EXPECT_EQ(error_of("{" + entry("w", "NEW", "1", "0,8") + "}", 8), "a: tensor w: has the unknown type NEW");
}

TEST(Safetensors, RefusesSizesThatAreNotThoseOfTypeAndShape) {
  EXPECT_EQ(error_of("{" + entry("w", "F32", "2,2", "0,12") + "}", 12),
            "a: tensor w: needs 16 bytes (F32 2x2), has 12");
  EXPECT_EQ(error_of("{" + entry("w", "F64", "4611686018427387904,4", "0,8") + "}", 8),
            "a: tensor w: has the shape 4611686018427387904x4, more than any memory holds");
  EXPECT_EQ(error_of("{" + entry("w", "F4", "3", "0,2") + "}", 2),
            "a: tensor w: has 12 bits in the type F4, which are no whole bytes");
  EXPECT_EQ(error_of("{" + entry("w", "F4", "4", "0,2") + "}", 2), "");
}

TEST(Safetensors, RefusesRepeatedNamesOverlapsAndHoles) {
  EXPECT_EQ(error_of("{" + entry("w", "U8", "2", "0,2") + "," + entry("w", "U8", "2", "2,4") + "}", 4),
            "a: tensor w: appears twice in the header");
  EXPECT_EQ(error_of("{" + entry("v", "U8", "2", "0,2") + "," + entry("w", "U8", "2", "1,3") + "}", 3),
            "a: tensor w: begins at byte 1, inside the tensor before it, which ends at 2");
  EXPECT_EQ(error_of("{" + entry("v", "U8", "2", "0,2") + "," + entry("w", "U8", "2", "3,5") + "}", 5),
            "a: tensor w: begins at byte 3, but the tensor before it ends at 2");
  EXPECT_EQ(error_of("{" + entry("w", "U8", "2", "0,2") + "}", 3),
            "a: header: its tensors end at byte 2, but 3 bytes of data follow");
}

}  // namespace
}  // namespace kvasir::io::safetensors_test
