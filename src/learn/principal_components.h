// The principal components of numbers whose covariance is known.
#pragma once

#include <span>
#include <vector>

namespace kvasir::learn {

struct PrincipalComponents {
  std::vector<double> variances;   // the largest first
  std::vector<double> directions;  // [component][width], of length 1
};

// `covariance`: [width][width], symmetric. By Jacobi's rotations in a fixed order (Golub and Van Loan, "Matrix
// Computations"), so that every machine finds the same ones.
PrincipalComponents principal_components(std::span<const double> covariance, std::size_t width);

}  // namespace kvasir::learn
