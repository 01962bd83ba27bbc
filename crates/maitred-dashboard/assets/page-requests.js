// The requests: those that run, those that wait, the slowest of late, and how the last ones got their threads.

import { duration, isNumber, localTime, NOTHING, plural } from "./format.js";
import { confirmed, element, remark, section, setText, tell } from "./dom.js";
import { canChange, change, linesOf, Refused } from "./api.js";
import { paintSpans, spanLegend, spanTimes } from "./spans.js";
import { DataTable } from "./table.js";
import { paintRequestId, recentRequests } from "./page-routes.js";
import { callsOf } from "./page-upstreams.js";

/** @typedef {import("./page-overview.js").PageGiven} PageGiven */
/** @typedef {import("./page-overview.js").PageShown} PageShown */
/** @typedef {Record<string, any>} Row */

/** @param {string} label @param {string} empty @param {boolean} isRunning */
function openRequests(label, empty, isRunning) {
    /** @type {import("./table.js").Column[]} */
    const columns = [
        { key: "path", title: "Request", main: true, value: (row) => `${row.method} ${row.path}` },
        { key: "for", title: "For", number: true, value: (row) => row.for_seconds, text: duration },
        // One that waits has only waited yet; what one that runs has waited before is not told.
        { key: "bar", title: isRunning ? "Runs" : "Waits", fixed: true, paint: (cell, row) => paintSpans(cell, [{ name: isRunning ? "run" : "queue", seconds: row.for_seconds ?? 0 }], row.longest) },
        { key: "since", title: "Since", text: localTime },
        { key: "pool", title: "Pool", text: (value) => value ?? NOTHING },
        { key: "call", title: "Waits for", optional: true, wrap: true, value: (row) => callsOf(row) || null, help: "calls to other servers that run now" },
        { key: "thread", title: "Thread", optional: true },
        { key: "worker", title: "Worker", number: true, optional: true },
        { key: "peer", title: "Peer" },
        { key: "id", title: "Id" },
    ];
    return new DataTable({ label, columns, empty, key: (row) => `${row.worker ?? ""}/${row.id}`, order: { key: "for", down: true } });
}

/** @param {PageGiven} given @returns {PageShown} */
export function requestsPage(given) {
    const running = openRequests("Requests in the application", "No request is in the application.", true);
    const waiting = openRequests("Requests that wait for a thread", "No request waits for a thread.", false);
    const recent = recentRequests();
    const number = element("p", { class: "unit" });
    const trace = new Trace();
    given.root.append(
        spanLegend(),
        section("In the application", number, running.root),
        section("In the queue", waiting.root),
        section("Slowest of late", recent.root),
        section("How the last ones got their threads", trace.root),
    );
    given.follow(["stats", "all", "traces", ...recent.item]);
    return {
        hear(name, answer) {
            if (name === "all") {
                const both = [...answer.active, ...answer.queued];
                const longest = Math.max(0, ...both.map((row) => row.for_seconds ?? 0));
                const withLongest = (/** @type {Row} */ row) => ({ ...row, longest });
                running.update(answer.active.map(withLongest));
                waiting.update(answer.queued.map(withLongest));
                setText(number, `${plural(answer.total, "request")} in the application or in the queue`);
            }
            if (name === "recent") recent.show(answer);
            if (name === "traces") trace.show(answer);
        },
    };
}

/** The dispatch trace. */
class Trace {
    constructor() {
        this.isOn = false;
        this.about = remark("");
        this.button = element("button", { disabled: !canChange(), onclick: () => this.turn() }, "Turn the dispatch trace on");
        this.table = new DataTable({
            label: "How the last requests got their threads",
            key: (row) => `${row.worker ?? ""}/${row.id}`,
            order: { key: "noted", down: true },
            empty: "No request has been traced.",
            tall: true,
            columns: [
                { key: "path", title: "Request", main: true, value: (row) => `${row.method} ${row.path}` },
                { key: "status", title: "Status", number: true, text: (value) => String(value ?? NOTHING) },
                { key: "total", title: "Total", number: true, value: (row) => row.total_seconds, text: duration },
                { key: "bar", title: "Queue and run", fixed: true, paint: (cell, row) => paintSpans(cell, spanTimes(row), row.longest) },
                { key: "got", title: "Got its thread" },
                { key: "waiting", title: "Waiting", number: true, help: "requests that waited when it came" },
                { key: "idle", title: "Idle", number: true, value: (row) => row.idle, text: (_, row) => `${row.idle} of ${row.threads}`, help: "idle threads when it came" },
                { key: "pool", title: "Pool", text: (value) => value ?? NOTHING },
                { key: "worker", title: "Worker", number: true, optional: true },
                { key: "noted", title: "Ended", text: localTime },
                { key: "id", title: "Id", paint: paintRequestId },
            ],
        });
        this.root = element("div", {}, element("div", { class: "row" }, this.about, this.button), this.table.root);
    }

    /** @param {any} answer */
    show(answer) {
        this.isOn = answer.dispatch_trace === "on";
        setText(this.about, this.isOn ? "The dispatch trace is on." : "The dispatch trace is off: it notes of each request how it got its thread.");
        setText(this.button, this.isOn ? "Turn the dispatch trace off" : "Turn the dispatch trace on");
        const rows = /** @type {Row[]} */ (answer.traces ?? []);
        const longest = Math.max(0, ...rows.map((row) => (isNumber(row.total_seconds) ? row.total_seconds : 0)));
        this.table.update(rows.map((row) => ({ ...row, longest })));
        this.table.root.hidden = !this.isOn && rows.length === 0;
    }

    async turn() {
        const to = this.isOn ? "off" : "on";
        if (!(await confirmed(`Turn the dispatch trace ${to}?`, `Turn ${to}`, "It costs a little for each request, and lasts until it is changed again or the configuration is read again."))) return;
        await changeAndTell("set", { name: "dispatch-trace", value: this.isOn ? "false" : "true" });
    }
}

/** Changes something and says what has become of it. @param {string} name @param {Record<string, string | number | undefined>} given */
export async function changeAndTell(name, given) {
    try {
        tell(linesOf(await change(name, given)));
        return true;
    } catch (error) {
        if (!(error instanceof Refused)) throw error;
        tell(error.message, true);
        return false;
    }
}
