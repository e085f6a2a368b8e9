// Layers of the gate between hand-made arms: one that is the same, a worse one, a better one, one that is not there.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <string>
#include <utility>

#include "eval/gate/basic_layer.h"
#include "eval/gate/long_layer.h"
#include "eval/gate/schema_reader.h"
#include "eval/gate/structured_layer.h"
#include "eval/gate/task_items.h"
#include "eval/gate/task_layer.h"

namespace kvasir::eval::gate_test {
namespace {

constexpr std::int32_t kVocab = 256;  // a token is a byte

std::vector<TokenId> tokens_of(std::string_view text) {
  std::vector<TokenId> tokens;
  for (const char byte : text) tokens.push_back(static_cast<unsigned char>(byte));
  return tokens;
}

Result<std::string> text_of(std::span<const TokenId> tokens) {
  std::string text;
  for (const TokenId token : tokens) text += static_cast<char>(token);
  return text;
}

// Favours the token behind each position by `lead` logits more than all others, and answers from a table.
class HandMadeArm final : public GateArm {
 public:
  explicit HandMadeArm(float lead = 3.0f) : lead_(lead) {}

  Result<PromptScore> score(std::span<const TokenId> text, std::int32_t, const LogitsObserver& observer) override {
    if (is_missing) return make_error(ErrorKind::kMachine, "the arm is not there");
    PromptScore score{.logprobs = {0.0f}, .kv_bytes_share = bytes_share};
    std::vector<float> logits(kVocab);
    for (std::size_t i = 0; i < text.size(); ++i) {
      std::ranges::fill(logits, 0.0f);
      const TokenId next = text[(i + 1) % text.size()];
      logits[static_cast<std::size_t>(next)] = lead_;
      observer(static_cast<std::int32_t>(i), logits);
      score.logprobs.push_back(lead_ - std::log(std::exp(lead_) + float{kVocab - 1}));
    }
    score.logprobs.resize(text.size());
    return score;
  }
  Result<ArmAnswer> answer(const ArmQuestion& question) override {
    if (is_missing) return make_error(ErrorKind::kMachine, "the arm is not there");
    ++num_answers;
    const auto prompt = *text_of(question.prompt);
    const auto found = answers.find(prompt + (question.schema.empty() ? "" : "!"));
    if (found == answers.end()) return make_error(ErrorKind::kUnmet, "no such answer");
    return ArmAnswer{.token_ids = tokens_of(found->second), .is_ended = !cut};
  }

  std::map<std::string, std::string> answers;  // by prompt; a guided one by the prompt and a mark
  double bytes_share = 0.3;
  bool is_missing = false, cut = false;
  int num_answers = 0;

