/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The page: requests the server's overview at intervals and shows it. All data of the store is set
 * as text, never as markup; the page's policy forbids anything else.
 *
 * Rows are kept and changed in place, so that focus and selection stay where they are.
 */
"use strict";

const SAMPLES_MAX = 6001, BINS = 60, ROWS = 1000, SHORTEST_MS = 120000, LONGEST_MS = 600000;
const $ = (id) => document.getElementById(id);
const state = {
  token: sessionStorage.getItem("token") || "", paused: false, sort: "wait", opened: null, rows: ROWS,
  samples: [], next: 0, started: 0, overview: null, timer: 0, round: 0,
};

/* ----------------------------------------------------------------- elements */

function make(tag, text, className) {
  const element = document.createElement(tag);
  if (text !== undefined)
    element.textContent = text;
  if (className)
    element.className = className;
  return element;
}

function setText(element, text) {
  if (element.textContent !== text)
    element.textContent = text;
}

function draw(tag, attributes) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes))
    element.setAttribute(name, value);
  return element;
}

/* Makes the children of a table's body those of `keys`, in order; old ones stay the same. */
function arrangeRows(body, keys, makeRow) {
  const focused = document.activeElement, old = new Map();
  for (const row of body.children)
    old.set(row.dataset.key, row);
  let place = body.firstElementChild;
  for (const key of keys) {
    let row = old.get(key);
    old.delete(key);
    if (!row) {
      row = makeRow();
      row.dataset.key = key;
    }
    if (row === place)
      place = place.nextElementSibling;
    else
      body.insertBefore(row, place);
  }
  for (const row of old.values())
    row.remove();
  if (focused !== document.activeElement && body.contains(focused))
    focused.focus({preventScroll: true});
  return [...body.children];
}

function makeCells(titles) {
  const row = make("tr");
  for (const [title, className] of titles) {
    const cell = make("td", "", className);
    cell.dataset.title = title;
    row.append(cell);
  }
  return row;
}

/* -------------------------------------------------------------------- words */

function duration(ms) {
  const s = Math.max(0, ms) / 1000;
  if (s < 10)
    return s.toFixed(1) + " s";
  if (s < 60)
    return Math.floor(s) + " s";
  if (s < 3600)
    return Math.floor(s / 60) + " min " + String(Math.floor(s % 60)).padStart(2, "0") + " s";
  if (s < 86400)
    return Math.floor(s / 3600) + " h " + String(Math.floor(s / 60 % 60)).padStart(2, "0") + " min";
  return Math.floor(s / 86400) + " d " + Math.floor(s / 3600 % 24) + " h";
}

function bound(ms) {
  const units = [[3600000, " h"], [60000, " min"], [1000, " s"]];
  for (const [unit, name] of units)
    if (ms >= unit)
      return ms / unit + name;
  return ms + " ms";
}

function age(ticket) {
  return ticket.age_ms === null ? "?" : duration(ticket.age_ms);
}

function who(ticket) {
  if (ticket.detached)
    return "nobody: detached";
  if (ticket.delay_ms)
    return `nobody: its holder has died, kept for ${duration(ticket.delay_ms)} yet`;
  const place = ticket.pid ? (ticket.host ? ticket.host + " " : "") + "pid " + ticket.pid : "";
  return [ticket.label, place].filter(Boolean).join(" · ");
}

function rate(value) {
  return value === 0 ? "0" : value < 0.01 ? "<0.01" : value.toFixed(value < 10 ? 2 : 1);
}

/* ------------------------------------------------------------------- server */

class Refused extends Error {
  constructor(status, text) {
    super(text);
    this.status = status;
  }
}

async function ask(path, method = "GET") {
  const headers = state.token ? {Authorization: "Bearer " + state.token} : {};
  const answer = await fetch(path, {method, headers, cache: "no-store"});
  const content = await answer.json();
  if (!answer.ok)
    throw new Refused(answer.status, content.error);
  return content;
}

