// Answers under a grammar of tools, for tests: a token for each byte, and the control tokens.
#pragma once

#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "grammar/compile/compiled_grammar.h"
#include "grammar/match/matcher.h"
#include "grammar/regex/term_store.h"
#include "grammar/tags/tool_grammar.h"
#include "kvasir/result.h"

namespace kvasir::grammar {

class ToolAnswers {
 public:
  // `ends`: which control token ends answers. Tokens of several bytes may be given too.
  static Result<ToolAnswers> create(const ToolGuide& guide, const std::vector<std::string>& control_tokens,
                                    std::string_view ends = {}, const std::vector<std::string>& pieces = {},
                                    const AnswerText& text = {}) {
    std::vector<std::string> texts;
    for (int byte = 0; byte < 256; ++byte) texts.emplace_back(1, static_cast<char>(byte));
    texts.insert(texts.end(), pieces.begin(), pieces.end());
    ToolAnswers answers;
    for (const std::string& token : control_tokens) {
      answers.tokens_.push_back({token, static_cast<TokenId>(texts.size()), token == ends});
      texts.emplace_back();
    }
    answers.texts_ = texts;
    const std::vector<std::string_view> views(texts.begin(), texts.end());
    auto store = std::make_unique<TermStore>(kMaxToolTerms);
    KVASIR_TRY(Grammar grammar, grammar_of_tools(*store, guide, answers.tokens_, text));
    auto vocabulary = std::make_shared<const Vocabulary>(views);
    KVASIR_TRY(answers.grammar_, CompiledGrammar::create(std::move(store), std::move(grammar), std::move(vocabulary)));
    return answers;
  }

  // Control tokens stand in the text as such.
  bool accepts(std::string_view text) const {
    GrammarMatcher matcher(grammar_);
    while (!text.empty()) {
      const TokenId token = token_at(text);
      if (!matcher.accept(token)) return false;
      text.remove_prefix(token >= 256 ? text_of(token).size() : 1);
    }
    return matcher.is_accepting();
  }
  // How much of the text may begin an answer.
  std::size_t accepted_bytes(std::string_view text) const {
    GrammarMatcher matcher(grammar_);
    std::size_t size = 0;
    while (size < text.size()) {
      const TokenId token = token_at(text.substr(size));
      if (!matcher.accept(token)) break;
      size += token >= 256 ? text_of(token).size() : 1;
    }
    return size;
  }

  // A random answer; empty when none ended in time. Ends of texts and values are preferred, or it would take long: signs,
  // and these marks as a whole.
  std::string sample(std::mt19937& random, const std::vector<std::string>& marks = {}) const {
    constexpr std::string_view kEnds = "\"}])<>";
    GrammarMatcher matcher(grammar_);
    TokenMask mask(grammar_->vocabulary().num_tokens());
    std::string text;
    for (int step = 0; step < 20'000; ++step) {
      if (matcher.must_end() || (matcher.is_accepting() && random() % 8 == 0)) return text;
      if (!marks.empty() && random() % 8 == 0 && write(marks[random() % marks.size()], matcher, text)) continue;
      matcher.fill(mask);
      std::vector<TokenId> allowed, ends;
      for (TokenId token = 0; token < mask.num_tokens(); ++token) {
        if (!mask.test(token)) continue;
        allowed.push_back(token);
        if (token >= 256 || kEnds.contains(static_cast<char>(token))) ends.push_back(token);
      }
      if (allowed.empty()) return {};
      const bool prefers_end = !ends.empty() && random() % 3 != 0;
      const std::vector<TokenId>& from = prefers_end ? ends : allowed;
      const TokenId token = from[random() % from.size()];
      matcher.accept(token);
      text += text_of(token);
    }
    return {};
  }

  const CompiledGrammar& grammar() const { return *grammar_; }

 private:
  // Whether all of it may follow.
  bool write(std::string_view mark, GrammarMatcher& matcher, std::string& text) const {
    GrammarMatcher fork = matcher;
    for (std::string_view rest = mark; !rest.empty();) {
      const TokenId token = token_at(rest);
      if (!fork.accept(token)) return false;
      rest.remove_prefix(token >= 256 ? text_of(token).size() : 1);
    }
    matcher = fork;
    text += mark;
    return true;
  }
  TokenId token_at(std::string_view text) const {
    for (const ControlToken& token : tokens_) {
      if (text.starts_with(token.text)) return token.id;
    }
    return static_cast<unsigned char>(text.front());
  }
  std::string text_of(TokenId token) const {
    for (const ControlToken& control : tokens_) {
      if (control.id == token) return control.text;
    }
    return texts_[static_cast<std::size_t>(token)];
  }

  std::vector<std::string> texts_;  // by token
  std::vector<ControlToken> tokens_;
  std::shared_ptr<const CompiledGrammar> grammar_;
};

}  // namespace kvasir::grammar
