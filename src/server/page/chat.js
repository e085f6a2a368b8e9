// The conversation: what was said, what is being said, and what may be changed about it.

const chat = {
  messages: [],     // {role, content, reasoning, calls, stats, fault, isRefused}; an answer grows while it comes
  model: "",
  running: null,    // the AbortController of the answer that comes

  list: document.getElementById("conversation"),
  prompt: document.getElementById("prompt"),
};

const kNumbers = ["temperature", "top_p", "top_k", "min_p", "repetition_penalty", "max_tokens", "seed", "kv_budget"];
// An answer that finds no end of its own should not run to the end of the context.
const kDefaultMaxTokens = 1024;

function requestBody() {
  const system = document.getElementById("system").value.trim();
  // A message that was refused for its content would be refused again, and with it all that follow.
  const messages = chat.messages.filter((message, i) => message.content && !chat.messages[i + 1]?.isRefused)
                                .map(({role, content}) => ({role, content}));
  if (system) messages.unshift({role: "system", content: system});
  const body = {model: chat.model, messages, stream: true, stream_options: {include_usage: true},
                max_tokens: kDefaultMaxTokens};
  for (const name of kNumbers) {
    const field = document.getElementById(name);
    if (field.value !== "") body[name] = field.valueAsNumber;
  }
  const tools = document.getElementById("tools").value.trim();
  if (tools) body.tools = JSON.parse(tools);
  return body;
}

// The first of the settings whose value is none, or would not arrive as it was written.
function wrongNumber() {
  const seed = document.getElementById("seed");
  const isLong = seed.value !== "" && !Number.isSafeInteger(seed.valueAsNumber);
  seed.setCustomValidity(isLong ? "A whole number of at most 9007199254740991." : "");
  const tools = document.getElementById("tools");
  tools.setCustomValidity(isToolList(tools.value.trim()) ? "" : "A JSON array of tools, as in the API.");
  return [...kNumbers, "tools"].map(name => document.getElementById(name))
                               .find(({validity}) => validity.badInput || validity.customError);
}

function isToolList(text) {
  try {
    return text === "" || Array.isArray(JSON.parse(text));
  } catch {
    return false;
  }
}

// --- What a message looks like ---

function actionButton(label, name, act) {
  const button = element("button", {type: "button", textContent: label, ariaLabel: name});
  button.addEventListener("click", () => act(button));
  return button;
}

function messageActions(index) {
  const message = chat.messages[index], actions = element("div", {className: "actions"});
  if (message.role === "user") {
    actions.append(actionButton("Edit", "Edit this message", () => editMessage(index)));
  } else {
    actions.append(actionButton("Copy", "Copy this answer", button => copyText(message.content, button)),
                   actionButton("Retry", "Ask for this answer again", () => retryAnswer(index)));
  }
  return actions;
}

// Open while the model thinks. Once the answer is whole, as the reader leaves it.
function reasoningOf(message, item, isComing) {
  const shown = item.querySelector("details");
  const details = element("details", {className: "reasoning"}, element("summary", {textContent: "Reasoning"}),
                          element("div", {className: "thought", textContent: message.reasoning}));
  details.open = isComing ? !message.content : Boolean(shown?.open);
  return details;
}

function callOf({name, arguments: given}) {
  let shown = given;
  try {
    shown = JSON.stringify(JSON.parse(given), null, 2);
  } catch { /* it is still coming, or no JSON */ }
  return element("details", {className: "call", open: true}, element("summary", {textContent: "Calls " + name}),
                 codeBlock(shown.split("\n"), "json"));
}

