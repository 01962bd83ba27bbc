// The overview: what hurts, in a sentence, in large figures and over time.

import { age, axisBytes, axisCount, axisDuration, bytes, count, duration, isNumber, NOTHING, percent, plural, rate } from "./format.js";
import { element, remark, section, setAttribute, setText } from "./dom.js";
import { has, snapshot } from "./api.js";
import { addressOf, note } from "./router.js";
import { figure, newestMean, newestPerRequest, Past, perRequest, perSecond, RANGES, sumPerSecond } from "./series.js";
import { paintShare, SpanBar, spanLegend, SPANS } from "./spans.js";
import { Chart } from "./chart.js";
import { DataTable } from "./table.js";

/** @typedef {import("./series.js").Columns} Columns */
/** @typedef {import("./series.js").Gathered} Gathered */
/**
 * What a page is given, and what it gives.
 * @typedef {{ root: HTMLElement, parameters: URLSearchParams, gathered: Gathered, follow: (items: string[]) => void }} PageGiven
 * @typedef {{ hear?: (name: string, answer: any) => void, repaint?: () => void, end?: () => void }} PageShown
 */

/** Of so many seconds the large figures are. */
const PRESENT = 10;

/** `kept`: only the server's history has it. */
/** @type {(import("./chart.js").ChartGiven & { kept?: boolean })[]} */
const OVERVIEW_CHARTS = [
    {
        key: "requests",
        title: "Requests",
        unit: "each second, by class of status",
        stacked: true,
        least: 1,
        text: rate,
        axis: axisCount,
        lines: [
            { name: "2xx", colour: "--class-2xx", of: (columns) => perSecond(columns, "requests_2xx") },
            { name: "3xx", colour: "--class-3xx", of: (columns) => perSecond(columns, "requests_3xx") },
            { name: "4xx", colour: "--class-4xx", of: (columns) => perSecond(columns, "requests_4xx") },
            { name: "5xx", colour: "--class-5xx", of: (columns) => perSecond(columns, "requests_5xx") },
            { name: "none", help: "cut before a response, or 1xx", colour: "--class-none", of: (columns) => sumPerSecond(columns, ["requests_0xx", "requests_1xx"]) },
        ],
    },
    {
        key: "percentiles",
        title: "Time of a request",
        unit: "percentiles, log axis",
        log: "always",
        text: duration,
        axis: axisDuration,
        empty: "No data yet: percentiles of each second need the server's history.",
        lines: [
            { name: "p50", help: "half of the requests took at most this", colour: "--p50", of: (columns) => figure(columns, "p50_seconds") },
            { name: "p90", help: "90 of 100", colour: "--p90", of: (columns) => figure(columns, "p90_seconds") },
            { name: "p99", help: "99 of 100", colour: "--p99", of: (columns) => figure(columns, "p99_seconds") },
        ],
    },
    {
        key: "spans",
        title: "Time by span",
        unit: "mean of a request",
        stacked: true,
        log: "choice",
        text: duration,
        axis: axisDuration,
        lines: SPANS.map((span) => ({ name: span.title, help: span.help, colour: span.colour, of: (/** @type {Columns} */ columns) => perRequest(columns, `${span.name}_seconds`) })),
    },
    {
        key: "queue",
        title: "Queue",
        unit: "requests that wait for a thread",
        least: 5,
        text: count,
        axis: axisCount,
        lines: [
            { name: "waiting", colour: "--span-queue", of: (columns) => figure(columns, "queue") },
            { name: "most", help: "the largest in each interval", colour: "--muted-line", dash: [4, 3], of: (columns) => figure(columns, "queue_max") },
        ],
    },
    {
        key: "errors",
        title: "Errors",
        unit: "each second",
        least: 1,
        text: rate,
        axis: axisCount,
        lines: [
            { name: "errors", help: "answers from 500 on", colour: "--class-5xx", of: (columns) => perSecond(columns, "errors") },
            { name: "timeouts", help: "request-timeout", colour: "--class-4xx", of: (columns) => perSecond(columns, "timeouts") },
            { name: "cut", help: "not complete", colour: "--span-filter", of: (columns) => perSecond(columns, "cut") },
            { name: "refused", help: "before a route was known", colour: "--p90", of: (columns) => perSecond(columns, "refused") },
        ],
    },
    {
        key: "saturation",
        title: "Saturation",
        unit: "part of the threads",
        least: 1,
        text: percent,
        axis: percent,
        lines: [
            { name: "busy", colour: "--span-run", of: (columns) => ofThreads(columns, "threads_busy") },
            { name: "for the interpreter", help: "threads that wait for it", colour: "--span-gate", of: (columns) => ofThreads(columns, "threads_gate") },
            { name: "stuck", help: "in requests that have timed out", colour: "--stuck", of: (columns) => ofThreads(columns, "threads_stuck") },
        ],
    },
    {
        key: "processor",
        kept: true,
        title: "Processor",
        unit: "processors in use",
        least: 1,
        text: rate,
        axis: axisCount,
        lines: [{ name: "processors", colour: "--p90", of: (columns) => sumPerSecond(columns, ["cpu_user_seconds", "cpu_system_seconds"]) }],
    },
    {
        key: "memory",
        kept: true,
        title: "Memory",
        unit: "of all processes",
        text: bytes,
        axis: axisBytes,
        binary: true,
        lines: [{ name: "memory", colour: "--span-write", of: (columns) => figure(columns, "memory_bytes") }],
    },
];

