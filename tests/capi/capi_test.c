/* The C API as a C99 program meets it: capi_test MODEL.gguf. Exit code 1 and a line for each expectation that
 * fails. */
#include <kvasir/kvasir.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { kMaxTokens = 256, kMaxText = 4096 };

static int num_failures = 0;

#define EXPECT(condition)                                                                                  \
  do {                                                                                                     \
    if (!(condition)) {                                                                                    \
      ++num_failures;                                                                                      \
      fprintf(stderr, "%s:%d: %s; last error: %s\n", __FILE__, __LINE__, #condition, kvasir_last_error()); \
    }                                                                                                      \
  } while (0)

typedef struct Answer {
  char text[kMaxText];
  size_t text_bytes;
  int32_t token_ids[kMaxTokens];
  size_t num_token_ids;
  int num_last_pieces;
  kvasir_finish_reason finish_reason;
} Answer;

static void collect(const kvasir_piece* piece, void* user) {
  Answer* answer = user;
  size_t i;
  if (answer->text_bytes + piece->text_bytes < kMaxText) {
    memcpy(answer->text + answer->text_bytes, piece->text, piece->text_bytes);
    answer->text_bytes += piece->text_bytes;
  }
  for (i = 0; i < piece->num_token_ids && answer->num_token_ids < kMaxTokens; ++i)
    answer->token_ids[answer->num_token_ids++] = piece->token_ids[i];
  if (piece->finish_reason == KVASIR_RUNNING) return;
  ++answer->num_last_pieces;
  answer->finish_reason = piece->finish_reason;
}

/* Generates from "the quick"; the way it ended. */
static kvasir_result generate(kvasir_engine* engine, const kvasir_sampling* sampling, Answer* answer) {
  int32_t prompt[kMaxTokens];
  size_t num_prompt_tokens = 0;
  kvasir_request* request = NULL;
  kvasir_result result;
  memset(answer, 0, sizeof *answer);
  result = kvasir_tokenize(engine, "the quick", 9, prompt, kMaxTokens, &num_prompt_tokens);
  if (result == KVASIR_OK)
    result = kvasir_submit(engine, prompt, num_prompt_tokens, sampling, collect, answer, &request);
  return result == KVASIR_OK ? kvasir_finish(request) : result;
}

static void test_loading(const char* path) {
  kvasir_engine* engine = NULL;
  kvasir_settings settings = kvasir_default_settings();
  EXPECT(strcmp(kvasir_last_error(), "") == 0);
  EXPECT(strchr(kvasir_version(), '.') != NULL);
  EXPECT(kvasir_load("/no/such/file.gguf", NULL, &engine) == KVASIR_BAD_FILE);
  EXPECT(strstr(kvasir_last_error(), "/no/such/file.gguf") != NULL);
  EXPECT(kvasir_load(NULL, NULL, &engine) == KVASIR_USAGE);
  EXPECT(strcmp(kvasir_last_error(), "path: is NULL") == 0);
  EXPECT(kvasir_load("", NULL, &engine) == KVASIR_USAGE);
  EXPECT(strcmp(kvasir_last_error(), "path: is empty") == 0);
  EXPECT(kvasir_load(path, NULL, NULL) == KVASIR_USAGE);
  settings.max_num_seqs = 0;
  EXPECT(kvasir_load(path, &settings, &engine) == KVASIR_USAGE);
  settings = kvasir_default_settings();
  settings.kv_type = "f8";
  EXPECT(kvasir_load(path, &settings, &engine) == KVASIR_USAGE);
  EXPECT(strcmp(kvasir_last_error(), "kv_type: must be q12, f16 or f32, is 'f8'") == 0);
  settings = kvasir_default_settings();
  settings.ctx_tokens = 1 << 27;
  EXPECT(kvasir_load(path, &settings, &engine) == KVASIR_USAGE);
  settings = kvasir_default_settings();
  settings.chat_template = "{% if";
  EXPECT(kvasir_load(path, &settings, &engine) != KVASIR_OK);
  EXPECT(engine == NULL);
  kvasir_free(NULL);
}

static void test_tokens(kvasir_engine* engine) {
  const char* text = "the quick brown fox";
  const int32_t foreign[] = {-1, 1 << 30};
  int32_t ids[kMaxTokens];
  char back[kMaxText];
  size_t count = 0, again = 0, i;
  EXPECT(kvasir_tokenize(engine, text, strlen(text), NULL, 0, &count) == KVASIR_LIMIT);
  EXPECT(count > 0 && count < kMaxTokens);
  EXPECT(kvasir_tokenize(engine, text, strlen(text), NULL, count, &again) == KVASIR_USAGE);
  EXPECT(kvasir_tokenize(engine, text, strlen(text), ids, kMaxTokens, &again) == KVASIR_OK);
  EXPECT(again == count);
  EXPECT(kvasir_detokenize(engine, ids, count, NULL, 0, &again) == KVASIR_LIMIT);
  EXPECT(kvasir_detokenize(engine, ids, count, back, kMaxText, &again) == KVASIR_OK);
  EXPECT(again == strlen(text) && memcmp(back, text, again) == 0);
  for (i = 0; i < 2; ++i) {
    EXPECT(kvasir_detokenize(engine, &foreign[i], 1, back, kMaxText, &again) == KVASIR_USAGE);
    EXPECT(strstr(kvasir_last_error(), "token_ids: ") == kvasir_last_error());
  }
  EXPECT(kvasir_tokenize(engine, NULL, 3, ids, kMaxTokens, &again) == KVASIR_USAGE);
  EXPECT(kvasir_tokenize(engine, text, (size_t)-1, ids, kMaxTokens, &again) == KVASIR_USAGE);
  EXPECT(strstr(kvasir_last_error(), "text_bytes: must be at most 2147483647, is ") == kvasir_last_error());
  EXPECT(kvasir_detokenize(engine, ids, (size_t)-1, back, kMaxText, &again) == KVASIR_USAGE);
  EXPECT(strstr(kvasir_last_error(), "num_token_ids: ") == kvasir_last_error());
  EXPECT(kvasir_tokenize(NULL, text, 3, ids, kMaxTokens, &again) == KVASIR_USAGE);
  EXPECT(kvasir_tokenize(engine, text, 3, ids, kMaxTokens, NULL) == KVASIR_USAGE);
}

static void test_chat(kvasir_engine* engine, int has_template) {
  int32_t ids[kMaxTokens];
  size_t count = 0;
  const char* messages = "[{\"role\":\"user\",\"content\":\"hi\"}]";
  const kvasir_result result = kvasir_chat_prompt(engine, messages, ids, kMaxTokens, &count);
  EXPECT(result == (has_template ? KVASIR_OK : KVASIR_USAGE));
  EXPECT(!has_template || count > 2);
  EXPECT(kvasir_chat_prompt(engine, "[", ids, kMaxTokens, &count) == KVASIR_USAGE);
  EXPECT(kvasir_chat_prompt(engine, "[{\"role\":\"user\"}]", ids, kMaxTokens, &count) == KVASIR_USAGE);
}

static void test_answers(kvasir_engine* engine) {
  static Answer answer, again;
  const double all = 1.0;
  kvasir_sampling sampling = kvasir_default_sampling();
  const char* stop[1];
  char letter[2] = {0, 0};
  size_t at = 0;
  sampling.temperature = 0.0f;
  sampling.max_tokens = 24;
  sampling.ignore_eos = 1;
  EXPECT(generate(engine, &sampling, &answer) == KVASIR_OK);
  EXPECT(answer.num_token_ids == 24 && answer.num_last_pieces == 1);
  EXPECT(answer.finish_reason == KVASIR_FINISH_LENGTH && answer.text_bytes > 0);
  EXPECT(generate(engine, &sampling, &again) == KVASIR_OK);
  EXPECT(memcmp(answer.token_ids, again.token_ids, sizeof answer.token_ids) == 0);

  while (at < answer.text_bytes && (answer.text[at] & 0x80) != 0) ++at; /* an ASCII letter ends a text alone */
  EXPECT(at < answer.text_bytes);
  letter[0] = answer.text[at];
  stop[0] = letter;
  sampling.stop = stop;
  sampling.num_stop = 1;
  EXPECT(generate(engine, &sampling, &again) == KVASIR_OK);
  EXPECT(again.finish_reason == KVASIR_FINISH_STOP && again.text_bytes <= at);
  sampling.num_stop = 0;

  sampling.temperature = 1.0f;
  sampling.has_seed = 1;
  sampling.seed = 7;
  EXPECT(generate(engine, &sampling, &answer) == KVASIR_OK);
  EXPECT(generate(engine, &sampling, &again) == KVASIR_OK);
  EXPECT(memcmp(answer.token_ids, again.token_ids, sizeof answer.token_ids) == 0);
  sampling.kv_policy = "ladder";
  sampling.kv_budget = "50%";
  sampling.kv_quality = "best_effort";
  sampling.kv_max_lost_share = &all;
  EXPECT(sampling.kv_learn == 1); /* as kvasir_default_sampling says */
  sampling.kv_learn = 0;
  EXPECT(generate(engine, &sampling, &answer) == KVASIR_OK);
}

static void test_guides(kvasir_engine* engine) {
  static Answer answer;
  const char* choices[] = {"yes", "no"};
  kvasir_sampling sampling = kvasir_default_sampling();
  sampling.max_tokens = 40;
  sampling.choices = choices;
  sampling.num_choices = 2;
  EXPECT(generate(engine, &sampling, &answer) == KVASIR_OK);
  EXPECT(answer.finish_reason == KVASIR_FINISH_STOP);
  EXPECT((answer.text_bytes == 3 && memcmp(answer.text, "yes", 3) == 0) ||
         (answer.text_bytes == 2 && memcmp(answer.text, "no", 2) == 0));
  sampling.num_choices = 0;
  sampling.regex = "[0-9]{3}";
  EXPECT(generate(engine, &sampling, &answer) == KVASIR_OK);
  EXPECT(answer.text_bytes == 3 && answer.text[0] >= '0' && answer.text[2] <= '9');
  sampling.json_schema = "{\"type\":\"boolean\"}";
  EXPECT(generate(engine, &sampling, &answer) == KVASIR_USAGE);
  EXPECT(strstr(kvasir_last_error(), "an answer has one form") != NULL);
  sampling.regex = NULL;
  EXPECT(generate(engine, &sampling, &answer) == KVASIR_OK);
  EXPECT(answer.text_bytes == 4 || answer.text_bytes == 5);
  sampling.json_schema = "{\"type\":\"none\"}";
  EXPECT(generate(engine, &sampling, &answer) == KVASIR_USAGE);
  EXPECT(strstr(kvasir_last_error(), "json_schema: ") == kvasir_last_error());
  sampling.json_schema = NULL;
  sampling.num_choices = 2;
  sampling.choices = NULL;
  EXPECT(generate(engine, &sampling, &answer) == KVASIR_USAGE);
}

static void test_bad_requests(kvasir_engine* engine) {
  static Answer answer;
  const int32_t foreign = 1 << 30, first = 0;
  const double too_much = 1.5;
  kvasir_request* request = NULL;
  kvasir_sampling sampling = kvasir_default_sampling();
  sampling.top_p = 2.0f;
  EXPECT(generate(engine, &sampling, &answer) == KVASIR_USAGE);
  EXPECT(strstr(kvasir_last_error(), "top_p") != NULL);
  sampling = kvasir_default_sampling();
  sampling.max_tokens = 1 << 30;
  EXPECT(generate(engine, &sampling, &answer) == KVASIR_LIMIT);
  sampling.max_tokens = -7;
  EXPECT(generate(engine, &sampling, &answer) == KVASIR_USAGE);
  EXPECT(strcmp(kvasir_last_error(), "max_tokens: must be at least -1, is -7") == 0);
  sampling = kvasir_default_sampling();
  sampling.num_stop = 1;
  EXPECT(generate(engine, &sampling, &answer) == KVASIR_USAGE);
  sampling.num_stop = (size_t)-1;
  EXPECT(generate(engine, &sampling, &answer) == KVASIR_USAGE);
  EXPECT(strstr(kvasir_last_error(), "num_stop: must be at most ") == kvasir_last_error());
  sampling = kvasir_default_sampling();
  sampling.kv_budget = "much";
  EXPECT(generate(engine, &sampling, &answer) == KVASIR_USAGE);
  EXPECT(strstr(kvasir_last_error(), "kv_budget: must be a share") == kvasir_last_error());
  sampling.kv_budget = NULL;
  sampling.kv_quality = "good";
  EXPECT(generate(engine, &sampling, &answer) == KVASIR_USAGE);
  sampling.kv_quality = NULL;
  sampling.kv_max_lost_share = &too_much;
  EXPECT(generate(engine, &sampling, &answer) == KVASIR_USAGE);
  EXPECT(strstr(kvasir_last_error(), "kv_max_lost_share: must be at least 0") == kvasir_last_error());
  sampling.kv_max_lost_share = NULL;
  sampling.kv_policy = "none of them";
  EXPECT(generate(engine, &sampling, &answer) == KVASIR_USAGE);
  EXPECT(kvasir_submit(engine, &foreign, 1, NULL, collect, &answer, &request) == KVASIR_USAGE);
  EXPECT(kvasir_submit(engine, &first, 0, NULL, collect, &answer, &request) == KVASIR_USAGE);
  EXPECT(kvasir_submit(engine, &first, (size_t)-1, NULL, collect, &answer, &request) == KVASIR_USAGE);
  EXPECT(kvasir_submit(engine, NULL, 1, NULL, collect, &answer, &request) == KVASIR_USAGE);
  EXPECT(kvasir_submit(engine, &first, 1, NULL, NULL, &answer, &request) == KVASIR_USAGE);
  EXPECT(kvasir_submit(NULL, &first, 1, NULL, collect, &answer, &request) == KVASIR_USAGE);
  EXPECT(request == NULL);
  EXPECT(kvasir_finish(NULL) == KVASIR_USAGE);
  kvasir_cancel(NULL);
}

static void test_embedding(kvasir_engine* engine) {
  static float vector[kMaxText];
  int32_t ids[kMaxTokens];
  size_t num_ids = 0, size = 0, needed = 0, i;
  double square = 0.0;
  EXPECT(kvasir_tokenize(engine, "the quick", 9, ids, kMaxTokens, &num_ids) == KVASIR_OK);
  EXPECT(kvasir_embed(engine, ids, num_ids, KVASIR_POOLING_LAST, NULL, 0, &needed) == KVASIR_LIMIT);
  EXPECT(kvasir_embed(engine, ids, num_ids, KVASIR_POOLING_MEAN, vector, kMaxText, &size) == KVASIR_OK);
  EXPECT(size == needed && size > 0);
  for (i = 0; i < size; ++i) square += (double)vector[i] * vector[i];
  EXPECT(square > 0.999 && square < 1.001);
  EXPECT(kvasir_embed(engine, ids, num_ids, (kvasir_pooling)0, vector, kMaxText, &size) == KVASIR_USAGE);
}

/* One is cancelled, one is left to kvasir_free; both get their last piece, once. */
static void test_ends(kvasir_engine* engine, const char* path) {
  static Answer first, second;
  const int32_t prompt = 5;
  kvasir_engine* other = NULL;
  kvasir_request *cancelled = NULL, *left = NULL;
  kvasir_sampling sampling = kvasir_default_sampling();
  kvasir_settings settings = kvasir_default_settings();
  settings.threads = 1;
  sampling.ignore_eos = 1;
  EXPECT(kvasir_load(path, &settings, &other) == KVASIR_OK);
  EXPECT(kvasir_submit(engine, &prompt, 1, &sampling, collect, &first, &cancelled) == KVASIR_OK);
  EXPECT(kvasir_submit(other, &prompt, 1, &sampling, collect, &second, &left) == KVASIR_OK);
  kvasir_cancel(cancelled);
  EXPECT(kvasir_finish(cancelled) == KVASIR_CANCELLED);
  EXPECT(first.num_last_pieces == 1 && first.finish_reason == KVASIR_FINISH_CANCELLED);
  kvasir_free(other);
  EXPECT(second.num_last_pieces == 1 && second.finish_reason == KVASIR_FINISH_CANCELLED);
  kvasir_cancel(left);
  EXPECT(kvasir_finish(left) == KVASIR_CANCELLED);
}

int main(int argc, char** argv) {
  kvasir_engine* engine = NULL;
  if (argc != 2) {
    fputs("usage: capi_test MODEL.gguf\n", stderr);
    return 2;
  }
  test_loading(argv[1]);
  EXPECT(kvasir_load(argv[1], NULL, &engine) == KVASIR_OK);
  if (engine == NULL) return 1;
  test_tokens(engine);
  test_chat(engine, strstr(argv[1], "gemma") == NULL);
  test_answers(engine);
  test_guides(engine);
  test_bad_requests(engine);
  test_embedding(engine);
  test_ends(engine, argv[1]);
  kvasir_free(engine);
  if (num_failures == 0) puts("all expectations hold");
  return num_failures == 0 ? 0 : 1;
}
