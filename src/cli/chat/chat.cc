#include "cli/chat/chat.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/printable.h"
#include "cli/chat/message_assembler.h"
#include "cli/chat/notice.h"
#include "cli/markdown/display_width.h"
#include "cli/prompt.h"
#include "cli/prompt_progress.h"
#include "cli/standard_output.h"
#include "cli/terminal.h"
#include "cli/verb.h"

namespace kvasir::cli {
namespace {

constexpr std::string_view kPrompt = "> ";
constexpr std::string_view kMorePrompt = ". ";

// A fence that the text does not end.
std::string fence_for(std::string_view text) {
  std::string fence = "```";
  while (text.contains(fence)) fence += '`';
  return fence;
}

}  // namespace

Chat::Chat(Engine& engine, BlockedSignals& signals, ChatConfig config)
    : engine_(engine),
      signals_(signals),
      config_(std::move(config)),
      parameters_(config_.parameters),
      editor_(make_completer()) {
  conversation_.set_system(config_.system);
  if (config_.keeps_history) load_history();
}

void Chat::load_history() {
  const auto path = HistoryFile::default_path();
  if (!path) return;
  HistoryFile file(*path);
  const auto messages = file.load();
  if (!messages) return say("kvasir: " + messages.error().message);
  for (const std::string& message : *messages) editor_.remember(message);
  history_ = std::move(file);
}

int Chat::run() {
  if (!config_.quiet) {
    print_notice(fmt::format("{}, {} tokens of context. /help lists what you can do.",
                             printable(config_.model), engine_.model_info().max_model_len_tokens));
  }
  bool was_interrupted = false;
  while (true) {
    Input input;
    switch (read_input(input)) {
      case LineEditor::Event::kEnd:
        print("\n");
        return finish_output();
      case LineEditor::Event::kInterrupted:
        if (was_interrupted) return finish_output(kExitInterrupted);
        print_notice("(once more leaves, as Ctrl-D does)");
        was_interrupted = true;
        continue;
      case LineEditor::Event::kDropped:
        was_interrupted = false;
        continue;
      case LineEditor::Event::kLine:
        was_interrupted = false;
    }
    if (input.text.find_first_not_of(" \t\n") == std::string::npos) continue;
    remember(input.text);
    if (input.is_block || !is_command(input.text)) {
      say_to_model(std::move(input.text));
    } else if (!run_command(input.text)) {
      return finish_output();
    }
  }
}

LineEditor::Event Chat::read_input(Input& input) {
  MessageAssembler message;
  std::string line;
  do {
    const std::string prompt(message.is_empty() ? kPrompt : kMorePrompt);
    const LineEditor::Event event = editor_.read(prompt, line);
    if (event == LineEditor::Event::kInterrupted && !message.is_empty()) return LineEditor::Event::kDropped;
    if (event != LineEditor::Event::kLine) return event;
  } while (!message.add(line));
  input = {message.text(), message.is_block()};
  return LineEditor::Event::kLine;
}

void Chat::remember(const std::string& message) {
  editor_.remember(message);
  if (!history_) return;
  if (const Status status = history_->append(message); !status) {
    say("kvasir: " + status.error().message);
    history_.reset();
  }
}

void Chat::say_to_model(std::string message) {
  if (conversation_.awaits_answer()) conversation_.undo();  // it came from a file
  conversation_.ask(with_attachments(std::move(message)));
  num_retries_ = 0;
  if (answer()) {
    attachments_.clear();
  } else {
    conversation_.undo();
  }
}

std::string Chat::with_attachments(std::string message) const {
  std::string text;
  for (const Attachment& file : attachments_) {
    const std::string fence = fence_for(file.text);
    const std::string_view newline = file.text.ends_with('\n') ? "" : "\n";
    text += fmt::format("{}:\n{}\n{}{}{}\n\n", file.path, fence, file.text, newline, fence);
  }
  return text + std::move(message);
}

Result<std::vector<TokenId>> Chat::encode() const {
  if (config_.raw) {
    const std::vector<Message>& messages = conversation_.messages();
    return encode_raw(engine_, messages.empty() ? "" : messages.back().content, config_.parse_special);
  }
  std::vector<text::ChatMessage> messages;
  for (const Message& message : conversation_.messages()) messages.push_back({message.role, message.content});
  return encode_conversation(engine_, messages);
}

Result<Generation> Chat::generate_answer(std::optional<std::uint64_t> seed) {
  Request request;
  KVASIR_TRY(request.prompt_token_ids, encode());
  const std::int64_t prompt_tokens = std::ssize(request.prompt_token_ids);
  const std::int32_t context_tokens = engine_.model_info().max_model_len_tokens;
  if (prompt_tokens >= context_tokens) {
    const bool is_one_message = conversation_.num_exchanges() == 1 || config_.raw;
    return make_error(
        ErrorKind::kUnmet,
        is_one_message
            ? fmt::format("the message takes {} tokens of a context of {}: it must be shorter", prompt_tokens,
                          context_tokens)
            : fmt::format(
                  "the conversation would take {} tokens of a context of {} and stays without your last "
                  "message: /undo takes back the exchange before, /clear forgets all",
                  prompt_tokens, context_tokens));
  }
  request.kv = parameters_.kv;
  request.adapter = adapter_of(engine_);
  request.sampling = make_sampling_params(parameters_.sampling, prompt_tokens, context_tokens);
  request.sampling.max_tokens = static_cast<std::int32_t>(
      std::min<std::int64_t>(*request.sampling.max_tokens, context_tokens - prompt_tokens));
  if (seed) request.sampling.seed = seed;

  while (signals_.take()) continue;  // a Ctrl-C from before this question is not about its answer
  const HiddenTyping hidden;
  const auto view = make_answer_view(config_.format);
  PromptProgress progress(config_.quiet);
  const auto generation = generate(
      engine_, std::move(request), signals_,
      [&](std::string_view piece) {
        progress.clear();
        view->write(piece);
      },
      progress.sink());
  progress.clear();
  if (generation) view->finish();
  return generation;
}

bool Chat::answer(std::optional<std::uint64_t> seed) {
  auto generation = generate_answer(seed);
  if (!generation) {
    print_notice(generation.error().message);
    return false;
  }
  const bool was_stopped = generation->finish_reason == FinishReason::kCancelled;
  if (was_stopped && generation->text.empty()) {
    print_notice("[stopped before the answer began: the conversation is as it was]");
    return false;
  }
  conversation_.answer(generation->text, was_stopped);
  report_end(*generation);
  last_ = std::move(*generation);
  return true;
}

void Chat::report_end(const Generation& generation) const {
  const std::int32_t num_tokens = generation.usage.prompt_tokens + generation.usage.completion_tokens;
  const std::int32_t context_tokens = engine_.model_info().max_model_len_tokens;
  if (generation.finish_reason == FinishReason::kCancelled) {
    print_notice("[stopped]");
  } else if (generation.finish_reason == FinishReason::kLength && num_tokens >= context_tokens) {
    print_notice(fmt::format(
        "[the context is full, {} of {} tokens: /undo takes back the last exchange, /clear forgets "
        "all]",
        num_tokens, context_tokens));
  } else if (generation.finish_reason == FinishReason::kLength) {
    print_notice(fmt::format("[cut after {} tokens: /set max_tokens N allows more]",
                             generation.usage.completion_tokens));
  }
  if (!config_.verbose) return;
  say(fmt::format(
      "prompt {} tokens, {} of them cached, at {:.1f}/s; answer {} tokens at {:.1f}/s, first after "
      "{:.0f} ms",
      generation.usage.prompt_tokens, generation.usage.cached_tokens, generation.prefill_tokens_per_s,
      generation.usage.completion_tokens, generation.decode_tokens_per_s, generation.ttft_ms));
}

}  // namespace kvasir::cli
