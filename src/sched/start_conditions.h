// Predicates that decide whether a waiting sequence may start. Features add predicates here, not branches to
// Scheduler::schedule().
#pragma once

#include <cstdint>
#include <span>

#include "kv/kv_cache_manager.h"
#include "kvasir/result.h"
#include "sched/sequence.h"

namespace kvasir::sched {

// Error (kUnmet) with both numbers when the request could not run all layers to its end even alone.
Status check_can_ever_fit(const SequenceRequest& request, const kv::KvCacheManager& kv,
                          std::int32_t max_chunk_tokens);

// True when the sequence wants nothing but what its prompt's logits say, and its KV is neither taken from the
// prefix cache nor left there nor changed by a policy: then it may run layer by layer, as far as there is
// room for the hidden states of `max_tokens` tokens.
bool may_be_prefill_only(const SequenceRequest& request, const kv::KvCacheManager& kv,
                         std::int32_t max_tokens);

// A running choice of the same request whose prompt is computed, to share its blocks; null when there is
// none.
const Sequence* find_prompt_holder(const Sequence& candidate, std::span<Sequence* const> running);

// True while another choice of the same request is computing the prompt and none holds it yet: waiting is
// cheaper than computing it twice.
bool awaits_sibling(const Sequence& candidate, std::span<Sequence* const> running);

// Takes the blocks of a starting sequence's prefix that are cached; returns the tokens that need not be computed.
// A sibling's blocks are found through the prefix index where the sequence may use it, and taken from the
// sibling directly where not.
std::int32_t take_cached_prefix(Sequence& sequence, std::span<Sequence* const> running,
                                kv::KvCacheManager& kv);

// True when every token that the candidate and the running sequences already have fits the pools and the
// memory together, each as coarse as its policy is expected to make it, so that starting it preempts none by
// its prompt alone. `candidate.kv` already holds its cached prefix.
bool kv_fits(const Sequence& candidate, std::span<Sequence* const> running, const kv::KvCacheManager& kv,
             std::int32_t max_chunk_tokens);

}  // namespace kvasir::sched
