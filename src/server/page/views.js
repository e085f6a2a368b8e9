// The page around the views: tabs, theme, key, and what model there is.

function showBanner(text) {
  const banner = document.getElementById("banner");
  banner.hidden = text === "";
  if (banner.textContent !== text) banner.textContent = text;
}

const kStates = {known: " (loads when asked)", loading: " (loading)", failed: " (failed)"};

const tabs = ["chat", "operations"];

function showView(name) {
  connection.isDeclined = false;  // whoever looks for something may be asked again
  for (const other of tabs) {
    const tab = document.getElementById(other + "-tab");
    tab.setAttribute("aria-selected", String(other === name));
    tab.tabIndex = other === name ? 0 : -1;
    document.getElementById(other + "-view").hidden = other !== name;
  }
  watchOperations(name === "operations" && !document.hidden);
  history.replaceState(null, "", name === "chat" ? location.pathname : "#" + name);
}

function startTabs() {
  for (const name of tabs) {
    const tab = document.getElementById(name + "-tab");
    tab.addEventListener("click", () => showView(name));
    tab.addEventListener("keydown", event => {
      if (event.key !== "ArrowRight" && event.key !== "ArrowLeft") return;
      const next = tabs[(tabs.indexOf(name) + 1) % tabs.length];
      showView(next);
      document.getElementById(next + "-tab").focus();
    });
  }
  const shown = () => tabs.find(name => location.hash === "#" + name) ?? "chat";
  window.addEventListener("hashchange", () => showView(shown()));
  document.addEventListener("visibilitychange", () => {
    watchOperations(!document.hidden && !document.getElementById("operations-view").hidden);
  });
  showView(shown());
}

function startTheme() {
  const root = document.documentElement, system = matchMedia("(prefers-color-scheme: dark)");
  const apply = () => { root.dataset.theme = localStorage.getItem("kvasir-theme") ?? (system.matches ? "dark" : "light"); };
  system.addEventListener("change", apply);
  document.getElementById("theme").addEventListener("click", () => {
    localStorage.setItem("kvasir-theme", root.dataset.theme === "dark" ? "light" : "dark");
    apply();
  });
  apply();
}

function factsOf(model) {
  const parts = [model.architecture, model.quantization];
  if (model.num_parameters) parts.push(`${(model.num_parameters / 1e6).toFixed(0)} M parameters`);
  if (model.max_model_len) parts.push(`${model.max_model_len} tokens of context`);
  return parts.filter(Boolean).join(" · ");
}

// The model of that name, or the first. A model that is not in memory is loaded when it is asked.
function chooseModel(name) {
  const models = chat.models ?? [], model = models.find(({id}) => id === name) ?? models[0];
  if (!model) {
    chat.model = name ?? "";
    return;
  }
  chat.model = model.id;
  const select = document.getElementById("model");
  select.replaceChildren(...models.map(({id, state}) => element("option", {
    value: id, selected: id === model.id, textContent: id + (kStates[state] ?? "")})));
  document.getElementById("facts").textContent = factsOf(model);
  showStart();
}

async function showModels() {
  try {
    const models = await connection.get("/v1/models");
    if (!models) return;
    const chatting = models.data.filter(({capabilities}) => capabilities?.includes("completion") ?? true);
    chat.models = chatting.length ? chatting : models.data;
    chooseModel(chat.model || localStorage.getItem("kvasir-model"));
  } catch {
    showBanner("There is no connection to the server. Reload the page once it runs.");
  }
}

startTheme();
startChat();
startConversations();
startTabs();
document.getElementById("key").addEventListener("click", () => connection.askForKey());
document.getElementById("model").addEventListener("change", ({target}) => {
  localStorage.setItem("kvasir-model", target.value);
  chooseModel(target.value);
  chat.prompt.focus();
});
addEventListener("newkey", showModels);
showConversation();
chat.prompt.focus();
showModels();
