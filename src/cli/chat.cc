#include "cli/chat.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

#include "base/json_writer.h"
#include "base/units.h"
#include "cli/prompt.h"
#include "cli/standard_output.h"
#include "cli/verb.h"

namespace kvasir::cli {
namespace {

constexpr std::string_view kHelp =
    "/help        this list\n"
    "/clear       forget the conversation\n"
    "/stats       speed of the last answer, memory so far\n"
    "/save FILE   write the conversation as JSON\n"
    "/exit        leave (as Ctrl-D does)\n"
    "Ctrl-C stops an answer.\n";

std::string conversation_json(const std::vector<text::ChatMessage>& messages) {
  std::string out;
  JsonWriter json(out, JsonWriter::Style::kPretty);
  json.begin_array();
  for (const text::ChatMessage& message : messages) {
    json.begin_object().member("role", message.role).member("content", message.content).end_object();
  }
  json.end_array();
  return out + "\n";
}

}  // namespace

Chat::Chat(Engine& engine, BlockedSignals& signals, LineEditor& editor, ChatConfig config)
    : engine_(engine), signals_(signals), editor_(editor), config_(std::move(config)) {
  clear();
}

int Chat::run() {
  print("/help lists what you can do besides talking.\n");
  std::string line;
  while (true) {
    switch (editor_.read("> ", line)) {
      case LineEditor::Event::kEnd:
        print("\n");
        return finish_output();
      case LineEditor::Event::kDropped:
        continue;
      case LineEditor::Event::kLine:
        break;
    }
    if (line.empty()) continue;
    if (!line.starts_with('/')) {
      answer(line);
    } else if (!handle_command(line)) {
      return finish_output();
    }
  }
}

bool Chat::handle_command(std::string_view line) {
  const std::size_t space = line.find(' ');
  const std::string_view command = line.substr(0, space);
  const std::string argument(space == std::string_view::npos ? "" : line.substr(space + 1));
  if (command == "/exit" || command == "/quit") return false;
  if (command == "/help") {
    print(kHelp);
  } else if (command == "/clear") {
    clear();
  } else if (command == "/stats") {
    print_stats();
  } else if (command == "/save") {
    save(argument);
  } else {
    print(fmt::format("there is no {}; /help lists what there is\n", command));
  }
  return true;
}

void Chat::clear() {
  messages_.clear();
  if (!config_.system.empty()) messages_.push_back({"system", config_.system});
}

Result<std::vector<TokenId>> Chat::encode(const std::string& line) {
  if (config_.raw) return encode_raw(engine_, line, config_.parse_special);
  return encode_conversation(engine_, messages_);
}

void Chat::answer(const std::string& line) {
  messages_.push_back({"user", line});
  while (signals_.take()) continue;  // a Ctrl-C from before this question is not about its answer
  const auto generate_answer = [&]() -> Result<Generation> {
    Request request;
    KVASIR_TRY(request.prompt_token_ids, encode(line));
    request.kv = config_.kv;
    request.sampling = make_sampling_params(config_.sampling, std::ssize(request.prompt_token_ids),
                                            engine_.model_info().max_model_len_tokens);
    return generate(engine_, std::move(request), signals_, print);
  };
  auto generation = generate_answer();
  if (!generation) {
    report(generation.error());
    messages_.pop_back();
    return;
  }
  print(generation->finish_reason == FinishReason::kCancelled ? " [stopped]\n" : "\n");
  last_ = std::move(*generation);
  messages_.push_back({"assistant", last_.text});
}

void Chat::print_stats() const {
  const EngineStats stats = engine_.stats();
  print(fmt::format(
      "prompt       {} tokens, {} of them cached, {:.1f} tokens/s\n"
      "answer       {} tokens, first after {:.0f} ms, then {:.1f} tokens/s\n"
      "context      {} of {} tokens\n"
      "memory       {} at most so far, KV {} at most\n",
      last_.usage.prompt_tokens, last_.usage.cached_tokens, last_.prefill_tokens_per_s,
      last_.usage.completion_tokens, last_.ttft_ms, last_.decode_tokens_per_s,
      last_.usage.prompt_tokens + last_.usage.completion_tokens, engine_.model_info().max_model_len_tokens,
      format_bytes(stats.peak_rss_bytes), format_bytes(stats.kv_bytes_peak)));
}

void Chat::save(const std::string& path) const {
  if (path.empty()) return print("/save needs the name of a file\n");
  std::FILE* file = std::fopen(path.c_str(), "wb");
  int error = file == nullptr ? errno : 0;
  if (file != nullptr) {
    const std::string json = conversation_json(messages_);
    if (std::fwrite(json.data(), 1, json.size(), file) != json.size()) error = errno;
    if (std::fclose(file) != 0 && error == 0) error = errno;
  }
  print(error != 0 ? fmt::format("{}: cannot be written: {}\n", path, std::strerror(error))
                   : fmt::format("{} messages in {}\n", messages_.size(), path));
}

}  // namespace kvasir::cli