/** @param {Columns} columns @param {string} name */
function ofThreads(columns, name) {
    const all = ["threads_busy", "threads_idle", "threads_stuck"].map((one) => figure(columns, one));
    return figure(columns, name).map((value, at) => {
        const threads = all.reduce((sum, values) => sum + (values[at] ?? 0), 0);
        return isNumber(value) && threads > 0 ? value / threads : null;
    });
}

/** A large figure. */
class Tile {
    /** @param {string} name @param {string} key @param {string} page where more of it is */
    constructor(name, key, page) {
        this.number = element("strong", {}, NOTHING);
        this.unit = element("span", { class: "unit" });
        this.below = element("span", { class: "below" });
        this.root = element(
            "a",
            { class: "tile", href: addressOf(page), "data-figure": key },
            element("span", { class: "name" }, name),
            element("span", { class: "big" }, this.number, " ", this.unit),
            this.below,
        );
    }

    /** @param {string} text @param {string} below @param {"" | "slow" | "bad"} [weight] */
    show(text, below, weight = "") {
        const [, number, unit] = /^(\S+)\s*(.*)$/.exec(text) ?? ["", text, ""];
        setText(this.number, number);
        setText(this.unit, unit);
        setText(this.below, below);
        setAttribute(this.root, "data-weight", weight || null);
    }
}

