#include "search/ballot.h"

#include <algorithm>
#include <cmath>

namespace kvasir::search {

void Ballot::add(const std::string& answer, double weight) {
  Votes& votes = answers_.try_emplace(answer, Votes{.first = num_votes_}).first->second;
  votes.weight += weight;
  ++num_votes_;
  const auto leads = [&](const Votes& a, const Votes& b) { return a.weight > b.weight || (a.weight == b.weight && a.first < b.first); };
  if (leader_.empty() || leads(votes, answers_.at(leader_))) leader_ = answer;
}

bool Ballot::is_decided(std::size_t num_left) const {
  constexpr double kEnough = 0.95;
  if (num_left == 0) return true;
  if (leader_.empty()) return false;
  double first = 0.0, second = 0.0;
  for (const auto& [answer, votes] : answers_) {
    double& place = answer == leader_ ? first : second;
    place = answer == leader_ ? votes.weight : std::max(second, votes.weight);
  }
  if (first > second + static_cast<double>(num_left)) return true;
  return 1.0 - incomplete_beta_of_half(static_cast<int>(first) + 1, static_cast<int>(second) + 1) > kEnough;
}

// The probability of at least a heads among a + b - 1 tosses.
double incomplete_beta_of_half(int a, int b) {
  const int tosses = a + b - 1;
  double sum = 0.0;
  for (int heads = a; heads <= tosses; ++heads) {
    sum += std::exp(std::lgamma(tosses + 1.0) - std::lgamma(heads + 1.0) - std::lgamma(tosses - heads + 1.0) - tosses * std::log(2.0));
  }
  return sum;
}

}  // namespace kvasir::search