/* ----------------------------------------------------------------- overview */

function keepSamples(overview) {
  if (overview.started !== state.started)
    state.samples = [];
  state.started = overview.started;
  state.next = overview.next;
  state.samples = state.samples.concat(overview.samples).slice(-SAMPLES_MAX);
}

function recentRate() {
  const samples = state.samples, end = samples.at(-1);
  const recent = samples.filter((s) => s[0] >= end[0] - 60000);
  const ms = end[0] - recent[0][0];
  return ms > 0 ? recent.slice(1).reduce((sum, s) => sum + s[5], 0) * 1000 / ms : 0;
}

function showExtreme(id, extreme) {
  setText($(id), extreme ? duration(extreme.ms) : "–");
  setText($(id + "-name"), extreme ? extreme.name : "");
  $(id + "-name").title = extreme ? extreme.name : "";
}

function showTiles(overview) {
  setText($("tile-held"), overview.held.toLocaleString());
  setText($("tile-holders"), overview.holders.toLocaleString());
  setText($("tile-waiters"), overview.waiters.toLocaleString());
  showExtreme("tile-wait", overview.longest_wait);
  showExtreme("tile-hold", overview.oldest_hold);
  setText($("tile-rate"), state.samples.length ? rate(recentRate()) : "–");
  const counts = overview.counts;
  setText($("tile-contended"),
          counts.grants ? Math.round(100 * counts.contended / counts.grants) + " %" : "–");
}

/* The counts of the agent, if the store is watched through one that answers. */
function showAgent(agent) {
  $("agent").hidden = !agent;
  setText($("agent"), agent
    ? `The agent has ${agent.clients.toLocaleString()} clients, ${agent.sessions.toLocaleString()} sessions and ` +
      `${agent.tickets.toLocaleString()} tickets, ${agent.holders.toLocaleString()} of them held. Since it started: ` +
      `${agent.grants.toLocaleString()} grants, ${agent.refused.toLocaleString()} clients refused.`
    : "");
}

/* Values over time, each bin's out of its looks; null: there was none. */
function binned(combine) {
  const samples = state.samples, end = samples.at(-1)[0];
  const span = Math.min(LONGEST_MS, Math.max(SHORTEST_MS, end - samples[0][0])), width = span / BINS;
  const bins = Array.from({length: BINS}, () => []);
  for (let i = 1; i < samples.length; i++) {
    const bin = Math.min(BINS - 1, Math.floor((samples[i][0] - (end - span)) / width));
    if (bin >= 0 && !samples[i][6])
      bins[bin].push({waiters: samples[i][3], changes: samples[i][5], ms: samples[i][0] - samples[i - 1][0]});
  }
  return {span, values: bins.map((bin) => bin.length ? combine(bin) : null)};
}

const sum = (bin, what) => bin.reduce((total, look) => total + look[what], 0);
const changeRate = (bin) => sum(bin, "changes") * 1000 / Math.max(1, sum(bin, "ms"));
const mostWaiters = (bin) => Math.max(...bin.map((look) => look.waiters));

/* Bins between two looks are empty when looks are rarer than bins: bridged, unless it is long. */
function traces(values) {
  const lines = [];
  let line = [], last = -1;
  values.forEach((value, i) => {
    if (value === null)
      return;
    if (last >= 0 && i - last > 4) {
      lines.push(line);
      line = [];
    }
    line.push([i, value]);
    last = i;
  });
  return lines.concat([line]).filter((l) => l.length);
}

function niceTop(most) {
  const power = 10 ** Math.floor(Math.log10(Math.max(most, 1)));
  return [1, 2, 5, 10].map((n) => n * power).find((n) => n >= most);
}