/** @param {PageGiven} given @returns {PageShown} */
export function overviewPage(given) {
    const finding = new Finding();
    const tiles = {
        rate: new Tile("Requests", "requests", "routes"),
        p50: new Tile("p50", "p50", "routes"),
        p90: new Tile("p90", "p90", "routes"),
        p99: new Tile("p99", "p99", "routes"),
        errors: new Tile("Errors", "errors", "requests"),
        threads: new Tile("Busy threads", "threads", "threads"),
        queue: new Tile("Queue", "queue", "requests"),
    };
    const charts = OVERVIEW_CHARTS.filter((chart) => !chart.kept || has("history")).map((chart) => new Chart(chart));
    const bar = new SpanBar();
    const hot = hotRoutes();
    const time = element("p", { class: "unit" });
    const longest = longestNow();
    const source = element("p", { class: "source" });
    let range = RANGES.find((one) => one.key === given.parameters.get("range")) ?? RANGES[0];
    let past = new Past(range);
    const present = new Past({ key: "now", title: "", seconds: 60, step: PRESENT });
    /** @type {any} */
    let stats = null;
    /** @type {any} */
    let pools = null;
    let painted = 0;

    const choice = element("div", { class: "choice", role: "group", "aria-label": "Time that the charts show" });
    for (const one of RANGES) {
        const button = element("button", { "aria-pressed": String(one === range), onclick: () => choose(one) }, one.title);
        choice.append(button);
    }
    given.root.append(
        finding.root,
        element("div", { class: "tiles" }, ...Object.values(tiles).map((tile) => tile.root)),
        element(
            "div",
            { class: "pair" },
            section("Where the time of a request goes", bar.root, time, spanLegend(), element("h3", {}, "Longest in the application now"), longest.root),
            section("Routes that take the most time", hot.note, hot.table.root),
        ),
        element("div", { class: "row spread" }, element("h2", {}, "Over time"), choice),
        source,
        element("div", { class: "charts" }, ...charts.map((chart) => chart.root)),
    );

    const items = () => ["stats", "pools", "active", ...(has("finding") ? ["finding"] : []), ...past.item(), ...(range.step === PRESENT ? [] : present.item())];

    const choose = (/** @type {import("./series.js").TimeRange} */ one) => {
        range = one;
        note({ range: one === RANGES[0] ? "" : one.key });
        [...choice.children].forEach((button, at) => setAttribute(button, "aria-pressed", String(RANGES[at] === one)));
        past = new Past(range);
        void load();
    };

    const load = async () => {
        const loading = past;
        await Promise.all([loading.load(), present.load()]);
        if (loading !== past) return;
        given.follow(items());
        setText(source, sourceOf(loading));
        source.hidden = source.textContent === "";
        paint(true);
    };

    const paint = (/** @type {boolean} */ isAll) => {
        const columns = past.isKept ? past.columns : given.gathered.columns;
        const to = snapshot ? (columns.times.at(-1) ?? snapshot.taken) : Date.now() / 1000;
        // Long ranges change slowly.
        if (isAll || Date.now() - painted > Math.min(10000, range.seconds * 2)) {
            painted = Date.now();
            for (const chart of charts) chart.update(columns, to - range.seconds, to, past.marks);
        }
        showTiles();
    };

    const showTiles = () => {
        const own = given.gathered.columns;
        const recent = own.times.length > 1 ? own : present.columns.times.length > 0 ? present.columns : past.columns;
        const mean = (/** @type {string} */ name) => newestMean(recent, perSecond(recent, name), PRESENT);
        if (stats) {
            const [requests, errors] = [mean("requests"), mean("errors")];
            tiles.rate.show(requests === null ? NOTHING : `${rate(requests)} /s`, `${count(stats.requests)} since the start`);
            tiles.errors.show(errors === null ? NOTHING : `${rate(errors)} /s`, `${count(stats.errors)} since the start`, errors ? "bad" : "");
            showPercentiles(tiles, present, stats);
        }
        if (pools) showPools(tiles, pools);
        const spans = SPANS.map((span) => ({ name: span.name, seconds: newestPerRequest(recent, `${span.name}_seconds`, PRESENT) ?? 0 }));
        const whole = spans.reduce((sum, span) => sum + span.seconds, 0);
        bar.update(spans);
        setText(time, whole > 0 ? `${duration(whole)}, mean of the last ${PRESENT} s` : `No request in the last ${PRESENT} s.`);
        hot.show(given.gathered.recentRoutes());
    };

    void load();
    return {
        hear(name, answer) {
            if (name === "stats") stats = answer;
            if (name === "pools") pools = answer;
            if (name === "active") longest.show(answer.active);
            if (name === "finding") finding.show(answer);
            if (name === "history") {
                past.add(answer);
                present.add(answer);
            }
            if (!has("finding") && stats) finding.plain(stats);
            // A snapshot has each answer once.
            if (name === "stats" || snapshot) paint(false);
        },
        repaint: () => charts.forEach((chart) => chart.repaint()),
        end: () => charts.forEach((chart) => chart.end()),
    };
}

/** Where the figures of the charts come from, if that is to be said. @param {Past} past */
function sourceOf(past) {
    if (past.isKept) return past.isOn ? "" : "Statistics are off: nothing is added.";
    return snapshot ? "The snapshot has no figures of this range." : "This server has no history: the charts show what this page has seen since it was opened.";
}

/** @param {Record<"p50" | "p90" | "p99", Tile>} tiles @param {Past} present @param {any} stats */
function showPercentiles(tiles, present, stats) {
    const { columns } = present;
    const total = (stats.spans ?? []).find((/** @type {any} */ one) => one.span === "total");
    for (const name of /** @type {const} */ (["p50", "p90", "p99"])) {
        if (!present.isKept) {
            const whole = total?.count ? total[`${name}_seconds`] : null;
            tiles[name].show(duration(whole), "since the start");
            tiles[name].root.hidden = whole === undefined;
            continue;
        }
        const known = figure(columns, `${name}_seconds`);
        const newest = Math.max(known.length - 2, 0);
        const value = known.slice(newest).findLast(isNumber) ?? null;
        tiles[name].show(duration(value), value === null ? `none in the last ${PRESENT} s` : `of the last ${PRESENT} s`);
    }
}

