#include "sampling/gumbel_noise.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "sampling/chi_square.h"

namespace kvasir::sampling::gumbel_noise_test {
namespace {

// 32 bits of a token at a position.
using Source = std::uint32_t (*)(std::uint64_t seed, std::uint32_t choice, std::uint64_t position, TokenId token);

std::uint32_t coarse(std::uint64_t seed, std::uint32_t choice, std::uint64_t position, TokenId token) {
  return GumbelNoise(seed, choice, position).coarse(token);
}

// The bits behind the first 32.
std::uint32_t fine(std::uint64_t seed, std::uint32_t choice, std::uint64_t position, TokenId token) {
  const double rest = GumbelNoise(seed, choice, position).uniform(token) * 0x1p32;
  return static_cast<std::uint32_t>((rest - std::floor(rest)) * 0x1p32);
}

// Sources that are nearly right.
std::uint32_t without_mixing(std::uint64_t seed, std::uint32_t choice, std::uint64_t position, TokenId token) {
  return static_cast<std::uint32_t>(token) * GumbelNoise::kStride + draw_bits(seed, choice, position, Draw::kToken)[0];
}

std::uint32_t without_positions(std::uint64_t seed, std::uint32_t choice, std::uint64_t position, TokenId token) {
  return GumbelNoise(seed, choice, position / 2).coarse(token);
}

double evenness_of(std::span<const int> counts, int num_draws) {
  const std::vector<double> even(counts.size(), 1.0 / static_cast<double>(counts.size()));
  return chi_square_deviation(counts, even, num_draws);
}

struct Deviation {
  std::string name;
  double sigmas;
};

constexpr TokenId kTokens = 1 << 16;
constexpr int kPositions = 1 << 16;

// Each byte, over tokens at a position and over positions of a token.
std::vector<Deviation> of_bytes(Source source, int num_bytes) {
  std::vector<Deviation> all;
  for (int byte = 0; byte < num_bytes; ++byte) {
    for (std::uint64_t fixed = 0; fixed < 3; ++fixed) {
      std::array<int, 256> by_token{}, by_position{};
      for (int i = 0; i < kTokens; ++i) {
        ++by_token.at(source(5, 0, fixed, i) << 8 * byte >> 24);
        ++by_position.at(source(5, 0, static_cast<std::uint64_t>(i), static_cast<TokenId>(fixed) * 1000) << 8 * byte >> 24);
      }
      const std::string name = "byte " + std::to_string(byte) + ", " + std::to_string(fixed);
      all.push_back({"tokens, " + name, evenness_of(by_token, kTokens)});
      all.push_back({"positions, " + name, evenness_of(by_position, kPositions)});
    }
  }
  return all;
}

// The first four bits of pairs, in 256 cells.
template <typename First, typename Second>
double of_pairs(const First& first, const Second& second) {
  std::array<int, 256> cells{};
  for (int i = 0; i < kPositions; ++i) ++cells.at(first(i) >> 28 << 4 | second(i) >> 28);
  return evenness_of(cells, kPositions);
}

std::vector<Deviation> of_neighbours(Source source) {
  std::vector<Deviation> all;
  for (const int apart : {1, 2, 3, 4, 63, 64, 4096}) {
    const auto at = [&](int i) { return static_cast<std::uint64_t>(i); };
    const std::string name = std::to_string(apart) + " apart";
    all.push_back({"tokens over tokens, " + name, of_pairs([&](int i) { return source(1, 0, 7, i); },
                                                           [&](int i) { return source(1, 0, 7, i + apart); })});
    all.push_back({"tokens over positions, " + name, of_pairs([&](int i) { return source(1, 0, at(i), 99); },
                                                              [&](int i) { return source(1, 0, at(i), 99 + apart); })});
    all.push_back({"positions over tokens, " + name, of_pairs([&](int i) { return source(1, 0, 8, i); },
                                                              [&](int i) { return source(1, 0, 8 + at(apart), i); })});
    all.push_back({"positions over positions, " + name,
                   of_pairs([&](int i) { return source(1, 0, at(i), 50); },
                            [&](int i) { return source(1, 0, at(i + apart), 50); })});
    all.push_back({"choices over tokens, " + name,
                   of_pairs([&](int i) { return source(1, 0, 3, i); },
                            [&](int i) { return source(1, static_cast<std::uint32_t>(apart), 3, i); })});
    all.push_back({"seeds over positions, " + name,
                   of_pairs([&](int i) { return source(1, 0, at(i), 20); },
                            [&](int i) { return source(1 + at(apart), 0, at(i), 20); })});
  }
  return all;
}

// How many of 1,024 tokens are among the least 2 / 1,024 of numbers, and which is the least. Races are decided there.
std::vector<Deviation> of_least(Source source) {
  constexpr int kSome = 1024, kRows = 20'000;
  constexpr double kShare = 2.0 / kSome;
  std::array<int, 9> how_many{};
  std::array<int, 64> which{};
  for (int row = 0; row < kRows; ++row) {
    std::size_t count = 0;
    std::pair<std::uint32_t, TokenId> least = {~std::uint32_t{0}, 0};
    for (TokenId token = 0; token < kSome; ++token) {
      const std::uint32_t number = source(2, 0, static_cast<std::uint64_t>(row), token);
      count += number < static_cast<std::uint32_t>(kShare * 0x1p32) ? 1 : 0;
      least = std::min(least, {number, token});
    }
    ++how_many.at(std::min(count, how_many.size() - 1));
    ++which.at(static_cast<std::size_t>(least.second) / (kSome / 64));
  }
  std::vector<double> binomial(how_many.size());
  double probability = std::pow(1.0 - kShare, kSome), rest = 1.0;
  for (std::size_t i = 0; i + 1 < binomial.size(); ++i) {
    binomial[i] = probability;
    rest -= probability;
    probability *= (kSome - static_cast<double>(i)) / static_cast<double>(i + 1) * kShare / (1.0 - kShare);
  }
  binomial.back() = rest;
  return {{"how many are least", chi_square_deviation(how_many, binomial, kRows)}, {"which is least", evenness_of(which, kRows)}};
}

double greatest_of(const std::vector<Deviation>& all) { return std::ranges::max(all, {}, &Deviation::sigmas).sigmas; }

TEST(GumbelNoise, IsUniformOverTokensAndOverPositions) {
  for (const auto& [name, sigmas] : of_bytes(coarse, 4)) EXPECT_LT(sigmas, kMostDeviation) << name;
  for (const auto& [name, sigmas] : of_bytes(fine, 2)) EXPECT_LT(sigmas, kMostDeviation) << "fine, " << name;
}

TEST(GumbelNoise, NeighboursHaveNothingInCommon) {
  for (const auto& [name, sigmas] : of_neighbours(coarse)) EXPECT_LT(sigmas, kMostDeviation) << name;
  for (const auto& [name, sigmas] : of_neighbours(fine)) EXPECT_LT(sigmas, kMostDeviation) << "fine, " << name;
  EXPECT_LT(of_pairs([](int i) { return coarse(1, 0, 5, i); }, [](int i) { return fine(1, 0, 5, i); }), kMostDeviation);
}

TEST(GumbelNoise, TheLeastNumbersAreAnybodys) {
  for (const auto& [name, sigmas] : of_least(coarse)) EXPECT_LT(sigmas, kMostDeviation) << name;
}

TEST(GumbelNoise, SourcesThatAreNearlyRightAreFound) {
  EXPECT_GT(greatest_of(of_neighbours(without_mixing)), 100.0);
  EXPECT_GT(greatest_of(of_least(without_mixing)), 10.0);
  EXPECT_GT(greatest_of(of_neighbours(without_positions)), 100.0);
}

using Mix = std::uint32_t (*)(const PhiloxCounter& key, TokenId token);

std::uint32_t mix_itself(const PhiloxCounter& key, TokenId token) { return GumbelNoise(key).coarse(token); }

// A known multiplier, with a word of the key between the rounds.
std::uint32_t with_known_multipliers(const PhiloxCounter& key, TokenId token) {
  std::uint32_t x = static_cast<std::uint32_t>(token) * GumbelNoise::kStride + key[0];
  x ^= x >> 16;
  x *= 0x21F0AAADu;
  x ^= key[1];
  x ^= x >> 15;
  x *= 0x735A2D97u;
  x ^= x >> 15;
  return x ^ key[2];
}

// Keys whose first words are some strides apart, so that tokens of one have the places of tokens of the other.
struct Meeting {
  double deviation = 0.0;         // of pairs of numbers at one place
  std::ptrdiff_t num_common = 0;  // numbers that both have
  std::ptrdiff_t num_repeated = 0;  // exclusive ors of pairs
};

Meeting of_places_that_meet(Mix mix) {
  constexpr TokenId kSome = 1 << 14;
  constexpr int kKeys = 20;
  std::mt19937 random(3);
  const auto word = [&] { return static_cast<std::uint32_t>(random()); };
  Meeting meeting;
  double chi_square = 0.0;
  const std::array<TokenId, 5> shifts = {0, 1, 2, 64, 1000};
  for (int i = 0; i < kKeys; ++i) {
    for (const TokenId shift : shifts) {
      const PhiloxCounter key = {word(), word(), word(), word()};
      const PhiloxCounter other = {key[0] + static_cast<std::uint32_t>(shift) * GumbelNoise::kStride, word(), word(), word()};
      std::vector<std::uint32_t> numbers, others, common, differences;
      std::array<int, 256> cells{};
      for (TokenId token = 0; token < kSome; ++token) {
        numbers.push_back(mix(key, token + shift));
        others.push_back(mix(other, token));
        differences.push_back(numbers.back() ^ others.back());
        ++cells.at(numbers.back() >> 28 << 4 | others.back() >> 28);
      }
      for (const int count : cells) chi_square += (count - kSome / 256.0) * (count - kSome / 256.0) / (kSome / 256.0);
      for (auto* all : {&numbers, &others, &differences}) std::ranges::sort(*all);
      std::ranges::set_intersection(numbers, others, std::back_inserter(common));
      meeting.num_common += std::ssize(common);
      meeting.num_repeated += std::ssize(std::ranges::unique(differences));
    }
  }
  meeting.deviation = deviation_of(chi_square, kKeys * static_cast<int>(shifts.size()) * 255);
  return meeting;
}

TEST(GumbelNoise, PlacesThatMeetHaveNothingInCommon) {
  const Meeting meeting = of_places_that_meet(mix_itself);
  EXPECT_LT(meeting.deviation, kMostDeviation);
  EXPECT_LT(meeting.num_common, 25);    // 100 times 2^28 pairs of 2^32: 6.25
  EXPECT_LT(meeting.num_repeated, 25);  // 100 times 2^27 pairs: 3.1
  const Meeting planted = of_places_that_meet(with_known_multipliers);
  EXPECT_GT(planted.deviation, kMostDeviation);
  EXPECT_GT(planted.num_repeated, 250);
}

TEST(GumbelNoise, IsTheSameFourAtATime) {
  for (std::uint64_t position = 0; position < 100; ++position) {
    const GumbelNoise noise(8, 1, position);
    for (TokenId token = 0; token < 400; token += 4) {
      const Uint4 numbers = noise.coarse(
          Uint4{noise.place_of(token), noise.place_of(token + 1), noise.place_of(token + 2), noise.place_of(token + 3)});
      for (TokenId lane = 0; lane < 4; ++lane) EXPECT_EQ(numbers[lane], noise.coarse(token + lane));
    }
  }
  const Int4 ordered = GumbelNoise::as_signed(Uint4{0, 0x7fffffffu, 0x80000000u, 0xffffffffu});
  EXPECT_LT(ordered[0], ordered[1]);
  EXPECT_LT(ordered[1], ordered[2]);
  EXPECT_LT(ordered[2], ordered[3]);
}

TEST(GumbelNoise, TheCoarseNumberIsABound) {
  for (std::uint64_t position = 0; position < 100; ++position) {
    const GumbelNoise noise(4, 0, position);
    for (TokenId token = 0; token < 1000; ++token) {
      const double v = noise.uniform(token);
      EXPECT_LT(noise.coarse(token) * 0x1p-32, v);
      EXPECT_LT(v - noise.coarse(token) * 0x1p-32, 0x1p-32);
      EXPECT_LT(v, 1.0);
      EXPECT_GE(noise.exponential(token) * (1.0 + 1e-15), v);
      EXPECT_NEAR(noise.exponential(token) / -std::log1p(-v), 1.0, 1e-15);
    }
  }
}

TEST(PortableLog, IsTheLogarithm) {
  std::mt19937_64 random(6);
  const auto check = [](double x) {
    const double wanted = std::log(x);
    if (wanted == 0.0) {
      EXPECT_EQ(portable_log(x), 0.0);
    } else {
      EXPECT_NEAR(portable_log(x) / wanted, 1.0, 1e-15) << x;
    }
  };
  for (int i = 0; i < 200'000; ++i) {
    const double u = static_cast<double>((random() >> 11) | 1) * 0x1p-53;
    check(u);
    check(1.0 - u * 1e-6);
    check(1.0 + u * 1e-6);
    check(u * 0x1p-30);
    check(u * 1000.0);
  }
  for (int n = 1; n <= 53; ++n) {
    check(std::ldexp(1.0, -n));
    check(1.0 - std::ldexp(1.0, -n));
  }
  check(1.0);
  check(std::sqrt(0.5));
  check(std::nextafter(std::sqrt(0.5), 0.0));
}

// Seeds give the same tokens on every machine.
TEST(GumbelNoise, HasTheSameBitsEverywhere) {
  const auto bits = [](double value) { return std::bit_cast<std::uint64_t>(value); };
  const GumbelNoise noise(42, 3, 1000);
  EXPECT_EQ(noise.coarse(0), 0x33997dd7u);
  EXPECT_EQ(noise.coarse(262'143), 0x907b1a6du);
  EXPECT_EQ(bits(noise.uniform(77)), 0x3fe5b47289c5183du);
  EXPECT_EQ(bits(noise.exponential(77)), 0x3ff225218cb160fdu);
  EXPECT_EQ(bits(portable_log(0.7)), 0xbfd6d3c324e13f50u);
  EXPECT_EQ(bits(portable_log(0x1p-40 * 1.3)), 0xc03b76a970c94184u);
}

}  // namespace
}  // namespace kvasir::sampling::gumbel_noise_test