function showChart(figure, combine, text) {
  const {span, values} = binned(combine);
  const most = Math.max(0, ...values.filter((v) => v !== null)), top = niceTop(most);
  const x = (i) => (i * 600 / (BINS - 1)).toFixed(1), y = (v) => (118 - v * 112 / top).toFixed(1);
  const svg = draw("svg", {viewBox: "0 0 600 120", preserveAspectRatio: "none", role: "img"});
  for (const share of [0, 0.5, 1])
    svg.append(draw("line", {class: "grid", x1: 0, x2: 600, y1: y(top * share), y2: y(top * share)}));
  for (const line of traces(values)) {
    const points = line.map(([i, v]) => x(i) + " " + y(v)).join("L");
    svg.append(draw("path", {class: "area", d: `M${x(line[0][0])} 118L${points}L${x(line.at(-1)[0])} 118z`}));
    svg.append(draw("path", {class: "trace", d: "M" + points}));
  }
  const now = values.findLast((v) => v !== null) ?? 0;
  svg.setAttribute("aria-label", `${text(now)} now, at most ${text(most)} in the last ${duration(span)}`);
  const axis = make("div", undefined, "axis");
  axis.append(make("span", duration(span) + " ago"), make("span", "up to " + top), make("span", "now"));
  for (const old of figure.querySelectorAll("svg, .axis"))
    old.remove();
  figure.append(svg, axis);
  const output = figure.querySelector("output");
  setText(output, text(now));
  svg.addEventListener("pointermove", (event) => {
    const box = svg.getBoundingClientRect();
    const i = Math.round((event.clientX - box.left) / box.width * (BINS - 1));
    const value = values.slice(0, i + 1).findLast((v) => v !== null) ?? 0;
    setText(output, `${text(value)}, ${duration(span * (1 - i / (BINS - 1)))} ago`);
  });
  svg.addEventListener("pointerleave", () => setText(output, text(now)));
}

function showCharts() {
  if (state.samples.length < 2 || document.querySelector("figure svg:hover"))
    return;
  showChart($("chart-rate"), changeRate, rate);
  showChart($("chart-waiters"), mostWaiters, String);
}

/* From a bucket before the first that has something to one behind the last. */
function usedBuckets(buckets) {
  const first = buckets.findIndex((n) => n > 0), last = buckets.findLastIndex((n) => n > 0);
  return first < 0 ? [] : buckets.map((_, i) => i).slice(Math.max(0, first - 1), last + 2);
}

function makeBar() {
  const row = make("tr"), label = make("th"), bar = make("td");
  label.scope = "row";
  bar.append(make("i"));
  row.append(label, bar, make("td"));
  return row;
}

function showHistogram(id, title, histogram, bounds) {
  const table = $(id), most = Math.max(1, ...histogram.buckets);
  const mean = histogram.count ? `, ${duration(histogram.seconds * 1000 / histogram.count)} on average` : "";
  const text = histogram.count ? `${histogram.count} seen${mean}` : "none seen to end yet";
  table.caption.replaceChildren(title + " ", make("span", text));
  const used = usedBuckets(histogram.buckets);
  const rows = arrangeRows(table.tBodies[0], used.map(String), makeBar);
  rows.forEach((row, n) => {
    const i = used[n], count = histogram.buckets[i];
    setText(row.children[0], i < bounds.length ? "≤ " + bound(bounds[i]) : "longer");
    row.querySelector("i").style.width = 100 * count / most + "%";
    setText(row.children[2], String(count));
    row.className = count ? "" : "none";
  });
}

/* -------------------------------------------------------------------- locks */

const LOCK_CELLS = [["", ""], ["mode", "word"], ["waiting", "number"], ["longest wait", "number"],
                    ["hand-overs/s, at least", "number"],
                    ["held for", "number"], ["fence", "number mono"], ["", "wide"]];

function makeLockRow() {
  const row = makeCells(LOCK_CELLS);
  row.firstChild.append(make("a"));
  return row;
}

