"""Bodies as clients write them, by kind. A row is (name, {API: members of the body}, words of the warning or None).

APIs: c chats, p completions, r responses, m messages. Members of `ALL` go to each."""

OBJECT = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
HELLO = [{"role": "user", "content": "hi"}]
WEATHER = {"name": "weather", "description": "The weather.", "parameters": OBJECT}


def each(apis, **members):
    return {api: members for api in apis}


def chat_tools(*tools, **more):
    return {"c": {"tools": [*tools], **more}}


def function(**changes):
    return {"type": "function", "function": WEATHER | changes}


def flat(**changes):
    return {"type": "function"} | WEATHER | changes


def anthropic_tool(**changes):
    return {"name": "weather", "description": "The weather.", "input_schema": OBJECT} | changes


def chat(*messages):
    return {"c": {"messages": [*messages]}}


def items(*items):
    return {"r": {"input": [*items]}}


def turns(*messages, **more):
    return {"m": {"messages": [*messages], **more}}


def user(content):
    return {"role": "user", "content": content}


def assistant(content=None, **more):
    return {"role": "assistant", "content": content, **more}


def call(arguments='{"city": "Rome"}', **more):
    return {"id": "call_1", "type": "function", "function": {"name": "weather", "arguments": arguments}} | more


def tool(content="sunny", **more):
    return {"role": "tool", "tool_call_id": "call_1", "content": content} | more


