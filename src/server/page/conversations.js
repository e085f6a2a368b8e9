// The conversations that this browser keeps, each under a key of its own in localStorage, by the page's path.

const kKept = "kvasir-chat:" + kBase + ":";
const kTitleLength = 60;
const kMostImported = 1000;

const conversations = {
  current: "",  // the id of the one that is shown; empty until something is said
};

function readConversation(key) {
  try {
    return validConversation(JSON.parse(localStorage.getItem(key)));
  } catch {
    return null;
  }
}

// A conversation of known fields and types, or null: a file that is imported may hold anything.
function validConversation(value) {
  if (!value || !Array.isArray(value.messages) || !/^[\w-]{1,64}$/.test(value.id)) return null;
  const text = field => typeof field === "string" ? field : "";
  const messages = value.messages.filter(message => ["user", "assistant"].includes(message?.role)).map(message => ({
    role: message.role, content: text(message.content), reasoning: text(message.reasoning), stats: text(message.stats),
    fault: text(message.fault), isRefused: message.isRefused === true, calls: validCalls(message.calls)}));
  if (messages.length === 0) return null;
  return {id: String(value.id), model: text(value.model), changed: Number(value.changed) || 0, messages};
}

function validCalls(calls) {
  if (!Array.isArray(calls)) return [];
  return calls.filter(call => call && typeof call.name === "string" && typeof call.arguments === "string")
              .map(call => ({name: call.name, arguments: call.arguments}));
}

// The newest first.
function allConversations() {
  const keys = Object.keys(localStorage).filter(key => key.startsWith(kKept));
  return keys.map(readConversation).filter(Boolean).sort((a, b) => b.changed - a.changed);
}

function titleOf({messages}) {
  const said = messages.find(({role}) => role === "user")?.content ?? messages[0].content;
  return said.replace(/\s+/g, " ").trim().slice(0, kTitleLength) || "Untitled";
}

function storeConversation(conversation) {
  try {
    localStorage.setItem(kKept + conversation.id, JSON.stringify(conversation));
    return true;
  } catch {
    showBanner("The browser has no room for this conversation. Export and delete some.");
    return false;
  }
}

function keepConversation() {
  if (chat.messages.length === 0) return;
  conversations.current ||= crypto.getRandomValues(new Uint32Array(4)).join("-");
  sessionStorage.setItem(kKept, conversations.current);
  storeConversation({id: conversations.current, model: chat.model, changed: Date.now(), messages: chat.messages});
  listConversations();
}

function leaveConversation() {
  stopAnswer();
  chat.running = null;
  conversations.current = "";
  sessionStorage.removeItem(kKept);
  chat.messages = [];
}

function openConversation(id) {
  const kept = readConversation(kKept + id);
  if (!kept) return;
  leaveConversation();
  conversations.current = id;
  sessionStorage.setItem(kKept, id);
  chat.messages = kept.messages;
  chooseModel(kept.model);
  showConversation();
  listConversations();
  if (isNarrow()) showSidebar(false);
  chat.prompt.focus();
}

// The first press asks, the second one deletes.
function deleteConversation(id, button) {
  if (button.dataset.asked) {
    localStorage.removeItem(kKept + id);
    if (conversations.current === id) newChat();
    listConversations();
    document.getElementById("search").focus();
    return;
  }
  button.dataset.asked = "yes";
  button.textContent = "Delete?";
  button.addEventListener("blur", () => { delete button.dataset.asked; button.textContent = "×"; }, {once: true});
}

// --- The list ---

function matches(conversation, words) {
  const text = conversation.messages.map(({content}) => content).join("\n").toLowerCase();
  return words.every(word => text.includes(word));
}

function listConversations() {
  const words = document.getElementById("search").value.toLowerCase().split(/\s+/).filter(Boolean);
  const all = allConversations(), found = all.filter(conversation => matches(conversation, words));
  document.getElementById("kept").replaceChildren(...found.map(conversation => {
    const title = titleOf(conversation);
    const open = element("button", {type: "button", className: "open", textContent: title});
    if (conversation.id === conversations.current) open.setAttribute("aria-current", "true");
    open.addEventListener("click", () => openConversation(conversation.id));
    const remove = actionButton("×", "Delete: " + title, button => deleteConversation(conversation.id, button));
    remove.className = "remove";
    return element("li", {}, open, remove);
  }));
  const none = all.length === 0 ? "Conversations stay in this browser." : found.length === 0 ? "Nothing found." : "";
  document.getElementById("none-kept").textContent = none;
  document.getElementById("export").disabled = all.length === 0;
}

// --- Files ---

function download(name, type, text) {
  const address = URL.createObjectURL(new Blob([text], {type}));
  element("a", {href: address, download: name}).click();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}

function exportConversations() {
  const day = new Date().toISOString().slice(0, 10);
  download(`kvasir-${day}.json`, "application/json", JSON.stringify({conversations: allConversations()}, null, 1));
}

function importConversations(text) {
  let given;
  try {
    given = JSON.parse(text).conversations;
  } catch { /* said below */ }
  const valid = Array.isArray(given) ? given.slice(0, kMostImported).map(validConversation).filter(Boolean) : [];
  const isKept = valid.every(storeConversation);
  listConversations();
  if (valid.length === 0) showBanner("The file has no conversations.");
  else if (isKept) announce(`${valid.length} conversations were imported.`);
}

// --- The sidebar ---

const isNarrow = () => matchMedia("(max-width: 48rem)").matches;

function showSidebar(isShown) {
  document.getElementById("sidebar").hidden = !isShown;
  document.getElementById("menu").setAttribute("aria-expanded", String(isShown));
}

function startConversations() {
  const file = document.getElementById("import-file"), menu = document.getElementById("menu");
  document.getElementById("search").addEventListener("input", listConversations);
  document.getElementById("export").addEventListener("click", exportConversations);
  document.getElementById("import").addEventListener("click", () => file.click());
  file.addEventListener("change", async () => {
    if (file.files[0]) importConversations(await file.files[0].text());
    file.value = "";
  });
  menu.addEventListener("click", () => {
    const isShown = document.getElementById("sidebar").hidden;
    showSidebar(isShown);
    if (isShown) document.getElementById("search").focus();
  });
  document.getElementById("sidebar").addEventListener("keydown", event => {
    if (event.key !== "Escape" || !isNarrow()) return;
    showSidebar(false);
    menu.focus();
  });
  addEventListener("storage", event => { if (event.key?.startsWith(kKept)) listConversations(); });
  showSidebar(!isNarrow());
  listConversations();
  const last = sessionStorage.getItem(kKept);
  if (last) openConversation(last);
}