function showLockRow(row, lock) {
  const [name, mode, waiting, wait, changes, held, fence, holder] = row.children, first = lock.first;
  const link = name.firstChild;
  link.href = "#lock=" + encodeURIComponent(lock.name);
  setText(link, lock.name);
  setText(mode, lock.use || lock.kind);
  setText(waiting, String(lock.waiters));
  waiting.classList.toggle("busy", lock.waiters > 0);
  setText(wait, lock.waiters ? (lock.wait_ms === null ? "?" : duration(lock.wait_ms)) : "–");
  setText(changes, rate(lock.handovers_per_second));
  setText(held, lock.holders ? age(first) : "–");
  setText(fence, first.fence_text);
  const more = lock.holders > 1 ? ` and ${lock.holders - 1} more` : "";
  setText(holder, lock.holders ? who(first) + more : "nobody yet");
}

function showLocks(list) {
  const rows = arrangeRows($("locks").tBodies[0], list.locks.map((lock) => lock.name), makeLockRow);
  rows.forEach((row, i) => showLockRow(row, list.locks[i]));
  const shown = list.locks.length;
  const [all, hits] = [list.all.toLocaleString(), list.found.toLocaleString()];
  const found = list.found < list.all ? `${hits} found, ${all} in all` : all;
  setText($("count"), shown < list.found ? `${shown.toLocaleString()} of ${found}` : found);
  $("more").hidden = shown >= list.found;
  $("empty").hidden = shown > 0;
  setText($("empty"), list.all ? "No lock is called so." : "Nobody holds a lock, and nobody waits for one.");
}

function showSort() {
  for (const button of document.querySelectorAll("[data-sort]")) {
    const heading = button.closest("th"), chosen = button.dataset.sort === state.sort;
    if (chosen)
      heading.setAttribute("aria-sort", state.sort === "name" ? "ascending" : "descending");
    else
      heading.removeAttribute("aria-sort");
  }
}

/* ----------------------------------------------------------------- one lock */

const TICKET_CELLS = [["", ""], ["mode", "word"], ["for", "number"], ["fence", "number mono"],
                      ["", "wide"], ["", "changes"]];

const PAST_CELLS = [["", ""], ["held for, at least", "number"], ["fence", "number mono"], ["", "wide"]];

function showPrevious(previous) {
  const rows = arrangeRows($("previous").tBodies[0], previous.map((p) => p.fence_text),
                           () => makeCells(PAST_CELLS));
  rows.forEach((row, i) => {
    const {ended_ms, held_ms, fence_text, owner} = previous[i];
    [duration(ended_ms) + " ago", duration(held_ms), fence_text, owner].forEach(
      (text, n) => setText(row.children[n], text));
  });
  $("previous").hidden = previous.length === 0;
}

function makeTicketRow() {
  return makeCells(TICKET_CELLS);
}

function showChanges(cell, lock, ticket) {
  const wanted = state.overview.changes ? (ticket.holder ? ["Revoke", "Break"] : ["Break"]) : [];
  const there = [...cell.children].map((button) => button.textContent);
  if (there.join() === wanted.join())
    return;
  cell.replaceChildren(...wanted.map((word) => {
    const button = make("button", word, word === "Break" ? "danger" : "");
    button.type = "button";
    button.setAttribute("aria-label", `${word} fence ${ticket.fence_text}`);
    button.addEventListener("click", () => confirmChange(word.toLowerCase(), lock.name, ticket));
    return button;
  }));
}

function showLock(lock) {
  setText($("one-name"), lock.name);
  setText($("one-state"), lock.state);
  $("one-state").className = "pill " + (lock.state === "held" ? "good" : "");
  setText($("one-kind"), lock.kind || "");
  const {grants, contended, handovers, deaths, gone} = lock.counts;
  setText($("one-counts"), `Seen so far, at least: grants ${grants} · of them after a wait ${contended} · ` +
    `hand-overs ${handovers} · waits that ended in no grant ${gone}` +
    (deaths ? ` · holders that died ${deaths}` : ""));
  const tickets = lock.holders.concat(lock.waiters);
  const rows = arrangeRows($("queue").tBodies[0], tickets.map((t) => t.fence_text), makeTicketRow);
  rows.forEach((row, i) => {
    const ticket = tickets[i], [place, mode, since, fence, owner, changes] = row.children;
    row.className = ticket.holder ? "holds" : "";
    setText(place, ticket.holder ? "holds" : String(ticket.place));
    setText(mode, ticket.mode);
    setText(since, age(ticket));
    setText(fence, ticket.fence_text);
    setText(owner, who(ticket));
    showChanges(changes, lock, ticket);
  });
  showPrevious(lock.previous);
  $("queue").hidden = tickets.length === 0;
  $("free").hidden = tickets.length > 0;
}

