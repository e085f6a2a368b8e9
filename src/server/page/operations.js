// The server's work as the page shows it: a look each second, and the differences between looks.

const operations = {
  looks: [],        // oldest first, of the last five minutes
  timer: 0,
  chain: 0,         // of looks that each begin the next; whoever watches anew begins another and ends this
};
const kLookEveryMs = 1000, kKeptLooks = 300, kWindowLooks = 10;

const kOwners = {sequence: "running", shared: "shared by running", cached: "cached", public: "cached for all"};
const kRefusals = {queue_full: "the queue was full", too_late: "the first token would have come too late",
                   expired: "waited too long", rate_limit: "beyond a key's own limit"};

function bytesText(bytes) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let unit = 0;
  for (; bytes >= 1024 && unit < units.length - 1; ++unit) bytes /= 1024;
  return `${bytes.toFixed(unit === 0 || bytes >= 100 ? 0 : 1)} ${units[unit]}`;
}
const percentText = (part, whole) => whole > 0 ? `${(100 * part / whole).toFixed(0)}%` : "–";
const secondsText = seconds => seconds < 1 ? `${Math.round(seconds * 1000)} ms` : `${seconds.toFixed(1)} s`;

// The value below which a share of the new observations lies, within a bucket as if they lay evenly; null without any.
function percentile(histogram, before, share) {
  const counts = histogram.counts.map((count, i) => count - (before?.counts[i] ?? 0));
  const wanted = share * counts.reduce((sum, count) => sum + count, 0);
  if (wanted === 0) return null;
  let seen = 0;
  for (let i = 0; i < counts.length; ++i) {
    if (seen + counts[i] >= wanted && counts[i] > 0) {
      const low = i > 0 ? histogram.bounds_s[i - 1] : 0, high = histogram.bounds_s[i] ?? low;
      return low + (high - low) * (wanted - seen) / counts[i];
    }
    seen += counts[i];
  }
  return null;
}

// --- Tiles ---

function tile(name, number, detail) {
  return element("div", {className: "tile"}, element("div", {className: "name", textContent: name}),
                 element("div", {className: "number", textContent: number}),
                 element("div", {className: "detail", textContent: detail}));
}

function showTiles(now, before) {
  const seconds = (now.time_ms - before.time_ms) / 1000;
  const rate = (a, b) => seconds > 0 ? ((a - b) / seconds).toFixed(1) : "–";
  const steps = now.steps.count - before.steps.count;
  const batch = steps > 0 ? ((now.steps.sequences - before.steps.sequences) / steps).toFixed(1) : "–";
  const hits = now.prefix_cache.hit_tokens, asked = now.prefix_cache.queried_tokens;
  const kvCached = now.kv.map.filter(use => use.owner === "cached" || use.owner === "public")
                             .reduce((sum, use) => sum + use.bytes, 0);
  document.getElementById("tiles").replaceChildren(
      tile("Running", now.running, `${now.connections} connections`),
      tile("Waiting", now.waiting, now.waiting ? `the oldest for ${secondsText(now.oldest_waiting_ms / 1000)}` : "nobody"),
      tile("Batch", batch, "sequences a step"),
      tile("Tokens/s", rate(now.tokens.generated, before.tokens.generated), `${now.tokens.generated} generated`),
      tile("Prompt tokens/s", rate(now.tokens.prompt, before.tokens.prompt), `${now.tokens.prompt} taken in`),
      tile("Prefix hits", percentText(hits, asked), `${hits} of ${asked} tokens`),
      tile("KV held", bytesText(now.kv.bytes_held), `${bytesText(kvCached)} cached, of ${bytesText(now.kv.bytes_total)}`),
      tile("Memory", bytesText(now.memory.resident_bytes),
           now.memory.budget_bytes ? `${percentText(now.memory.resident_bytes, now.memory.budget_bytes)} of ${bytesText(now.memory.budget_bytes)}` : ""),
      tile("Finished", now.finished.requests, `${now.finished.cancelled} cancelled, ${now.finished.failed} failed`));
}

// --- Requests ---

function showRequests(requests) {
  const body = document.querySelector("#requests tbody");
  body.replaceChildren(...requests.map(request => {
    const computed = Math.min(request.computed_tokens, request.prompt_tokens);
    const stage = request.stage === "prefill" ? `prefill ${percentText(computed, request.prompt_tokens)}` : request.stage;
    const answer = request.choices > 1 ? `${request.generated_tokens} in ${request.choices}` : request.generated_tokens;
    return element("tr", {}, ...[request.id, request.tenant || "–", stage, request.prompt_tokens, request.cached_tokens,
        answer, secondsText(request.age_ms / 1000)].map(text => element("td", {textContent: text})));
  }));
  if (requests.length === 0) body.append(element("tr", {}, element("td", {colSpan: 7, textContent: "None at the moment"})));
}

// --- KV cache ---

// The finer the format, the fuller the colour.
function colourOf(use, formats) {
  const share = 1 - 0.7 * formats.indexOf(use.format) / Math.max(1, formats.length - 1);
  return `color-mix(in srgb, var(--${use.owner}) ${Math.round(share * 100)}%, var(--ground))`;
}

