"use strict";

const SECONDS = 2; // between two readings of the model's facts
const SMALLEST = 5e-7; // share that is shown
const TOP = 10, EXPLAINED = 2, SHARES = 10, COLUMNS = 30;
const at = (id) => document.getElementById(id);
let model = "", facts = null, asked = null;

// Everything that the server says is put in as text, never as markup.
function element(name, text, ...children) {
  const made = document.createElement(name);
  if (text !== null) made.textContent = text;
  made.append(...children);
  return made;
}

function classed(className, made) {
  made.className = className;
  return made;
}

const number = (value, digits = 4) =>
  value === null || value === undefined ? "none" : Number(value).toLocaleString("en", { maximumSignificantDigits: digits });
const whole = (value) => Number(value).toLocaleString("en");
const shown = (label) => (label === null ? "none" : Array.isArray(label) ? label.map(shown).join(", ") || "no label" : String(label));

async function request(operation, body) {
  const path = `v1/${model ? encodeURIComponent(model) + "/" : ""}${operation}`;
  const options = { headers: {} };
  if (body) {
    options.method = "POST";
    options.headers["Content-Type"] = "application/json";
    if (at("token").value) options.headers.Authorization = `Bearer ${at("token").value}`;
    options.body = JSON.stringify(body);
  }
  const answer = await fetch(path, options);
  const content = await answer.json();
  if (!answer.ok) throw new Error(content.error || `status ${answer.status}`);
  return content;
}

// The form in which a text is sent, by the rule that the page states.
function read(text) {
  const first = text.trimStart()[0];
  if (text.includes("|") && first !== "{" && first !== "[") return { lines: [text.trim().replaceAll("\n", " ")] };
  if (first !== "{" && first !== "[") return { texts: [text.trim()] };
  let parsed;
  try {
    parsed = JSON.parse(text);
  } catch (error) {
    if (first === "[") return { texts: [text.trim()] };
    throw new Error(`The example begins with a brace but is no JSON: ${error.message}`);
  }
  return first === "[" ? { rows: [parsed] } : { examples: [{ features: parsed }] };
}

// A model that has learned from tables has a field for each of their columns.
function showColumns() {
  const columns = Object.entries(facts.columns), place = at("columns");
  place.hidden = !columns.length || columns.length > COLUMNS;
  if (place.hidden || place.dataset.of === JSON.stringify(columns)) return;
  place.dataset.of = JSON.stringify(columns);
  place.replaceChildren(...columns.map(([name, kind], i) => {
    const field = element("input", null), label = element("label", `${name} (${kind === "dense" ? "numbers in brackets" : kind})`);
    label.htmlFor = field.id = `column-${i}`;
    [field.dataset.name, field.dataset.kind, field.autocomplete, field.spellcheck] = [name, kind, "off", false];
    return element("p", null, label, field);
  }));
  at("example-label").textContent = "Or the whole example: a sentence, a line of VW text, or JSON";
}

function readColumns() {
  const filled = at("columns").hidden ? [] : [...at("columns").querySelectorAll("input")].filter((field) => field.value.trim());
  if (!filled.length) return null;
  const value = ({ value: typed, dataset: { name, kind } }) => {
    if (kind !== "number" && kind !== "dense") return typed;
    try {
      return JSON.parse(typed);
    } catch {
      throw new Error(`${name} is ${typed}; type ${kind === "dense" ? "numbers in brackets, such as [0.5, 1.2]" : "a number"}`);
    }
  };
  return { examples: [{ features: Object.fromEntries(filled.map((field) => [field.dataset.name, value(field)])) }] };
}

function warn(warnings) {
  at("warnings").replaceChildren(...[...new Set(warnings)].map((text) => element("li", text)));
  at("warnings").hidden = !warnings.length;
}

async function guarded(button, work) {
  if (button.disabled) return; // Ctrl+Enter while an answer is awaited
  at("message").textContent = "";
  button.disabled = true;
  try {
    await work();
  } catch (error) {
    at("message").textContent = error.message;
  } finally {
    button.disabled = false;
  }
}

async function predict() {
  const text = at("example").value, filled = readColumns();
  if (!filled && !text.trim()) throw new Error("Type an example first.");
  const given = filled || read(text);
  if (!facts) await refresh();
  const began = performance.now();
  const answer = await request("predict", facts.probabilities ? { ...given, k: TOP } : given);
  const milliseconds = performance.now() - began;
  const [{ prediction, top = [] }] = answer.predictions;
  asked = given;
  warn(answer.warnings || []);
  at("verdict").textContent = `${shown(prediction)}, answered in ${number(milliseconds, 3)} ms`;
  const rows = at("top").tBodies[0];
  rows.replaceChildren(...top.map((one) => row(String(one.class), one.probability, 1, "")));
  at("top").hidden = !top.length;
  at("answer").hidden = false;
  await explain(given);
  at("answer-title").focus();
}

async function explain(given) {
  const place = at("reasons");
  place.replaceChildren();
  let explanation;
  try {
    const answer = await request("explain", { ...given, k: EXPLAINED, shares: SHARES });
    [explanation] = answer.explanations;
    if (at("warnings").hidden) warn(answer.warnings || []);
  } catch (error) {
    place.append(classed("note", element("p", `No explanation: ${error.message}`)));
    return;
  }
  for (const one of explanation.classes.slice(0, EXPLAINED)) {
    const part = element("section", null, element("h3", `Why ${shown(one.class)}?`));
    const shares = reasons(one);
    const largest = Math.max(...shares.map((share) => (share.others ? 0 : Math.abs(share.share))), 1e-9);
    const table = element("table", null, element("caption", "What spoke for (+) and against (−) it"), element("tbody", null));
    table.tBodies[0].append(...shares.map((share) => {
      const made = row(share.name, share.share, largest, "+");
      if (share.others) made.lastChild.replaceChildren(); // a sum of many is no single reason
      if (share.parts) made.firstChild.append(classed("note parts", element("span", ` = ${summands(share.parts)}`)));
      return made;
    }));
    part.append(shares.length ? table : classed("note", element("p", "No feature has a share in it.")));
    place.append(part);
  }
}

