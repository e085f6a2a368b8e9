// The page around the views: tabs, theme, key, and what model there is.

function showBanner(text) {
  const banner = document.getElementById("banner");
  banner.hidden = text === "";
  if (banner.textContent !== text) banner.textContent = text;
}

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
  const parts = [model.id, model.architecture, model.quantization];
  if (model.num_parameters) parts.push(`${(model.num_parameters / 1e6).toFixed(0)} M parameters`);
  parts.push(`${model.max_model_len} tokens of context`);
  return parts.filter(Boolean).join(" · ");
}

async function showModel() {
  try {
    const models = await connection.get("/v1/models");
    if (!models) return;
    chat.model = models.data[0].id;
    document.getElementById("facts").textContent = factsOf(models.data[0]);
  } catch {
    showBanner("There is no connection to the server. Reload the page once it runs.");
  }
}

startTheme();
startChat();
startTabs();
document.getElementById("key").addEventListener("click", () => connection.askForKey());
addEventListener("newkey", showModel);
showModel();
