/* Kvasir's engine for C and for every language that can call C: load a model, talk to it, inside this
 * process.
 *
 * Rules that hold for all functions:
 * - Whatever a function returns through a pointer to a pointer belongs to the caller, who gives it back with
 * the function named there. Arguments are only read during the call, unless the function says otherwise.
 * - A function that can fail returns a kvasir_result; what it should have written is then unspecified, and
 *   kvasir_last_error() has one line about it. Bad input, a null pointer included, is an error and never
 * more.
 * - Any thread may call any function at any time, but nothing may be given back while another thread uses it.
 * - Texts are UTF-8. Token ids count from 0.
 * The soname changes whenever a struct or a function does. */
#ifndef KVASIR_KVASIR_H
#define KVASIR_KVASIR_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct kvasir_engine kvasir_engine;   /* a loaded model and a thread that runs requests on it */
typedef struct kvasir_request kvasir_request; /* one request, from kvasir_submit to kvasir_finish */

typedef enum kvasir_result {
  KVASIR_OK = 0,
  KVASIR_USAGE = 1,       /* a wrong value */
  KVASIR_BAD_FILE = 2,    /* the model is missing, broken or unsupported */
  KVASIR_LIMIT = 3,       /* well-formed, but beyond a limit such as the context */
  KVASIR_MACHINE = 4,     /* memory, permission, disk */
  KVASIR_UNAVAILABLE = 5, /* the queue is full, or the engine ends: try again later or elsewhere */
  KVASIR_CANCELLED = 6,   /* the request was cancelled; what it had until then was delivered */
  KVASIR_INTERNAL = 7     /* our own fault */
} kvasir_result;

/* About this thread's last call that failed: one line that names the thing, the limit and the value; "" when
 * none has. The library's; valid until the thread's next call that fails. */
const char* kvasir_last_error(void);

/* "0.1.0". The library's. */
const char* kvasir_version(void);

typedef struct kvasir_settings {
  int32_t threads;      /* 0: physical cores that this process may use */
  int32_t ctx_tokens;   /* most tokens of prompt and answer together; 0: what the model was trained for */
  int64_t memory_bytes; /* for weights, keys and values, and work; 0: half of what is free, more for a large model */
  int32_t max_num_seqs; /* requests that run at once */
  int32_t fast;         /* not 0: weights as bytes, faster prompts, not the file's numbers */
  const char* kv_type;  /* "q12", "f16" or "f32"; NULL: q12 */
  int32_t prefix_cache; /* 0: every prompt is computed from its start */
  const char* chat_template; /* instead of the model's own; NULL: the model's own */
} kvasir_settings;

kvasir_settings kvasir_default_settings(void);

/* Loads the .gguf file, or the folder of safetensors, at `path`. `settings` may be NULL: the defaults. *engine is given back with
 * kvasir_free. */
kvasir_result kvasir_load(const char* path, const kvasir_settings* settings, kvasir_engine** engine);

/* Cancels what runs, delivers the last piece of each, and frees the engine. Its requests are still to be
 * given back with kvasir_finish. Does nothing with NULL. Not to be called from a callback. */
void kvasir_free(kvasir_engine* engine);

/* The next three write at most `capacity` items and set *count to how many there are, so a call with
 * capacity 0 (and a NULL buffer) asks for the size. KVASIR_LIMIT: the buffer is too small. Their inputs, and
 * prompts, are below 2^31 items. */

/* The tokens of a text of `text_bytes` bytes, BOS in front where the model wants one. */
kvasir_result kvasir_tokenize(const kvasir_engine* engine, const char* text, size_t text_bytes,
                              int32_t* token_ids, size_t capacity, size_t* count);

/* The text of tokens, in bytes, without a final 0; control tokens have none. A part of a character stays one.
 */
kvasir_result kvasir_detokenize(const kvasir_engine* engine, const int32_t* token_ids, size_t num_token_ids,
                                char* text, size_t capacity, size_t* count);

/* The tokens of a conversation, by the model's chat template, up to where the answer begins. `messages_json`
 * is an array of objects with role and content, terminated by 0. */
kvasir_result kvasir_chat_prompt(const kvasir_engine* engine, const char* messages_json, int32_t* token_ids,
                                 size_t capacity, size_t* count);

