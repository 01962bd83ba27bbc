// The routes: which of them take the time, and one of them in detail.

import { byName, bytes, count, duration, isNumber, percent } from "./format.js";
import { element, remark, section, setText } from "./dom.js";
import { ask, has, Refused } from "./api.js";
import { addressOf, note } from "./router.js";
import { paintShare, paintSpans, SpanBar, spanLegend, SPANS, spanTimes } from "./spans.js";
import { DataTable } from "./table.js";
import { FoundTable } from "./generic.js";
import { paintRoute } from "./page-overview.js";

/** @typedef {import("./page-overview.js").PageGiven} PageGiven */
/** @typedef {import("./page-overview.js").PageShown} PageShown */
/** @typedef {Record<string, any>} Row */

/** @type {import("./table.js").Column[]} */
const ROUTE_COLUMNS = [
    { key: "route", title: "Route", main: true, value: (row) => row.name, paint: (cell, row) => paintRoute(cell, row.name) },
    { key: "total", title: "Total time", number: true, value: (row) => row.total, text: duration, help: "requests × mean" },
    { key: "share", title: "Share", number: true, value: (row) => row.share, paint: (cell, row) => paintShare(cell, row.share), help: "of the time of all requests" },
    { key: "requests", title: "Requests", number: true, text: count },
    { key: "mean", title: "Mean", number: true, value: (row) => row.mean_seconds, text: duration },
    { key: "p50", title: "p50", number: true, value: (row) => row.p50_seconds, text: duration },
    { key: "p90", title: "p90", number: true, optional: true, value: (row) => row.p90_seconds, text: duration },
    { key: "p99", title: "p99", number: true, value: (row) => row.p99_seconds, text: duration },
    { key: "max", title: "Max", number: true, value: (row) => row.max_seconds, text: duration },
    { key: "queue", title: "Queue", number: true, optional: true, value: (row) => queueShare(row), text: percent, help: "part of the time that was waited for a thread" },
    { key: "errors", title: "Errors", number: true, optional: true, text: count },
    { key: "bytes", title: "Body", number: true, value: (row) => row.body_bytes, text: bytes, help: "body bytes of the answers" },
];

/** @param {Row} row */
function queueShare(row) {
    return isNumber(row.queue_seconds) && row.mean_seconds > 0 ? row.queue_seconds / row.mean_seconds : null;
}

/** @param {PageGiven} given @returns {PageShown} */
export function routesPage(given) {
    const route = given.parameters.get("route");
    return route === null ? allRoutes(given) : oneRoute(given, route);
}

/** @param {PageGiven} given @returns {PageShown} */
function allRoutes(given) {
    const { parameters } = given;
    const table = new DataTable({
        label: "Routes",
        columns: ROUTE_COLUMNS,
        key: (row) => row.name,
        order: { key: parameters.get("sort") ?? "total", down: parameters.get("order") !== "up" },
        sorted: ({ key, down }) => note({ sort: key, order: down ? "" : "up" }),
        empty: "No route has had a request yet, or none has this in its name.",
    });
    /** @type {Row[]} */
    let rows = [];
    const filter = element("input", { type: "search", id: "route-filter", value: parameters.get("filter") ?? "", placeholder: "GET /user", oninput: () => {
        note({ filter: filter.value });
        show();
    } });
    const number = element("span", { class: "unit" });
    const show = () => {
        const wanted = filter.value.trim().toLowerCase();
        const shown = rows.filter((row) => row.name.toLowerCase().includes(wanted));
        table.update(shown);
        setText(number, shown.length === rows.length ? `${count(rows.length)} since the start of the server` : `${count(shown.length)} of ${count(rows.length)}`);
    };
    given.root.append(
        element("div", { class: "row" }, element("label", { for: "route-filter" }, "Filter"), filter, number),
        table.root,
    );
    given.follow(["stats"]);
    return {
        hear(name, answer) {
            if (name !== "stats") return;
            const withTotal = (answer.routes ?? []).map((/** @type {Row} */ row) => ({ ...row, total: row.requests * row.mean_seconds }));
            const all = withTotal.reduce((/** @type {number} */ sum, /** @type {Row} */ row) => sum + row.total, 0);
            rows = withTotal.map((/** @type {Row} */ row) => ({ ...row, share: all > 0 ? row.total / all : 0 }));
            show();
        },
    };
}

