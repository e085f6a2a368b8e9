#include "engine/guide_compiler.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <string_view>
#include <vector>

#include "base/process_memory.h"
#include "engine/guide_grammar.h"
#include "grammar/tags/tool_grammar.h"
#include "grammar/token_vocabulary.h"

namespace kvasir {
namespace {

constexpr int kNiceness = 10;  // of the thread: the engine's go first

std::string key_of(const ToolGuide& tools) {
  std::string key = fmt::format("|{}:{}{}{}:{}", tools.family, tools.is_demanded, tools.is_parallel,
                                tools.starts_in_thoughts, tools.prompt_mark);
  for (const auto& [open, close] : tools.thoughts) key += fmt::format("|{}:{}", open, close);
  for (const GuideTool& tool : tools.tools) {
    key += fmt::format("|{}:{}{}:{}", tool.name.size(), tool.name, tool.schema.size(), tool.schema);
    for (const std::string& argument : tool.text_arguments) key += fmt::format("{}:{}", argument.size(), argument);
  }
  return key;
}

std::string key_of(const Guide& guide) {
  std::string key = fmt::format("{}{}{}:{}:{}", static_cast<int>(guide.kind), guide.is_strict, guide.is_compact,
                                guide.text.size(), guide.text);
  for (const std::string& choice : guide.choices) key += fmt::format("{}:{}", choice.size(), choice);
  for (const std::string& text : guide.excluded) key += fmt::format("-{}:{}", text.size(), text);
  if (guide.reasoning) {
    key += fmt::format("|{}:{}{}", guide.reasoning->open.size(), guide.reasoning->open, guide.reasoning->close);
  }
  if (guide.tools) key += key_of(*guide.tools);
  return key;
}

// Keywords that a schema is refused for, so that there are no more series than these.
constexpr std::array kKeywords = std::to_array<std::string_view>(
    {"$dynamicRef", "$recursiveRef", "$ref", "additionalProperties", "allOf", "anyOf", "const", "contains",
     "dependencies", "dependentSchemas", "enum", "format", "if", "items", "maxLength", "maxProperties", "minLength",
     "minProperties", "multipleOf", "not", "oneOf", "pattern", "patternProperties", "properties", "propertyNames",
     "required", "type", "unevaluatedItems", "unevaluatedProperties", "uniqueItems"});

// The last keyword of the JSON pointer that the message begins with.
std::string_view keyword_of(const Guide& guide, std::string_view message) {
  if (guide.kind == Guide::Kind::kRegex) return "regex";
  if (guide.kind == Guide::Kind::kChoice) return "choice";
  if (guide.tools) return "tools";
  if (guide.kind == Guide::Kind::kText) return "text";
  if (guide.kind != Guide::Kind::kJsonSchema) return "grammar";
  std::string_view pointer = message.substr(0, message.find(": "));
  if (pointer.starts_with("'")) pointer = pointer.substr(1, pointer.size() - 2);
  while (pointer.contains('/')) {
    const std::size_t slash = pointer.rfind('/');
    const auto found = std::ranges::find(kKeywords, pointer.substr(slash + 1));
    if (found != kKeywords.end()) return *found;
    pointer = pointer.substr(0, slash);
  }
  return "other";
}

Error closed_error() { return {ErrorKind::kUnavailable, "the server is shutting down"}; }

// The same error, of the field.
std::unexpected<Error> of_field(const Guide& guide, Error error) {
  return make_error(error.kind, guide.field + ": " + error.message, guide.field);
}

}  // namespace

void GuideCompiler::close() {
  const std::lock_guard closing(closing_);
  std::deque<Job> waiting;
  {
    const std::lock_guard lock(mutex_);
    is_closed_ = true;
    waiting.swap(waiting_);
  }
  thread_.request_stop();
  if (thread_.joinable()) thread_.join();
  for (Job& job : waiting) job.sink(std::unexpected(closed_error()));
}

std::shared_ptr<const grammar::Vocabulary> GuideCompiler::vocabulary() {
  std::call_once(vocabulary_made_, [this] { vocabulary_ = grammar::make_vocabulary(*tokenizer_, part_bytes_); });
  return vocabulary_;
}

bool GuideCompiler::is_mine(const grammar::CompiledGrammar& guide) {
  return tokenizer_ != nullptr && &guide.vocabulary() == vocabulary().get();
}

CompiledGuide GuideCompiler::find(const std::string& key, std::string_view tenant) {
  const std::lock_guard lock(mutex_);
  CompiledGuide found = cache_.find(key, tenant);
  if (found != nullptr) ++num_known_;
  return found;
}

CompiledGuide GuideCompiler::renewed(const CompiledGuide& guide) {
  const std::lock_guard lock(mutex_);
  return cache_.renew(guide);
}

Result<CompiledGuide> GuideCompiler::compile(const Guide& guide, std::string_view tenant) {
  std::string key = key_of(guide);
  if (CompiledGuide kept = find(key, tenant)) return kept;
  return compile_anew(guide, std::move(key), tenant);
}

Result<CompiledGuide> GuideCompiler::compile_anew(const Guide& guide, std::string key, std::string_view tenant) {
  {
    const std::lock_guard lock(mutex_);
    if (!cache_.has_room()) {
      return of_field(guide, {ErrorKind::kUnavailable, "guides of running requests take all of --guide-memory"});
    }
  }
  const auto begin = std::chrono::steady_clock::now();
  auto compiled = try_compile(guide);
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  std::unique_lock lock(mutex_);
  if (!compiled) {
    ++num_refused_;
    ++refusals_[std::string(keyword_of(guide, compiled.error().message))];
    return of_field(guide, std::move(compiled).error());
  }
  ++num_compiled_;
  compile_seconds_ += seconds.count();
  const std::int64_t lost_bytes = cache_.add(std::move(key), tenant, *compiled);
  // Compiling takes about as much besides, and frees it.
  const auto scratch_bytes = static_cast<std::int64_t>((*compiled)->size_bytes());
  freed_bytes_ += lost_bytes + scratch_bytes;
  const bool is_trim_due = freed_bytes_ >= max_bytes_ / 4;
  if (is_trim_due) freed_bytes_ = 0;
  lock.unlock();
  if (is_trim_due) trim_heap();
  return compiled;
}

// Errors without the guide's field.
Result<CompiledGuide> GuideCompiler::try_compile(const Guide& guide) {
  if (tokenizer_ == nullptr) {
    return make_error(ErrorKind::kUsage, "the model has no tokenizer, so that no answer can be guided");
  }
  auto store = guide.tools ? std::make_unique<grammar::TermStore>(grammar::kMaxToolTerms)
                           : std::make_unique<grammar::TermStore>();
  KVASIR_TRY(GuideGrammar rules, grammar_of(guide, *tokenizer_, *store));
  KVASIR_TRY(CompiledGuide compiled,
             grammar::CompiledGrammar::create(std::move(store), std::move(rules.grammar), vocabulary(), {},
                                              std::move(rules.ignored)));
  if (compiled->must_end(compiled->start())) return make_error(ErrorKind::kUsage, "only the empty text fulfils it");
  return compiled;
}

void GuideCompiler::describe(EngineStats& stats) const {
  const std::lock_guard lock(mutex_);
  stats.num_guides_compiled = num_compiled_;
  stats.num_guides_known = num_known_;
  stats.num_guides_refused = num_refused_;
  stats.guide_compile_seconds_total = compile_seconds_;
  stats.guide_bytes = cache_.bytes();
  stats.guide_refusals.clear();
  for (const auto& [keyword, count] : refusals_) stats.guide_refusals.push_back({keyword, count});
}

void GuideCompiler::prepare(const Guide& guide, std::string_view tenant, std::stop_token stop,
                            Engine::GuideSink sink) {
  if (CompiledGuide kept = find(key_of(guide), tenant)) return sink(std::move(kept));
  Job job = {guide, std::string(tenant), std::move(stop), std::move(sink)};
  if (Status queued = enqueue(job); !queued) job.sink(std::unexpected(std::move(queued).error()));
}

// With an error the job is still the caller's.
Status GuideCompiler::enqueue(Job& job) {
  {
    const std::lock_guard lock(mutex_);
    if (is_closed_) return std::unexpected(closed_error());
    if (waiting_.size() >= kMaxWaiting) {
      return of_field(job.guide, {ErrorKind::kUnavailable,
                                  fmt::format("{} guides wait to be compiled, which is the limit", kMaxWaiting)});
    }
    if (!thread_.joinable()) thread_ = std::jthread([this](const std::stop_token& ends) { run(ends); });
    waiting_.push_back(std::move(job));
  }
  changed_.notify_one();
  return {};
}

void GuideCompiler::run(const std::stop_token& stop) {
  ::setpriority(PRIO_PROCESS, 0, kNiceness);  // of this thread alone, on Linux
  while (true) {
    std::unique_lock lock(mutex_);
    if (!changed_.wait(lock, stop, [this] { return !waiting_.empty(); })) return;
    if (stop.stop_requested()) return;
    const Job job = std::move(waiting_.front());
    waiting_.pop_front();
    lock.unlock();
    job.sink(job.stop.stop_requested() ? make_error(ErrorKind::kCancelled, "the client has left")
                                       : compile(job.guide, job.tenant));
  }
}

}  // namespace kvasir
