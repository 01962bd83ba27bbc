// Figures over time: the server's own history, or what this page has seen itself, by the same names.
//
// Promises: counts are differences of what was counted since the start, and a restart begins anew. What nobody looked at is a gap, and no
// row of zeros. Leaves out: percentiles of an interval, which only the server's history has.

import { isNumber } from "./format.js";
import { ask, has, Refused } from "./api.js";

/** @typedef {(number | null)[]} Values */
/** @typedef {{ step: number, times: number[], values: Record<string, Values> }} Columns */
/** @typedef {{ key: string, title: string, seconds: number, step: number }} TimeRange */
/** @typedef {{ time: number, what: string }} Mark what happened to the server */

/** @type {TimeRange[]} */
export const RANGES = [
    { key: "5m", title: "5 min", seconds: 300, step: 1 },
    { key: "1h", title: "1 hour", seconds: 3600, step: 1 },
    { key: "1d", title: "1 day", seconds: 86400, step: 10 },
    { key: "30d", title: "30 days", seconds: 2592000, step: 600 },
];

/** What is asked of the server's history: times are sums of the interval, so that means are right over several of them. */
const FIGURES = [
    "requests", "requests_0xx", "requests_1xx", "requests_2xx", "requests_3xx", "requests_4xx", "requests_5xx",
    "errors", "timeouts", "cut", "refused", "covered_seconds", "cpu_user_seconds", "cpu_system_seconds",
    "p50_seconds", "p90_seconds", "p99_seconds", "max_seconds",
    "accept_seconds", "queue_seconds", "gate_seconds", "filter_seconds", "run_seconds", "receive_seconds", "write_seconds", "threads_gate",
    "queue", "queue_max", "threads_idle", "threads_busy", "threads_stuck", "memory_bytes", "connections_open",
];

/** Rows that this page keeps of what it sees. */
const KEPT = 3600;

/** Seconds of which routes are compared. */
const RECENT = 60;

/** @param {number} step @returns {Columns} */
function noColumns(step) {
    return { step, times: [], values: {} };
}

/** Adds rows, which replace those of the same time. @param {Columns} to @param {number[]} times @param {Record<string, Values>} values */
function addRows(to, times, values) {
    const names = new Set([...Object.keys(to.values), ...Object.keys(values)]);
    for (const name of names) to.values[name] ??= to.times.map(() => null);
    times.forEach((time, row) => {
        let at = to.times.length;
        while (at > 0 && to.times[at - 1] >= time) at -= 1;
        const isThere = to.times[at] === time ? 1 : 0;
        to.times.splice(at, isThere, time);
        for (const name of names) to.values[name].splice(at, isThere, values[name]?.[row] ?? null);
    });
}

/** Forgets what is older. @param {Columns} of @param {number} before */
function dropRows(of, before) {
    const keep = of.times.findIndex((time) => time >= before);
    const gone = keep < 0 ? of.times.length : keep;
    if (gone === 0) return;
    of.times.splice(0, gone);
    for (const values of Object.values(of.values)) values.splice(0, gone);
}

/** With an empty row where one is missing, so that no line leads over a gap. @param {Columns} of @returns {Columns} */
export function withGaps(of) {
    const apart = of.step * 2.5;
    if (!of.times.some((time, at) => at > 0 && time - of.times[at - 1] > apart)) return of;
    const filled = noColumns(of.step);
    /** @type {number[]} */
    const places = [];
    of.times.forEach((time, at) => {
        if (at > 0 && time - of.times[at - 1] > apart) {
            filled.times.push(of.times[at - 1] + of.step);
            places.push(-1);
        }
        filled.times.push(time);
        places.push(at);
    });
    for (const [name, values] of Object.entries(of.values)) filled.values[name] = places.map((at) => (at < 0 ? null : values[at]));
    return filled;
}

