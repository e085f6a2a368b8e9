"use strict";
// Markdown as elements, never as HTML: whatever a model writes, no part of it is markup, and nothing is fetched.

function element(name, properties = {}, ...children) {
  const made = Object.assign(document.createElement(name), properties);
  made.append(...children);
  return made;
}

// `code`, **strong**, *emphasis*, ~~struck~~, [text](link); images become links.
function inlineNodes(text) {
  const pattern = /(`+)(.+?)\1(?!`)|\*\*(.+?)\*\*|__(.+?)__|\*(\S(?:.*?\S)?)\*|~~(.+?)~~|!?\[([^\]]*)\]\((https?:\/\/[^\s)]+)\)/s;
  const nodes = [];
  for (let rest = text; rest;) {
    const found = pattern.exec(rest);
    if (!found) { nodes.push(rest); break; }
    if (found.index > 0) nodes.push(rest.slice(0, found.index));
    const [whole, , code, strong, strong2, emphasis, struck, label, link] = found;
    if (code !== undefined) nodes.push(element("code", {textContent: code}));
    else if (strong ?? strong2) nodes.push(element("strong", {}, ...inlineNodes(strong ?? strong2)));
    else if (emphasis) nodes.push(element("em", {}, ...inlineNodes(emphasis)));
    else if (struck) nodes.push(element("s", {}, ...inlineNodes(struck)));
    else nodes.push(element("a", {href: link, target: "_blank", rel: "noopener noreferrer"}, label || link));
    rest = rest.slice(found.index + whole.length);
  }
  return nodes;
}

function codeBlock(lines, language) {
  const text = lines.join("\n");
  const copy = element("button", {type: "button", textContent: "Copy", ariaLabel: "Copy this code"});
  copy.addEventListener("click", () => copyText(text, copy));
  const block = element("pre", {tabIndex: 0}, element("code", {textContent: text}), copy);
  if (language) block.dataset.language = language;
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

const kItem = /^(\s*)(?:[-*+]|(\d+)[.)])\s+(.*)$/;

// A list from lines[at] on; deeper items become lists of their own. Returns the list and where it ends.
function listFrom(lines, at) {
  const [, indent, number] = kItem.exec(lines[at]);
  const list = element(number ? "ol" : "ul", number ? {start: Number(number)} : {});
  while (at < lines.length) {
    const found = kItem.exec(lines[at]);
    if (found && found[1].length > indent.length + 1 && list.lastChild) {
      const [deeper, next] = listFrom(lines, at);
      list.lastChild.append(deeper);
      at = next;
    } else if (found && found[1].length + 1 >= indent.length && !!found[2] === !!number) {
      list.append(element("li", {}, ...inlineNodes(found[3])));
      ++at;
    } else if (!found && /^\s+\S/.test(lines[at]) && list.lastChild) {
      list.lastChild.append(" ", ...inlineNodes(lines[at++].trim()));
    } else {
      break;
    }
  }
  return [list, at];
}

function tableFrom(lines, at) {
  const cells = line => line.trim().replace(/^\||\|$/g, "").split("|").map(cell => inlineNodes(cell.trim()));
  const row = (name, line) => element("tr", {}, ...cells(line).map(nodes => element(name, {}, ...nodes)));
  const body = element("tbody");
  const table = element("table", {}, element("thead", {}, row("th", lines[at])), body);
  for (at += 2; at < lines.length && lines[at].includes("|"); ++at) body.append(row("td", lines[at]));
  return [element("div", {className: "scroll"}, table), at];
}

const kStartsBlock = /^(```|~~~|#{1,6}\s|>\s?|\s*([-*+]|\d+[.)])\s+|\s*([-*_])(\s*\3){2,}\s*$)/;

const kMostQuotes = 16;  // within each other; what is deeper stays text

function renderMarkdown(text, depth = 0) {
  const lines = text.split("\n"), blocks = [];
  for (let at = 0; at < lines.length;) {
    const line = lines[at], fence = /^(```+|~~~+)\s*(\S*)/.exec(line), heading = /^(#{1,6})\s+(.*)$/.exec(line);
    if (fence) {
      let end = at + 1;
      while (end < lines.length && !lines[end].startsWith(fence[1])) ++end;
      blocks.push(codeBlock(lines.slice(at + 1, end), fence[2]));
      at = end + 1;
    } else if (heading) {
      blocks.push(element("h" + Math.min(6, heading[1].length + 2), {}, ...inlineNodes(heading[2])));
      ++at;
    } else if (/^\s*([-*_])(\s*\1){2,}\s*$/.test(line)) {
      blocks.push(element("hr"));
      ++at;
    } else if (kItem.test(line)) {
      const [list, next] = listFrom(lines, at);
      blocks.push(list);
      at = next;
    } else if (line.startsWith(">")) {
      const quoted = [];
      while (at < lines.length && lines[at].startsWith(">")) quoted.push(lines[at++].replace(/^>\s?/, ""));
      const isDeep = depth >= kMostQuotes;
      blocks.push(element("blockquote", {}, ...(isDeep ? [quoted.join("\n")] : renderMarkdown(quoted.join("\n"), depth + 1))));
    } else if (line.includes("|") && /^\s*\|?\s*:?-+:?\s*(\|\s*:?-+:?\s*)*\|?\s*$/.test(lines[at + 1] ?? "")) {
      const [table, next] = tableFrom(lines, at);
      blocks.push(table);
      at = next;
    } else if (!line.trim()) {
      ++at;
    } else {
      const paragraph = [line];
      while (++at < lines.length && lines[at].trim() && !kStartsBlock.test(lines[at])) paragraph.push(lines[at]);
      blocks.push(element("p", {}, ...inlineNodes(paragraph.join("\n"))));
    }
  }
  return blocks;
}
