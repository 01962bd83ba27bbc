// A chart over time: a title with its unit, a legend with the values under the cursor, the figures as a table, as CSV and as JSON.

import { axisTime, clock, dateAndTime, isNumber, NOTHING } from "./format.js";
import { colour, csvField, download, element, freshId, setAttribute, setText } from "./dom.js";
import { withGaps } from "./series.js";

/** @typedef {import("./series.js").Columns} Columns */
/** @typedef {import("./series.js").Values} Values */
/** @typedef {import("./series.js").Mark} Mark */
/** @typedef {{ name: string, colour: string, of: (columns: Columns) => Values, help?: string, dash?: number[] }} Line */
/**
 * @typedef {object} ChartGiven
 * @property {string} key
 * @property {string} title
 * @property {string} unit
 * @property {Line[]} lines from the bottom to the top where they are stacked
 * @property {(value: unknown) => string} text
 * @property {(value: unknown) => string} axis the same for the marks of the axis
 * @property {boolean} [binary] marks at powers of two
 * @property {boolean} [stacked]
 * @property {"always" | "choice"} [log]
 * @property {number} [least] how high the axis is at least
 * @property {string} [empty]
 */

const HEIGHT = 190;

/** Rows of the table below a chart. */
const LISTED = 30;

/** Steps of an axis of bytes. */
const POWERS = Array.from({ length: 50 }, (_, power) => 2 ** power);

/** All charts of a page show the same moment under the cursor. */
const TOGETHER = "time";

export class Chart {
    /** @param {ChartGiven} given */
    constructor(given) {
        this.given = given;
        this.isLog = given.log === "always";
        /** @type {Columns} */
        this.columns = { step: 1, times: [], values: {} };
        /** @type {Values[]} */
        this.raw = [];
        this.from = 0;
        this.to = 1;
        /** @type {Mark[]} */
        this.marks = [];
        /** @type {uPlot | null} */
        this.plot = null;
        this.described = 0;
        const heading = element("h3", { id: freshId("chart") }, given.title, " ", element("span", { class: "unit" }, given.unit));
        this.space = element("div", { class: "plot", role: "img", tabindex: 0, onkeydown: (/** @type {KeyboardEvent} */ event) => this.key(event) });
        this.moment = element("li", { class: "moment" }, "now");
        this.values = given.lines.map(() => element("b", {}, NOTHING));
        const legend = given.lines.map((line, at) => {
            const mark = element("i", { class: line.dash ? "swatch dashed" : "swatch" });
            mark.style.setProperty("--swatch", `var(${line.colour})`);
            return element("li", { title: line.help }, mark, `${line.name} `, this.values[at]);
        });
        this.empty = element("p", { class: "remark over" }, given.empty ?? "No data yet.");
        this.list = element("div", { class: "scroll figures", tabindex: 0, role: "region", "aria-label": `${given.title}, the newest figures`, hidden: true });
        const opener = element("button", { class: "small", "aria-expanded": "false", onclick: () => {
            this.list.hidden = !this.list.hidden;
            setAttribute(opener, "aria-expanded", String(!this.list.hidden));
            this.showList();
        } }, "Table");
        const save = (/** @type {string} */ kind, /** @type {() => void} */ act) =>
            element("button", { class: "small", "aria-label": `Save ${given.title} in ${kind}`, onclick: act }, kind);
        const tools = element("div", { class: "tools" }, opener, save("CSV", () => this.saveCsv()), save("JSON", () => this.saveJson()));
        opener.setAttribute("aria-label", `${given.title} in a table`);
        if (given.log === "choice") tools.prepend(this.logSwitch());
        this.root = element(
            "section",
            { class: "chart", "aria-labelledby": heading.id, "data-chart": given.key },
            element("header", {}, heading, tools),
            element("ul", { class: "legend values" }, ...legend, this.moment),
            element("div", { class: "around" }, this.space, this.empty),
            this.list,
        );
        new ResizeObserver(() => this.fit()).observe(this.space);
    }

    logSwitch() {
        const id = freshId("log");
        const box = element("input", { type: "checkbox", id, onchange: () => {
            this.isLog = box.checked;
            this.rebuild();
        } });
        return element("label", { for: id, class: "check" }, box, " log axis");
    }