/** The server's history of one range. */
export class Past {
    /** @param {TimeRange} range */
    constructor(range) {
        this.range = range;
        this.columns = noColumns(range.step);
        /** @type {Mark[]} */
        this.marks = [];
        this.isOn = true;
        this.isKept = has("history");
    }

    /** What is followed. */
    item() {
        return this.isKept ? [this.question(this.range.step * 4)] : [];
    }

    /** @param {number} seconds */
    question(seconds) {
        return `history?last=${seconds}s&resolution=${this.range.step}s&figure=${FIGURES.join()}`;
    }

    /** All of the range. */
    async load() {
        if (!this.isKept) return;
        try {
            this.add(await ask(this.question(this.range.seconds)));
        } catch (error) {
            if (!(error instanceof Refused)) throw error;
            // A snapshot has other ranges, or the server's answer is another one: then this page's own figures are shown.
            this.isKept = false;
        }
    }

    /** @param {any} answer */
    add(answer) {
        const { step } = this.range;
        if (answer.resolution_seconds !== step || !answer.figures) return;
        this.isOn = answer.on !== false;
        const times = Array.from({ length: answer.intervals ?? 0 }, (_, at) => answer.start + at * step);
        if (this.columns.times.length === 0) this.columns = { step, times, values: answer.figures };
        else addRows(this.columns, times, answer.figures);
        const newest = this.columns.times.at(-1) ?? 0;
        dropRows(this.columns, newest - this.range.seconds);
        const known = new Set(this.marks.map((mark) => `${mark.time} ${mark.what}`));
        this.marks.push(...(answer.marks ?? []).filter((/** @type {Mark} */ mark) => !known.has(`${mark.time} ${mark.what}`)));
        this.marks = this.marks.filter((mark) => mark.time >= newest - this.range.seconds);
    }
}

/** What this page has seen, second by second. */
export class Gathered {
    constructor() {
        this.columns = noColumns(1);
        /** @type {any} */
        this.stats = null;
        /** @type {any} */
        this.pools = null;
        /** @type {{ at: number, routes: Map<string, [number, number]> }[]} */
        this.routes = [];
    }

    /** @param {string} name @param {any} answer */
    hear(name, answer) {
        if (name === "pools") this.pools = answer;
        if (name !== "stats") return;
        const before = this.stats;
        this.stats = answer;
        this.hearRoutes(answer);
        const covered = before ? answer.uptime_seconds - before.uptime_seconds : 0;
        if (covered < 0) this.routes = [];
        if (covered < 0.2) return;
        const row = { ...risen(before, answer), ...this.gauges(), covered_seconds: covered };
        const values = Object.fromEntries(Object.entries(row).map(([key, value]) => [key, [value]]));
        addRows(this.columns, [Date.now() / 1000], values);
        dropRows(this.columns, Date.now() / 1000 - KEPT);
    }

    /** @returns {Record<string, number | null>} */
    gauges() {
        const pools = /** @type {any[]} */ (this.pools?.pools ?? []);
        if (!this.pools) return {};
        const sum = (/** @type {(pool: any) => number} */ of) => pools.reduce((all, pool) => all + of(pool), 0);
        const [all, idle, stuck] = [sum((pool) => pool.threads), sum((pool) => pool.idle), sum((pool) => pool.lost)];
        return { queue: sum((pool) => pool.queued), threads_idle: idle, threads_stuck: stuck, threads_busy: Math.max(0, all - idle - stuck) };
    }

    /** @param {any} stats */
    hearRoutes(stats) {
        /** @type {Map<string, [number, number]>} */
        const routes = new Map();
        for (const route of stats.routes ?? []) routes.set(route.name, [route.requests, route.requests * route.mean_seconds]);
        const at = stats.uptime_seconds;
        this.routes.push({ at, routes });
        while (this.routes.length > 2 && this.routes[0].at < at - RECENT) this.routes.shift();
    }

