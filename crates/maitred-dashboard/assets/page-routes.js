// The routes: which of them take the time, and one of them in detail.

import { bytes, count, duration, isNumber, localTime, NOTHING, percent } from "./format.js";
import { element, remark, section, setText } from "./dom.js";
import { ask, canChange, has, Refused } from "./api.js";
import { addressOf, note } from "./router.js";
import { paintShare, paintSpans, SpanBar, spanLegend, SPANS, spanTimes } from "./spans.js";
import { DataTable } from "./table.js";
import { Facts, FoundTable } from "./generic.js";
import { paintRoute } from "./page-overview.js";
import { slowestCallOf } from "./page-upstreams.js";

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
    { key: "computing", title: "Computing", number: true, optional: true, value: (row) => row.computing_seconds, text: duration, help: "of a request, by its thread: measured on some" },
    { key: "waiting", title: "Waiting", number: true, optional: true, value: (row) => row.waiting_seconds, text: duration, help: "in the application, for a database, a lock, the interpreter or a processor" },
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
    const recent = recentRequests(route);
    const classes = new Facts();
    const distribution = section("Distribution", histogram.root);
    const details = [
        section("Spans", bar.root, spanLegend(), spans.root),
        distribution,
        section("What the application says", said.root),
    ];
    given.root.append(
        element("p", {}, element("a", { href: addressOf("routes") }, "All routes")),
        element("h2", { class: "path" }, route),
        figures,
        classes.root,
        ...details.slice(0, 2),
        section("Slowest of late", recent.root),
        database,
        ...details.slice(2),
    );
    const item = `stats?route=${encodeURIComponent(route)}`;
    const show = (/** @type {any} */ answer) => {
        setText(figures, `${count(answer.requests)} requests since the start of the server, ${bytes(answer.body_bytes)} of bodies`);
        classes.update((answer.classes ?? []).map((/** @type {Row} */ row) => [row.name, count(row.requests)]));
        const list = /** @type {Row[]} */ (answer.spans ?? []);
        bar.update(spanTimes({ spans: list }));
        spans.update(list.map((row) => ({ ...row, help: SPANS.find((span) => span.name === row.span)?.help ?? "the sum" })));
        histogram.update(answer);
        said.update(answer.application_timings ?? []);
        database.hidden = !Array.isArray(answer.databases);
        databases.update(answer.databases ?? []);
    };
    // The feed has one event for both kinds of `stats`: this one has a route.
    given.follow([item, ...recent.item]);
    ask(item).then(show, async (error) => {
        if (!(error instanceof Refused)) throw error;
        details.forEach((part) => (part.hidden = true));
        const row = (await ask("stats")).routes?.find((/** @type {Row} */ one) => one.name === route);
        // A snapshot has of a route only what the table of all has.
        const words = row && `${count(row.requests)} requests; mean ${duration(row.mean_seconds)}, p50 ${duration(row.p50_seconds)}, p99 ${duration(row.p99_seconds)}, max ${duration(row.max_seconds)}. `;
        setText(figures, `${words ?? ""}${error.message}`);
    });
    return {
        hear(name, answer) {
            if (name === "stats" && answer.route === route) show(answer);
            if (name === "recent") recent.show(answer);
        },
    };
}

/** The slowest recent requests and the last that failed, of all routes or of one. @param {string} [route] */
export function recentRequests(route) {
    if (!has("recent")) return { root: remark("This server has no query 'recent': it keeps no requests that have ended."), item: [], show: () => {} };
    const slow = recentTable("The slowest requests of the last two minutes", "No request has ended in the last two minutes.", "total");
    const failed = recentTable("The last requests that failed", "None has failed.", "ended");
    return {
        root: element("div", { class: "part" }, slow.root, element("h3", {}, "The last that failed"), failed.root),
        // A snapshot has those of all routes.
        item: [route === undefined || !canChange() ? "recent" : `recent?route=${encodeURIComponent(route)}`],
        /** @param {any} answer */
        show(answer) {
            const [own, bad] = [answer.slow ?? [], answer.failed ?? []].map((rows) => rows.filter((/** @type {Row} */ row) => route === undefined || row.route === route));
            const longest = Math.max(0, ...own.map((/** @type {Row} */ row) => row.total_seconds));
            slow.update(own.map((/** @type {Row} */ row) => ({ ...row, longest })));
            failed.update(bad.map((/** @type {Row} */ row) => ({ ...row, longest: Math.max(longest, row.total_seconds) })));
        },
    };
}