function fillMessage(item, index) {
  const message = chat.messages[index], isUser = message.role === "user";
  const isComing = chat.running !== null && index === chat.messages.length - 1;
  const text = element("div", {className: "text"});
  filled(text, isUser ? [message.content] : renderMarkdown(message.content));
  const who = element("p", {className: "who", textContent: isUser ? "You" : "Answer"});
  item.replaceChildren(who, ...(message.reasoning ? [reasoningOf(message, item, isComing)] : []), text);
  for (const call of message.calls ?? []) item.append(callOf(call));
  if (message.fault) item.append(element("p", {className: "fault", textContent: message.fault}));
  if (message.stats) item.append(element("p", {className: "stats", textContent: message.stats}));
  if (!isComing && chat.running === null) item.append(messageActions(index));
}

function showConversation() {
  chat.list.replaceChildren(...chat.messages.map((message, index) => {
    const item = element("li", {className: "message " + message.role});
    fillMessage(item, index);
    return item;
  }));
  chat.list.scrollTop = chat.list.scrollHeight;
  showStart();
  document.getElementById("send").hidden = chat.running !== null;
  document.getElementById("stop").hidden = chat.running === null;
}

// At most once a frame; follows the text unless the reader has scrolled up.
function showProgress() {
  if (chat.frame) return;
  chat.frame = requestAnimationFrame(() => {
    chat.frame = 0;
    const list = chat.list, follows = list.scrollHeight - list.scrollTop - list.clientHeight < 60;
    if (list.lastChild) fillMessage(list.lastChild, chat.messages.length - 1);
    if (follows) list.scrollTop = list.scrollHeight;
  });
}

// --- An answer ---

function statsOf(usage, began, first, ended) {
  if (!usage || !first) return "";
  const parts = [`${usage.completion_tokens} tokens`, `first after ${Math.round(first - began)} ms`];
  if (usage.completion_tokens > 1 && ended > first) {
    parts.push(`${((usage.completion_tokens - 1) * 1000 / (ended - first)).toFixed(1)} tokens/s`);
  }
  parts.push(`prompt of ${usage.prompt_tokens}`);
  const cached = usage.prompt_tokens_details?.cached_tokens;
  if (cached) parts.push(`${cached} of it cached`);
  return parts.join(" · ");
}

// Calls come in pieces, each with the index of its call.
function addCall(calls, {index, function: part}) {
  calls[index] ??= {name: "", arguments: ""};
  calls[index].name += part?.name ?? "";
  calls[index].arguments += part?.arguments ?? "";
}

async function streamAnswer(answer, signal) {
  let first = 0, usage = null;
  const response = await connection.fetch("/v1/chat/completions", {
    method: "POST", headers: {"Content-Type": "application/json"}, body: JSON.stringify(requestBody()), signal});
  if (!response) throw new Error("No API key was given.");
  answer.isRefused = [400, 413].includes(response.status);
  if (!response.ok) throw new Error(await faultOf(response) + (answer.isRefused ? " It is left out of what follows." : ""));
  for await (const event of eventsOf(response)) {
    usage = event.usage ?? usage;
    const {content, reasoning_content: thought, tool_calls: calls} = event.choices[0]?.delta ?? {};
    if (!content && !thought && !calls) continue;
    first ||= performance.now();
    answer.content += content ?? "";
    answer.reasoning += thought ?? "";
    for (const part of calls ?? []) addCall(answer.calls, part);
    showProgress();
  }
  answer.stats = statsOf(usage, response.sentAt, first, performance.now());
}

async function askForAnswer() {
  if (chat.running) return;
  const running = chat.running = new AbortController(), signal = running.signal;
  const answer = {role: "assistant", content: "", reasoning: "", calls: []};
  // The request is made of what was said before the answer: an empty message is left out.
  chat.messages.push(answer);
  showConversation();
  keepConversation();
  connection.isDeclined = false;
  try {
    await streamAnswer(answer, signal);
    announce("The answer is complete.");
  } catch (fault) {
    answer.fault = signal.aborted ? "Stopped."
        : fault instanceof TypeError ? "The connection to the server was lost." : fault.message;
    announce(answer.fault);
  }
  if (chat.running === running) chat.running = null;  // else a new chat has begun
  if (!chat.messages.includes(answer)) return;
  showConversation();
  keepConversation();
  showModels();
}

