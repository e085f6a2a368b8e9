// What one HTTP/2 connection may ask for, frame by frame.
#include "server/carriers/grpc/connection_calm.h"

#include <gtest/gtest.h>

#include <string>

namespace kvasir::server::carriers {
namespace {

using namespace std::chrono_literals;
using Time = ConnectionCalm::TimePoint;

const Time kStart = Time() + 1h;
const http::MinTransferRate kMessageRate(1000ms, 1000);  // bytes a second

Frame headers(std::uint32_t stream) { return {.type = FrameType::kHeaders, .flags = 4, .stream = stream}; }
Frame reset_of(std::uint32_t stream, std::uint32_t error = 8) {
  return {.type = FrameType::kReset, .num_bytes = 4, .stream = stream, .error = error};
}
Frame ping() { return {.type = static_cast<FrameType>(6), .num_bytes = 8}; }

TEST(ConnectionCalm, RefusesTheResetBeyondTheMost) {
  AbandonedCalls abandoned;
  ConnectionCalm calm(3, 64, kMessageRate, abandoned, kStart);
  for (std::uint32_t stream = 1; stream <= 7; stream += 2) {
    ASSERT_EQ(calm.take(headers(stream), kStart), FrameVerdict::kPass);
    EXPECT_EQ(calm.take(reset_of(stream), kStart), stream < 7 ? FrameVerdict::kPass : FrameVerdict::kRefuse);
  }
}

TEST(ConnectionCalm, LetsATenthOfThemThroughEachSecond) {
  AbandonedCalls abandoned;
  ConnectionCalm calm(10, 64, kMessageRate, abandoned, kStart);
  for (std::uint32_t i = 0; i < 100; ++i) {
    const Time now = kStart + i * 1000ms;
    ASSERT_EQ(calm.take(headers(2 * i + 1), now), FrameVerdict::kPass);
    ASSERT_EQ(calm.take(reset_of(2 * i + 1), now), FrameVerdict::kPass);
  }
}

TEST(ConnectionCalm, CountsResetsThatTheServerWasMadeToSend) {
  AbandonedCalls abandoned;
  ConnectionCalm calm(1, 64, kMessageRate, abandoned, kStart);
  for (const std::uint32_t stream : {1, 3, 5, 7}) (void)calm.take(headers(stream), kStart);
  EXPECT_EQ(calm.sent(reset_of(1, 0), kStart), FrameVerdict::kPass) << "it had all that it needed";
  EXPECT_EQ(calm.sent(reset_of(3, 7), kStart), FrameVerdict::kPass) << "no call had begun";
  EXPECT_EQ(calm.sent(reset_of(5, 1), kStart), FrameVerdict::kPass);
  EXPECT_EQ(calm.sent(reset_of(7, 1), kStart), FrameVerdict::kRefuse);
}

TEST(ConnectionCalm, CountsFramesThatCarryNothing) {
  AbandonedCalls abandoned;
  ConnectionCalm calm(10, 64, kMessageRate, abandoned, kStart);
  for (int i = 0; i < ConnectionCalm::kMaxEmptyFrames; ++i) {
    ASSERT_EQ(calm.take(ping(), kStart), FrameVerdict::kPass) << i;
  }
  const Frame update{.type = FrameType::kWindowUpdate, .num_bytes = 4};
  const Frame data{.type = FrameType::kData, .num_bytes = 1, .stream = 1};
  EXPECT_EQ(calm.take(update, kStart), FrameVerdict::kPass);
  EXPECT_EQ(calm.take(data, kStart), FrameVerdict::kPass);
  EXPECT_EQ(calm.take(ping(), kStart), FrameVerdict::kRefuse);
  EXPECT_EQ(calm.take(reset_of(1), kStart), FrameVerdict::kRefuse) << "of a stream that never was";
}

TEST(ConnectionCalm, LetsNoCallBeginWhileManyAreAbandoned) {
  AbandonedCalls abandoned;
  ConnectionCalm calm(10, 64, kMessageRate, abandoned, kStart);
  abandoned.add(2000, kStart);
  EXPECT_EQ(calm.take(headers(1), kStart), FrameVerdict::kWait);
  EXPECT_EQ(calm.take(headers(1), kStart + 900ms), FrameVerdict::kWait);
  EXPECT_EQ(calm.take(headers(1), kStart + 1100ms), FrameVerdict::kPass);
  EXPECT_EQ(calm.last_stream(), 1u);
}

TEST(ConnectionCalm, AbandonsTheStreamsOfAConnectionThatEnds) {
  AbandonedCalls abandoned;
  abandoned.add(999, kStart);
  ConnectionCalm calm(10, 64, kMessageRate, abandoned, kStart);
  (void)calm.take(headers(1), kStart);
  calm.end(kStart);
  EXPECT_FALSE(abandoned.are_few(kStart));
}

TEST(ConnectionCalm, RefusesTwiceTheStreamsThatMayBe) {
  AbandonedCalls abandoned;
  ConnectionCalm calm(10, 2, kMessageRate, abandoned, kStart);
  for (const std::uint32_t stream : {1, 3, 5, 7}) {
    EXPECT_EQ(calm.take(headers(stream), kStart), FrameVerdict::kPass);
  }
  EXPECT_EQ(calm.take(headers(5), kStart), FrameVerdict::kPass) << "the end of what the client says in it";
  EXPECT_EQ(calm.take(headers(9), kStart), FrameVerdict::kRefuse);
}

TEST(ConnectionCalm, AsksForTheEndOfCallsWhoseMessageIsLate) {
  AbandonedCalls abandoned;
  ConnectionCalm calm(10, 64, kMessageRate, abandoned, kStart);
  const auto data = [](std::uint32_t stream, std::uint32_t num_bytes, std::uint8_t flags = 0) {
    return Frame{.type = FrameType::kData, .flags = flags, .num_bytes = num_bytes, .stream = stream};
  };
  for (const std::uint32_t stream : {1, 3, 5, 7}) (void)calm.take(headers(stream), kStart);
  EXPECT_EQ(calm.take(data(3, 9, 1), kStart), FrameVerdict::kPass) << "all is there";
  EXPECT_EQ(calm.sent(headers(5), kStart), FrameVerdict::kPass) << "it is answered already";
  EXPECT_EQ(calm.take(data(7, 500), kStart + 900ms), FrameVerdict::kPass) << "it comes at half the rate";
  EXPECT_EQ(calm.take(ping(), kStart + 1100ms), FrameVerdict::kWait);
  EXPECT_EQ(calm.messages().late(kStart + 1100ms), 1u);
  calm.messages().end(1);
  EXPECT_EQ(calm.take(ping(), kStart + 1100ms), FrameVerdict::kPass);
  EXPECT_EQ(calm.messages().late(kStart + 1400ms), std::nullopt);
  EXPECT_EQ(calm.messages().late(kStart + 1600ms), 7u);
  calm.messages().end(7);
  EXPECT_FALSE(calm.messages().are_awaited());
}

TEST(ConnectionCalm, WaitsForNoMessageOfACallThatIsOver) {
  AbandonedCalls abandoned;
  ConnectionCalm calm(10, 64, kMessageRate, abandoned, kStart);
  (void)calm.take(headers(1), kStart);
  (void)calm.take(reset_of(1), kStart);
  Frame whole = headers(3);
  whole.flags |= 1;
  (void)calm.take(whole, kStart);
  EXPECT_FALSE(calm.messages().are_awaited());
}

TEST(FrameScanner, FindsTheSameFramesHoweverTheBytesAreCut) {
  const std::string bytes = std::string(FrameScanner::kPrefaceBytes, 'p') +
                            std::string("\0\0\2\1\5\0\0\0\3hd", 11) +
                            std::string("\0\0\4\3\0\0\0\0\3\0\0\0\7", 13) +
                            std::string("\0\0\0\0\1\0\0\0\5", 9);
  for (std::size_t piece = 1; piece <= bytes.size(); ++piece) {
    FrameScanner scanner(FrameScanner::kPrefaceBytes);
    std::string said, waiting;
    std::size_t num_passed = 0;
    for (std::size_t at = 0; at < bytes.size(); at += piece) {
      waiting += bytes.substr(at, piece);
      const auto scanned = scanner.scan(waiting, [&](const Frame& frame) {
        said += std::to_string(static_cast<int>(frame.type)) + ":" + std::to_string(frame.stream) + ":" +
                std::to_string(frame.num_bytes) + ":" + std::to_string(frame.error) +
                (frame.ends_stream() ? "! " : " ");
        return FrameVerdict::kPass;
      });
      waiting.erase(0, scanned.num_passed);
      num_passed += scanned.num_passed;
    }
    EXPECT_EQ(said, "1:3:2:0! 3:3:4:7 0:5:0:0! ") << piece;
    EXPECT_EQ(num_passed, bytes.size()) << piece;
    EXPECT_TRUE(scanner.is_between_frames()) << piece;
  }
}

}  // namespace
}  // namespace kvasir::server::carriers
