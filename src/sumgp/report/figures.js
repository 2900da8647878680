// Draws the figures of a page: each <figure data-figure> holds its numbers as JSON and a static picture.
(function () {
  "use strict";
  const dark = window.matchMedia("(prefers-color-scheme: dark)");

  function themed(figure, panel) {
    let text = JSON.stringify(panel);
    if (dark.matches) {
      const pattern = new RegExp(Object.keys(figure.dark).join("|"), "g");
      text = text.replace(pattern, (colour) => figure.dark[colour]);
    }
    return JSON.parse(text);
  }

  function csvOf(figure) {
    const quoted = (value) => (value === null || value === undefined ? "" : /[",\n]/.test(value) ? '"' + String(value).replace(/"/g, '""') + '"' : value);
    const plain = (text) => text.replace(/&lt;/g, "<").replace(/&gt;/g, ">").replace(/&amp;/g, "&");
    const rows = [["panel", "series", "x", "y", "value"]];
    for (const panel of figure.panels) {
      const title = panel.layout.title ? panel.layout.title.text : panel.layout.yaxis.title.text;
      for (const trace of panel.data) {
        if (trace.type === "heatmap") {
          trace.y.forEach((y, i) => trace.x.forEach((x, j) => rows.push([plain(title), "map", x, y, trace.z[i][j]])));
        } else {
          const end = trace.fill ? " (upper)" : trace.line && trace.line.width === 0 ? " (lower)" : "";
          trace.x.forEach((x, i) => rows.push([plain(title), plain(trace.name) + end, x, trace.y[i], ""]));
        }
      }
    }
    return rows.map((row) => row.map(quoted).join(",")).join("\n") + "\n";
  }

  function save(name, address) {
    const link = document.createElement("a");
    link.href = address;
    link.download = name;
    link.click();
  }

  // Zooming one of several panels over the same input zooms all.
  function link(panels) {
    let busy = false;
    panels.forEach((panel) => panel.on("plotly_relayout", (change) => {
      const auto = change["xaxis.autorange"];
      const range = [change["xaxis.range[0]"], change["xaxis.range[1]"]];
      if (busy || (!auto && range[0] === undefined)) return;
      busy = true;
      const others = panels.filter((other) => other !== panel);
      const update = auto ? { "xaxis.autorange": true } : { "xaxis.range": range };
      Promise.all(others.map((other) => Plotly.relayout(other, update))).finally(() => { busy = false; });
    }));
  }

  function button(words, action) {
    const made = document.createElement("button");
    made.type = "button";
    made.className = "small";
    made.textContent = words;
    made.addEventListener("click", action);
    return made;
  }

  function draw(holder) {
    const figure = JSON.parse(holder.querySelector("script").textContent);
    const place = holder.querySelector(".panels");
    const still = holder.querySelector("picture");
    const label = still.querySelector("img").alt;
    const options = { responsive: true, displaylogo: false, displayModeBar: false };
    const drawn = figure.panels.map((panel, number) => {
      const box = document.createElement("div");
      box.className = "panel";
      box.setAttribute("role", "img");
      box.setAttribute("aria-label", label + " Panel " + (number + 1) + " of " + figure.panels.length + ".");
      place.appendChild(box);
      return box;
    });
    place.hidden = false;
    const show = () => drawn.map((box, number) => {
      const made = themed(figure, figure.panels[number]);
      return Plotly.react(box, made.data, made.layout, options);
    });
    Promise.all(show()).then(() => {
      still.hidden = true;
      if (figure.linked) link(drawn);
      dark.addEventListener("change", show);
    });
    const bar = document.createElement("p");
    bar.className = "figure-tools";
    bar.append(
      button("Save as PNG", () => drawn.forEach((box, number) => Plotly.toImage(box, { format: "png", width: 900, height: 420, scale: 2 })
        .then((address) => save(figure.name + "-" + (number + 1) + ".png", address)))),
      button("Save the data as CSV", () => save(figure.name + ".csv", "data:text/csv;charset=utf-8," + encodeURIComponent(csvOf(figure)))),
      button("Whole range", () => drawn.forEach((box) => Plotly.relayout(box, { "xaxis.autorange": true, "yaxis.autorange": true })))
    );
    holder.insertBefore(bar, holder.querySelector("figcaption"));
  }

  function drawAll() {
    document.querySelectorAll("figure[data-figure]").forEach((holder) => {
      try { draw(holder); } catch (error) { console.error(error); }
    });
  }
  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", drawAll); else drawAll();
})();