function confirmChange(what, name, ticket) {
  const dialog = $("ask"), form = dialog.querySelector("form");
  setText($("ask-title"), what === "break" ? "Break the lock?" : "Request the lock?");
  setText($("ask-text"), what === "break"
    ? "The lock goes to the next in the queue immediately, even before its present holder notices."
    : "The holder is requested to give it up. It may decline.");
  setText($("ask-name"), name);
  setText($("ask-who"), `fence ${ticket.fence_text} ${who(ticket)}`);
  setText($("ask-yes"), what === "break" ? "Break" : "Revoke");
  form.onsubmit = (event) => {
    event.preventDefault();
    dialog.close();
    change(what, name, ticket.fence_text);
  };
  dialog.showModal();
}

async function change(what, name, fence) {
  try {
    await ask(`api/${what}?name=${encodeURIComponent(name)}&fence=${fence}`, "POST");
  } catch (error) {
    showTrouble(error, `${what}: ${error.message}`);
    if (error.status !== 401)
      return;
  }
  refresh();
}

/* -------------------------------------------------------------------- rounds */

function showTrouble(error, text) {
  $("trouble").hidden = !text;
  setText($("trouble"), text);
  if (error && error.status === 401 && !$("login").open) {
    setText($("login-wrong"), state.token ? "That one is not right." : "");
    $("login").showModal();
  }
}

function showState(overview, error) {
  const pill = $("state");
  const words = state.paused ? "paused" : error ? "no answer" : overview.error ? "store fails" : "live";
  setText(pill, words);
  pill.className = "pill " + (words === "live" ? "good" : words === "paused" ? "" : "bad");
}

function showOverview(overview) {
  state.overview = overview;
  keepSamples(overview);
  setText($("store"), overview.store.url);
  setText($("version"), overview.version);
  setText($("interval"), duration(overview.interval_ms));
  document.title = (overview.waiters ? `(${overview.waiters}) ` : "") + "mortise";
  const since = overview.seen ? ` The page shows the state of ${new Date(overview.seen).toLocaleTimeString()}.` : "";
  $("links").hidden = state.token !== "";
  showTrouble(null, overview.error ? `The store: ${overview.error}.${since}` : "");
  showState(overview, null);
}

async function round() {
  const overview = await ask("api/overview?from=" + state.next);
  const opened = state.opened;
  const path = opened === null
    ? `api/locks?limit=${state.rows}&sort=${state.sort}&filter=${encodeURIComponent($("filter").value)}`
    : "api/lock?name=" + encodeURIComponent(opened);
  const list = await ask(path);
  showOverview(overview);
  if (opened !== state.opened)
    return;
  const counts = opened === null ? overview.counts : list.counts;
  if (opened === null) {
    showTiles(overview);
    showAgent(overview.agent);
    showCharts();
    showLocks(list);
  } else {
    showLock(list);
  }
  showHistogram("waits", "Waits", counts.waits, overview.bounds_ms);
  showHistogram("holds", "Holds", counts.holds, overview.bounds_ms);
}

async function refresh() {
  const mine = ++state.round;
  clearTimeout(state.timer);
  try {
    await round();
  } catch (error) {
    if (mine === state.round) {
      showState(state.overview, error);
      showTrouble(error, error instanceof Refused ? error.message : "mortise serve does not answer.");
    }
  }
  if (mine === state.round && !state.paused && !document.hidden && !$("login").open)
    state.timer = setTimeout(refresh, state.overview ? Math.max(500, state.overview.interval_ms) : 1000);
}