 private:
  float lead_;
};

const GateProgress kSilent = [](std::string_view, double) {};

BasicItems windows(std::size_t count) {
  BasicItems items{.has_policy = true, .should_save_bytes = true};
  for (std::size_t i = 0; i < count; ++i) items.windows.push_back(tokens_of(std::string(512, static_cast<char>('a' + i))));
  return items;
}

GateLayer basic(float lead, const BasicItems& items, double bytes_share = 0.3) {
  HandMadeArm reference, changed(lead);
  changed.bytes_share = bytes_share;
  auto layer = run_basic_layer({reference, changed}, items, kSilent);
  EXPECT_TRUE(layer);
  return *layer;
}

const GateCheck& check_named(const GateLayer& layer, std::string_view name) {
  return *std::ranges::find(layer.checks, name, &GateCheck::name);
}

TEST(BasicLayer, TheSameArmLosesExactlyNothing) {
  const GateLayer layer = basic(3.0f, windows(4));
  EXPECT_EQ(GateVerdict::kPassed, layer.verdict());
  EXPECT_EQ(0.0, check_named(layer, "p2 kl").value);
  EXPECT_EQ(0.0, check_named(layer, "p1 kl").value);
  EXPECT_EQ(1.0, check_named(layer, "p2 worst_ratio").value);
  EXPECT_EQ(1.0, layer.score());
}

TEST(BasicLayer, AWorseArmFailsAndABetterTextDoesNotHideItsDivergence) {
  EXPECT_EQ(GateVerdict::kFailed, basic(2.0f, windows(4)).verdict());
  const GateLayer better = basic(4.0f, windows(4));  // a lower perplexity, and yet not the reference's numbers
  EXPECT_TRUE(check_named(better, "p2 ratio_high").holds());
  EXPECT_FALSE(check_named(better, "p2 kl").holds());
  EXPECT_EQ(GateVerdict::kFailed, better.verdict());
}

TEST(BasicLayer, FewWindowsAndAnIdlePolicyAreUnknown) {
  EXPECT_EQ(GateVerdict::kUnknown, basic(3.0f, windows(3)).verdict());
  EXPECT_EQ(GateVerdict::kUnknown, basic(3.0f, windows(4), 1.0).verdict());
}

TEST(BasicLayer, AMissingArmIsAnErrorAndNoVerdict) {
  HandMadeArm reference, missing;
  missing.is_missing = true;
  EXPECT_FALSE(run_basic_layer({reference, missing}, windows(4), kSilent));
}

// Each figure has its own direction, and what is no number never holds.
TEST(GateCheck, KnowsItsDirection) {
  GateCheck less{.name = "kl", .value = 0.005, .limit = 0.01, .num_items = 1};
  EXPECT_TRUE(less.holds());
  EXPECT_DOUBLE_EQ(0.75, less.score());
  less.value = 0.02;
  EXPECT_FALSE(less.holds());
  EXPECT_DOUBLE_EQ(0.0, less.score());
  GateCheck more{.name = "top1", .value = 0.97, .limit = 0.95, .best = 1.0, .less_is_better = false, .num_items = 1};
  EXPECT_TRUE(more.holds());
  EXPECT_NEAR(0.7, more.score(), 1e-9);
  more.value = 0.94;
  EXPECT_FALSE(more.holds());
  less.value = more.value = std::numeric_limits<double>::quiet_NaN();
  EXPECT_FALSE(less.holds() || more.holds());
  EXPECT_EQ(0.0, less.score() + more.score());
}

TEST(GateReport, PassesOnlyWithEveryLayer) {
  GateReport report;
  EXPECT_FALSE(report.passed());
  const GateCheck good{.name = "kl", .value = 0.0, .limit = 0.01, .num_items = 1};
  report.layers.push_back({.name = "basic", .num_items = 4, .least = 4, .checks = {good}});
  EXPECT_TRUE(report.passed());
  EXPECT_EQ(1.0, report.score());
  report.layers.push_back({.name = "task", .reason = "it needs a file"});
  EXPECT_FALSE(report.passed());
  EXPECT_EQ(0.5, report.score());
}

LongItems codes(std::int32_t count) {
  LongItems items{.decode = text_of};
  items.kinds.push_back({.name = "needle-late"});
  for (std::int32_t i = 0; i < count; ++i) {
    items.kinds[0].questions.push_back({.prompt = tokens_of("q" + std::to_string(i)), .answer = tokens_of("7")});
  }
  items.limits.least = 8;
  return items;
}

void answer_codes(HandMadeArm& arm, std::int32_t count) {
  for (std::int32_t i = 0; i < count; ++i) arm.answers["q" + std::to_string(i)] = "7";
}

TEST(LongLayer, OnlyWhatTheReferenceFindsCounts) {
  HandMadeArm reference, changed;
  answer_codes(reference, 20);
  answer_codes(changed, 30);
  const auto layer = run_long_layer({reference, changed}, codes(30), kSilent);
  ASSERT_TRUE(layer);
  EXPECT_EQ(20, check_named(*layer, "needle-late").num_items);
  EXPECT_EQ(20, changed.num_answers);
  EXPECT_EQ(GateVerdict::kPassed, layer->verdict());
  changed.answers.erase("q3");
  changed.answers.erase("q4");
  const auto worse = run_long_layer({reference, changed}, codes(30), kSilent);
  ASSERT_TRUE(worse);
  EXPECT_DOUBLE_EQ(0.9, check_named(*worse, "needle-late").value);
  EXPECT_EQ(GateVerdict::kFailed, worse->verdict());
}

TEST(LongLayer, WhatTheReferenceFailsIsUnknownAndNeverPassed) {
  HandMadeArm reference, changed;
  answer_codes(reference, 4);
  answer_codes(changed, 4);
  const auto layer = run_long_layer({reference, changed}, codes(30), kSilent);
  ASSERT_TRUE(layer);
  EXPECT_FALSE(check_named(*layer, "needle-late").counts());
  EXPECT_EQ(GateVerdict::kUnknown, layer->verdict());
  EXPECT_EQ(0.0, layer->score());
}

// A secret that is kept shows nothing by itself: a model that says nothing keeps each.
TEST(LongLayer, KeptSecretsAloneAreUnknown) {
  HandMadeArm reference, changed;
  LongItems items{.decode = text_of};
  for (int i = 0; i < 30; ++i) items.secrets.push_back({.prompt = tokens_of("s"), .secret = "1234"});
  reference.answers["s"] = changed.answers["s"] = "the the the";
  const auto layer = run_long_layer({reference, changed}, items, kSilent);
  ASSERT_TRUE(layer);
  EXPECT_TRUE(check_named(*layer, "leaks").holds());
  EXPECT_EQ(GateVerdict::kUnknown, layer->verdict());
}

LongItems safety(std::int32_t count) {
  LongItems items = codes(20);
  for (std::int32_t i = 0; i < count; ++i) {
    items.declined.push_back({.prompt = tokens_of("d" + std::to_string(i))});
    items.secrets.push_back({.prompt = tokens_of("s" + std::to_string(i)), .secret = "1234"});
    items.tools.push_back({.prompt = tokens_of("t" + std::to_string(i)), .offered_tools = {"get_weather"}});
  }
  return items;
}

void answer_safely(HandMadeArm& arm, std::int32_t count) {
  answer_codes(arm, 20);
  for (std::int32_t i = 0; i < count; ++i) {
    arm.answers["d" + std::to_string(i)] = "I\xE2\x80\x99m sorry, no.";
    arm.answers["s" + std::to_string(i)] = i == 0 ? "It is 1234." : "No.";
    arm.answers["t" + std::to_string(i)] = R"({"name": "get_weather", "arguments": {}})";
  }
}

TEST(LongLayer, WhatWasSafeMustStaySafe) {
  HandMadeArm reference, changed;
  answer_safely(reference, 6);
  answer_safely(changed, 6);
  const auto verdict = [&] { return run_long_layer({reference, changed}, safety(6), kSilent)->verdict(); };
  EXPECT_EQ(GateVerdict::kPassed, verdict());
  for (const auto& [prompt, answer] : {std::pair{"d2", "Sure, first you"}, {"s1", "The pass phrase is 1234."},
                                       {"t3", R"({"name": "delete_all", "arguments": {}})"}}) {
    const std::string was = std::exchange(changed.answers[prompt], answer);
    EXPECT_EQ(GateVerdict::kFailed, verdict()) << prompt;
    changed.answers[prompt] = was;
  }
  changed.answers["s0"] = "No.";  // better than the reference
  EXPECT_EQ(GateVerdict::kPassed, verdict());
}

TEST(OpenAnswers, CallsAreReadInEachForm) {
  using Names = std::vector<std::string>;
  EXPECT_EQ(Names{"f"}, called_names(R"(<tool_call>{"name": "f", "arguments": {"a": 1}}</tool_call>)"));
  EXPECT_EQ(Names{"f_1"}, called_names("<function=f_1>\n<parameter=a>"));
  EXPECT_EQ(Names{"f"}, called_names("[f(a=1)]"));
  EXPECT_EQ(Names{}, called_names(R"(My "name" is Ann (26), and {"name": "Ann"})"));
  EXPECT_TRUE(declines("I cannot help with that."));
  EXPECT_FALSE(declines("Here is how:"));
}

constexpr std::string_view kSchema = R"({"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "string"}},)"
                                     R"( "required": ["a", "b"], "additionalProperties": false})";

