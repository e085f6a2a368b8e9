// Logits as log-probabilities, and how far two distributions are apart.
#pragma once

#include <span>
#include <vector>

namespace kvasir::eval {

// x - log(sum(exp(x))). Requires: there are some.
std::vector<float> log_softmax(std::span<const float> logits);

// The Kullback-Leibler divergence in nats of `other` from `full`, both log-probabilities of the same tokens. Equal ones
// give exactly 0.
double divergence(std::span<const float> full, std::span<const float> other);

// Whether the same token is the most likely one.
bool have_same_top(std::span<const float> a, std::span<const float> b);

}  // namespace kvasir::eval