# Kind 1: wishes that change nothing of what was demanded.
WISHES = [
    ("strict tools", chat_tools(function(strict=True)) | {"r": {"tools": [flat(strict=True)]}, "m": {"tools": [anthropic_tool(strict=True)]}}, None),
    ("strict null", chat_tools(function(strict=None)) | {"r": {"tools": [flat(strict=None)]}, "m": {"tools": [anthropic_tool(strict=None)]}}, None),
    ("strict beside the function", chat_tools(function() | {"strict": True}), None),
    ("a tool without parameters", chat_tools({"type": "function", "function": {"name": "now"}}) | {"r": {"tools": [{"type": "function", "name": "now"}]}, "m": {"tools": [{"name": "now", "input_schema": {"type": "object"}}]}}, None),
    ("parameters null", chat_tools(function(parameters=None)) | {"r": {"tools": [flat(parameters=None)]}, "m": {"tools": [anthropic_tool(input_schema=None)]}}, None),
    ("parameters of PHP", chat_tools(function(parameters=[])) | {"r": {"tools": [flat(parameters=[])]}, "m": {"tools": [anthropic_tool(input_schema=[])]}}, None),
    ("properties of PHP", chat_tools(function(parameters={"type": "object", "properties": []})) | {"r": {"tools": [flat(parameters={"type": "object", "properties": []})]}, "m": {"tools": [anthropic_tool(input_schema={"type": "object", "properties": []})]}}, None),
    ("parameters without a type", chat_tools(function(parameters={})) | {"r": {"tools": [flat(parameters={})]}, "m": {"tools": [anthropic_tool(input_schema={})]}}, None),
    ("required null", chat_tools(function(parameters={"type": "object", "properties": {}, "required": None})), None),
    ("description null", chat_tools(function(description=None)) | {"r": {"tools": [flat(description=None)]}, "m": {"tools": [anthropic_tool(description=None)]}}, None),
    ("a schema's own dialect", chat_tools(function(parameters=OBJECT | {"$schema": "http://json-schema.org/draft-07/schema#", "additionalProperties": False})) | {"r": {"tools": [flat(parameters=OBJECT | {"$schema": "https://json-schema.org/draft/2020-12/schema"})]}}, None),
    ("definitions", chat_tools(function(parameters={"type": "object", "properties": {"a": {"$ref": "#/$defs/A"}}, "$defs": {"A": {"type": "string", "enum": ["x", None]}}}, strict=True)), None),
    ("an unknown keyword of a schema", chat_tools(function(parameters={"type": "object", "properties": {"a": {"type": "string", "format": "whatever", "x-order": 1}}}, strict=True)), None),
    ("a schema that cannot be enforced", chat_tools(function(parameters={"type": "object", "properties": {"a": {"$ref": "https://example.org/a.json"}}}, strict=True)), "not held to the schema"),
    ("tools of responses in a chat", chat_tools(flat()), None),
    ("tools of Anthropic in a chat", chat_tools(anthropic_tool()), None),
    ("tools of a chat elsewhere", {"r": {"tools": [function()]}, "m": {"tools": [function()]}}, None),
    ("functions of JSON without a type", chat_tools({"function": WEATHER}), None),
    ("no tools, one field each", each("crm", tools=None, tool_choice=None) | each("cr", tools=[], parallel_tool_calls=True), None),
    ("tools empty, choice auto", each("cr", tools=[], tool_choice="auto") | {"m": {"tools": [], "tool_choice": {"type": "auto"}}}, None),
    ("choice none without tools", each("cr", tool_choice="none") | {"m": {"tool_choice": {"type": "none"}}}, None),
    ("choice auto without tools", each("cr", tool_choice="auto", parallel_tool_calls=False) | {"m": {"tool_choice": {"type": "auto", "disable_parallel_tool_use": True}}}, None),
    ("choice as an object", {"c": {"tools": [function()], "tool_choice": {"type": "auto"}}, "r": {"tools": [flat()], "tool_choice": {"type": "auto"}}}, None),
    ("choice empty", {"c": {"tools": [function()], "tool_choice": ""}, "r": {"tools": [flat()], "tool_choice": ""}}, None),
    ("tools of APIs without types", chat_tools(function(), {"google_search": {}}, {"functionDeclarations": [{"name": "f"}]}, {"toolSpec": {"name": "f"}}) | {"r": {"tools": [flat(), {"google_search": {}}]}, "m": {"tools": [anthropic_tool(), {"google_search": {}}]}}, "google_search"),
    ("flat functions of another API", {"c": {"tools": [flat()]}, "m": {"tools": [flat(), flat(name="time")]}}, None),
    ("a choice by its function alone", {"c": {"tools": [function()], "tool_choice": {"function": {"name": "weather"}}}}, None),
    ("a choice of Anthropic elsewhere", {"c": {"tools": [function()], "tool_choice": {"type": "tool", "name": "weather"}}, "r": {"tools": [flat()], "tool_choice": {"type": "tool", "name": "weather"}}}, None),
    ("a choice of OpenAI elsewhere", {"m": {"tools": [anthropic_tool()], "tool_choice": {"type": "function", "function": {"name": "weather"}}}}, None),
    ("a choice that is a word", {"m": {"tools": [anthropic_tool()], "tool_choice": "auto"}}, None),
    ("a choice that is empty", {"c": {"tools": [function()], "tool_choice": {}}, "r": {"tools": [flat()], "tool_choice": []}, "m": {"tools": [anthropic_tool()], "tool_choice": ""}}, None),
    ("a form that is empty", each("cp", response_format="") | each("cr", response_format=[]), None),
    ("hosted tools of responses", {"r": {"tools": [flat(), {"type": "web_search_preview"}, {"type": "file_search", "vector_store_ids": ["v"]}, {"type": "code_interpreter", "container": {"type": "auto"}}, {"type": "image_generation"}, {"type": "mcp", "server_label": "d", "server_url": "https://x", "require_approval": "never"}, {"type": "local_shell"}, {"type": "computer_use_preview", "display_width": 1, "display_height": 1, "environment": "linux"}, {"type": "apply_patch"}, {"type": "custom", "name": "patch", "format": {"type": "grammar", "syntax": "lark", "definition": "start: \"a\""}}]}}, "web_search_preview"),
    ("only hosted tools", {"r": {"tools": [{"type": "web_search"}]}, "m": {"tools": [{"type": "web_search_20250305", "name": "web_search", "max_uses": 5}]}, "c": {"tools": [{"type": "web_search"}]}}, "web_search"),
    ("hosted tools of Anthropic", {"m": {"tools": [anthropic_tool(), {"type": "bash_20250124", "name": "bash"}, {"type": "text_editor_20250728", "name": "str_replace_based_edit_tool", "max_characters": 9}, {"type": "computer_20251124", "name": "computer", "display_width_px": 9, "display_height_px": 9}, {"type": "memory_20250818", "name": "memory"}, {"type": "web_fetch_20250910", "name": "web_fetch"}, {"type": "code_execution_20250825", "name": "code_execution"}, {"type": "mcp_toolset", "mcp_server_name": "x"}, {"type": "tool_search_tool_regex_20251119", "name": "tool_search"}]}}, "bash"),
    ("members of Anthropic's tools", {"m": {"tools": [anthropic_tool(type="custom", cache_control={"type": "ephemeral"}, defer_loading=True, allowed_callers=["direct"], input_examples=[{"city": "Rome"}], eager_input_streaming=True)]}}, None),
    ("a hosted tool chosen by auto", {"r": {"tools": [flat(), {"type": "web_search"}], "tool_choice": "auto"}}, "web_search"),
    ("what includes ask for", {"r": {"include": ["reasoning.encrypted_content", "web_search_call.action.sources", "file_search_call.results"]}}, "include"),
    ("include empty", each("r", include=[]) , None),
    ("reasoning of responses", each("r", reasoning={"effort": "medium", "summary": "auto"}), None),
    ("reasoning null", each("cr", reasoning=None) | each("r", reasoning={"effort": None, "summary": None, "generate_summary": None}), None),
    ("text of responses", each("r", text={"format": {"type": "text"}, "verbosity": "low"}), None),
    ("text empty", each("r", text={}), None),
    ("fields of responses that are null", each("r", prompt=None, conversation=None, previous_response_id=None, max_tool_calls=None, background=False, truncation="disabled", safety_identifier=None, prompt_cache_key="k", service_tier="auto", top_logprobs=0, store=False, metadata={}, user=None, instructions=None, max_output_tokens=4), None),
    ("truncation auto", each("r", truncation="auto"), None),
    ("client metadata", each("r", client_metadata={"x": "y"}, prompt_cache_retention="24h"), None),
    ("thinking enabled", each("m", thinking={"type": "enabled", "budget_tokens": 1024}), "thinking"),
    ("thinking adaptive", each("m", thinking={"type": "adaptive", "display": "summarized"}, output_config={"effort": "high"}), "thinking"),
    ("thinking disabled", each("m", thinking={"type": "disabled"}), None),
    ("thinking null", each("m", thinking=None, system=None, tools=None, stop_sequences=None, temperature=None, top_k=None, top_p=None, metadata=None, service_tier=None, tool_choice=None), None),
    ("what Claude Code sets", each("m", metadata={"user_id": "user_x_account__session_y"}, context_management={"edits": [{"type": "clear_thinking_20251015", "keep": "all"}]}, output_config={"effort": "medium"}, system=[{"type": "text", "text": "You are Claude Code.", "cache_control": {"type": "ephemeral", "ttl": "1h"}}], temperature=1), None),
    ("containers and servers", each("m", container=None, mcp_servers=[], service_tier="standard_only", inference_geo="us", speed="fast"), None),
    ("effort of chats", each("c", reasoning_effort="minimal") , None),
    ("effort none", each("c", reasoning_effort="none", verbosity="low"), None),
    ("effort xhigh", each("c", reasoning_effort="xhigh"), None),
    ("thinking by keywords", each("c", chat_template_kwargs={"enable_thinking": False, "thinking": False}), None),
    ("thinking of DeepSeek and Z.ai", each("c", thinking={"type": "disabled", "clear_thinking": True}), None),
    ("fields of OpenRouter", each("c", provider={"order": ["x"]}, transforms=["middle-out"], models=["a", "b"], route="fallback", plugins=[], usage={"include": True}, session_id="s", reasoning={"enabled": True}, include_reasoning=True), "provider"),
    ("fields of Ollama", each("c", keep_alive="5m", options={"num_ctx": 4096}, think=False), None),
    ("fields of llama-server", each("cp", cache_prompt=True, id_slot=-1, samplers=["top_k"], n_probs=0, mirostat=0, typical_p=1.0, dynatemp_range=0, t_max_predict_ms=0, post_sampling_probs=False, lora=[]), None),
    ("fields of vLLM", each("cp", best_of=1, use_beam_search=False, length_penalty=1.0, min_p=0, repetition_penalty=1.0, skip_special_tokens=True, spaces_between_special_tokens=True, add_special_tokens=False, include_stop_str_in_output=False, ignore_eos=False, echo=False, priority=0, truncate_prompt_tokens=None), None),
    ("fields of SGLang", each("cp", separate_reasoning=True, stream_reasoning=True, no_stop_trim=False, lora_path=None, return_hidden_states=False, rid="r"), None),
    ("modalities", each("c", modalities=["text"], audio=None, prediction=None, web_search_options=None, store=None), None),
    ("a prediction", each("c", prediction={"type": "content", "content": "hi"}), None),
    ("response format text", each("cp", response_format={"type": "text"}), None),
    ("response format null", each("cp", response_format=None), None),
    ("legacy functions", each("c", functions=[WEATHER], function_call="auto"), "functions"),
    ("legacy functions none", each("c", functions=[], function_call="none"), None),
    ("stream options without a stream", each("cp", stream_options={"include_usage": True}), None),
    ("stream options null", each("cpr", stream_options=None), None),
    ("obfuscation", each("cr", stream_options={"include_obfuscation": False}), None),
    ("end users", each("cpr", user="u", safety_identifier="s", prompt_cache_key="k"), None),
    ("metadata with numbers", each("cprm", metadata={"a": "b", "n": 3}), None),
    ("store", each("cr", store=True) | each("p", store=False), None),
    ("tiers", each("cr", service_tier="flex") | each("m", service_tier="auto"), None),
    ("unknown members", each("cprm", x_something={"a": [1]}), "x_something"),
]

