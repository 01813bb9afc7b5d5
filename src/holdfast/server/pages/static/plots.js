// Plots: each draws the table in its figure, so a reader without sight or scripts has the same numbers.

import { say } from "./sections.js";

const plots = new Map();
const DAY_S = 86400;
const LANGUAGE = document.documentElement.lang;

const color = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
const MARKS = ["accent", "l2", "warn", "bad", "ok", "l1"];
const DASHES = [[], [6, 3], [2, 2], [8, 3, 2, 3], [12, 4], [4, 6]]; // so that no series is told by colour alone

// The columns of a table: days in seconds, then one list a series.
function columns(table) {
  const rows = [...table.tBodies[0].rows];
  const days = rows.map((row) => Date.parse(row.querySelector("time").dateTime) / 1000);
  const names = [...table.tHead.rows[0].cells].slice(1).map((cell) => cell.textContent.trim());
  const values = names.map((_, at) =>
    rows.map((row) => {
      const text = row.cells[at + 1].dataset.value;
      return text === "" ? null : Number(text);
    }),
  );
  return { names, data: [days, ...values] };
}

function worded(value, unit) {
  if (value === null || value === undefined) return "–";
  const figures = (least, most) => value.toLocaleString(LANGUAGE, { minimumFractionDigits: least, maximumFractionDigits: most, numberingSystem: "latn" });
  if (unit === "$") return say("dollars", "${amount}", { amount: figures(4, 4) });
  if (unit === "ms") return `${figures(0, 1)} ms`;
  return unit === "%" ? `${Math.round(value)} %` : figures(0, 0);
}

function draw(figure) {
  const area = figure.querySelector(".plot-area");
  const { names, data } = columns(figure.querySelector(".plot-table table"));
  const { unit, step } = figure.dataset;
  const hourly = step === "hour";
  const axis = { stroke: color("muted"), grid: { stroke: color("hair"), width: 1 }, ticks: { stroke: color("hair") }, font: "12px sans-serif" };
  const series = names.map((label, at) => ({
    label,
    stroke: color(MARKS[at % MARKS.length]),
    dash: DASHES[at % DASHES.length],
    width: 2,
    points: { show: data[0].length < 60, size: 4 },
    value: (plot, value, at, row) => worded(row === null ? plot.data[at].at(-1) : value, unit), // the newest, until one is pointed at
  }));
  const clock = hourly ? { hour: "2-digit", minute: "2-digit" } : {};
  const shown = { day: "numeric", month: "short", ...clock, timeZone: "UTC", numberingSystem: "latn" };
  const day = (at) => new Date(at * 1000).toLocaleString(LANGUAGE === "en" ? "en-GB" : LANGUAGE, shown);
  const steps = hourly ? [1, 3, 6, 12, 24].map((hours) => hours * 3600) : [1, 2, 5, 7, 14, 30].map((days) => days * DAY_S);
  const options = {
    width: Math.max(240, area.clientWidth),
    height: 240,
    tzDate: (at) => uPlot.tzDate(new Date(at * 1000), "UTC"),
    scales: { y: { range: (_plot, _low, high) => [0, Math.max(high * 1.05, unit === "%" ? 100 : 1)] } },
    axes: [
      { ...axis, values: (_plot, at) => at.map(day), incrs: steps, space: hourly ? 100 : 64 },
      { ...axis, size: 64, values: (_plot, at) => at.map((value) => worded(value, unit)) },
    ],
    series: [{ label: hourly ? say("hour", "Hour") : say("day", "Day"), value: (plot, at) => day(at ?? plot.data[0].at(-1)) }, ...series],
  };
  plots.get(figure.id)?.destroy();
  plots.set(figure.id, new uPlot(options, data, area));
  area.dataset.drawn = String(names.length);
}

function drawAll() {
  for (const figure of document.querySelectorAll("figure[data-plot]")) {
    if (!figure.querySelector(".plot-area").dataset.drawn) figure.querySelector("details").open = false;
    draw(figure);
  }
}

drawAll();
document.addEventListener("holdfast:section", (event) => {
  if (event.detail.querySelector("figure[data-plot]")) drawAll();
});
document.getElementById("theme")?.addEventListener("change", () => setTimeout(drawAll));
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawAll);

let width = innerWidth;
addEventListener("resize", () => {
  if (innerWidth === width) return;
  width = innerWidth;
  drawAll();
});