function showKv(kv) {
  const formats = [...new Set(kv.map.map(use => use.format))], kSquares = 240;
  const used = kv.map.reduce((sum, use) => sum + use.bytes, 0);
  // The memory in use fills the map; the free memory is said beside it.
  const squares = [];
  for (const use of kv.map) {
    const count = Math.max(1, Math.round(kSquares * use.bytes / used));
    for (let i = 0; i < count; ++i) {
      const square = element("i", {title: `${kOwners[use.owner]}, ${use.format}`});
      square.style.background = colourOf(use, formats);
      squares.push(square);
    }
  }
  const map = document.getElementById("kv-map");
  map.replaceChildren(...squares);
  map.ariaLabel = `${bytesText(used)} of ${bytesText(kv.bytes_total)} in use`;
  const [head, body] = document.getElementById("kv-table").children;
  head.replaceChildren(element("tr", {}, ...["For", ...formats, "all"].map(text => element("th", {textContent: text}))));
  body.replaceChildren(...Object.keys(kOwners).map(owner => {
    const of = format => kv.map.filter(use => use.owner === owner && (!format || use.format === format))
                               .reduce((sum, use) => sum + use.bytes, 0);
    const swatch = element("span", {className: "swatch"});
    swatch.style.background = `var(--${owner})`;
    return element("tr", {}, element("td", {}, swatch, kOwners[owner]),
                   ...[...formats, null].map(format => element("td", {textContent: of(format) ? bytesText(of(format)) : "–"})));
  }));
}

// --- Latency over time ---

const kCharts = [{name: "First token", field: "time_to_first_token"}, {name: "Between tokens", field: "inter_token"}];

function chartOf({name, field}) {
  const looks = operations.looks;
  const series = share => looks.map((look, i) => percentile(look[field], looks[Math.max(0, i - kWindowLooks)][field], share));
  const lines = [{label: "p50", values: series(0.5), style: "var(--cached)"}, {label: "p99", values: series(0.99), style: "var(--sequence)"}];
  const top = Math.max(0.001, ...lines.flatMap(line => line.values.map(value => value ?? 0)));
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  svg.setAttribute("viewBox", `0 0 ${kKeptLooks} 100`);
  svg.setAttribute("preserveAspectRatio", "none");
  svg.setAttribute("aria-hidden", "true");
  for (const {values, style} of lines) {
    const path = document.createElementNS("http://www.w3.org/2000/svg", "path");
    let d = "";
    values.forEach((value, i) => {
      if (value === null) return;
      const joins = i > 0 && values[i - 1] !== null;
      d += `${joins ? "L" : "M"}${kKeptLooks - values.length + i} ${96 - 92 * value / top}${joins ? "" : "h1"}`;
    });
    path.setAttribute("d", d);
    path.setAttribute("fill", "none");
    path.setAttribute("stroke-width", "2");
    path.setAttribute("vector-effect", "non-scaling-stroke");
    path.style.stroke = style;
    svg.append(path);
  }
  const last = lines.map(line => `${line.label} ${line.values.at(-1) === null ? "–" : secondsText(line.values.at(-1))}`);
  return element("figure", {}, svg, element("figcaption", {textContent: `${name}: ${last.join(", ")}; the top is ${secondsText(top)}`}));
}

function showRefused(refused) {
  document.getElementById("refused").replaceChildren(...Object.entries(kRefusals).flatMap(([name, meaning]) =>
      [element("dt", {textContent: meaning}), element("dd", {textContent: refused[name]})]));
}

// The looks kept are of one process: another has counted from the beginning.
function keepLook(now) {
  const last = operations.looks.at(-1);
  const isAnother = last && (now.steps.count < last.steps.count || now.tokens.prompt < last.tokens.prompt);
  operations.looks = [...(isAnother ? [] : operations.looks), now].slice(-kKeptLooks);
}

async function look(chain) {
  const view = document.getElementById("operations-view");
  try {
    const now = await connection.get("/v1/operations");
    if (chain !== operations.chain) return;
    if (now) {
      keepLook(now);
      showTiles(now, operations.looks.at(-1 - kWindowLooks) ?? operations.looks[0]);
      showRequests(now.requests);
      showKv(now.kv);
      document.getElementById("charts").replaceChildren(...kCharts.map(chartOf));
      showRefused(now.refused);
    }
    view.classList.toggle("stale", !now);
    showBanner(!now ? "The server wants an API key; what is shown is the last that was seen."
                    : now.draining ? "The server is shutting down." : "");
  } catch {
    if (chain !== operations.chain) return;
    view.classList.add("stale");
    showBanner("There is no connection to the server; what is shown is the last that was seen.");
  }
  operations.timer = setTimeout(look, kLookEveryMs, chain);
}

function watchOperations(watches) {
  clearTimeout(operations.timer);
  ++operations.chain;
  if (watches) operations.timer = setTimeout(look, 0, operations.chain);
  else showBanner("");
}