    /** Requests and seconds of each route in the last minute, as far as this page has seen it; those since the start before that. */
    recentRoutes() {
        const newest = this.routes.at(-1);
        const oldest = this.routes[0];
        if (!newest) return { seconds: 0, routes: [] };
        const seconds = newest.at - oldest.at;
        const isShort = seconds < 5;
        const routes = [...newest.routes].map(([name, [requests, time]]) => {
            const [before, timeBefore] = isShort ? [0, 0] : (oldest.routes.get(name) ?? [0, 0]);
            return { name, requests: requests - before, time: Math.max(0, time - timeBefore) };
        });
        return { seconds: isShort ? 0 : seconds, routes: routes.filter((route) => route.requests > 0) };
    }
}

/** What was counted between two answers. @param {any} before @param {any} now */
function risen(before, now) {
    /** @type {Record<string, number | null>} */
    const row = {};
    for (const name of ["requests", "errors", "timeouts", "cut", "refused"]) row[name] = now[name] - before[name];
    row.out_bytes = now.body_bytes - before.body_bytes;
    const classes = /** @type {any[]} */ (before.classes ?? []);
    for (const one of now.classes ?? []) {
        const earlier = classes.find((other) => other.name === one.name)?.requests ?? 0;
        row[`requests_${one.name}`] = one.requests - earlier;
    }
    for (const one of now.spans ?? []) {
        const earlier = (before.spans ?? []).find((/** @type {any} */ other) => other.span === one.span) ?? { count: 0, mean_seconds: 0 };
        row[`${one.span}_seconds`] = Math.max(0, one.count * one.mean_seconds - earlier.count * earlier.mean_seconds);
    }
    return row;
}

/** A count as so many each second. @param {Columns} columns @param {string} name @returns {Values} */
export function perSecond(columns, name) {
    const covered = columns.values.covered_seconds;
    return (columns.values[name] ?? columns.times.map(() => null)).map((value, at) => {
        const seconds = covered?.[at];
        return isNumber(value) && isNumber(seconds) && seconds > 0 ? value / seconds : null;
    });
}

/** The same of several counts together. @param {Columns} columns @param {string[]} names @returns {Values} */
export function sumPerSecond(columns, names) {
    const all = names.map((name) => perSecond(columns, name));
    return columns.times.map((_, at) => {
        const known = all.map((values) => values[at]).filter(isNumber);
        return known.length > 0 ? known.reduce((sum, value) => sum + value, 0) : null;
    });
}

/** The values of a figure; empty where it is not known. @param {Columns} columns @param {string} name @returns {Values} */
export function figure(columns, name) {
    return columns.values[name] ?? columns.times.map(() => null);
}

/** Of each request. @param {Columns} columns @param {string} name of a sum @returns {Values} */
export function perRequest(columns, name) {
    const sums = figure(columns, name);
    return figure(columns, "requests").map((requests, at) => {
        const sum = sums[at];
        return isNumber(sum) && isNumber(requests) && requests > 0 ? sum / requests : null;
    });
}

/** The same over the newest seconds. @param {Columns} columns @param {string} name @param {number} seconds */
export function newestPerRequest(columns, name, seconds) {
    const from = (columns.times.at(-1) ?? 0) - seconds;
    const sum = (/** @type {Values} */ values) => values.reduce((/** @type {number} */ all, value, at) => (columns.times[at] > from ? all + (value ?? 0) : all), 0);
    const requests = sum(figure(columns, "requests"));
    return requests > 0 ? sum(figure(columns, name)) / requests : null;
}

/** The mean of the newest values that lie within so many seconds. @param {Columns} columns @param {Values} values @param {number} seconds */
export function newestMean(columns, values, seconds) {
    const from = (columns.times.at(-1) ?? 0) - seconds;
    const known = values.filter((value, at) => isNumber(value) && columns.times[at] > from).filter(isNumber);
    return known.length > 0 ? known.reduce((sum, value) => sum + value, 0) / known.length : null;
}
