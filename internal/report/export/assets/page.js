"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const rows = data.rows;
  const $ = id => document.getElementById(id);
  const css = name => getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();

  // Nothing of a dump is ever parsed as markup: elements are made here, texts are set as texts.
  function el(tag, attributes, ...children) {
    const e = document.createElement(tag);
    for (const [k, v] of Object.entries(attributes || {})) {
      if (v === false || v == null) continue;
      if (k.startsWith("on")) e.addEventListener(k.slice(2), v);
      else e.setAttribute(k, v === true ? "" : v);
    }
    e.append(...children.filter(c => c != null));
    return e;
  }

  // A metric with three digits.
  function num(v) {
    if (v == null) return "";
    v = Number(v);
    if (!isFinite(v)) return isNaN(v) ? "NaN" : v > 0 ? "inf" : "-inf";
    if (v === 0) return "0";
    const a = Math.abs(v);
    if (a < 1e-3 || a >= 1e4) return v.toExponential(2).replace(/\.?0+e/, "e").replace("e+", "e");
    return String(Number(v.toPrecision(3)));
  }
  const metric = (f, i) => f == null ? null : Number(f[i]);
  const broken = f => f != null && Number(f[8]) > 0;

  // ---------------------------------------------------------------- table
  const statuses = ["fail", "inherited", "missing", "error", "unexpected", "pass", "ignored"];
  const rank = Object.fromEntries(statuses.map((s, i) => [s, i]));
  const sortMetric = (f, i) => {
    const v = metric(f, i);
    return v == null || isNaN(v) ? (v == null ? -Infinity : Infinity) : v;
  };
  const columns = [
    { name: "#", key: "order", value: (r, i) => i, text: (r, i) => i, cls: "num", title: "execution order" },
    { name: "status", key: "status", value: r => rank[r.st] ?? 9, text: r => r.st, cls: "st" },
    { name: "layer", key: "layer", value: r => r.l + " " + r.p, text: r => r.l, cls: "layer" },
    data.several && { name: "case", key: "case", value: r => (r.c || "") + "." + (r.s || ""), text: r => [r.c, r.s].filter(x => x).join(".") },
    { name: "component", key: "component", value: r => r.k, text: r => r.k },
    { name: "max |a−g|", key: "max_abs", value: r => sortMetric(r.m, 0), text: r => num(metric(r.m, 0)), cls: "num" },
    { name: "rel. L2", key: "rel_l2", value: r => sortMetric(r.m, 1), text: r => num(metric(r.m, 1)), cls: "num" },
    { name: "worst row", key: "row_rel_l2", value: r => broken(r.m) ? Infinity : sortMetric(r.m, 2), text: r => num(metric(r.m, 2)), cls: "num", title: "relative L2 of the worst row" },
    { name: "1−cosine", key: "cosine", value: r => sortMetric(r.m, 3), text: r => num(metric(r.m, 3)), cls: "num" },
    { name: "MSE", key: "mse", value: r => sortMetric(r.m, 4), text: r => num(metric(r.m, 4)), cls: "num" },
    data.injected && { name: "injected rel. L2", key: "injected", value: r => sortMetric(r.i, 1), text: r => num(metric(r.i, 1)), cls: "num", title: "of the run on golden inputs; of an input: as computed before it was replaced" },
    { name: "limit or reason", key: "why", value: r => why(r), text: r => why(r), cls: "why" },
  ].filter(c => c);
  function why(r) {
    if (r.st === "inherited" && r.b) return "from " + r.b;
    if (["pass", "fail", "inherited"].includes(r.st)) return r.t || "";
    return r.n || "";
  }

  const table = $("table"), body = table.tBodies[0], head = table.tHead.rows[0];
  const page = 300; // rows that are shown at once: more are there on request
  let sorted = { column: columns[0], down: false }, limit = page, open = new Set(), shownRows = [];

  for (const c of columns) {
    const b = el("button", { type: "button", title: c.title, onclick: () => {
      sorted = { column: c, down: sorted.column === c ? !sorted.down : c.cls === "num" && c.key !== "order" };
      render();
    } }, c.name);
    head.append(el("th", { scope: "col", "data-key": c.key, class: c.cls === "num" ? "num" : null }, b));
  }

  const counts = {};
  for (const r of rows) counts[r.st] = (counts[r.st] || 0) + 1;
  const boxes = {};
  for (const s of statuses.filter(s => counts[s])) {
    boxes[s] = el("input", { type: "checkbox", checked: true, value: s, onchange: refilter });
    $("statuses").append(el("label", {}, boxes[s], " ", el("span", { class: "st " + s }, s), " " + counts[s]));
  }
  for (const c of data.components) if (rows.some(r => r.k === c)) $("component").append(el("option", { value: c }, c));
  $("find").addEventListener("input", refilter);
  $("component").addEventListener("change", refilter);
  $("inputs").addEventListener("change", refilter);
  $("filters").addEventListener("submit", e => e.preventDefault());
  $("more").addEventListener("click", () => { limit = Infinity; render(); });
  if (!rows.some(r => !r.in)) $("inputs").checked = true;

  function refilter() { limit = page; render(); }

  function matcher(text) {
    const m = text.match(/^\/(.*)\/?$/s);
    if (m && text.length > 1) {
      try {
        const re = new RegExp(m[1].replace(/\/$/, ""), "i");
        return s => re.test(s);
      } catch { /* not complete yet: look for it as it stands */ }
    }
    text = text.toLowerCase();
    return s => s.toLowerCase().includes(text);
  }

  function render() {
    const find = $("find").value.trim(), match = matcher(find), component = $("component").value, inputs = $("inputs").checked;
    const list = [];
    rows.forEach((r, i) => {
      if (r.in && !inputs && !r.f || boxes[r.st] && !boxes[r.st].checked || component && r.k !== component) return;
      if (find && !match(r.l + " " + r.p + " " + (r.c || "") + "." + (r.s || ""))) return;
      list.push(i);
    });
    const { column, down } = sorted, sign = down ? -1 : 1;
    const keys = new Map(list.map(i => [i, column.value(rows[i], i)]));
    list.sort((a, b) => {
      const x = keys.get(a), y = keys.get(b);
      if (typeof x === "string") return sign * x.localeCompare(y, "en", { numeric: true }) || a - b;
      return x === y ? a - b : sign * (x < y ? -1 : 1);
    });
    for (const th of head.cells) {
      if (th.dataset.key === column.key) th.setAttribute("aria-sort", down ? "descending" : "ascending");
      else th.removeAttribute("aria-sort");
    }
    shownRows = list;
    const fragment = document.createDocumentFragment();
    for (const i of list.slice(0, limit)) {
      fragment.append(line(i));
      if (open.has(i)) fragment.append(detail(i));
    }
    body.replaceChildren(fragment);
    $("shown").textContent = list.length + " of " + rows.length + " rows";
    $("more").hidden = list.length <= limit;
    $("more").textContent = "Show all " + list.length + " rows";
  }

  function line(i) {
    const r = rows[i], tr = el("tr", { class: "row" + (r.f ? " first" : "") + (open.has(i) ? " open" : ""), "data-row": i });
    for (const c of columns) {
      const text = c.text(r, i);
      if (c.key === "layer") {
        tr.append(el("td", { class: "layer", title: text + " " + r.p }, el("button", { type: "button", "aria-expanded": open.has(i) ? "true" : "false", onclick: () => toggle(i) }, el("bdi", {}, text, " ", el("span", { class: "soft" }, r.p)))));
      } else {
        tr.append(el("td", { class: [c.cls, c.key === "status" ? r.st : ""].filter(x => x).join(" ") || null, title: c.key === "why" ? text : null }, (c.key === "status" && r.f ? "▸ " : "") + text));
      }
    }
    return tr;
  }

  function toggle(i, on) {
    const want = on ?? !open.has(i);
    if (want) open.add(i); else open.delete(i);
    const tr = body.querySelector('tr.row[data-row="' + i + '"]');
    if (!tr) return null;
    if (tr.nextSibling && tr.nextSibling.classList.contains("detail")) tr.nextSibling.remove();
    tr.classList.toggle("open", want);
    tr.querySelector("button").setAttribute("aria-expanded", want ? "true" : "false");
    if (want) tr.after(detail(i));
    return tr;
  }

  // reveal opens a row of the table, whatever filters say.
  function reveal(i) {
    if (!shownRows.slice(0, limit).includes(i)) {
      $("find").value = "";
      $("component").value = "";
      if (rows[i].in) $("inputs").checked = true;
      if (boxes[rows[i].st]) boxes[rows[i].st].checked = true;
      limit = Infinity;
      render();
    }
    const tr = toggle(i, true);
    if (!tr) return;
    tr.scrollIntoView({ block: "center" });
    tr.querySelector("button").focus({ preventScroll: true });
  }

  function detail(i) {
    const r = rows[i], left = el("div"), right = el("div");
    if (r.n && why(r) !== r.n) left.append(el("p", {}, r.n));
    if (r.d) left.append(el("ul", {}, ...r.d.map(t => el("li", {}, t))));
    const dl = el("dl");
    const say = (name, value) => { if (value) dl.append(el("dt", {}, name), el("dd", {}, value)); };
    say("golden", r.g);
    say("candidate", r.a);
    say("judged by", [r.t, r.ts].filter(x => x).join(", "));
    say("error made in", r.b);
    for (const [name, f] of [["without injection", r.m], [r.in ? "computed, before injection" : "with injection", r.i]]) {
      if (f) say(name, "max " + num(f[0]) + ", rel. L2 " + num(f[1]) + ", worst row " + num(f[2]) + ", 1−cosine " + num(f[3]) + ", MSE " + num(f[4]) + ", SNR " + num(f[7]) + " dB, " + Number(f[6]).toLocaleString("en") + " elements" +
        (broken(f) ? ", " + f[8] + " of NaN or infinity without a match" : ""));
    }
    if (r.x) say("local, inherited", num(r.x[0]) + ", " + num(r.x[1]) + " (norms; cosine of the two " + num(r.x[2]) + ")");
    left.append(dl);
    if (r.h) right.append(histogram(r));
    return el("tr", { class: "detail" }, el("td", { colspan: columns.length }, el("div", { class: "panels" }, left, right)));
  }

  function histogram(r) {
    const bars = [["= 0", r.he || 0], ...r.h.map((n, i) => ["1e" + ((r.hx || 0) + i), n])];
    const W = 460, H = 130, top = 16, bottom = 18, w = W / bars.length, most = Math.max(...bars.map(b => b[1]), 1);
    const ns = "http://www.w3.org/2000/svg";
    const node = (tag, a, text) => {
      const e = document.createElementNS(ns, tag);
      for (const k in a) e.setAttribute(k, a[k]);
      if (text != null) e.textContent = text;
      return e;
    };
    const svg = node("svg", { viewBox: "0 0 " + W + " " + H, width: "100%", role: "img", "aria-label": "histogram of |a−g|" });
    const every = Math.ceil(bars.length / 12);
    bars.forEach(([name, n], i) => {
      const h = n ? Math.max(1, (H - top - bottom) * n / most) : 0;
      const bar = node("rect", { x: i * w + 1, y: H - bottom - h, width: Math.max(w - 2, 1), height: h });
      bar.append(node("title", {}, name + ": " + n.toLocaleString("en")));
      svg.append(bar);
      if (i === 0 || i % every === 0) svg.append(node("text", { x: i * w + w / 2, y: H - 5, "text-anchor": "middle" }, name));
      if (n && bars.length <= 16) svg.append(node("text", { x: i * w + w / 2, y: H - bottom - h - 3, "text-anchor": "middle" }, n >= 10000 ? num(n) : n));
    });
    svg.append(node("line", { class: "axis", x1: 0, x2: W, y1: H - bottom, y2: H - bottom }));
    return el("figure", {}, el("figcaption", {}, "Elements by |a − g|; a bar reaches from its number to ten times it"), svg);
  }

  // ---------------------------------------------------------------- chart
  const metrics = [["MSE", 4], ["relative L2", 1], ["worst row", 2], ["max |a−g|", 0], ["1−cosine", 3]];
  const series = []; // {component, injected, shown}
  let plot = null, drawn = [];

  function chart() {
    if (!data.points.length) return;
    $("depth").hidden = false;
    metrics.forEach(([name], i) => $("metric").append(el("option", { value: i }, name)));
    $("metric").addEventListener("change", draw);
    const has = (c, injected) => data.points.some(p => { const i = injected ? p.i : p.m; return i >= 0 && rows[i].k === c; });
    for (const c of data.components) {
      const modes = [false, true].filter(m => has(c, m));
      modes.forEach(injected => series.push({ component: c, injected, shown: true }));
      if (modes.length) legendItem(c, false, s => s.component === c);
    }
    if (series.some(s => s.injected)) {
      legendItem("without injection", false, s => !s.injected);
      legendItem("with injection", true, s => s.injected);
    }
    draw();
    let width = 0;
    new ResizeObserver(() => {
      const w = $("chart").clientWidth;
      if (w && w !== width && plot) { width = w; plot.setSize({ width: w, height: chartHeight() }); }
    }).observe($("chart"));
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { draw(); heat(); paths(); });
  }
  const off = new Set(); // what the legend's buttons hide
  function legendItem(name, ring, of) {
    const dot = el("span", { class: "dot" + (ring ? " ring" : "") });
    dot.style.color = "var(--" + (data.components.includes(name) ? name : "ink") + ")";
    const b = el("button", { type: "button", "aria-pressed": "true", onclick: () => {
      const on = b.getAttribute("aria-pressed") === "false";
      b.setAttribute("aria-pressed", on ? "true" : "false");
      if (on) off.delete(of); else off.add(of);
      draw();
    } }, dot, name);
    $("legend").append(b);
  }
  const chartHeight = () => Math.max(300, Math.min(460, Math.round(innerHeight * 0.45)));

  function draw() {
    const at = metrics[Number($("metric").value) || 0][1];
    let low = Infinity, high = -Infinity, zeros = 0, infinite = 0;
    const points = data.points.map(p => [[p.m, "m"], [p.i, "i"]].map(([i, mode]) => {
      if (i < 0) return null;
      const f = rows[i][mode];
      let v = broken(f) ? Infinity : Math.abs(metric(f, at));
      if (isNaN(v)) v = Infinity;
      if (v === 0) zeros++;
      else if (v === Infinity) infinite++;
      else { low = Math.min(low, v); high = Math.max(high, v); }
      return v;
    }));
    if (low > high) { low = 1e-12; high = 1; }
    const lo = Math.floor(Math.log10(low)), hi = Math.max(Math.ceil(Math.log10(high)), lo + 1), gap = Math.max(1, Math.round((hi - lo) / 10));
    const zero = lo - gap, top = hi + gap; // where zeros and infinite ones are drawn
    const y = v => v == null ? null : v === 0 ? zero : v === Infinity ? top : Math.log10(v);
    const xs = data.points.map((_, i) => i);
    const visible = s => ![...off].some(of => of(s));
    drawn = series.map(s => {
      if (!visible(s)) return xs.map(() => null);
      return data.points.map((p, i) => {
        const row = s.injected ? p.i : p.m;
        return row >= 0 && rows[row].k === s.component ? y(points[i][s.injected ? 1 : 0]) : null;
      });
    });
    const first = data.points.findIndex(p => p.f);
    const size = xs.length > 600 ? 4 : xs.length > 200 ? 5 : 7;
    const soft = css("soft"), grid = css("line"), fail = css("fail"), font = "12px " + getComputedStyle(document.body).fontFamily;
    const opts = {
      width: $("chart").clientWidth || 800, height: chartHeight(),
      legend: { show: false }, padding: [14, 16, 0, 0],
      cursor: { drag: { x: true, y: false }, points: { show: false }, focus: { prox: -1 } },
      scales: { x: { time: false, range: (u, min, max) => [Math.max(min - 0.5, -1), Math.min(max + 0.5, xs.length)] }, y: { range: [(zeros ? zero : lo) - 0.4, (infinite ? top : hi) + 0.4] } },
      axes: [
        { stroke: soft, font, grid: { stroke: grid, width: 1 }, ticks: { stroke: grid }, splits: (u, axis, min, max) => ticks(min, max), values: (u, s) => s.map(block), size: 34 },
        { stroke: soft, font, grid: { stroke: grid, width: 1 }, ticks: { stroke: grid }, size: 62,
          splits: () => { const out = zeros ? [zero] : []; const step = Math.max(1, Math.ceil((hi - lo) / 9)); for (let e = lo; e <= hi; e += step) out.push(e); if (infinite) out.push(top); return out; },
          values: (u, s) => s.map(v => v === zero && zeros ? "0" : v === top && infinite ? "NaN/Inf" : "1e" + v) },
      ],
      series: [{}].concat(series.map(s => ({
        label: s.component, paths: () => null, stroke: css(s.component),
        points: { show: true, size, width: s.injected ? 1.2 : 0, stroke: css(s.component), fill: s.injected ? css("paper") : css(s.component) },
      }))),
      hooks: {
        drawAxes: [u => {
          const c = u.ctx, ratio = devicePixelRatio;
          c.save();
          for (const [on, v] of [[zeros, zero], [infinite, top]]) {
            if (!on) continue;
            const py = Math.round(u.valToPos(v, "y", true));
            c.strokeStyle = soft; c.setLineDash([3 * ratio, 3 * ratio]); c.lineWidth = ratio;
            c.beginPath(); c.moveTo(u.bbox.left, py); c.lineTo(u.bbox.left + u.bbox.width, py); c.stroke();
          }
          if (first >= 0) {
            const px = Math.round(u.valToPos(first, "x", true));
            if (px >= u.bbox.left && px <= u.bbox.left + u.bbox.width) {
              c.strokeStyle = fail; c.fillStyle = fail; c.setLineDash([5 * ratio, 4 * ratio]); c.lineWidth = 1.5 * ratio;
              c.beginPath(); c.moveTo(px, u.bbox.top); c.lineTo(px, u.bbox.top + u.bbox.height); c.stroke();
              c.font = 12 * ratio + "px " + getComputedStyle(document.body).fontFamily;
              const name = "first divergence", right = px > u.bbox.left + u.bbox.width / 2;
              c.textAlign = right ? "right" : "left";
              c.fillText(name, px + (right ? -6 : 6) * ratio, u.bbox.top + 11 * ratio);
            }
          }
          c.restore();
        }],
        setCursor: [u => tip(u)],
      },
    };
    if (plot) plot.destroy();
    plot = new uPlot(opts, [xs, ...drawn], $("chart"));
    plot.over.addEventListener("click", () => { const n = nearest(plot); if (n) reveal(n.row); });
    plot.over.addEventListener("mouseleave", () => { if (tipBox) tipBox.hidden = true; });
    $("chart-note").textContent = ["numbers below: blocks of the model, in the golden's order", zeros ? zeros + " equal pairs (0) are drawn on the lowest line" : "", infinite ? infinite + " with a NaN or an infinity without its match on the highest" : "",
      "click on a point for its row, drag to zoom, double click to see all"].filter(x => x).join("; ") + ".";
  }

  // ticks are the beginnings of blocks, or where there are none between min and max, some places.
  function ticks(min, max) {
    const most = Math.max(2, Math.floor($("chart").clientWidth / 45)), all = [];
    for (let x = Math.max(0, Math.ceil(min)); x <= max && x < data.points.length; x++) if (block(x) !== "·" && (x === 0 || block(x) !== block(x - 1))) all.push(x);
    if (all.length < 2) for (let x = Math.max(0, Math.ceil(min)); x <= max && x < data.points.length; x++) if (!all.includes(x)) all.push(x);
    const every = Math.ceil(all.length / most);
    return all.filter((_, i) => i % every === 0);
  }

  // block is the label of a place along the depth: the number of its block, else the place.
  function block(x) {
    const p = data.points[x];
    if (!p) return "";
    const m = rows[p.m >= 0 ? p.m : p.i].l.match(/(?:^|\.)(\d+)(?:\.|$)/);
    return m ? m[1] : "·";
  }

  // nearest is the drawn point under the cursor.
  function nearest(u) {
    const { left, top } = u.cursor;
    if (left == null || left < 0) return null;
    let best = null, distance = 22 * 22;
    const from = Math.max(0, Math.floor(u.posToVal(left - 24, "x"))), to = Math.min(data.points.length - 1, Math.ceil(u.posToVal(left + 24, "x")));
    for (let x = from; x <= to; x++) {
      drawn.forEach((ys, s) => {
        if (ys[x] == null) return;
        const dx = u.valToPos(x, "x") - left, dy = u.valToPos(ys[x], "y") - top;
        if (dx * dx + dy * dy < distance) { distance = dx * dx + dy * dy; best = { x, row: series[s].injected ? data.points[x].i : data.points[x].m, injected: series[s].injected, y: ys[x] }; }
      });
    }
    return best;
  }
  let tipBox = null;
  function tip(u) {
    if (!tipBox || !tipBox.isConnected) { tipBox = el("div", { id: "tip", hidden: true }); $("chart").append(tipBox); }
    const n = nearest(u);
    tipBox.hidden = !n;
    u.over.style.cursor = n ? "pointer" : "";
    if (!n) return;
    const r = rows[n.row], f = n.injected ? r.i : r.m;
    tipBox.replaceChildren(el("b", {}, r.l), " " + r.p + (r.in ? " (computed)" : ""), el("br"), el("span", { class: "st " + r.st }, r.st),
      " " + (n.injected ? "with injection: " : "") + "rel. L2 " + num(f[1]) + ", worst row " + num(f[2]) + ", MSE " + num(f[4]));
    const x = u.valToPos(n.x, "x") + u.over.offsetLeft, y = u.valToPos(n.y, "y") + u.over.offsetTop, w = $("chart").clientWidth;
    tipBox.style.left = Math.max(4, Math.min(x + 12, w - tipBox.offsetWidth - 8)) + "px";
    tipBox.style.top = (y + tipBox.offsetHeight + 16 < $("chart").clientHeight ? y + 12 : y - tipBox.offsetHeight - 12) + "px";
  }

  // ---------------------------------------------------------------- heat map
  // Colours from pale to dark (light) or dark to bright (dark), by lightness alone, so that everybody can order them.
  function ramp(t) {
    const dark = matchMedia("(prefers-color-scheme: dark)").matches;
    const stops = dark ? [[34, 38, 46], [72, 60, 120], [168, 70, 120], [240, 120, 70], [255, 225, 130]] : [[238, 241, 246], [190, 205, 230], [226, 150, 130], [190, 55, 60], [80, 5, 35]];
    const x = Math.max(0, Math.min(1, t)) * (stops.length - 1), i = Math.min(Math.floor(x), stops.length - 2), f = x - i;
    return stops[i].map((a, k) => Math.round(a + (stops[i + 1][k] - a) * f));
  }
  function paint(canvas, values, t) {
    canvas.width = values.length;
    canvas.height = 1;
    const c = canvas.getContext("2d"), image = c.createImageData(values.length, 1);
    values.forEach((v, i) => image.data.set([...ramp(t(v)), 255], 4 * i));
    c.putImageData(image, 0, 0);
  }
  function heat() {
    const list = rows.map((r, i) => i).filter(i => rows[i].r);
    if (!list.length) return;
    $("heat").hidden = false;
    let low = Infinity, high = -Infinity;
    for (const i of list) for (const x of rows[i].r) {
      const v = Number(x);
      if (v > 0 && isFinite(v)) { low = Math.min(low, v); high = Math.max(high, v); }
    }
    if (low > high) { low = 1e-7; high = 1; }
    const hi = Math.log10(high), lo = Math.min(Math.log10(Math.max(low, high * 1e-8)), hi - 1);
    const t = x => { const v = Number(x); return v === 0 ? 0 : isNaN(v) || v === Infinity ? 1 : (Math.log10(v) - lo) / (hi - lo); };
    const bar = el("canvas", { role: "img", "aria-label": "colours from " + num(10 ** lo) + " to " + num(10 ** hi) });
    paint(bar, Array.from({ length: 100 }, (_, i) => 10 ** (lo + (hi - lo) * i / 99)), t);
    $("heat-scale").replaceChildren(el("span", { class: "soft" }, num(10 ** lo)), bar, el("span", { class: "soft" }, num(10 ** hi)));
    $("heat-rows").replaceChildren(...list.map(i => {
      const r = rows[i], canvas = el("canvas", { role: "img" }), name = r.l + " " + r.p + (data.several ? " " + [r.c, r.s].filter(x => x).join(".") : "");
      paint(canvas, r.r, t);
      const worst = r.r.reduce((b, x, k) => Number(x) > Number(r.r[b]) ? k : b, 0);
      canvas.setAttribute("aria-label", name + ": worst near row " + Math.ceil(worst * r.rn / r.r.length) + " of " + r.rn + ", " + num(r.r[worst]));
      canvas.addEventListener("mousemove", e => {
        const k = Math.min(r.r.length - 1, Math.max(0, Math.floor(e.offsetX / canvas.clientWidth * r.r.length)));
        const from = Math.ceil(k * r.rn / r.r.length), to = Math.ceil((k + 1) * r.rn / r.r.length) - 1;
        canvas.title = (from === to ? "row " + from : "rows " + from + "–" + to) + ": " + num(r.r[k]);
      });
      return el("div", { class: "heat" }, el("button", { type: "button", title: name, onclick: () => reveal(i) }, el("bdi", {}, name)), canvas, el("span", { class: "soft" }, r.rn + (r.rn === 1 ? " row" : " rows")));
    }));
  }

  // ---------------------------------------------------------------- path × depth
  // A cell within its limit is half as high as one beyond it, so that it is not the colour alone that tells.
  function paths() {
    const p = data.paths;
    if (!p) return;
    $("paths").hidden = false;
    const top = Math.max(Math.log10(Number(p.worst) || 1), 1);
    const t = v => v <= 1 ? Math.max(0, 0.25 * (1 + Math.log10(Math.max(v, 1e-4)) / 4)) : v === Infinity ? 1 : 0.5 + 0.5 * Math.log10(v) / top;
    const cells = (canvas, values) => {
      canvas.width = values.length;
      canvas.height = 2;
      const c = canvas.getContext("2d");
      values.forEach((v, i) => {
        if (isNaN(v)) return;
        c.fillStyle = "rgb(" + ramp(t(v)) + ")";
        c.fillRect(i, v > 1 ? 0 : 1, 1, 2);
      });
    };
    const sample = (v, name) => {
      const canvas = el("canvas", { "aria-hidden": "true" });
      cells(canvas, [v]);
      return el("span", {}, canvas, name);
    };
    const worst = Number(p.worst);
    $("paths-scale").replaceChildren(sample(1e-4, "1e-4 of the limit"), sample(0.01, "0.01"), sample(1, "just within it"),
      ...(worst > 1 ? [sample(1.001, "just beyond it"), sample(worst, num(worst) + " times it")] : []),
      el("span", {}, el("span", { class: "mark", "aria-hidden": "true" }), "first divergence"), el("span", {}, "blank: not compared"));
    $("paths-note").textContent = "The error of each layer in units of its limit, the worst of all forward passes; a low bar is within the limit, a high one beyond it.";
    const n = p.columns.length, ticks = el("div", { class: "ticks" });
    $("paths-rows").replaceChildren(...p.rows.map(r => {
      const values = r.e.map(Number), canvas = el("canvas", { role: "img", "aria-label": r.n + ": " + r.t, title: r.t });
      cells(canvas, values);
      canvas.addEventListener("mousemove", e => {
        const k = Math.min(n - 1, Math.max(0, Math.floor(e.offsetX / canvas.clientWidth * n)));
        canvas.title = (r.l && r.l[k] || p.columns[k]) + ": " + (isNaN(values[k]) ? "not compared" : num(values[k]) + " × its limit");
      });
      const box = el("div", { class: "cells" }, canvas);
      if (r.f >= 0) {
        const mark = el("span", { class: "mark", title: r.t });
        mark.style.left = (r.f + 0.5) / n * 100 + "%";
        box.append(mark);
      }
      return el("div", { class: "along" }, el("span", { class: "name", title: r.n }, r.n), box);
    }), el("div", { class: "along", "aria-hidden": "true" }, el("span", { class: "name soft" }, "block"), ticks));
    const starts = [];
    let last = null;
    p.columns.forEach((l, i) => {
      const m = l.match(/(?:^|\.)(\d+)(?:\.|$)/);
      if (m && m[1] !== last) starts.push([i, last = m[1]]);
    });
    const every = Math.ceil(starts.length / 24);
    starts.filter((_, i) => i % every === 0).forEach(([i, name]) => {
      const tick = el("span", { class: "tick" }, name);
      tick.style.left = i / n * 100 + "%";
      ticks.append(tick);
    });
  }

  paths();
  chart();
  heat();
  render();
  const first = rows.findIndex(r => r.f);
  if (first >= 0) {
    toggle(first, true);
    $("jump").hidden = false;
    $("jump").addEventListener("click", () => reveal(first));
  }
  document.documentElement.dataset.ready = "true";
})();
