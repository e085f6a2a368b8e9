/* Answers a text with a model, inside this process: answer MODEL.gguf TEXT
 *
 *   cmake --install build/release --prefix /opt/kvasir --component development
 *   export PKG_CONFIG_PATH=/opt/kvasir/lib/pkgconfig
 *   cc -std=c99 examples/c/answer.c -o answer $(pkg-config --cflags --libs kvasir) -Wl,-rpath,/opt/kvasir/lib */
#include <kvasir/kvasir.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { kMaxPromptTokens = 4096, kMaxEmbedding = 65536 };

static int failed(const char* what) {
  fprintf(stderr, "answer: %s: %s\n", what, kvasir_last_error());
  return 1;
}

static void print_piece(const kvasir_piece* piece, void* user) {
  size_t* num_tokens = user;
  *num_tokens += piece->num_token_ids;
  fwrite(piece->text, 1, piece->text_bytes, stdout);
}

static int answer(kvasir_engine* engine, const int32_t* prompt, size_t num_prompt_tokens) {
  kvasir_sampling sampling = kvasir_default_sampling();
  kvasir_request* request = NULL;
  size_t num_tokens = 0;
  sampling.temperature = 0.0f;
  sampling.max_tokens = 32;
  if (kvasir_submit(engine, prompt, num_prompt_tokens, &sampling, print_piece, &num_tokens, &request) !=
      KVASIR_OK)
    return failed("submit");
  if (kvasir_finish(request) != KVASIR_OK) return failed("answer");
  printf("\n%lu tokens\n", (unsigned long)num_tokens);
  return 0;
}

static int embed(kvasir_engine* engine, const int32_t* prompt, size_t num_prompt_tokens) {
  static float vector[kMaxEmbedding];
  size_t size = 0;
  if (kvasir_embed(engine, prompt, num_prompt_tokens, KVASIR_POOLING_MEAN, vector, kMaxEmbedding, &size) !=
      KVASIR_OK)
    return failed("embed");
  printf("an embedding of %lu numbers, the first %.4f\n", (unsigned long)size, vector[0]);
  return 0;
}

int main(int argc, char** argv) {
  static int32_t prompt[kMaxPromptTokens];
  kvasir_engine* engine = NULL;
  size_t num_prompt_tokens = 0;
  int result = 0;
  if (argc != 3) {
    fputs("usage: answer MODEL.gguf TEXT\n", stderr);
    return 2;
  }
  if (kvasir_load(argv[1], NULL, &engine) != KVASIR_OK) return failed("load");
  if (kvasir_tokenize(engine, argv[2], strlen(argv[2]), prompt, kMaxPromptTokens, &num_prompt_tokens) !=
      KVASIR_OK)
    result = failed("tokenize");
  if (result == 0) result = answer(engine, prompt, num_prompt_tokens);
  if (result == 0) result = embed(engine, prompt, num_prompt_tokens);
  kvasir_free(engine);
  return result;
}