/* ------------------------------------------------------------------ controls */

/* Of an address that somebody typed; what is no name in an address is taken as it stands. */
function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

function follow() {
  const match = /^#lock=(.*)$/.exec(location.hash);
  const before = state.opened;
  state.opened = match ? decoded(match[1]) : null;
  $("all").hidden = state.opened !== null;
  $("one").hidden = state.opened === null;
  if (state.opened !== null) {
    setText($("one-name"), state.opened);
    $("queue").tBodies[0].replaceChildren();
    $("one-name").focus();
  } else if (before !== null) {
    const link = [...document.querySelectorAll("#locks td a")].find((a) => a.textContent === before);
    (link || $("main")).focus();
  }
  refresh();
}

function pause() {
  state.paused = !state.paused;
  $("pause").setAttribute("aria-pressed", String(state.paused));
  showState(state.overview || {}, null);
  if (!state.paused)
    refresh();
}

function setTheme(theme) {
  const words = {"": "as the system has them", light: "light", dark: "dark"};
  if (theme)
    document.documentElement.dataset.theme = theme;
  else
    delete document.documentElement.dataset.theme;
  $("theme").setAttribute("aria-label", "Colours: " + words[theme]);
  setText($("theme"), {"": "◐", light: "☀", dark: "☾"}[theme]);
  localStorage.setItem("theme", theme);
}

function move(step) {
  const links = [...document.querySelectorAll("#locks td a")];
  const at = links.indexOf(document.activeElement);
  const next = links[Math.min(links.length - 1, Math.max(0, at + step))];
  if (next)
    next.focus();
}

function onKey(event) {
  const typing = event.target.tagName === "INPUT";
  if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]"))
    return;
  if (event.key === "Escape" && state.opened !== null)
    location.hash = "";
  else if (event.key === "Escape" && typing)
    $("locks").querySelector("td a, button").focus();
  else if (typing)
    return;
  else if (event.key === "/" && state.opened === null)
    $("filter").focus();
  else if (event.key === "j" || event.key === "k")
    move(event.key === "j" ? 1 : -1);
  else if (event.key === "p")
    pause();
  else
    return;
  event.preventDefault();
}

/* The address that serve prints has the token behind the "#", which no server sees. It is taken
   out of the address, so that neither the history nor a copied link has it. */
function takeToken() {
  const match = /^#token=([!-~]+)$/.exec(location.hash);
  if (!match)
    return;
  state.token = match[1];
  sessionStorage.setItem("token", state.token);
  history.replaceState(null, "", location.pathname);
}

function begin() {
  takeToken();
  setTheme(["light", "dark"].find((t) => t === localStorage.getItem("theme")) || "");
  showSort();
  for (const button of document.querySelectorAll("[data-sort]"))
    button.addEventListener("click", () => {
      state.sort = button.dataset.sort;
      showSort();
      refresh();
    });
  $("filter").addEventListener("input", refresh);
  $("more").firstChild.addEventListener("click", () => {
    state.rows += ROWS;
    refresh();
  });
  $("pause").addEventListener("click", pause);
  $("theme").addEventListener("click", () => {
    const order = ["", "light", "dark"];
    setTheme(order[(order.indexOf(document.documentElement.dataset.theme || "") + 1) % 3]);
  });
  $("ask-no").addEventListener("click", () => $("ask").close());
  $("login").querySelector("form").addEventListener("submit", (event) => {
    event.preventDefault();
    state.token = $("token").value;
    sessionStorage.setItem("token", state.token);
    $("token").value = "";
    $("login").close();
    refresh();
  });
  document.addEventListener("keydown", onKey);
  document.addEventListener("visibilitychange", () => document.hidden || state.paused || refresh());
  addEventListener("hashchange", () => {
    takeToken();
    follow();
  });
  follow();
}

begin();
