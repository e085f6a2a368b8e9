// Markdown as elements, never as HTML: whatever a model writes, no part of it is markup, and nothing is fetched.

function codeBlock(lines, language) {
  const text = lines.join("\n");
  const copy = element("button", {type: "button", textContent: "Copy", ariaLabel: "Copy this code"});
  copy.addEventListener("click", () => copyText(text, copy));
  const block = element("pre", {}, filled(element("code", {tabIndex: 0}), colouredCode(text, language)), copy);
  if (language) block.dataset.language = language.slice(0, 20);
  return block;
}

async function copyText(text, button) {
  const label = button.textContent;
  try {
    await navigator.clipboard.writeText(text);
    button.textContent = "Copied";
  } catch {
    button.textContent = "Copying is not allowed here";
  }
  setTimeout(() => { button.textContent = label; }, 1500);
}

// --- What a line is ---

function indentOf(line) {
  let columns = 0;
  for (let at = 0; line[at] === " " || line[at] === "\t"; ++at) columns += line[at] === "\t" ? 4 - columns % 4 : 1;
  return columns;
}

// The line without so many columns of the white space that it begins with.
function outdented(line, columns) {
  let at = 0, passed = 0;
  for (; passed < columns && (line[at] === " " || line[at] === "\t"); ++at) passed += line[at] === "\t" ? 4 - passed % 4 : 1;
  return " ".repeat(Math.max(0, passed - columns)) + line.slice(at);
}

