// The commands of a chat.
#include <fmt/format.h>

#include <algorithm>
#include <random>
#include <utility>

#include "base/nearest_name.h"
#include "base/printable.h"
#include "base/text_file.h"
#include "base/units.h"
#include "base/utf8.h"
#include "cli/chat/chat.h"
#include "cli/chat/conversation_file.h"
#include "cli/chat/external_editor.h"
#include "cli/chat/notice.h"
#include "cli/input_file.h"

namespace kvasir::cli {
namespace {

constexpr std::size_t kMaxAttachmentBytes = std::size_t{4} << 20;
constexpr std::size_t kMaxAttachments = 16;

bool is_letter(char c) { return c >= 'a' && c <= 'z'; }

}  // namespace

struct Chat::Command {
  std::string_view name;      // with its slash
  std::string_view argument;  // as /help shows it
  std::string_view text;
  void (Chat::*run)(const std::string& argument);  // null: it leaves
  bool takes_file = false;
  bool is_in_help = true;
};

const std::vector<Chat::Command>& Chat::commands() {
  static const std::vector<Command> kCommands = {
      {"/help", "", "this list", &Chat::show_help},
      {"/clear", "", "forget the conversation; the system message stays", &Chat::clear},
      {"/undo", "", "take back the last question and its answer", &Chat::undo},
      {"/retry", "", "answer the last question again, with another seed", &Chat::retry},
      {"/edit", "[TEXT]", "write a message in $VISUAL or $EDITOR", &Chat::edit},
      {"/file", "FILE", "add a text file to the next message", &Chat::attach, true},
      {"/system", "[TEXT]", "set the system message (\"\": none), or show it", &Chat::show_or_set_system},
      {"/set", "[NAME [VALUE]]", "change how answers are made, or show what is set; VALUE default goes back",
       &Chat::show_or_set_parameters},
      {"/tokens", "", "how much of the context the conversation takes", &Chat::show_tokens},
      {"/stats", "", "speed of the last answer, memory so far", &Chat::show_stats},
      {"/model", "", "facts about the model", &Chat::show_model},
      {"/save", "FILE", "write the conversation as JSON", &Chat::save, true},
      {"/load", "FILE", "go on with a conversation that /save wrote", &Chat::load, true},
      {"/exit", "", "leave, as Ctrl-D does", nullptr},
      {"/quit", "", "leave", nullptr, false, false},
      {"/bye", "", "leave", nullptr, false, false},
  };
  return kCommands;
}

LineEditor::Completer Chat::make_completer() {
  std::vector<CompletableCommand> completable;
  for (const Command& command : commands()) {
    if (!command.is_in_help) continue;
    completable.push_back({command.name, command.takes_file, {}});
    if (command.name == "/set") completable.back().arguments = parameter_names();
  }
  return [completable = std::move(completable)](std::string_view line) {
    return complete_input(line, completable);
  };
}

// The path of a file is a message, and so are what begins with // and several lines that were pasted; only
// the text of /system may have so many.
bool Chat::is_command(std::string_view text) {
  if (!text.starts_with('/')) return false;
  const std::string_view word = text.substr(1, text.find_first_of(" \n") - 1);
  if (text.contains('\n') && word != "system") return false;
  return std::ranges::all_of(word, is_letter);
}

bool Chat::run_command(std::string_view text) {
  const std::size_t space = text.find_first_of(" \n");
  const std::string_view name = text.substr(0, space);
  const std::size_t begin = text.find_first_not_of(" \n", space);
  std::string argument(begin == text.npos ? std::string_view() : text.substr(begin));
  argument.erase(argument.find_last_not_of(" \n") + 1);
  const auto command = std::ranges::find(commands(), name, &Command::name);
  if (command == commands().end()) {
    std::vector<std::string_view> names;
    for (const Command& known : commands()) names.push_back(known.name);
    const std::string_view nearest = nearest_name(name, names);
    print_notice(fmt::format(
        "there is no {}; {}", printable(name),
        nearest.empty() ? "/help lists what there is" : fmt::format("did you mean {}?", nearest)));
    return true;
  }
  if (command->argument.empty() && !argument.empty()) {
    print_notice(fmt::format("{} takes nothing behind it", name));
    return true;
  }
  if (command->run == nullptr) return false;
  if (command->takes_file && argument.empty()) {
    print_notice(fmt::format("{} needs the name of a file", name));
  } else {
    (this->*command->run)(argument);
  }
  return true;
}

void Chat::show_help(const std::string& /*argument*/) {
  std::vector<NoticeEntry> entries;
  for (const Command& command : commands()) {
    if (!command.is_in_help) continue;
    const std::string_view space = command.argument.empty() ? "" : " ";
    entries.push_back(
        {fmt::format("{}{}{}", command.name, space, command.argument), std::string(command.text)});
  }
  entries.push_back({"\"\"\"", "begins and ends a message of several lines"});
  entries.push_back({"\\ or Alt-Enter", "at the end of a line: the message goes on in the next"});
  entries.push_back({"Tab", "completes commands and names of files"});
  entries.push_back({"Up, Down, Ctrl-R", "what you typed before; search in it"});
  entries.push_back({"Ctrl-C", "stops an answer; drops a line"});
  print_notice_list(entries);
}

void Chat::clear(const std::string& /*argument*/) {
  conversation_.clear();
  attachments_.clear();
  print_notice("the conversation is empty");
}

void Chat::undo(const std::string& /*argument*/) {
  auto question = conversation_.undo();
  if (!question) return print_notice("there is nothing to take back");
  std::ranges::replace(*question, '\n', ' ');
  print_notice(fmt::format("taken back: {}", printable(*question, 60)));
}

// A seed that was set counts up, so that retrying can be repeated too.
void Chat::retry(const std::string& /*argument*/) {
  const std::vector<Message> before = conversation_.messages();
  if (!conversation_.drop_answer()) return print_notice("there is nothing to answer again");
  if (parameters_.sampling.params.temperature == 0.0f) {
    print_notice("(temperature is 0: the answer will be the same; /set temperature 0.7 draws another)");
  }
  const auto base = parameters_.sampling.params.seed;
  const std::uint64_t seed = base ? *base + ++num_retries_ : std::random_device()();
  if (!answer(seed)) conversation_.replace(before);
}

void Chat::edit(const std::string& argument) {
  const auto text = edit_text(argument);
  if (!text) return print_notice(text.error().message);
  if (text->find_first_not_of(" \t\n") == std::string::npos) return print_notice("nothing was written");
  print_notice("> " + *text);
  remember(*text);
  say_to_model(*text);
}

void Chat::attach(const std::string& argument) {
  if (attachments_.size() == kMaxAttachments) {
    return print_notice(
        fmt::format("the limit is {} files for a message; /clear takes them away", kMaxAttachments));
  }
  const std::string path = expand_home(argument);
  if (const Status status = check_readable(path); !status) return print_notice(status.error().message);
  auto text = read_input_file(path, kMaxAttachmentBytes);
  if (!text) return print_notice(text.error().message);
  if (!is_valid_utf8(*text) || text->contains('\0')) {
    return print_notice(fmt::format("{}: is no text in UTF-8", printable_line(argument)));
  }
  const auto tokens = engine_.encode(*text);
  const std::size_t num_tokens = tokens ? tokens->size() : 0;
  print_notice(fmt::format("{} goes with your next message: {}, {} tokens", printable_line(argument),
                           format_bytes(std::ssize(*text)), num_tokens));
  attachments_.push_back({argument, std::move(*text)});
}

void Chat::show_or_set_system(const std::string& argument) {
  if (config_.raw) return print_notice("without a chat template there is no system message");
  if (argument.empty()) {
    return conversation_.system().empty() ? print_notice("no system message")
                                          : print_notice(conversation_.system());
  }
  const bool is_none = argument == "\"\"";
  conversation_.set_system(is_none ? std::string_view() : argument);
  print_notice(is_none ? "no system message from now on" : "the system message is set");
}

void Chat::show_or_set_parameters(const std::string& argument) {
  const std::size_t space = argument.find(' ');
  std::string name = argument.substr(0, space);
  std::ranges::replace(name, '-', '_');
  const std::size_t begin = std::min(argument.find_first_not_of(' ', space), argument.size());
  const std::string_view value =
      std::string_view(argument).substr(space == argument.npos ? argument.size() : begin);
  if (!value.empty()) {
    const Status status =
        set_parameter(name, value, config_.parameters, engine_.model_info().vocab_size, parameters_);
    if (!status) return print_notice(status.error().message);
  }
  std::vector<NoticeEntry> entries;
  for (const ParameterDescription& parameter : describe_parameters(parameters_)) {
    const bool is_shown = name.empty() || parameter.name == name;
    if (is_shown)
      entries.push_back({fmt::format("{:<20}{}", parameter.name, parameter.value), parameter.text});
  }
  print_notice_list(entries);
}

void Chat::show_tokens(const std::string& /*argument*/) {
  const std::int32_t context_tokens = engine_.model_info().max_model_len_tokens;
  std::size_t num_tokens = 0;
  if (conversation_.num_exchanges() > 0 || !conversation_.system().empty()) {
    const auto tokens = encode();
    if (!tokens) return print_notice(tokens.error().message);
    num_tokens = tokens->size();
  }
  print_notice(fmt::format("{} of {} tokens ({:.0f}%) in {} exchange{}", num_tokens, context_tokens,
                           100.0 * static_cast<double>(num_tokens) / context_tokens,
                           conversation_.num_exchanges(), conversation_.num_exchanges() == 1 ? "" : "s"));
}

void Chat::show_stats(const std::string& /*argument*/) {
  if (!last_) return print_notice("nothing has been answered yet");
  const EngineStats stats = engine_.stats();
  const Usage& usage = last_->usage;
  print_notice_list(
      {{"prompt", fmt::format("{} tokens, {} of them cached, {:.1f} tokens/s", usage.prompt_tokens,
                              usage.cached_tokens, last_->prefill_tokens_per_s)},
       {"answer", fmt::format("{} tokens, first after {:.0f} ms, then {:.1f} tokens/s",
                              usage.completion_tokens, last_->ttft_ms, last_->decode_tokens_per_s)},
       {"context", fmt::format("{} of {} tokens; /tokens adds what the template puts behind the answer",
                               usage.prompt_tokens + usage.completion_tokens,
                               engine_.model_info().max_model_len_tokens)},
       {"memory", fmt::format("{} at most so far, KV {} at most", format_bytes(stats.peak_rss_bytes),
                              format_bytes(stats.kv_bytes_peak))}});
}

void Chat::show_model(const std::string& /*argument*/) {
  const ModelInfo& model = engine_.model_info();
  std::int64_t kv_bytes_per_token = 0;
  for (const KvGroupInfo& group : model.kv_groups) kv_bytes_per_token += group.bytes_per_token;
  print_notice_list(
      {{"model", printable(config_.model)},
       {"name", printable(model.name)},
       {"architecture", printable(model.architecture)},
       {"quantization", model.quantization},
       {"parameters", fmt::format("{:.1f} million", static_cast<double>(model.num_parameters) / 1e6)},
       {"weights", format_bytes(model.weight_bytes)},
       {"layers", fmt::format("{} of width {}", model.num_layers, model.hidden_size)},
       {"vocabulary", fmt::format("{} tokens", model.vocab_size)},
       {"context", fmt::format("{} tokens here, trained for {}", model.max_model_len_tokens,
                               model.context_length_tokens)},
       {"KV", fmt::format("{} a token", format_bytes(kv_bytes_per_token))},
       {"chat template", config_.raw ? "no: each message is continued as it stands" : "yes"}});
}

void Chat::save(const std::string& argument) {
  const Status status = save_conversation(expand_home(argument), conversation_.messages());
  if (!status) return print_notice(status.error().message);
  print_notice(fmt::format("{} messages in {}", conversation_.messages().size(), printable_line(argument)));
}

void Chat::load(const std::string& argument) {
  auto messages = load_conversation(expand_home(argument));
  if (!messages) return print_notice(messages.error().message);
  const std::size_t num_messages = messages->size();
  const bool awaits_answer = num_messages > 0 && messages->back().role == "user";
  if (const auto error = conversation_.replace(std::move(*messages))) {
    return print_notice(fmt::format("{}: {}", printable_line(argument), *error));
  }
  attachments_.clear();
  print_notice(
      fmt::format("{} messages from {}; what was said here is gone", num_messages, printable_line(argument)));
  if (awaits_answer)
    print_notice("the last question has no answer yet: /retry answers it, another message takes its place");
}

}  // namespace kvasir::cli
