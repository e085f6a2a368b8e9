"use strict";
// Markdown within a line or paragraph: CommonMark's rules, each character looked at a bounded number of times.

// The most elements within each other. Deeper ones stay text, for no browser lays out thousands of them.
const kMostNested = 16;
const kMostParentheses = 32;  // within each other in an address

const kPunctuation = /[\p{P}\p{S}]/u;
// Beside these a word ends. CommonMark forgets writing without spaces: **重要。**次.
const kWordEnd = /[\s\p{P}\p{S}\p{sc=Han}\p{sc=Hiragana}\p{sc=Katakana}\p{sc=Hangul}]/u;
const kEscape = /\\([!-\/:-@[-`{-~])/g;
const kSpecial = /\\[!-\/:-@[-`{-~\n]|`+|\*+|_+|~+|!?\[|\]|\n/g;

function element(name, properties = {}, ...children) {
  const made = Object.assign(document.createElement(name), properties);
  made.append(...children);
  return made;
}

// Takes any number of children, which may be too many for the arguments of one call.
function filled(made, children) {
  for (const child of children) made.append(child);
  return made;
}

// Where in the text a run of backticks begins -> where the next of the same length does.
function nextRuns(text) {
  const next = new Map(), last = new Map();
  for (const {0: run, index} of text.matchAll(/`+/g)) {
    if (last.has(run.length)) next.set(last.get(run.length), index);
    last.set(run.length, index);
  }
  return next;
}

function codeSpan(text) {
  const line = text.replaceAll("\n", " "), isPadded = line.startsWith(" ") && line.endsWith(" ") && line.trim() !== "";
  return element("code", {textContent: isPadded ? line.slice(1, -1) : line});
}

function characterBefore(text, at) {
  if (at === 0) return " ";
  return String.fromCodePoint(text.codePointAt(at - (at > 1 && text.codePointAt(at - 2) > 0xFFFF ? 2 : 1)));
}

function characterAt(text, at) {
  return at < text.length ? String.fromCodePoint(text.codePointAt(at)) : " ";
}

// A run of * _ or ~ with what it may do (CommonMark 0.31, 6.2: left- and right-flanking), or its text.
function delimiterRun(text, at, end) {
  const character = text[at], count = end - at, before = characterBefore(text, at), after = characterAt(text, end);
  const isLeft = /\S/.test(after) && (!kPunctuation.test(after) || kWordEnd.test(before));
  const isRight = /\S/.test(before) && (!kPunctuation.test(before) || kWordEnd.test(after));
  const isWord = character === "_";  // within a word it is a letter
  const canOpen = isLeft && (!isWord || !isRight || kPunctuation.test(before));
  const canClose = isRight && (!isWord || !isLeft || kPunctuation.test(after));
  if ((!canOpen && !canClose) || (character === "~" && count !== 2)) return text.slice(at, end);
  return {character, count, canOpen, canClose, kind: kindOf(canOpen && canClose, count)};
}

// Two runs make emphasis by their kinds alone: 0 to 2 of runs that open or close, 3 to 5 of those that may do both.
function kindOf(isBoth, count) {
  return (isBoth ? 3 : 0) + count % 3;
}

function fit(opener, closer) {
  return (opener < 3 && closer < 3) || (opener + closer) % 3 !== 0 || opener % 3 === 0;
}