/** @param {PageGiven} given @param {string} route @returns {PageShown} */
function oneRoute(given, route) {
    const figures = element("p", { class: "unit" });
    const bar = new SpanBar();
    const spans = new DataTable({
        label: `Spans of ${route}`,
        key: (row) => row.span,
        columns: [
            { key: "span", title: "Span", main: true, fixed: true },
            { key: "help", title: "Time", fixed: true },
            { key: "mean_seconds", title: "Mean", number: true, fixed: true, text: duration },
            { key: "deviation_seconds", title: "Deviation", number: true, fixed: true, optional: true, text: duration },
            { key: "min_seconds", title: "Min", number: true, fixed: true, text: duration },
            { key: "p50_seconds", title: "p50", number: true, fixed: true, text: duration },
            { key: "p99_seconds", title: "p99", number: true, fixed: true, text: duration },
            { key: "max_seconds", title: "Max", number: true, fixed: true, text: duration },
        ],
    });
    const histogram = new Histogram();
    const said = new FoundTable("What the application says of this route", "The application has said nothing of this route (Server-Timing).");
    const databases = new FoundTable("Databases of this route", "No statements have been counted for this route.");
    const database = section("Database", databases.root);
    database.hidden = true;
    const slowest = slowestOf(route);
    const distribution = section("Distribution", histogram.root);
    given.root.append(
        element("p", {}, element("a", { href: addressOf("routes") }, "All routes")),
        element("h2", { class: "path" }, route),
        figures,
        section("Spans", bar.root, spanLegend(), spans.root),
        distribution,
        section("Slowest examples", slowest.root),
        database,
        section("What the application says", said.root),
    );
    const item = `stats?route=${encodeURIComponent(route)}`;
    const show = (/** @type {any} */ answer) => {
        setText(figures, `${count(answer.requests)} requests since the start of the server, ${bytes(answer.body_bytes)} of bodies`);
        const list = /** @type {Row[]} */ (answer.spans ?? []);
        bar.update(spanTimes({ spans: list }));
        spans.update(list.map((row) => ({ ...row, help: SPANS.find((span) => span.name === row.span)?.help ?? "the sum" })));
        histogram.update(answer);
        said.update(answer.application_timings ?? []);
        database.hidden = !Array.isArray(answer.databases);
        databases.update(answer.databases ?? []);
    };
    // The feed has one event for both kinds of `stats`: this one has a route.
    given.follow([item, ...(has("recent") ? ["recent"] : [])]);
    ask(item).then(show, (error) => {
        if (!(error instanceof Refused)) throw error;
        setText(figures, error.message);
    });
    return {
        hear(name, answer) {
            if (name === "stats" && answer.route === route) show(answer);
            if (name === "recent") slowest.show(answer);
        },
    };
}

/** The slowest recent requests, or those of one route. @param {string} [route] */
export function slowestOf(route) {
    if (!has("recent")) return { root: remark("This server has no query 'recent': it does not keep its slowest requests."), show: () => {} };
    const table = new DataTable({
        label: "The slowest recent requests",
        key: (row) => `${row.worker ?? ""}${row.id}`,
        order: { key: "total", down: true },
        empty: "None of the recent requests is kept.",
        columns: [
            { key: "path", title: "Request", main: true, value: (row) => `${row.method} ${row.path}` },
            { key: "worker", title: "Worker", optional: true, number: true },
            { key: "status", title: "Status", number: true, optional: true, text: (value) => String(value) },
            { key: "total", title: "Total", number: true, value: totalOf, text: duration },
            { key: "spans", title: "Spans", fixed: true, paint: (cell, row) => paintSpans(cell, spanTimes(row), row.longest) },
            { key: "at", title: "At", optional: true, value: (row) => row.at ?? row.since ?? row.noted ?? row.start, text: (value) => byName("", value) },
            { key: "id", title: "Id", optional: true, text: (value) => byName("", value) },
        ],
    });
    return {
        root: table.root,
        /** @param {any} answer */
        show(answer) {
            const rows = /** @type {Row[]} */ (answer.recent ?? answer.requests ?? answer.slowest ?? []);
            const own = rows.filter((row) => route === undefined || row.route === route);
            const longest = Math.max(0, ...own.map((row) => totalOf(row) ?? 0));
            table.update(own.map((row) => ({ ...row, longest })));
        },
    };
}

/** @param {Row} row @returns {number | null} */
function totalOf(row) {
    return row.total_seconds ?? row.spans?.total ?? row.spans?.total_seconds ?? null;
}

/** How many requests took how long: bars of buckets. */
class Histogram {
    constructor() {
        this.bars = element("ol", { class: "histogram" });
        this.none = remark("This server tells no distribution of a route.");
        this.root = element("div", {}, this.bars, this.none);
    }

    /** @param {any} answer */
    update(answer) {
        const found = answer.histogram ?? answer.buckets;
        const buckets = /** @type {any[]} */ (Array.isArray(found) ? found : (found?.buckets ?? []));
        this.none.hidden = buckets.length > 0;
        this.bars.hidden = buckets.length === 0;
        const counts = buckets.map((bucket) => bucket.count ?? bucket.requests ?? 0);
        const most = Math.max(1, ...counts);
        while (this.bars.children.length > buckets.length) this.bars.lastElementChild?.remove();
        buckets.forEach((bucket, at) => {
            const line = this.bars.children[at] ?? this.bars.appendChild(element("li", {}, element("span"), element("i"), element("b")));
            const [until, bar, number] = /** @type {HTMLElement[]} */ ([...line.children]);
            const edge = bucket.to_seconds ?? bucket.le_seconds ?? bucket.until_seconds ?? bucket.seconds;
            setText(until, edge === null || edge === undefined ? "more" : `to ${duration(edge)}`);
            bar.style.setProperty("--part", `${(100 * counts[at]) / most}%`);
            setText(number, count(counts[at]));
        });
    }
}