typedef struct kvasir_sampling {
  int32_t max_tokens; /* -1: as many as the context holds */
  int32_t min_tokens;
  float temperature;        /* 0: always the most likely token */
  int32_t top_k;            /* 0: off */
  float top_p;              /* 1: off */
  float min_p;              /* 0: off */
  float repetition_penalty; /* 1: off */
  float presence_penalty;
  float frequency_penalty;
  int32_t has_seed; /* 0: a seed is drawn */
  uint64_t seed;
  int32_t ignore_eos;
  const char* const* stop; /* texts that end the answer and are left out */
  size_t num_stop;
  const char* kv_policy;  /* NULL: the engine's default */
  const char* kv_budget;  /* "0.3", "30%" or "64MiB"; NULL: all */
  const char* kv_quality; /* "exact", "gate" or "best_effort"; NULL: gate */
  /* The most of a head's attention that later tokens may be expected to pay to what is dropped, 0 to 1; NULL: kv_quality's. */
  const double* kv_max_lost_share;
  int32_t kv_learn; /* 0: nothing is learned from this request, whatever its server learns from others; 1 by default */
  /* The form of the answer, one of four at most (docs/GUIDED.md). */
  const char* json_schema;    /* it satisfies this JSON Schema; NULL: no such form */
  const char* regex;          /* the whole answer matches; NULL: no such form */
  const char* grammar;        /* it is of this grammar, in GBNF; NULL: no such form */
  const char* const* choices; /* it is one of these */
  size_t num_choices;
} kvasir_sampling;

kvasir_sampling kvasir_default_sampling(void);

typedef enum kvasir_finish_reason {
  KVASIR_RUNNING = 0,          /* more pieces follow */
  KVASIR_FINISH_STOP = 1,      /* the model's own end, or a stop text */
  KVASIR_FINISH_LENGTH = 2,    /* max_tokens, or the context is full */
  KVASIR_FINISH_CANCELLED = 3, /* by kvasir_cancel or kvasir_free */
  KVASIR_FINISH_ERROR = 4      /* kvasir_finish says which */
} kvasir_finish_reason;

/* What one step made of an answer. The library's; valid during the callback. */
typedef struct kvasir_piece {
  const char* text; /* whole characters, possibly none: the text may lag behind the tokens; a 0 follows it */
  size_t text_bytes;
  const int32_t* token_ids;
  size_t num_token_ids;
  kvasir_finish_reason finish_reason; /* not KVASIR_RUNNING in the last piece, and only there */
} kvasir_piece;

/* Called on the engine's thread, for one piece after the other: be quick, do not block, and call nothing of
 * this library. */
typedef void (*kvasir_on_piece)(const kvasir_piece* piece, void* user);

/* Queues a request; pieces go to `on_piece` with `user` from now on, possibly before this returns. `sampling`
 * may be NULL: the defaults. *request is given back with kvasir_finish. */
kvasir_result kvasir_submit(kvasir_engine* engine, const int32_t* prompt, size_t num_prompt_tokens,
                            const kvasir_sampling* sampling, kvasir_on_piece on_piece, void* user,
                            kvasir_request** request);

/* Ends a request within a step; its last piece still comes. Does nothing with NULL or when it has ended. */
void kvasir_cancel(kvasir_request* request);

/* Waits for the last piece and frees the request. How it ended: KVASIR_OK, KVASIR_CANCELLED or an error. Not
 * to be called from a callback. */
kvasir_result kvasir_finish(kvasir_request* request);

typedef enum kvasir_pooling {
  KVASIR_POOLING_MEAN = 1,    /* of the hidden states of all tokens */
  KVASIR_POOLING_LAST = 2,    /* the last token's */
  KVASIR_POOLING_OF_MODEL = 3 /* as the model's file says, else the mean; of a cross-encoder its scores */
} kvasir_pooling;

/* The embedding of a prompt, of length 1 unless it is scores. Blocks until it is computed. `vector`, `capacity` and `count` as
 * above. */
kvasir_result kvasir_embed(kvasir_engine* engine, const int32_t* prompt, size_t num_prompt_tokens,
                           kvasir_pooling pooling, float* vector, size_t capacity, size_t* count);

#ifdef __cplusplus
}
#endif

#endif
