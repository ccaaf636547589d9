// Curves that can be zoomed into: the numbers are in the page, and so is a picture for browsers without scripts.
"use strict";
for (const figure of document.querySelectorAll("figure[data-plot]")) {
  const told = JSON.parse(figure.dataset.plot);
  const colour = (name) => getComputedStyle(document.body).getPropertyValue("--" + name).trim();
  const whole = (curve) => (told.log ? curve.map((one) => (one > 0 ? one : null)) : curve);
  const ends = told.low.length ? [whole(told.high), told.low.map((one) => (told.log ? Math.max(one, 0.1) : one))] : [];
  const names = ["line", "step", "dots"].filter((name) => told[name]);
  const values = [told.x, ...ends, ...names.map((name) => whole(told[name]))];
  const least = told.log ? 0.7 : Math.min(0, ...values.slice(1).flat().filter((one) => one !== null));
  const most = Math.max(1, told.top, ...values.slice(1).flat().filter((one) => one !== null));
  const last = told.x[told.x.length - 1];
  const all = {
    x: told.log ? [0.7, 1.5 * Math.max(3, last)] : [told.x[0], Math.max(last, told.x[0] + 1)],
    y: told.log ? [0.7, 1.6 * Math.max(3, most)] : [least, most + 0.04 * (most - least)],
  };
  const kind = told.log ? { time: false, distr: 3, auto: false } : { time: false, auto: false };
  const short = (value) => {
    for (const [size, letter] of [[1e9, "G"], [1e6, "M"], [1e3, "k"]])
      if (Math.abs(value) >= size) return +(value / size).toPrecision(4) + letter;
    return +value.toPrecision(4) + "";
  };
  const round = (one) => (told.log ? Math.abs(Math.log10(one) - Math.round(Math.log10(one))) < 1e-9 : true);
  const few = (plot, splits) => splits.map((one) => (one !== null && round(one) ? one : null));
  const lines = (plot, splits) => splits.map((one) => (one === null ? "" : short(one)));
  const counted = (plot, splits) => splits.map((one) => (one === null || one % 1 ? "" : short(one)));
  const wide = () => figure.clientWidth || 600;
  const high = () => Math.round(Math.min(380, Math.max(240, wide() / 2)));
  const axis = (label) => ({
    label, labelSize: 18, stroke: colour("faint"), grid: { stroke: colour("line"), width: 1, filter: few }, filter: few, ticks: { show: false },
    labelFont: "13px system-ui", font: "12px system-ui", values: lines,
  });
  const paths = told.step ? { paths: uPlot.paths.stepped({ align: 1 }) } : {};
  const hidden = { stroke: "transparent", points: { show: false }, ...paths };
  const style = {
    line: { stroke: colour("blue"), width: 2, points: { show: told.x.length < 80 } },
    step: { stroke: colour("blue"), width: 2, points: { show: false }, ...paths },
    dots: { stroke: colour("gold"), paths: () => null, points: { show: true, size: 5, fill: colour("gold") } },
  };
  const made = {
    width: wide(), height: high(), legend: { show: false }, cursor: { drag: { x: true, y: false, setScale: true } },
    scales: { x: { ...kind, range: (plot, low, up) => (low === null ? all.x : [low, up]) }, y: { ...kind, range: () => all.y } },
    axes: [{ ...axis(told.across), size: 28, values: counted }, { ...axis(told.up), size: 56 }],
    series: [{}, ...ends.map(() => hidden), ...names.map((name) => style[name])],
    bands: ends.length ? [{ series: [1, 2], fill: colour("sky") + "55" }] : [],
  };
  const picture = figure.firstElementChild;
  let plot = null;
  const draw = () => {
    if (plot) plot.destroy();
    plot = new uPlot(made, values, figure);
    show(all.x);
  };
  const show = ([low, up]) => plot.setScale("x", { min: low, max: up });
  draw();
  picture.remove();
  figure.classList.add("u-on");
  figure.tabIndex = 0;
  figure.setAttribute("role", "img");
  figure.setAttribute("aria-label", picture.getAttribute("aria-label") + "; + and - zoom, arrows move, 0 shows all");
  figure.addEventListener("dblclick", () => show(all.x));
  figure.addEventListener("keydown", (event) => {
    const { min, max } = plot.scales.x;
    const [to, from] = told.log ? [Math.exp, Math.log] : [(one) => one, (one) => one];
    const [low, up] = [from(min), from(max)];
    const step = (up - low) / 4;
    const moves = { "+": [step, -step], "=": [step, -step], "-": [-step, step], ArrowLeft: [-step, -step], ArrowRight: [step, step] };
    const move = moves[event.key];
    if (event.key === "0") show(all.x);
    else if (move) show([Math.max(all.x[0], to(low + move[0])), Math.min(all.x[1], to(up + move[1]))]);
    else return;
    event.preventDefault();
  });
  addEventListener("resize", () => plot.setSize({ width: wide(), height: high() }));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => location.reload());
}
