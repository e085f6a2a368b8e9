// The server as the page asks it: with the key that the tab has, and for one where none fits.

const kKeyReason = document.getElementById("key-reason").textContent;

// The page's own address ends the server's, also behind a proxy that knows it by a path of its own.
const kBase = location.pathname.endsWith("/") ? location.pathname : location.pathname + "/";

const connection = {
  key: sessionStorage.getItem("kvasir-key") ?? "",
  isDeclined: false,  // the dialog was cancelled: what the page asks by itself does not open it again

  headers() {
    return this.key ? {Authorization: "Bearer " + this.key} : {};
  },

  // The response, with `sentAt` when it was asked for, or null when a key is wanted and nobody gives one. Throws where there is no server.
  async fetch(path, options = {}) {
    for (;;) {
      const sentAt = performance.now();
      const response = await fetch(kBase + path.slice(1), {...options, headers: {...options.headers, ...this.headers()}});
      if (response.status !== 401) return Object.assign(response, {sentAt});
      const refused = this.key !== "";
      if (this.isDeclined) return null;
      if (!await this.askForKey(refused ? "The key is not known here, or was revoked." : undefined)) return null;
    }
  },

  async get(path) {
    const response = await this.fetch(path);
    if (!response) return null;
    if (!response.ok) throw new Error(await faultOf(response));
    return response.json();
  },

  // Whether there is a key afterwards that was not there before. One dialog, however many ask.
  askForKey(reason) {
    this.asking ??= new Promise(resolve => {
      const dialog = document.getElementById("key-dialog"), input = document.getElementById("key-input");
      const show = reason => {
        document.getElementById("key-reason").textContent = reason ?? kKeyReason;
        input.value = "";
        dialog.returnValue = "";
        dialog.showModal();
      };
      const close = () => {
        const key = input.value.trim(), given = dialog.returnValue === "use" && key !== "";
        if (given && /[^!-~]/.test(key)) return show("A key has no spaces, and no letters that no header can carry.");
        dialog.removeEventListener("close", close);
        this.asking = undefined;
        this.isDeclined = !given;
        if (given) {
          this.key = key;
          sessionStorage.setItem("kvasir-key", key);
          dispatchEvent(new Event("newkey"));
        }
        resolve(given);
      };
      dialog.addEventListener("close", close);
      show(reason);
    });
    return this.asking;
  },
};

// The message of an error response, in the API's shape or not.
async function faultOf(response) {
  const text = await response.text();
  try {
    return JSON.parse(text).error.message;
  } catch {
    return `The server answered ${response.status}.`;
  }
}

// The data of each event of a stream; throws when it ends before "[DONE]".
async function* eventsOf(response) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  for (let pending = "";;) {
    const {value, done} = await reader.read();
    if (done) throw new Error("The connection was lost before the answer was complete.");
    pending += value;
    const events = pending.split("\n\n");
    pending = events.pop();
    for (const event of events) {
      if (!event.startsWith("data: ")) continue;  // a comment that keeps the connection open
      if (event === "data: [DONE]") return;
      const data = JSON.parse(event.slice(6));
      if (data.error) throw new Error(data.error.message);
      yield data;
    }
  }
}