/** @param {Record<"threads" | "queue", Tile>} tiles @param {any} answer */
function showPools(tiles, answer) {
    const pools = /** @type {any[]} */ (answer.pools);
    const sum = (/** @type {string} */ name) => pools.reduce((all, pool) => all + pool[name], 0);
    const [threads, stuck, queued, most] = [sum("threads"), sum("lost"), sum("queued"), sum("max_threads")];
    const busy = Math.max(0, threads - sum("idle") - stuck);
    const below = stuck > 0 ? `of ${count(threads)}, ${count(stuck)} stuck` : `of ${count(threads)}, at most ${count(most)}`;
    tiles.threads.show(count(busy), most === 0 ? "no threads: an event loop runs all" : below, stuck > 0 ? "bad" : most > 0 && busy >= most ? "slow" : "");
    tiles.queue.show(count(queued), `${count(sum("waited"))} have waited`, queued > 0 ? "slow" : "");
}

/** What fails, or loses something; anything else that stands in the way makes requests slow. */
const BAD_CAUSES = ["errors", "log", "spool", "memory"];

/** The sentence. */
class Finding {
    constructor() {
        this.text = element("p", { class: "sentence" }, "The server is asked…");
        this.next = element("span");
        this.link = element("a", { href: addressOf("routes") });
        this.more = element("p", { class: "more" }, this.next, " ", this.link);
        this.more.hidden = true;
        this.root = element("section", { class: "finding", "aria-label": "Finding" }, this.text, this.more);
    }

    /** @param {any} answer */
    show(answer) {
        const weight = answer.cause === "none" ? "calm" : BAD_CAUSES.includes(answer.cause) ? "bad" : "slow";
        setAttribute(this.root, "data-weight", weight);
        setText(this.text, answer.sentence ?? NOTHING);
        setText(this.next, answer.next ?? "");
        this.more.hidden = !answer.next && !answer.route && !answer.pool;
        setText(this.link, answer.route ?? (answer.pool ? `pool ${answer.pool}` : ""));
        setAttribute(this.link, "href", answer.route ? addressOf("routes", { route: answer.route }) : addressOf("threads"));
    }

    /** Without a finding only what is certain. @param {any} stats */
    plain(stats) {
        setText(this.text, `Serving for ${age(stats.uptime_seconds)}.`);
    }
}

/** Those that run for longest. */
function longestNow() {
    const table = new DataTable({
        label: "Longest in the application now",
        key: (row) => `${row.worker ?? ""}/${row.id}`,
        empty: "No request is in the application.",
        columns: [
            { key: "path", title: "Request", main: true, fixed: true, value: (row) => `${row.method} ${row.path}` },
            { key: "for", title: "For", number: true, fixed: true, value: (row) => row.for_seconds, text: duration },
        ],
    });
    return {
        root: table.root,
        /** @param {Record<string, any>[]} rows */
        show: (rows) => table.update([...rows].sort((one, other) => other.for_seconds - one.for_seconds).slice(0, 3)),
    };
}

function hotRoutes() {
    const table = new DataTable({
        label: "Routes that take the most time",
        key: (row) => row.name,
        empty: "No request.",
        order: { key: "share", down: true },
        columns: [
            { key: "name", title: "Route", main: true, paint: (cell, row) => paintRoute(cell, row.name) },
            { key: "share", title: "Share", number: true, paint: (cell, row) => paintShare(cell, row.share) },
            { key: "mean", title: "Mean", number: true, text: duration },
            { key: "rate", title: "Requests", number: true, text: (_, row) => row.words },
        ],
    });
    const about = remark("");
    return {
        table,
        note: about,
        /** @param {{ seconds: number, routes: { name: string, requests: number, time: number }[] }} recent */
        show({ seconds, routes }) {
            const all = routes.reduce((sum, route) => sum + route.time, 0);
            const rows = routes
                .sort((one, other) => other.time - one.time)
                .slice(0, 5)
                .map(({ name, requests, time }) => ({
                    name,
                    share: all > 0 ? time / all : 0,
                    mean: time / requests,
                    rate: requests,
                    words: seconds > 0 ? `${rate(requests / seconds)} /s` : count(requests),
                }));
            table.update(rows);
            setText(about, seconds > 0 ? `In the last ${plural(Math.round(seconds), "second")}.` : "Since the start.");
        },
    };
}

/** The name of a route that leads to more of it. @param {HTMLElement} cell @param {string} name */
export function paintRoute(cell, name) {
    if (cell.textContent === name) return;
    cell.replaceChildren(element("a", { href: addressOf("routes", { route: name }) }, name));
}
