#include "learn/principal_components.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/check.h"

namespace kvasir::learn {
namespace {

constexpr int kMaxSweeps = 30;
constexpr double kNegligible = 1e-12;  // of what stands beside the diagonal, to the diagonal

class Rotations {
 public:
  Rotations(std::span<const double> matrix, std::size_t width) : width_(width), matrix_(matrix.begin(), matrix.end()), rows_(width * width) {
    for (std::size_t i = 0; i < width; ++i) rows_[i * width + i] = 1.0;
  }

  bool is_diagonal() const {
    double beside = 0.0, on = 0.0;
    for (std::size_t i = 0; i < width_; ++i) {
      for (std::size_t j = 0; j < width_; ++j) (i == j ? on : beside) += matrix_[i * width_ + j] * matrix_[i * width_ + j];
    }
    return beside <= kNegligible * kNegligible * on;
  }

  void sweep() {
    for (std::size_t p = 0; p + 1 < width_; ++p) {
      for (std::size_t q = p + 1; q < width_; ++q) rotate(p, q);
    }
  }

  double variance(std::size_t i) const { return matrix_[i * width_ + i]; }
  const double* direction(std::size_t i) const { return rows_.data() + i * width_; }

 private:
  // Makes element (p, q) zero.
  void rotate(std::size_t p, std::size_t q) {
    const double beside = matrix_[p * width_ + q];
    if (beside == 0.0) return;
    const double theta = (matrix_[q * width_ + q] - matrix_[p * width_ + p]) / (2.0 * beside);
    const double t = (theta >= 0.0 ? 1.0 : -1.0) / (std::abs(theta) + std::sqrt(theta * theta + 1.0));
    const double c = 1.0 / std::sqrt(t * t + 1.0), s = t * c;
    for (std::size_t k = 0; k < width_; ++k) turn(matrix_[k * width_ + p], matrix_[k * width_ + q], c, s);
    for (std::size_t k = 0; k < width_; ++k) turn(matrix_[p * width_ + k], matrix_[q * width_ + k], c, s);
    for (std::size_t k = 0; k < width_; ++k) turn(rows_[p * width_ + k], rows_[q * width_ + k], c, s);
  }
  static void turn(double& a, double& b, double c, double s) {
    const double before = a;
    a = c * before - s * b;
    b = s * before + c * b;
  }

  std::size_t width_;
  std::vector<double> matrix_, rows_;
};

}  // namespace

PrincipalComponents principal_components(std::span<const double> covariance, std::size_t width) {
  CHECK(covariance.size() == width * width);
  Rotations rotations(covariance, width);
  for (int sweep = 0; sweep < kMaxSweeps && !rotations.is_diagonal(); ++sweep) rotations.sweep();
  std::vector<std::size_t> order(width);
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, std::ranges::greater(), [&](std::size_t i) { return rotations.variance(i); });
  PrincipalComponents components;
  for (const std::size_t i : order) {
    components.variances.push_back(std::max(0.0, rotations.variance(i)));
    components.directions.insert(components.directions.end(), rotations.direction(i), rotations.direction(i) + width);
  }
  return components;
}

}  // namespace kvasir::learn
