#include "spec/ngram_counts.h"

#include <algorithm>

#include "spec/ngram_table.h"

namespace kvasir::spec {
namespace {

struct Occurrence {
  std::uint64_t hash = 0;
  TokenId token = kNoToken;
  std::uint32_t place = 0;  // of the token, counted over all texts

  auto operator<=>(const Occurrence&) const = default;
};

// The text of each occurrence, to hash its context anew.
std::span<const TokenId> context_of(const std::vector<TokenId>& tokens, std::uint32_t place, std::int32_t length) {
  return std::span(tokens).subspan(place - static_cast<std::size_t>(length), static_cast<std::size_t>(length));
}

NgramCounts::Context count(std::span<const Occurrence> same) {
  NgramCounts::Context context{.hash = same.front().hash, .num_all = static_cast<std::int32_t>(same.size())};
  for (std::size_t begin = 0; begin < same.size();) {
    std::size_t end = begin;
    while (end < same.size() && same[end].token == same[begin].token) ++end;
    if (std::cmp_greater(end - begin, context.num_times)) {
      context.token = same[begin].token;
      context.num_times = static_cast<std::int32_t>(end - begin);
    }
    begin = end;
  }
  return context;
}

// One length at a time, which needs a fraction of the memory.
void add_contexts(const std::vector<TokenId>& tokens, const std::vector<std::uint32_t>& generated, std::int32_t length,
                  std::vector<NgramCounts::Context>& contexts) {
  std::vector<Occurrence> occurrences;
  occurrences.reserve(generated.size());
  for (const std::uint32_t place : generated) {
    if (std::cmp_less(place, length)) continue;
    occurrences.push_back({NgramTable::hash_of(context_of(tokens, place, length)), tokens[place], place});
  }
  std::ranges::sort(occurrences);
  for (std::size_t begin = 0; begin < occurrences.size();) {
    std::size_t end = begin;
    while (end < occurrences.size() && occurrences[end].hash == occurrences[begin].hash) ++end;
    NgramCounts::Context context = count(std::span(occurrences).subspan(begin, end - begin));
    context.order = length;
    if (length > 1) context.shorter = NgramTable::hash_of(context_of(tokens, occurrences[begin].place, length - 1));
    contexts.push_back(context);
    begin = end;
  }
}

}  // namespace

NgramCounts::NgramCounts(std::span<const GeneratedText> texts, std::int32_t order) {
  std::vector<TokenId> tokens;
  std::vector<std::uint32_t> generated;  // places
  for (const GeneratedText& text : texts) {
    // No context reaches into the text before.
    const std::size_t first = std::max(text.num_prompt_tokens, static_cast<std::size_t>(order));
    for (std::size_t i = first; i < text.tokens.size(); ++i) {
      generated.push_back(static_cast<std::uint32_t>(tokens.size() + i));
    }
    tokens.insert(tokens.end(), text.tokens.begin(), text.tokens.end());
  }
  for (std::int32_t length = 1; length <= order; ++length) add_contexts(tokens, generated, length, contexts_);
  std::ranges::sort(contexts_, {}, &Context::hash);
}

const NgramCounts::Context* NgramCounts::find(std::uint64_t hash) const {
  const auto found = std::ranges::lower_bound(contexts_, hash, {}, &Context::hash);
  return found == contexts_.end() || found->hash != hash ? nullptr : &*found;
}

}  // namespace kvasir::spec