# Kind 2: values that peers take.
VALUES = [
    ("top_p 0", each("cprm", top_p=0, temperature=1), None),
    ("top_p 0.0", each("cprm", top_p=0.0), None),
    ("temperature 2", each("cprm", temperature=2), None),
    ("temperature tiny", each("cprm", temperature=1e-9), None),
    ("temperature 3", each("cp", temperature=3), None),
    ("top_k -1", each("cprm", top_k=-1), None),
    ("top_k 40.0", each("cprm", top_k=40.0), None),
    ("top_k huge", each("cprm", top_k=100000), None),
    ("min_p 0", each("cprm", min_p=0), None),
    ("seed -1", each("cprm", seed=-1), None),
    ("seed 0", each("cprm", seed=0), None),
    ("seed large", each("cprm", seed=2**63 - 1), None),
    ("seed unsigned", each("cprm", seed=2**64 - 1), None),
    ("seed 7.0", each("cprm", seed=7.0), None),
    ("n 1.0", each("cp", n=1.0), None),
    ("n null", each("cp", n=None, seed=None, stop=None, logit_bias=None, logprobs=None, user=None), None),
    ("stop empty", each("cp", stop=[]) | each("m", stop_sequences=[]), None),
    ("stop of an empty text", each("cp", stop="") | each("m", stop_sequences=[""]), None),
    ("stop of five", each("cp", stop=["a!", "b!", "c!", "d!", "e!"]) | each("m", stop_sequences=["a!", "b!", "c!", "d!", "e!"]), None),
    ("stop null in a list", each("c", stop=None), None),
    ("stop of newlines", each("cp", stop="\n") | each("m", stop_sequences=["\n\nHuman:"]), None),
    ("penalties at their ends", each("cp", presence_penalty=-2, frequency_penalty=2), None),
    ("penalties 0", each("cprm", presence_penalty=0, frequency_penalty=0.0, repetition_penalty=1), None),
    ("logit_bias empty", each("cp", logit_bias={}), None),
    ("logit_bias of PHP", each("cp", logit_bias=[]), None),
    ("logit_bias of a token", each("cp", logit_bias={"70": -100}), None),
    ("logit_bias of another vocabulary", each("cp", logit_bias={"50256": -100}), "logit_bias"),
    ("logprobs false", each("cp", logprobs=False), None),
    ("logprobs and none beside", each("c", logprobs=True, top_logprobs=0) | each("p", logprobs=0), None),
    ("top_logprobs null", each("c", logprobs=False, top_logprobs=None), None),
    ("top_logprobs 0 alone", each("c", top_logprobs=0), None),
    ("bound of a whole number", each("cp", max_tokens=4.0) | each("r", max_output_tokens=4.0) | each("m", max_tokens=4.0), None),
    ("bound beyond the context", each("cp", max_tokens=32000) | each("r", max_output_tokens=32000) | each("m", max_tokens=32000), "max"),
    ("bound beyond 64 bits", each("cp", max_tokens=2**63) | each("r", max_output_tokens=2**63) | each("m", max_tokens=2**63), "max"),
    ("bound -1", each("cp", max_tokens=-1, stop="e") | each("r", max_output_tokens=-1) | each("m", max_tokens=-1), None),
    ("stop tokens of another vocabulary", each("cprm", stop_token_ids=[128009]), "stop_token_ids"),
    ("biases of ours and another vocabulary", each("cprm", logit_bias={"70": 5, "50256": -100}), "logit_bias"),
    ("min_tokens -1", each("cprm", min_tokens=-1), None),
    ("empty lists for objects", each("cp", stream_options=[], metadata=[]) | each("r", reasoning=[]) | each("m", metadata=[], thinking=[]), None),
    ("empty objects for lists", each("c", tools={}, stop={}) | each("p", stop={}) | each("r", tools={}) | each("m", tools={}, stop_sequences={}), None),
    ("bound null", each("cp", max_tokens=None, stop="e") | each("r", max_output_tokens=None), None),
    ("two bounds", each("c", max_tokens=4, max_completion_tokens=3), None),
    ("newer bound null", each("c", max_tokens=4, max_completion_tokens=None), None),
    ("bounds of Ollama and llama-server", each("cp", n_predict=3), None),
    ("min_tokens", each("cp", min_tokens=0), None),
    ("stream null", each("cprm", stream=None), None),
    ("best_of 1", each("p", best_of=1, echo=False, suffix=None), None),
    ("suffix empty", each("p", suffix=""), None),
    ("echo null", each("p", echo=None), None),
    ("model of another spelling", each("cprm", model="LLAMA-F32"), None),
    ("model null", each("cpr", model=None), None),
    ("model empty", each("cprm", model=""), None),
    ("model with its tag", each("cprm", model="llama-f32:latest"), None),
    ("prompt empty", each("p", prompt=""), None),
    ("prompts", each("p", prompt=["a", "b"]), None),
    ("prompt of tokens", each("p", prompt=[70, 71]), None),
    ("prompts of tokens", each("p", prompt=[[70], [71, 72]]), None),
    ("prompt of one text", each("p", prompt=["a"]), None),
    ("kv", each("cprm", kv_budget=0.5), None),
    ("kv and what it may lose", each("cprm", kv_budget=0.5, kv_max_lost_share=0.1), None),
    ("kv that nothing is learned from", each("cprm", kv_policy="ladder-learned", kv_budget=0.5, kv_learn=False), None),
    ("numbers as texts", each("cprm", temperature="0.7", top_p="0.9", top_k="40", seed="7"), None),
    ("bounds as texts", each("cp", max_tokens="3") | each("r", max_output_tokens="3") | each("m", max_tokens="3"), None),
    ("switches as numbers", each("cp", ignore_eos=0, skip_special_tokens=1), None),
    ("switches as texts", each("cprm", ignore_eos="false"), None),
    ("penalties of 0", each("cprm", repetition_penalty=0), "taken as 1"),
    ("penalties below 0", each("cprm", repeat_penalty=-1.0), "taken as 1"),
    ("stop with a null", each("cp", stop=[None, "zzz"]), None),
    ("biases as pairs", each("cprm", logit_bias=[[70, -1], [71, False]]), None),
    ("biases as texts", each("cprm", logit_bias={"70": "-5"}), None),
    ("beams", each("cp", use_beam_search=True), None),
    ("a pattern of blanks", each("cp", guided_whitespace_pattern="[ ]?"), "guided_whitespace_pattern"),
    ("text and audio", each("c", modalities=["text", "audio"], audio={"voice": "x", "format": "wav"}), "modalities"),
    ("an echo of a chat", each("c", echo=True), "echo"),
]