function announce(text) {
  document.getElementById("announcement").textContent = text;
}

// --- What the user does ---

function mayAsk() {
  if (chat.running) return false;
  const wrong = wrongNumber();
  if (wrong) {
    document.getElementById("settings").open = true;
    wrong.reportValidity();
  }
  return !wrong;
}

function sendPrompt() {
  const text = chat.prompt.value.trim();
  if (!text || !mayAsk()) return;
  chat.prompt.value = "";
  chat.messages.push({role: "user", content: text});
  askForAnswer();
}

function stopAnswer() {
  chat.running?.abort();
}

function retryAnswer(index) {
  if (!mayAsk()) return;
  chat.messages.length = index;
  askForAnswer();
}

// The messages after it are forgotten once it is sent again.
function editMessage(index) {
  const item = chat.list.children[index];
  const field = element("textarea", {value: chat.messages[index].content, rows: 3, ariaLabel: "The message, to be changed"});
  const save = () => {
    const text = field.value.trim();
    if (!text || !mayAsk()) return;
    chat.messages.length = index;
    chat.messages.push({role: "user", content: text});
    askForAnswer();
    chat.prompt.focus();
  };
  const cancel = () => { fillMessage(item, index); chat.prompt.focus(); };
  field.addEventListener("keydown", event => {
    if (event.key === "Enter" && !event.shiftKey && !event.isComposing) { event.preventDefault(); save(); }
    if (event.key === "Escape") { event.stopPropagation(); cancel(); }
  });
  item.replaceChildren(element("p", {className: "who", textContent: "You"}), field,
      element("div", {className: "actions"}, actionButton("Send again", "Send the changed message", save),
              actionButton("Cancel", "Leave the message as it was", cancel)));
  field.focus();
}

function newChat() {
  leaveConversation();
  showConversation();
  listConversations();
  chat.prompt.focus();
}

// --- Where nothing was said yet ---

const kExamples = ["Explain what a hash table is, with an example.", "Write a Python function that reverses a list.",
                   "Give me three names for a grey cat.", "Translate into French: The train is late."];

function curlLine() {
  const body = JSON.stringify({model: chat.model, messages: [{role: "user", content: "Hello!"}]}).replaceAll("'", "'\\''");
  const key = connection.key ? ' -H "Authorization: Bearer $KVASIR_API_KEY"' : "";
  return `curl ${location.origin}${kBase}v1/chat/completions -H 'Content-Type: application/json'${key} -d '${body}'`;
}

function showStart() {
  const start = document.getElementById("start");
  start.hidden = chat.messages.length > 0;
  chat.list.hidden = !start.hidden;
  if (start.hidden) return;
  document.getElementById("examples").replaceChildren(...kExamples.map(text => {
    const button = element("button", {type: "button", textContent: text});
    button.addEventListener("click", () => { chat.prompt.value = text; sendPrompt(); });
    return button;
  }));
  document.getElementById("curl").replaceChildren(codeBlock([curlLine()], ""));
}

function startChat() {
  document.getElementById("composer").addEventListener("submit", event => { event.preventDefault(); sendPrompt(); });
  document.getElementById("stop").addEventListener("click", stopAnswer);
  document.getElementById("new").addEventListener("click", newChat);
  chat.prompt.addEventListener("keydown", event => {
    if (event.key === "Enter" && !event.shiftKey && !event.isComposing) { event.preventDefault(); sendPrompt(); }
    const lastOfUser = chat.messages.findLastIndex(message => message.role === "user");
    if (event.key === "ArrowUp" && chat.prompt.value === "" && lastOfUser >= 0 && !chat.running) {
      event.preventDefault();
      editMessage(lastOfUser);
    }
  });
  document.addEventListener("keydown", event => {
    if (event.key === "Escape" && !document.getElementById("key-dialog").open) stopAnswer();
  });
}
