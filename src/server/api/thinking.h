// What a request wishes about thinking. Templates decide: each reads other variables, and many read none.
#pragma once

#include <string_view>
#include <utility>
#include <vector>

#include "server/api/chat_request.h"

namespace kvasir::server::api {

// How hard to think, by OpenAI's and Anthropic's words; "none" is not at all.
void read_effort(const FieldInput& field, std::string_view effort, ChatRequest& request);
// The rows of OpenAI's `reasoning_effort` and OpenRouter's and OpenAI's `reasoning`.
ApiStatus read_reasoning_effort(const FieldInput& field, ChatRequest& request);
ApiStatus read_reasoning(const FieldInput& field, ChatRequest& request);
// The row of `thinking` as Anthropic's, DeepSeek's and GLM's clients say it.
ApiStatus read_thinking(const FieldInput& field, ChatRequest& request);
// The row of vLLM's and Qwen's `enable_thinking`.
ApiStatus read_enable_thinking(const FieldInput& field, ChatRequest& request);
// The row of Ollama's `think`.
ApiStatus read_think(const FieldInput& field, ChatRequest& request);
// The rows of the names that a budget in tokens has.
ApiStatus read_thinking_budget(const FieldInput& field, ChatRequest& request);
// The rows of vLLM's `include_reasoning`, and of llama.cpp's and Groq's `reasoning_format`.
ApiStatus read_include_reasoning(const FieldInput& field, ChatRequest& request);
ApiStatus read_reasoning_format(const FieldInput& field, ChatRequest& request);

// The request's variables for the template of that source: chat_template_kwargs, which win, and what was said about
// thinking in every word that templates have for it.
std::vector<std::pair<std::string, jinja::Value>> template_variables(const ChatRequest& request,
                                                                     std::string_view source);
// Whether a template of that source has a word for thinking.
bool knows_thinking(std::string_view source);
// Names each wish about thinking that the template does not read.
void warn_unread_wishes(const ThinkingWish& wish, std::string_view source, Warnings& warnings);

}  // namespace kvasir::server::api