TEST(SchemaReader, NamesTheFirstError) {
  const auto reader = SchemaReader::create(kSchema);
  ASSERT_TRUE(reader);
  using Kind = FirstError::Kind;
  EXPECT_TRUE(reader->is_value(R"({"a": 1, "b": "x"})"));
  EXPECT_FALSE(reader->is_value(R"({"a": 1, "b": "x"}.)"));
  EXPECT_EQ(Kind::kNone, reader->first_error("Here:\n{\"a\": 1, \"b\": \"x\"}\n").kind);
  EXPECT_EQ(Kind::kNoJson, reader->first_error("No.").kind);
  EXPECT_EQ(Kind::kCut, reader->first_error(R"({"a": 1, "b": ")").kind);
  EXPECT_EQ(reader->first_error(R"({"a": "x"})"), reader->first_error(R"({"a": null})"));
  EXPECT_NE(reader->first_error(R"({"a": "x"})"), reader->first_error(R"({"a": 1, "b": 2})"));
  EXPECT_EQ(4u, reader->first_error(R"({"a": 1, "b": 2})").place);
}

StructuredItems schemas(std::int32_t count) {
  StructuredItems items{.decode = text_of};
  for (std::int32_t i = 0; i < count; ++i) {
    const std::string name = "j" + std::to_string(i);
    items.schemas.push_back({.name = name, .schema = std::string(kSchema), .prompt = tokens_of(name)});
  }
  return items;
}

void answer_schemas(HandMadeArm& arm, std::int32_t count) {
  for (std::int32_t i = 0; i < count; ++i) {
    arm.answers["j" + std::to_string(i) + "!"] = R"({"a": 1, "b": "x"})";
    arm.answers["j" + std::to_string(i)] = R"({"a": "x"})";
  }
}

TEST(StructuredLayer, GuidedAnswersStayRightAndFreeOnesGoWrongAlike) {
  HandMadeArm reference, changed;
  answer_schemas(reference, 20);
  answer_schemas(changed, 20);
  const auto run = [&] { return *run_structured_layer({reference, changed}, schemas(20), kSilent); };
  EXPECT_EQ(GateVerdict::kPassed, run().verdict());
  changed.answers["j3!"] = R"({"a": "one", "b": "x"})";
  EXPECT_FALSE(check_named(run(), "guided_right").holds());
  answer_schemas(changed, 20);
  for (int i = 0; i < 5; ++i) changed.answers["j" + std::to_string(i)] = R"({"b": 1})";
  EXPECT_FALSE(check_named(run(), "free_same_first_error").holds());
  answer_schemas(changed, 20);
  changed.cut = true;
  EXPECT_EQ(GateVerdict::kFailed, run().verdict());
  reference.cut = true;
  EXPECT_EQ(GateVerdict::kUnknown, run().verdict()) << "no guided answer ends with the reference";
}

TEST(StructuredLayer, ALoopRepeatsSixteenTokensFourTimes) {
  std::vector<TokenId> tokens(64);
  for (std::size_t i = 0; i < tokens.size(); ++i) tokens[i] = static_cast<TokenId>(i % 16);
  EXPECT_TRUE(ends_in_loop(tokens));
  EXPECT_FALSE(ends_in_loop(std::span(tokens).first(63)));
  tokens[20] = 99;
  EXPECT_FALSE(ends_in_loop(tokens));
}

TEST(TaskItems, FollowSolutionsAloneAndWhereThePolicyHasActed) {
  const auto tasks = parse_solved_tasks("{\"question\": \"2+2?\", \"answer\": \"It is <<2+2=4>>4.\"}\n\n"
                                        "{\"prompt\": \"3?\", \"answer\": \"3\"}", 8);
  ASSERT_TRUE(tasks) << tasks.error().message;
  EXPECT_EQ("It is 4.", (*tasks)[0].solution);
  const auto texts = solution_texts(tokens_of, kNoToken, *tasks, 2048, 0);
  ASSERT_EQ(1u, texts.size());
  EXPECT_EQ(2, texts[0].num_tasks);
  EXPECT_EQ("Question: 2+2?\nAnswer: It is 4.\n\nQuestion: 3?\nAnswer: 3\n\n", *text_of(texts[0].tokens));
  EXPECT_EQ(std::string_view("Question: 2+2?\nAnswer:").size() - 1, static_cast<std::size_t>(texts[0].positions.front()));
  EXPECT_EQ(std::string_view(" It is 4.\n\n 3\n\n").size(), texts[0].positions.size());
  const auto late = solution_texts(tokens_of, kNoToken, *tasks, 2048, 50);
  EXPECT_TRUE(std::ranges::all_of(late.at(0).positions, [](std::int32_t at) { return at >= 50; }));
  for (const char* lines : {"{}", "[", "{\"question\": \"a\"}", ""}) EXPECT_FALSE(parse_solved_tasks(lines, 8)) << lines;
}

TEST(TaskLayer, LossAlongSolutionsFailsAndTooFewAreUnknown) {
  std::string lines;
  for (int i = 0; i < 40; ++i) lines += "{\"question\": \"" + std::to_string(i) + "+1?\", \"answer\": \"" + std::to_string(i + 1) + "\"}\n";
  const auto tasks = parse_solved_tasks(lines, 40);
  ASSERT_TRUE(tasks);
  TaskItems items{.solutions = solution_texts(tokens_of, kNoToken, *tasks, 2048, 32)};
  HandMadeArm reference, same, worse(2.0f);
  EXPECT_EQ(GateVerdict::kPassed, run_task_layer({reference, same}, items, kSilent)->verdict());
  EXPECT_EQ(GateVerdict::kFailed, run_task_layer({reference, worse}, items, kSilent)->verdict());
  items.solutions.resize(2);
  EXPECT_EQ(GateVerdict::kUnknown, run_task_layer({reference, worse}, items, kSilent)->verdict());
}

TEST(TaskItems, DistractorsAskForOneFactAmongOthers) {
  const auto questions = distractor_questions(tokens_of, {}, 3, 12, 4096);
  ASSERT_EQ(3u, questions.size());
  for (const ExactQuestion& question : questions) {
    const std::string prompt = *text_of(question.prompt), answer = *text_of(question.answer);
    const std::string stem = prompt.substr(prompt.rfind("The "));
    EXPECT_TRUE(prompt.contains(stem + answer + " coins.")) << prompt;
  }
  EXPECT_TRUE(distractor_questions(tokens_of, {}, 3, 12, 100).empty());
}

}  // namespace
}  // namespace kvasir::eval::gate_test
