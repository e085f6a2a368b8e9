// Work on cells of the KV cache between the layers of two steps: conversion and measuring.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "backend/backend.h"
#include "base/thread_pool.h"
#include "kernels/table.h"

namespace kvasir::backend {

// Borrows the table and the pool. One caller at a time.
class CellExecutor {
 public:
  CellExecutor(const kernels::KernelTable& kernels, ThreadPool& pool) : kernels_(kernels), pool_(pool) {}

  // As Backend has them.
  void convert_cells(std::span<const kv::CellConversion> conversions, std::byte* memory);
  void measure_blocks(const MeasureBlocksOp& op, const KvGroupView& group);

 private:
  const kernels::KernelTable& kernels_;
  ThreadPool& pool_;
};

}  // namespace kvasir::backend
