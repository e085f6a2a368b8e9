// Runs an op case through the launchers of kernels/: on the host executor, or on a device where nvcc compiled it.
#pragma once

#include <bit>
#include <cstddef>
#include <string>
#include <vector>

#include "backend/cuda/cases/op_case.h"
#include "backend/cuda/simt/simt.h"

namespace kvasir::cuda {

// Fills `outputs` with the arrays that are no inputs. Returns what the device says, or an empty line.
std::string run_case(simt::Device& device, const OpCase& op, std::vector<std::vector<std::byte>>& outputs);

// The arrays of a case on a device, for several launches over them.
class BoundCase {
 public:
  BoundCase(simt::Device& device, const OpCase& op);

  // False for an op that is none.
  bool launch();
  std::vector<std::vector<std::byte>> outputs() const;
  bool has_written_all() const;

  simt::Device& device() { return *device_; }
  std::int64_t number(std::size_t i) const { return op_->numbers[i]; }
  float float_number(std::size_t i) const {
    return std::bit_cast<float>(static_cast<std::uint32_t>(number(i)));
  }
  template <class T>
  T* at(std::size_t i) const {
    return reinterpret_cast<T*>(arrays_[i]);
  }

 private:
  simt::Device* device_;
  const OpCase* op_;
  std::vector<std::byte*> arrays_;
};

}  // namespace kvasir::cuda
