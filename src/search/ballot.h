// A majority vote that may end before all have voted.
#pragma once

#include <cstddef>
#include <map>
#include <string>

namespace kvasir::search {

// Thread safety: none.
class Ballot {
 public:
  // `weight` > 0. Answers that were given earlier win ties.
  void add(const std::string& answer, double weight = 1.0);
  // Somebody voted for nothing.
  void add_invalid() { ++num_votes_; }

  std::size_t num_votes() const { return num_votes_; }
  // Empty: nobody voted for anything.
  const std::string& leader() const { return leader_; }
  // Whether those who are left, of one vote each, will not change the leader: they cannot, or it is improbable. With v1 and
  // v2 votes for the first two, and every share of the two alike before, the first one leads with 1 - I_0.5(v1 + 1, v2 + 1)
  // (Aggarwal et al. 2023, "Adaptive-Consistency"); more than 0.95 is enough.
  bool is_decided(std::size_t num_left) const;

 private:
  struct Votes {
    double weight = 0.0;
    std::size_t first = 0;  // the vote that gave the answer first
  };
  std::map<std::string, Votes> answers_;
  std::string leader_;
  std::size_t num_votes_ = 0;
};

// The regularised incomplete beta function I_0.5(a, b) of whole numbers >= 1.
double incomplete_beta_of_half(int a, int b);

}  // namespace kvasir::search