// Where the path through a tree decides, the shares are those of its turns, the largest first.
function reasons(one) {
  const ofTurns = one.path.flatMap((turn) =>
    (turn.shares || []).filter((share) => !share.others).map((share) => ({ ...share, name: `${share.name}, at ${turn.node}` })));
  ofTurns.sort((a, b) => Math.abs(b.share) - Math.abs(a.share));
  return (ofTurns.length ? ofTurns.slice(0, SHARES) : one.shares).filter((share) => counts(share.share));
}

const counts = (value) => Math.abs(value) >= SMALLEST;
const summands = (parts) => Object.entries(parts).filter(([, value]) => counts(value)).map(([part, value]) => `${part} ${number(value)}`).join(", ");

function row(name, value, largest, sign) {
  const bar = element("span", null);
  bar.style.width = value ? `${Math.min(100, (100 * Math.abs(value)) / largest)}%` : "0";
  bar.className = value < 0 ? "against" : "for";
  const head = element("th", name);
  head.scope = "row";
  const written = (sign && value > 0 ? "+" : "") + number(value).replace("-", "−");
  const drawn = classed("bars", element("td", null, classed("bar", element("span", null, bar))));
  drawn.setAttribute("aria-hidden", "true");
  return element("tr", null, head, classed("number", element("td", written)), drawn);
}

async function learn() {
  if (!asked) throw new Error("Predict an example first.");
  const typed = at("label").value.trim();
  if (!typed) throw new Error("Type the right class first.");
  const labels = typed.split(",").map((label) => label.trim()).filter(Boolean);
  const label = at("teach").dataset.lists ? labels : typed;
  let given = asked;
  if (given.lines) given = { lines: [`${labels.join(",")} ${given.lines[0].slice(given.lines[0].indexOf("|"))}`] };
  else if (given.texts || given.rows) given = { ...given, labels: [label] };
  else given = { examples: [{ ...given.examples[0], label }] };
  const { learned, warnings = [] } = await request("learn", given);
  at("learned").textContent = learned ? `Learned as ${shown(labels)}.` : "Nothing was learned.";
  await predict();
  if (warnings.length) warn(warnings);
  await refresh();
}

function pairs(place, values) {
  const entries = Object.entries(values).filter(([, value]) => value !== undefined);
  while (place.children.length > entries.length) place.lastChild.remove();
  entries.forEach(([name, value], i) => {
    const entry = place.children[i] || place.appendChild(element("div", null, element("dt", ""), element("dd", "")));
    if (entry.firstChild.textContent !== name) entry.firstChild.textContent = name;
    if (entry.lastChild.textContent !== value) entry.lastChild.textContent = value;
  });
}

async function refresh() {
  facts = await request("model");
  at("model-name").textContent = facts.name;
  const classes = facts.classes === null ? "real numbers" : `${whole(facts.classes)} classes`;
  showColumns();
  at("summary").textContent = `${facts.reduction}: ${classes}, ${whole(facts.examples)} examples learned.`;
  at("teach").hidden = !facts.learns;
  at("teach").dataset.lists = facts.labels === "multilabel" ? "yes" : "";
  at("secret").hidden = !facts.needs_token;
  pairs(at("live"), {
    "Examples learned": whole(facts.examples),
    "Progressive loss": number(facts.average_loss),
    "Predictions": whole(facts.predicted),
    "Latency, median": facts.latency_ms ? `${number(facts.latency_ms.median, 3)} ms` : "none yet",
    "Latency, 99 %": facts.latency_ms ? `${number(facts.latency_ms.p99, 3)} ms` : "none yet",
    "Memory": `${number(facts.memory_bytes / 1e6, 3)} MB`,
  });
  pairs(at("facts"), {
    "Reduction": facts.reduction,
    "Labels": { multiclass: "one class", multilabel: "lists of labels", simple: "numbers" }[facts.labels],
    "Classes": facts.classes === null ? "none" : whole(facts.classes),
    "Learns": facts.learns ? (facts.needs_token ? "with the token" : "yes") : "no, it only predicts",
    ...Object.fromEntries(Object.entries(facts.options).map(([name, value]) => [`--${name}`, String(value)])),
    "xclass": facts.version,
  });
}

async function live() {
  if (!document.hidden) {
    try {
      await refresh();
    } catch {
      at("summary").textContent = "The server does not answer; the page tries again.";
    }
  }
  setTimeout(live, SECONDS * 1000);
}

async function begin() {
  const { models } = await (await fetch("v1/models")).json();
  if (models.length > 1) {
    at("choice").hidden = false;
    at("model").append(...models.map((name) => element("option", name)));
    at("model").addEventListener("change", () => {
      [model, facts] = [at("model").value, null];
      at("answer").hidden = true;
      refresh().catch((error) => { at("message").textContent = error.message; });
    });
  }
  model = models[0];
}

at("ask").addEventListener("submit", (event) => {
  event.preventDefault();
  guarded(event.submitter || at("ask").querySelector("button"), predict);
});
at("teach").addEventListener("submit", (event) => {
  event.preventDefault();
  guarded(event.submitter || at("teach").querySelector("button"), learn);
});
at("example").addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) at("ask").requestSubmit();
});
begin().then(live, (error) => { at("message").textContent = error.message; });
