// The servers that the application calls: how often, how long, how it ended, and which requests wait for them now.

import { bytes, count, duration, NOTHING, percent, plural } from "./format.js";
import { element, remark, section, setText } from "./dom.js";
import { has } from "./api.js";
import { DataTable } from "./table.js";

/** @typedef {import("./page-overview.js").PageGiven} PageGiven */
/** @typedef {import("./page-overview.js").PageShown} PageShown */
/** @typedef {Record<string, any>} Row */

/** The parts of a call, in words. @type {Record<string, string>} */
const PARTS = {
    slot: "waits for a free connection",
    resolve: "looks up the name",
    connect: "connects",
    tls: "begins TLS",
    "first byte": "waits for the first byte",
    body: "reads the response",
};

/** The calls of a request that run, in words. @param {Row} row */
export function callsOf(row) {
    const calls = /** @type {Row[]} */ (row.calls ?? []);
    return calls.map((call) => `${call.to}: ${PARTS[call.part] ?? call.part} for ${duration(call.for_seconds)}`).join("; ");
}

/** The calls of a request that has ended, in words. @param {Row} row */
export function slowestCallOf(row) {
    if (!row.outgoing_calls) return null;
    const failed = row.outgoing_failed > 0 ? `, ${count(row.outgoing_failed)} without a response` : "";
    return `${duration(row.outgoing_seconds)} in ${plural(row.outgoing_calls, "call")}${failed}; slowest ${row.slowest_call}, ${duration(row.slowest_call_seconds)}, most of it ${row.slowest_call_part}`;
}

/** @param {PageGiven} given @returns {PageShown} */
export function upstreamsPage(given) {
    const servers = new DataTable({
        label: "Servers that are called",
        key: (row) => row.server,
        order: { key: "time", down: true },
        empty: "No call has been made by the client of maitred (maitred.http, or its transports for httpx and requests).",
        columns: [
            { key: "server", title: "Server", main: true },
            { key: "running", title: "Running", number: true, text: count, help: "calls that have not ended" },
            { key: "calls", title: "Calls", number: true, text: count },
            { key: "time", title: "Total time", number: true, value: (row) => row.calls * (row.mean_seconds ?? 0), text: duration, help: "calls × mean" },
            { key: "mean", title: "Mean", number: true, value: (row) => row.mean_seconds, text: duration },
            { key: "p50", title: "p50", number: true, value: (row) => row.p50_seconds, text: duration },
            { key: "p99", title: "p99", number: true, value: (row) => row.p99_seconds, text: duration },
            { key: "first", title: "First byte p99", number: true, value: (row) => row.first_byte_p99_seconds, text: duration },
            { key: "lost", title: "No response", number: true, value: (row) => row.lost, text: count, help: "timed out, failed or given up" },
            { key: "reused", title: "Reused", number: true, text: percent, help: "calls on a connection that had served another one" },
            { key: "sent", title: "Sent", number: true, value: (row) => row.sent_bytes, text: bytes },
            { key: "received", title: "Received", number: true, value: (row) => row.received_bytes, text: bytes },
            { key: "slot", title: "Slot", number: true, optional: true, value: (row) => row.slot_seconds, text: duration, help: "mean wait for a connection of the client's pool" },
            { key: "resolve", title: "Look-up", number: true, optional: true, value: (row) => row.resolve_seconds, text: duration },
            { key: "connect", title: "Connect", number: true, optional: true, value: (row) => row.connect_seconds, text: duration },
            { key: "tls", title: "TLS", number: true, optional: true, value: (row) => row.tls_seconds, text: duration },
        ],
    });
    const ends = new DataTable({
        label: "How calls have ended",
        key: (row) => `${row.server}/${row.kind}/${row.end}`,
        order: { key: "calls", down: true },
        empty: "No call has ended.",
        tall: true,
        columns: [
            { key: "server", title: "Server", main: true },
            { key: "kind", title: "Kind" },
            { key: "end", title: "End", text: (value) => String(value ?? NOTHING) },
            { key: "calls", title: "Calls", number: true, text: count },
        ],
    });
    const waiting = new DataTable({
        label: "Requests that wait for a call",
        key: (row) => `${row.worker ?? ""}/${row.id}`,
        order: { key: "for", down: true },
        empty: "No request waits for another server.",
        tall: true,
        columns: [
            { key: "path", title: "Request", main: true, value: (row) => `${row.method} ${row.path}` },
            { key: "for", title: "For", number: true, value: (row) => row.for_seconds, text: duration },
            { key: "call", title: "Call", wrap: true, value: callsOf },
            { key: "thread", title: "Thread", optional: true },
            { key: "worker", title: "Worker", number: true, optional: true },
        ],
    });
    const sum = element("p", { class: "unit" });
    given.root.append(
        remark("Servers that the application calls by the client of maitred, since the start. A slow one holds the threads of the requests that wait for it."),
        sum,
        servers.root,
        section("Requests that wait for a call now", waiting.root),
        section("How calls have ended", ends.root),
    );
    if (has("upstreams")) given.follow(["stats", "upstreams", "active"]);
    return {
        hear(name, answer) {
            if (name === "active") waiting.update((answer.active ?? []).filter((/** @type {Row} */ row) => row.calls?.length > 0));
            if (name !== "upstreams") return;
            const all = /** @type {Row[]} */ (answer.ends ?? []);
            const lost = (/** @type {string} */ server) => all.filter((row) => row.server === server && row.kind !== "status").reduce((sum, row) => sum + row.calls, 0);
            servers.update((answer.upstreams ?? []).map((/** @type {Row} */ row) => ({ ...row, lost: lost(row.server) })));
            ends.update(all);
            setText(sum, `${plural(answer.calls, "call")}; ${count(answer.running)} running now`);
        },
    };
}