// The link in parentheses from text[at] on: {href, end}; undefined where that is no link, or none to follow.
function destinationAt(text, at) {
  if (text[at] !== "(") return undefined;
  const scheme = /\s*<?(?:https?:\/\/|mailto:)/iy;
  scheme.lastIndex = at + 1;
  const found = scheme.exec(text);
  if (!found) return undefined;
  const isBracketed = found[0].includes("<"), begin = scheme.lastIndex - found[0].trimStart().length + (isBracketed ? 1 : 0);
  const end = addressEnd(text, begin, isBracketed);
  if (end < 0) return undefined;
  const rest = /(?:\s+(?:"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|\((?:[^()\\]|\\.)*\)))?\s*\)/sy;
  rest.lastIndex = end + (isBracketed ? 1 : 0);
  return rest.test(text) ? {href: text.slice(begin, end).replace(kEscape, "$1"), end: rest.lastIndex} : undefined;
}

function addressEnd(text, at, isBracketed) {
  for (let open = 0; at < text.length; ++at) {
    const character = text[at];
    if (character === "\\" && /[!-\/:-@[-`{-~]/.test(text[at + 1] ?? "")) ++at;
    else if (isBracketed && character === ">") return at;
    else if (isBracketed ? /[<\n]/.test(character) : /[\s\x00-\x1f\x7f]/.test(character)) return isBracketed ? -1 : at;
    else if (!isBracketed && character === "(" && ++open > kMostParentheses) return -1;
    else if (!isBracketed && character === ")" && open-- === 0) return at;
  }
  return -1;
}

// The text in pieces: strings, elements, runs, and the ends of links, {opens} and {closes}.
function inlineTokens(text) {
  const tokens = [], brackets = [], special = new RegExp(kSpecial), next = nextRuns(text);
  let plain = 0, outerLinks = 0;  // of the brackets so many are around a link, which is in no other
  for (let found; (found = special.exec(text));) {
    const mark = found[0], at = found.index;
    let token, end = special.lastIndex;
    if (mark[0] === "\\") {
      token = mark[1] === "\n" ? element("br") : mark[1];
    } else if (mark === "\n") {
      if (!text.endsWith("  ", at)) continue;
      token = element("br");
    } else if (mark[0] === "`") {
      if (!next.has(at)) continue;
      token = codeSpan(text.slice(end, next.get(at)));
      end = next.get(at) + mark.length;
    } else if (mark.endsWith("[")) {
      token = {opens: mark, href: ""};
      brackets.push(token);
    } else if (mark === "]") {
      const opener = brackets.pop(), isImage = opener?.opens === "![";
      const target = opener && (isImage || brackets.length >= outerLinks) ? destinationAt(text, end) : undefined;
      if (target) {
        opener.href = target.href;
        end = target.end;
        if (!isImage) outerLinks = brackets.length;
      }
      token = target ? {closes: opener} : mark;
      outerLinks = Math.min(outerLinks, brackets.length);
    } else {
      token = delimiterRun(text, at, end);
    }
    if (at > plain) tokens.push(text.slice(plain, at));
    tokens.push(token);
    plain = special.lastIndex = end;
  }
  if (plain < text.length) tokens.push(text.slice(plain));
  return tokens;
}

// The runs that may begin emphasis and the link that are open at a place of the text, the innermost last.
class InlineStack {
  frames = [];        // {opener, nodes, depth}; depth: of elements within each other
  counts = new Map();  // character + kind -> how many of the frames, those around a link left out

  constructor() {
    this.push(null);
  }

  push(opener) {
    this.frames.push({opener, nodes: [], depth: 0});
    if (opener?.kind !== undefined) this.count(opener, 1);
  }

  count({character, kind}, change) {
    this.counts.set(character + kind, (this.counts.get(character + kind) ?? 0) + change);
  }

  add(nodes, depth = 0) {
    const top = this.frames.at(-1);
    for (const node of nodes) {
      const last = top.nodes.length - 1;
      if (typeof node === "string" && typeof top.nodes[last] === "string") top.nodes[last] += node;
      else top.nodes.push(node);
    }
    top.depth = Math.max(top.depth, depth);
  }

  // A run that was opened behind the frame and not closed becomes text of the frame.
  closeBehind(at) {
    for (const {opener, nodes, depth} of this.frames.splice(at + 1)) {
      this.count(opener, -1);
      this.add([opener.character.repeat(opener.count)]);
      this.add(nodes, depth);
    }
  }

  addRun(run) {
    while (run.canClose && run.count > 0 && this.closeOne(run)) continue;
    if (run.count === 0) return;
    if (run.canOpen) this.push(run);
    else this.add([run.character.repeat(run.count)]);
  }

  // Whether one or two characters of the run have made emphasis. Looks for its begin only where there is one: no text
  // is gone through again and again.
  closeOne(run) {
    const kinds = [0, 1, 2, 3, 4, 5].filter(kind => fit(kind, run.kind) && this.counts.get(run.character + kind) > 0);
    if (kinds.length === 0) return false;
    const at = this.frames.findLastIndex(({opener}) => opener?.character === run.character && kinds.includes(opener.kind));
    this.closeBehind(at);
    const {opener, nodes, depth} = this.frames[at];
    if (depth >= kMostNested) return false;
    const used = Math.min(2, opener.count, run.count);
    const name = run.character === "~" ? "s" : used === 2 ? "strong" : "em";
    const made = filled(element(name), nodes);
    opener.count -= used;
    run.count -= used;
    this.frames[at] = {opener, nodes: [], depth: 0};
    if (opener.count === 0) {
      this.frames.pop();
      this.count(opener, -1);
    }
    this.add([made], depth + 1);
    return true;
  }
}

// `code`, **strong**, *emphasis*, ~~struck~~, [text](link), \* escaped; images become links.
function inlineNodes(text) {
  const stack = new InlineStack();
  let link = 0, outerCounts = stack.counts;  // the frame of the link, 0: in none
  for (const token of inlineTokens(text)) {
    if (typeof token === "string" || token instanceof Node) {
      stack.add([token]);
    } else if (token.character) {
      stack.addRun(token);
    } else if (token.opens && !token.href) {
      stack.add([token.opens]);
    } else if (token.opens && link === 0) {  // else an image in a link: its text alone
      stack.push(token);
      link = stack.frames.length - 1;
      outerCounts = stack.counts;
      stack.counts = new Map();
    } else if (token.closes && token.closes === stack.frames[link].opener) {
      stack.closeBehind(link);
      const {nodes, depth} = stack.frames.pop(), href = token.closes.href;
      stack.counts = outerCounts;
      link = 0;
      const made = element("a", {href, target: "_blank", rel: "noopener noreferrer"});
      stack.add([filled(made, nodes.length > 0 ? nodes : [href])], depth + 1);
    }
  }
  stack.closeBehind(0);
  return stack.frames[0].nodes;
}