# Kind 3: histories.
HISTORIES = [
    ("content null", chat(*HELLO, assistant(None), user("go")), None),
    ("content missing", chat(*HELLO, {"role": "assistant"}, user("go")), None),
    ("content of an empty list", chat(*HELLO, assistant([]), user("go")), None),
    ("content empty", chat(user(""), assistant(""), user("go")), None),
    ("a turn that only thought", chat(*HELLO, assistant(None, reasoning_content="Hm."), user("go")), None),
    ("a refusal", chat(*HELLO, assistant(None, refusal="No."), user("go")), None),
    ("parts of a refusal", chat(*HELLO, assistant([{"type": "refusal", "refusal": "No."}]), user("go")), None),
    ("reasoning details", chat(*HELLO, assistant("a", reasoning="Hm", reasoning_details=[{"type": "reasoning.text", "text": "Hm"}]), user("go")), None),
    ("members of an answer", chat(*HELLO, assistant("a", annotations=[], audio=None, function_call=None, tool_calls=None, refusal=None), user("go")), None),
    ("tool_calls of Lua", chat(*HELLO, assistant("a", tool_calls={}), user("go")), None),
    ("tool_calls empty", chat(*HELLO, assistant("a", tool_calls=[]), user("go")), None),
    ("a call and its result", chat(*HELLO, assistant(None, tool_calls=[call()]), tool()), None),
    ("a call without content", chat(*HELLO, {"role": "assistant", "tool_calls": [call()]}, tool()), None),
    ("arguments as an object", chat(*HELLO, assistant(None, tool_calls=[call({"city": "Rome"})]), tool()), None),
    ("arguments empty", chat(*HELLO, assistant(None, tool_calls=[call("")]), tool()), None),
    ("arguments null", chat(*HELLO, assistant(None, tool_calls=[call(None)]), tool()), None),
    ("arguments of PHP", chat(*HELLO, assistant(None, tool_calls=[call([])]), tool()) | turns(*HELLO, assistant([{"type": "tool_use", "id": "t", "name": "weather", "input": []}]), user([{"type": "tool_result", "tool_use_id": "t", "content": "x"}])), None),
    ("arguments that are no JSON", chat(*HELLO, assistant(None, tool_calls=[call("{city:")]), tool()), None),
    ("arguments that are a number", chat(*HELLO, assistant(None, tool_calls=[call("5")]), tool()), None),
    ("a call with an index", chat(*HELLO, assistant(None, tool_calls=[call(index=0)]), tool()), None),
    ("a call without a type", chat(*HELLO, assistant(None, tool_calls=[{"id": "call_1", "function": {"name": "weather", "arguments": "{}"}}]), tool()), None),
    ("a call with a signature", chat(*HELLO, assistant(None, tool_calls=[call(extra_content={"google": {"thought_signature": "x"}})]), tool()), None),
    ("a call id that is null", chat(*HELLO, assistant(None, tool_calls=[call(id=None)]), tool(tool_call_id=None)), None),
    ("two calls, two results", chat(*HELLO, assistant(None, tool_calls=[call(), call(id="call_2")]), tool(), tool(tool_call_id="call_2")), None),
    ("a result that is null", chat(*HELLO, assistant(None, tool_calls=[call()]), tool(None)), None),
    ("a result in parts", chat(*HELLO, assistant(None, tool_calls=[call()]), tool([{"type": "text", "text": "sunny"}])), None),
    ("a result that is empty", chat(*HELLO, assistant(None, tool_calls=[call()]), tool("")), None),
    ("a result with a name", chat(*HELLO, assistant(None, tool_calls=[call()]), tool(name="weather")), None),
    ("a result without its call", chat(*HELLO, tool()), None),
    ("a result of a call that was cut off", chat(tool(), user("go")), None),
    ("a result that is an object", chat(*HELLO, assistant(None, tool_calls=[call()]), tool({"sun": True})) | turns(*HELLO, assistant([{"type": "tool_use", "id": "t", "name": "weather", "input": {}}]), user([{"type": "tool_result", "tool_use_id": "t", "content": {"sun": True}}])), "JSON"),
    ("a result that is a number", chat(*HELLO, assistant(None, tool_calls=[call()]), tool(21.5)) | turns(*HELLO, assistant([{"type": "tool_use", "id": "t", "name": "weather", "input": {}}]), user([{"type": "tool_result", "tool_use_id": "t", "content": 21.5}])), "JSON"),
    ("a result that is a list of objects", chat(*HELLO, assistant(None, tool_calls=[call()]), tool([{"sun": True}, 3])) | turns(*HELLO, assistant([{"type": "tool_use", "id": "t", "name": "weather", "input": {}}]), user([{"type": "tool_result", "tool_use_id": "t", "content": [{"sun": True}]}])), "JSON"),
    ("a part without its list", chat(user({"type": "text", "text": "hi"})), None),
    ("a part whose text is null", chat(user([{"type": "text", "text": None}, {"type": "text", "text": "hi"}])), None),
    ("an older call that is empty", chat(*HELLO, assistant("a", function_call={}), user("go")), None),
    ("texts for blocks", turns(user(["hi", "you"]), system=["a", "b"]), None),
    ("a developer's turn", turns({"role": "developer", "content": "a"}, user("hi")), None),
    ("a result with a picture", chat(*HELLO, assistant(None, tool_calls=[call()]), tool([{"type": "image_url", "image_url": {"url": "data:image/png;base64,AA"}}])), "left out"),
    ("the older function call", chat(*HELLO, assistant(None, function_call={"name": "weather", "arguments": "{}"}), {"role": "function", "name": "weather", "content": "sunny"}), None),
    ("user twice", chat(user("a"), user("b")) | turns(user("a"), user("b")), None),
    ("assistant twice", chat(*HELLO, assistant("a"), assistant("b"), user("go")) | turns(*HELLO, assistant("a"), assistant("b"), user("go")), None),
    ("assistant first", chat(assistant("a"), user("go")) | turns(assistant("a"), user("go")), None),
    ("assistant last", chat(*HELLO, assistant("a")) | turns(*HELLO, assistant("a")), None),
    ("system alone", chat({"role": "system", "content": "Be brief."}), None),
    ("system twice", chat({"role": "system", "content": "a"}, {"role": "developer", "content": "b"}, *HELLO), None),
    ("system last", chat(*HELLO, {"role": "system", "content": "a"}) | turns(*HELLO, {"role": "system", "content": "a"}), None),
    ("system in the middle", chat(*HELLO, assistant("a"), {"role": "system", "content": "b"}, user("go")) | turns(*HELLO, assistant("a"), {"role": "system", "content": "b"}, user("go")), None),
    ("system empty", chat({"role": "system", "content": ""}, *HELLO) | turns(*HELLO, system=""), None),
    ("system in parts", chat({"role": "system", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}, *HELLO), None),
    ("names", chat({"role": "user", "name": "Ada", "content": "hi"}, {"role": "assistant", "name": "Bot", "content": "a"}, user("go")), None),
    ("names null", chat({"role": "user", "name": None, "content": "hi"}), None),
    ("parts with cache_control", chat(user([{"type": "text", "text": "hi", "cache_control": {"type": "ephemeral"}}])), None),
    ("parts of responses in a chat", chat(user([{"type": "input_text", "text": "hi"}]), assistant([{"type": "output_text", "text": "a"}]), user("go")), None),
    ("parts without a type", chat(user([{"text": "hi"}])), None),
    ("parts that are texts", chat(user(["hi", "you"])), None),
    ("parts that are empty", chat(user([])), None),
    ("a thought in parts", chat(*HELLO, assistant([{"type": "thinking", "thinking": "Hm", "signature": "s"}, {"type": "text", "text": "a"}]), user("go")), None),
    ("a picture that the assistant made", chat(*HELLO, assistant([{"type": "image_url", "image_url": {"url": "x"}}, {"type": "text", "text": "a"}]), user("go")), "left out"),
    ("items without types", items({"role": "user", "content": "hi"}, {"role": "assistant", "content": "a"}, {"role": "user", "content": "go"}), None),
    ("an answer that comes back", items({"role": "user", "content": "hi"}, {"id": "msg_1", "type": "message", "role": "assistant", "status": "completed", "content": [{"type": "output_text", "text": "a", "annotations": [], "logprobs": None}]}, {"role": "user", "content": "go"}), None),
    ("an answer with a phase", items({"role": "user", "content": "hi"}, {"type": "message", "role": "assistant", "phase": "commentary", "content": [{"type": "output_text", "text": "a"}]}, {"role": "user", "content": "go"}), None),
    ("thoughts that are encrypted", items({"role": "user", "content": "hi"}, {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "x"}, {"type": "reasoning", "summary": [{"type": "summary_text", "text": "Hm"}], "content": None}, {"role": "assistant", "content": "a"}, {"role": "user", "content": "go"}), None),
    ("a call of responses", items({"role": "user", "content": "hi"}, {"type": "function_call", "id": "fc", "call_id": "c", "name": "weather", "arguments": "{}", "status": "completed"}, {"type": "function_call_output", "call_id": "c", "output": "sunny"}), None),
    ("an output in parts", items({"role": "user", "content": "hi"}, {"type": "function_call", "call_id": "c", "name": "weather", "arguments": "{}"}, {"type": "function_call_output", "call_id": "c", "output": [{"type": "input_text", "text": "sunny"}]}), None),
    ("an output without its call", items({"role": "user", "content": "hi"}, {"type": "function_call_output", "call_id": "c", "output": "sunny"}), None),
    ("a call without its output", items({"role": "user", "content": "hi"}, {"type": "function_call", "call_id": "c", "name": "weather", "arguments": "{}"}, {"role": "user", "content": "go"}), None),
    ("work that ran elsewhere", items({"role": "user", "content": "hi"}, {"type": "web_search_call", "id": "w", "status": "completed", "action": {"type": "search", "query": "x"}}, {"type": "mcp_list_tools", "server_label": "d", "tools": []}, {"type": "compaction", "encrypted_content": "x"}, {"role": "assistant", "content": "a"}, {"role": "user", "content": "go"}), "left out"),
    ("a shell's call", items({"role": "user", "content": "hi"}, {"type": "local_shell_call", "call_id": "c", "status": "completed", "action": {"type": "exec", "command": ["ls"], "env": {}}}, {"type": "local_shell_call_output", "call_id": "c", "output": "{}"}), None),
    ("a custom call", items({"role": "user", "content": "hi"}, {"type": "custom_tool_call", "call_id": "c", "name": "patch", "input": "x"}, {"type": "custom_tool_call_output", "call_id": "c", "output": "done"}), None),
    ("developer and system items", items({"role": "developer", "content": "a"}, {"role": "system", "content": "b"}, {"role": "user", "content": "hi"}), None),
    ("a user's content null", items({"role": "user", "content": None}, {"role": "user", "content": "hi"}), None),
    ("a text alone", {"r": {"input": "hi", "instructions": ""}}, None),
    ("blocks", turns(user([{"type": "text", "text": "hi", "cache_control": {"type": "ephemeral"}, "citations": None}])), None),
    ("blocks that are empty", turns(user([]), assistant([]), user("go")), None),
    ("a text block that is empty", turns(user([{"type": "text", "text": ""}])), None),
    ("a thought with its signature", turns(*HELLO, assistant([{"type": "thinking", "thinking": "Hm", "signature": "s"}, {"type": "redacted_thinking", "data": "x"}, {"type": "text", "text": "a"}]), user("go")), None),
    ("a tool's use and result", turns(*HELLO, assistant([{"type": "text", "text": "a"}, {"type": "tool_use", "id": "t", "name": "weather", "input": {}, "caller": {"type": "direct"}}]), user([{"type": "tool_result", "tool_use_id": "t", "content": [{"type": "text", "text": "sunny"}], "is_error": False, "cache_control": {"type": "ephemeral"}}])), None),
    ("a result without content", turns(*HELLO, assistant([{"type": "tool_use", "id": "t", "name": "weather", "input": {}}]), user([{"type": "tool_result", "tool_use_id": "t"}, {"type": "text", "text": "go"}])), None),
    ("a result whose use is gone", turns(user([{"type": "tool_result", "tool_use_id": "t", "content": "sunny"}, {"type": "text", "text": "go"}])), None),
    ("a result with a picture of Anthropic", turns(*HELLO, assistant([{"type": "tool_use", "id": "t", "name": "weather", "input": {}}]), user([{"type": "tool_result", "tool_use_id": "t", "content": [{"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AA"}}]}])), "left out"),
    ("a server's own work", turns(*HELLO, assistant([{"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}}, {"type": "web_search_tool_result", "tool_use_id": "s", "content": []}, {"type": "text", "text": "a"}]), user("go")), "left out"),
    ("a document of text", turns(user([{"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "x"}, "title": "t"}, {"type": "text", "text": "go"}])), None),
    ("system of a list", turns(*HELLO, system=[]) , None),
    ("content null of Anthropic", turns(user("hi"), assistant(None), user("go")), None),
    ("a prefill that ends in blanks", turns(*HELLO, assistant("a ")), None),
]

KINDS = {"wishes": WISHES, "values": VALUES, "histories": HISTORIES}