    /** @param {Columns} columns @param {number} from @param {number} to in seconds since 1970 @param {Mark[]} [marks] */
    update(columns, from, to, marks = []) {
        this.marks = marks;
        this.columns = withGaps(columns);
        this.from = from;
        this.to = to;
        this.raw = this.given.lines.map((line) => line.of(this.columns));
        const isEmpty = !this.raw.some((values) => values.some(isNumber));
        this.empty.hidden = !isEmpty;
        this.space.classList.toggle("faint", isEmpty);
        if (this.plot) this.plot.setData(this.data(), true);
        else this.build();
        this.showValues();
        if (!this.list.hidden) this.showList();
        if (Date.now() - this.described > 10000) this.describe();
    }

    get isStacked() {
        return Boolean(this.given.stacked) && !this.isLog;
    }

    /** @returns {uPlot.AlignedData} */
    data() {
        let shown = this.raw;
        if (this.isStacked) {
            const sums = this.columns.times.map(() => 0);
            const isKnown = this.columns.times.map((_, at) => this.raw.some((values) => isNumber(values[at])));
            // The last one is painted first: those below it cover it.
            shown = this.raw.map((values) => values.map((value, at) => (isKnown[at] ? (sums[at] += value ?? 0) : null))).reverse();
        } else if (this.isLog) {
            shown = this.raw.map((values) => values.map((value) => (isNumber(value) && value > 0 ? value : null)));
        }
        return [this.columns.times, ...shown];
    }

    build() {
        const width = this.space.clientWidth;
        if (width < 40) return;
        this.plot = new uPlot(this.options(width), this.data(), this.space);
    }

    rebuild() {
        this.plot?.destroy();
        this.plot = null;
        this.build();
        this.showValues();
    }

    /** @param {number} width @returns {uPlot.Options} */
    options(width) {
        const { isStacked, isLog, given } = this;
        const lines = isStacked ? [...given.lines].reverse() : given.lines;
        const font = "12px system-ui, sans-serif";
        const axis = {
            stroke: () => colour("--muted"),
            grid: { stroke: () => colour("--grid"), width: 1 },
            ticks: { show: false },
            font,
        };
        return {
            width,
            height: HEIGHT,
            padding: [8, 8, 0, 0],
            legend: { show: false },
            cursor: { sync: { key: TOGETHER, setSeries: false }, drag: { setScale: false, x: false, y: false }, points: { size: 6 } },
            hooks: { setCursor: [() => this.showValues()], draw: [(plot) => this.drawMarks(plot)] },
            scales: {
                x: { time: true, range: () => [this.from, this.to] },
                y: isLog ? { distr: 3, range: (_, low, high) => decades(low, high) } : { range: (_, _low, high) => [0, Math.max((high ?? 0) * 1.08, given.least ?? 0) || 1] },
            },
            series: [
                {},
                ...lines.map((line) => ({
                    label: line.name,
                    stroke: () => colour(line.colour),
                    width: isStacked ? 1 : 1.5,
                    ...(line.dash ? { dash: line.dash } : {}),
                    ...(isStacked ? { fill: () => colour(line.colour) } : {}),
                    points: { size: 3, filter: (/** @type {uPlot} */ plot, /** @type {number} */ number, /** @type {boolean} */ show) => (show ? null : lonely(plot.data[number])) },
                })),
            ],
            axes: [
                { ...axis, space: 90, size: 28, values: (_, splits, __, ___, apart) => splits.map((time) => axisTime(time, apart)) },
                {
                    ...axis,
                    space: 32,
                    ...(given.binary ? { incrs: POWERS } : {}),
                    size: (_, values) => 12 + 7 * Math.max(3, ...(values ?? []).map((text) => String(text ?? "").length)),
                    values: (_, splits) => splits.map((value) => ((value ?? null) === null ? "" : given.axis(value))),
                },
            ],
        };
    }

    /** A line where the server began, or got other code: figures before and behind it are not of the same thing. @param {uPlot} plot */
    drawMarks(plot) {
        const { ctx, bbox } = plot;
        ctx.save();
        ctx.strokeStyle = ctx.fillStyle = colour("--muted");
        ctx.font = `${11 * devicePixelRatio}px system-ui, sans-serif`;
        ctx.setLineDash([4 * devicePixelRatio, 3 * devicePixelRatio]);
        for (const mark of this.marks.filter((one) => one.time >= this.from && one.time <= this.to)) {
            const x = Math.round(plot.valToPos(mark.time, "x", true));
            ctx.beginPath();
            ctx.moveTo(x, bbox.top);
            ctx.lineTo(x, bbox.top + bbox.height);
            ctx.stroke();
            ctx.fillText(mark.what, x + 3 * devicePixelRatio, bbox.top + 11 * devicePixelRatio);
        }
        ctx.restore();
    }