/** @param {string} label @param {string} empty @param {string} by */
function recentTable(label, empty, by) {
    return new DataTable({
        label,
        empty,
        key: (row) => `${row.worker ?? ""}/${row.id}/${row.ended}`,
        order: { key: by, down: true },
        tall: true,
        columns: [
            { key: "target", title: "Request", main: true, value: (row) => `${row.method} ${row.target}` },
            { key: "status", title: "Status", number: true, text: (value) => String(value ?? NOTHING) },
            { key: "total", title: "Total", number: true, value: (row) => row.total_seconds, text: duration },
            { key: "spans", title: "Spans", fixed: true, paint: (cell, row) => paintSpans(cell, spanTimes(row), row.longest) },
            { key: "calls", title: "Calls", optional: true, wrap: true, value: slowestCallOf, help: "to other servers" },
            { key: "ended", title: "Ended", text: localTime },
            { key: "end", title: "End", optional: true },
            { key: "worker", title: "Worker", number: true, optional: true },
            { key: "pool", title: "Pool", text: (value) => value ?? NOTHING },
            { key: "thread", title: "Thread", optional: true },
            { key: "peer", title: "Peer", optional: true },
            { key: "id", title: "Id", optional: true, paint: paintRequestId },
        ],
    });
}

/** An id that leads to its lines in the logs. @param {HTMLElement} cell @param {Row} row */
export function paintRequestId(cell, row) {
    const id = String(row.id ?? "");
    if (cell.textContent === id) return;
    cell.replaceChildren(has("logs") && id ? element("a", { href: addressOf("logs", { request: id }) }, id) : id);
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
        const found = /** @type {[number | null, number][]} */ (answer.buckets ?? []);
        // From the first bucket that has any to the last, and no more lines than can be read.
        const [first, last] = [found.findIndex(([, number]) => number > 0), found.findLastIndex(([, number]) => number > 0)];
        const buckets = joined(first < 0 ? [] : found.slice(first, last + 1));
        this.none.hidden = buckets.length > 0;
        this.bars.hidden = buckets.length === 0;
        const counts = buckets.map(([, number]) => number);
        const most = Math.max(1, ...counts);
        while (this.bars.children.length > buckets.length) this.bars.lastElementChild?.remove();
        buckets.forEach(([edge], at) => {
            const line = this.bars.children[at] ?? this.bars.appendChild(element("li", {}, element("span"), element("i"), element("b")));
            const [until, bar, number] = /** @type {HTMLElement[]} */ ([...line.children]);
            setText(until, edge === null ? "more" : `to ${duration(edge)}`);
            bar.style.setProperty("--part", `${(100 * counts[at]) / most}%`);
            setText(number, count(counts[at]));
        });
    }
}

/** Lines of a histogram. */
const MOST_BUCKETS = 32;

/** Neighbours together until they are few. @param {[number | null, number][]} buckets @returns {[number | null, number][]} */
function joined(buckets) {
    let shown = buckets;
    while (shown.length > MOST_BUCKETS) {
        shown = shown.flatMap(([edge, number], at) => (at % 2 ? [/** @type {[number | null, number]} */ ([edge, number + shown[at - 1][1]])] : at === shown.length - 1 ? [/** @type {[number | null, number]} */ ([edge, number])] : []));
    }
    return shown;
}