const isBlank = line => line.trim() === "";
const isRule = line => /^([-*_])\1\1+$/.test(line.replace(/\s/g, ""));
const isQuote = line => /^\s*>/.test(line);
const headingOf = line => /^\s*(#{1,6})\s+(.*)$/s.exec(line);

function fenceOf(line) {
  const found = /^\s*(`{3,}|~{3,})(.*)$/s.exec(line);
  if (!found || (found[1][0] === "`" && found[2].includes("`"))) return null;
  return {marks: found[1], language: found[2].trim().split(/\s/, 1)[0]};
}

function closes(line, fence) {
  const marks = line.trim();
  return marks.length >= fence.marks.length && marks === fence.marks[0].repeat(marks.length);
}

// An item of a list: {indent, kind, number, content}; those of one kind are of one list.
function itemOf(line) {
  const found = /^\s*(?:([-*+])|(\d{1,9})([.)]))(?:\s+(\S.*))?\s*$/s.exec(line);
  if (!found || isRule(line)) return null;
  return {indent: indentOf(line), kind: found[1] ?? found[3], number: found[2], content: found[4] ?? ""};
}

// The cells of a table's row; \| is a character in a cell.
function cellsOf(line) {
  const cells = line.trim().replace(/^\|/, "").replaceAll("\\|", "\0").split("|");
  if (cells.length > 1 && isBlank(cells.at(-1))) cells.pop();
  return cells.map(cell => cell.trim().replaceAll("\0", "|"));
}

function startsTable(lines, at) {
  const next = lines[at + 1];
  if (!next?.includes("-") || !lines[at].includes("|")) return false;
  const marks = cellsOf(next);
  return marks.every(cell => /^:?-+:?$/.test(cell)) && marks.length === cellsOf(lines[at]).length;
}

function startsBlock(lines, at) {
  const line = lines[at];
  return fenceOf(line) || headingOf(line) || isQuote(line) || isRule(line) || itemOf(line)?.content || startsTable(lines, at);
}

// --- Blocks: each takes lines[at] and what belongs to it, and returns its element and where it ends ---

function fenceFrom(lines, at) {
  const fence = fenceOf(lines[at]), indent = indentOf(lines[at]);
  let end = at + 1;
  while (end < lines.length && !closes(lines[end], fence)) ++end;
  return [codeBlock(lines.slice(at + 1, end).map(line => outdented(line, indent)), fence.language), end + 1];
}

// The lines of an item without its indent. A line that is two columns deeper belongs to it. So does, deep or not, the
// next line of its paragraph.
function itemLines(lines, at, item) {
  const start = lines[at].length - item.content.length;
  let columns = item.content ? indentOf(lines[at].slice(0, start).replace(/\S/g, " ")) : item.indent + 2;
  let fence = fenceOf(item.content), isParagraph = item.content !== "" && !fence, end = at + 1;
  for (let next = end; next < lines.length; ++next) {
    const line = lines[next], indent = indentOf(line);
    if (isBlank(line)) { isParagraph = false; continue; }
    if (indent >= item.indent + 2) columns = Math.min(columns, indent);
    else if (!isParagraph || startsBlock(lines, next)) break;
    const wasIn = fence;
    fence = fence ? (closes(line, fence) ? null : fence) : fenceOf(line);
    isParagraph = !fence && !wasIn;
    end = next + 1;
  }
  return [[item.content, ...lines.slice(at + 1, end).map(line => outdented(line, columns))], end];
}

// Items with blank lines between them, or within one of them, are paragraphs.
function listFrom(lines, at, depth) {
  const {kind, number} = itemOf(lines[at]), items = [];
  let isLoose = false, end = at;
  for (let next = at, item; (item = itemOf(lines[next] ?? ""))?.kind === kind;) {
    isLoose ||= next > end;
    const [inner, itemEnd] = itemLines(lines, next, item), {blocks, isSpaced} = blocksOf(inner, depth + 1);
    isLoose ||= isSpaced;
    items.push(blocks);
    for (next = end = itemEnd; next < lines.length && isBlank(lines[next]);) ++next;
  }
  const list = number === undefined ? element("ul") : element("ol", {start: Number(number)});
  for (const blocks of items) {
    const parts = isLoose ? blocks : blocks.flatMap(block => block.localName === "p" ? [...block.childNodes] : [block]);
    list.append(filled(element("li"), parts));
  }
  return [list, end];
}

function tableFrom(lines, at) {
  const row = (name, line) => filled(element("tr"), cellsOf(line).map(cell => filled(element(name), inlineNodes(cell))));
  const body = element("tbody");
  const table = element("table", {}, element("thead", {}, row("th", lines[at])), body);
  for (at += 2; at < lines.length && lines[at].includes("|"); ++at) body.append(row("td", lines[at]));
  return [element("div", {className: "scroll"}, table), at];
}

function quoteFrom(lines, at, depth) {
  const quoted = [];
  for (; at < lines.length && isQuote(lines[at]); ++at) quoted.push(lines[at].replace(/^\s*>\s?/, ""));
  return [filled(element("blockquote"), blocksOf(quoted, depth + 1).blocks), at];
}

function paragraphFrom(lines, at) {
  const begin = at;
  do ++at; while (at < lines.length && !isBlank(lines[at]) && !startsBlock(lines, at));
  return [filled(element("p"), inlineNodes(lines.slice(begin, at).join("\n"))), at];
}

function blockFrom(lines, at, depth) {
  const heading = headingOf(lines[at]);
  if (fenceOf(lines[at])) return fenceFrom(lines, at);
  if (heading) return [filled(element("h" + Math.min(6, heading[1].length + 2)), inlineNodes(heading[2])), at + 1];
  if (isRule(lines[at])) return [element("hr"), at + 1];
  if (itemOf(lines[at])) return listFrom(lines, at, depth);
  if (isQuote(lines[at])) return quoteFrom(lines, at, depth);
  return startsTable(lines, at) ? tableFrom(lines, at) : paragraphFrom(lines, at);
}

// isSpaced: some blocks have blank lines between them.
function blocksOf(lines, depth) {
  if (depth >= kMostNested) return {blocks: [element("p", {}, lines.join("\n"))], isSpaced: false};
  const blocks = [];
  let isSpaced = false;
  for (let at = 0; at < lines.length;) {
    if (isBlank(lines[at])) {
      isSpaced ||= blocks.length > 0;
      ++at;
    } else {
      const [block, next] = blockFrom(lines, at, depth);
      blocks.push(block);
      at = next;
    }
  }
  return {blocks, isSpaced};
}

function renderMarkdown(text) {
  return blocksOf(text.split(/\r?\n/), 0).blocks;
}
