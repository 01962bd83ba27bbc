// The parts of the time of a request, as a bar with its legend: the same colours wherever they are shown.

import { duration, isNumber, percent } from "./format.js";
import { arrange, element, setAttribute } from "./dom.js";

/** @typedef {{ name: string, title: string, help: string, colour: string }} Span */
/** @typedef {{ name: string, seconds: number }} SpanTime */

/** @type {Span[]} */
export const SPANS = [
    { name: "accept", title: "accept", help: "first to last byte of the request", colour: "--span-accept" },
    { name: "queue", title: "queue", help: "until a thread had it", colour: "--span-queue" },
    { name: "gate", title: "gate", help: "waiting for the interpreter", colour: "--span-gate" },
    { name: "filter", title: "filter", help: "in filters", colour: "--span-filter" },
    { name: "run", title: "run", help: "in the application", colour: "--span-run" },
    { name: "receive", title: "receive", help: "there, waiting for the client's body", colour: "--span-receive" },
    { name: "write", title: "write", help: "until the kernel had the last byte", colour: "--span-write" },
];

/** The times of spans in whatever form a row has them. @param {Record<string, any>} row @returns {SpanTime[]} */
export function spanTimes(row) {
    /** @param {any} value */
    const seconds = (value) => (isNumber(value) ? value : isNumber(value?.seconds) ? value.seconds : isNumber(value?.mean_seconds) ? value.mean_seconds : null);
    return SPANS.flatMap(({ name }) => {
        const listed = Array.isArray(row.spans) ? row.spans.find((/** @type {any} */ one) => (one.span ?? one.name) === name) : row.spans?.[name] ?? row.spans?.[`${name}_seconds`];
        const found = seconds(listed) ?? seconds(row[`${name}_seconds`]);
        return found === null ? [] : [{ name, seconds: found }];
    });
}

export class SpanBar {
    constructor() {
        this.root = element("span", { class: "spans", role: "img" });
        /** @type {Map<string, HTMLElement>} */
        this.parts = new Map();
    }

    /** @param {SpanTime[]} times @param {number} [longest] what the whole width is; without it, their sum */
    update(times, longest) {
        const sum = times.reduce((all, time) => all + time.seconds, 0);
        const width = Math.max(longest ?? sum, sum);
        const shown = times.filter((time) => time.seconds > 0);
        const parts = shown.map((time) => {
            const part = this.parts.get(time.name) ?? element("i", { class: `span-${time.name}` });
            this.parts.set(time.name, part);
            part.style.setProperty("width", `${width > 0 ? (100 * time.seconds) / width : 0}%`);
            setAttribute(part, "title", `${time.name} ${duration(time.seconds)}`);
            return part;
        });
        arrange(this.root, parts);
        const words = shown.map((time) => `${time.name} ${duration(time.seconds)} (${percent(time.seconds / sum)})`);
        setAttribute(this.root, "aria-label", words.join(", ") || "no time");
    }
}

/** The legend of all bars of a page. */
export function spanLegend() {
    const lines = SPANS.map((span) =>
        element("li", {}, element("i", { class: `swatch span-${span.name}` }), element("b", {}, span.title), ` ${span.help}`),
    );
    return element("ul", { class: "legend" }, ...lines);
}

/** @type {WeakMap<HTMLElement, SpanBar>} */
const barsOfCells = new WeakMap();

/** A bar in a cell of a table. @param {HTMLElement} cell @param {SpanTime[]} times @param {number} [longest] */
export function paintSpans(cell, times, longest) {
    let bar = barsOfCells.get(cell);
    if (!bar) {
        bar = new SpanBar();
        barsOfCells.set(cell, bar);
        cell.replaceChildren(bar.root);
    }
    bar.update(times, longest);
}

/** A part of something as a bar with its percentage. @param {HTMLElement} cell @param {number | null} share */
export function paintShare(cell, share) {
    if (!cell.firstElementChild) cell.replaceChildren(element("span", { class: "share-text" }), element("span", { class: "share", "aria-hidden": "true" }, element("i")));
    const [text, bar] = cell.children;
    const words = percent(share);
    if (text.textContent !== words) text.textContent = words;
    /** @type {HTMLElement} */ (bar.firstElementChild).style.setProperty("width", `${100 * Math.min(1, share ?? 0)}%`);
}
