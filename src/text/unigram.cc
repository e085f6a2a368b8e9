#include "text/unigram.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/code_point.h"
#include "text/byte_tokens.h"

namespace kvasir::text {
namespace {

constexpr double kUnknownPenalty = 10;

ByteTrie trie_of(const Vocab& vocab, const std::vector<UnigramPiece>& pieces) {
  std::vector<std::pair<std::string_view, std::int32_t>> texts;
  texts.reserve(pieces.size());
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    texts.emplace_back(vocab.text(pieces[i].id), static_cast<std::int32_t>(i));
  }
  return ByteTrie(std::move(texts));
}

double least_score(const std::vector<UnigramPiece>& pieces) {
  double least = pieces.empty() ? 0 : std::numeric_limits<double>::max();
  for (const UnigramPiece& piece : pieces) least = std::min(least, piece.score);
  return least;
}

}  // namespace

UnigramModel::UnigramModel(const Vocab& vocab, const std::vector<UnigramPiece>& pieces,
                           UnigramOptions options)
    : options_(options),
      unknown_score_(options.min_score.value_or(least_score(pieces)) - kUnknownPenalty),
      trie_(trie_of(vocab, pieces)),
      pieces_(pieces) {
  if (options.byte_fallback) byte_tokens_ = find_byte_tokens(vocab);
}

std::vector<UnigramModel::Step> UnigramModel::best_steps(std::string_view word) const {
  std::vector<Step> best(word.size() + 1);
  best[0].is_reached = true;
  for (std::size_t begin = 0; begin < word.size();) {
    const std::size_t next = begin + code_point_at(word, begin).size_bytes;
    const double score_here = best[begin].score;
    const auto offer = [&](std::size_t end, double score, TokenId id) {
      if (best[end].is_reached && score_here + score <= best[end].score) return;
      best[end] = {score_here + score, begin, id, true};
    };
    bool has_single = false;
    trie_.for_each_prefix(word, begin, [&](std::size_t end, std::int32_t piece) {
      const UnigramPiece& found = pieces_[static_cast<std::size_t>(piece)];
      offer(end, found.score, found.id);
      has_single = has_single || end == next;
    });
    if (!has_single) offer(next, unknown_score_, options_.unknown);
    begin = next;
  }
  return best;
}

void UnigramModel::encode(std::string_view word, std::vector<TokenId>& ids) const {
  const std::vector<Step> best = best_steps(word);
  const std::size_t first = ids.size();
  // From the end on; the order of the ids, and of the bytes in an unknown text, is turned round at last.
  for (std::size_t end = word.size(); end > 0;) {
    std::size_t begin = best[end].begin;
    if (best[end].id != options_.unknown) {
      ids.push_back(best[end].id);
      end = begin;
      continue;
    }
    while (begin > 0 && best[begin].id == options_.unknown) begin = best[begin].begin;
    const std::size_t from = ids.size();
    append_unknown(word.substr(begin, end - begin), ids);
    std::reverse(ids.begin() + static_cast<std::ptrdiff_t>(from), ids.end());
    end = begin;
  }
  std::reverse(ids.begin() + static_cast<std::ptrdiff_t>(first), ids.end());
}

void UnigramModel::append_unknown(std::string_view text, std::vector<TokenId>& ids) const {
  if (!append_byte_tokens(byte_tokens_, text, ids) && options_.unknown != kNoToken)
    ids.push_back(options_.unknown);
}

}  // namespace kvasir::text