    fit() {
        const width = this.space.clientWidth;
        if (!this.plot) return this.build();
        if (width >= 40 && width !== this.plot.width) this.plot.setSize({ width, height: HEIGHT });
    }

    repaint() {
        this.plot?.redraw(true, true);
    }

    /** The place under the cursor. */
    chosen() {
        const at = this.plot?.cursor.idx;
        const isOver = (this.plot?.cursor.left ?? -1) >= 0;
        return isOver && isNumber(at) ? at : null;
    }

    showValues() {
        const at = this.chosen();
        this.raw.forEach((values, line) => {
            const value = at === null ? values.findLast(isNumber) : values[at];
            setText(this.values[line], this.given.text(value));
        });
        setText(this.moment, at === null ? "newest" : this.timeOf(this.columns.times[at]));
    }

    /** @param {number} time */
    timeOf(time) {
        return this.to - this.from > 86400 / 2 ? dateAndTime(time) : clock(time);
    }

    /** The arrow keys lead through the moments. @param {KeyboardEvent} event */
    key(event) {
        const steps = { ArrowLeft: -1, ArrowRight: 1, PageUp: -10, PageDown: 10 };
        const step = steps[/** @type {keyof typeof steps} */ (event.key)];
        if (!step || !this.plot) return;
        event.preventDefault();
        const last = this.columns.times.length - 1;
        const at = Math.min(last, Math.max(0, (this.chosen() ?? last + (step < 0 ? 1 : 0)) + step));
        this.plot.setCursor({ left: this.plot.valToPos(this.columns.times[at], "x"), top: 10 });
        this.describe();
    }

    /** In words, for who does not see it. */
    describe() {
        this.described = Date.now();
        const at = this.chosen();
        const words = this.given.lines.map((line, number) => {
            const known = this.raw[number].filter(isNumber);
            if (known.length === 0) return `${line.name}: no data`;
            const { text } = this.given;
            if (at !== null) return `${line.name} ${text(this.raw[number][at])}`;
            const [least, most] = known.reduce(([low, high], value) => [Math.min(low, value), Math.max(high, value)], [known[0], known[0]]);
            return `${line.name} ${text(known.at(-1))}, from ${text(least)} to ${text(most)}`;
        });
        const when = at === null ? "" : ` at ${this.timeOf(this.columns.times[at])}`;
        setAttribute(this.space, "aria-label", `${this.given.title}, ${this.given.unit}${when}: ${words.join("; ")}`);
    }

    showList() {
        if (this.list.hidden) return;
        const places = this.columns.times.map((_, at) => at).slice(-LISTED).reverse();
        const head = ["time", ...this.given.lines.map((line) => line.name)];
        const rows = places.map((at) => [this.timeOf(this.columns.times[at]), ...this.raw.map((values) => this.given.text(values[at]))]);
        this.list.replaceChildren(
            element(
                "table",
                {},
                element("thead", {}, element("tr", {}, ...head.map((text) => element("th", { scope: "col" }, text)))),
                element("tbody", {}, ...rows.map((row) => element("tr", {}, ...row.map((text) => element("td", {}, text))))),
            ),
        );
    }

    saveCsv() {
        const rows = [["time", ...this.given.lines.map((line) => line.name)]];
        this.columns.times.forEach((time, at) => rows.push([new Date(time * 1000).toISOString(), ...this.raw.map((values) => csvField(values[at]))]));
        download(`${this.given.key}.csv`, "text/csv", rows.map((row) => `${row.join(",")}\r\n`).join(""));
    }

    saveJson() {
        const lines = Object.fromEntries(this.given.lines.map((line, at) => [line.name, this.raw[at]]));
        const { title, unit } = this.given;
        download(`${this.given.key}.json`, "application/json", JSON.stringify({ title, unit, times: this.columns.times, lines }));
    }

    end() {
        this.plot?.destroy();
        this.plot = null;
    }
}

/** The places of values without a neighbour: no line leads to them. @param {ArrayLike<number | null | undefined>} values @returns {number[]} */
function lonely(values) {
    const places = Array.from(values, (_, at) => at);
    return places.filter((at) => isNumber(values[at]) && !isNumber(values[at - 1]) && !isNumber(values[at + 1]));
}

/** Whole powers of ten around what there is. @param {number | null} low @param {number | null} high @returns {[number, number]} */
function decades(low, high) {
    if (!low || !high || low <= 0) return [0.001, 1];
    const [from, to] = [Math.floor(Math.log10(low)), Math.ceil(Math.log10(high))];
    return [10 ** from, 10 ** Math.max(to, from + 1)];
}
