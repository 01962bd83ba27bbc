// What goes over the network: deliveries, connections, and what each protocol has counted.

import { bytes, count, duration, localTime, NOTHING, percent, plural } from "./format.js";
import { confirmed, element, remark, section, setAttribute, setText } from "./dom.js";
import { canChange } from "./api.js";
import { DataTable } from "./table.js";
import { AnyView, Facts, FoundTable } from "./generic.js";
import { changeAndTell } from "./page-requests.js";

/** @typedef {import("./page-overview.js").PageGiven} PageGiven */
/** @typedef {import("./page-overview.js").PageShown} PageShown */
/** @typedef {Record<string, any>} Row */

/** @param {PageGiven} given @returns {PageShown} */
export function deliveriesPage(given) {
    const table = new DataTable({
        label: "Deliveries",
        key: (row) => `${row.worker ?? ""}/${row.id}`,
        order: { key: "for", down: true },
        empty: "Nothing is being sent: all answers have left.",
        columns: [
            { key: "path", title: "Answer to", main: true, value: (row) => (row.path ? `${row.method} ${row.path}` : NOTHING) },
            { key: "for", title: "For", number: true, value: (row) => row.for_seconds, text: duration },
            { key: "sent", title: "Sent", number: true, value: (row) => row.sent_bytes, text: bytes },
            { key: "remaining", title: "Left", number: true, value: (row) => row.remaining_bytes, text: bytes },
            { key: "rate", title: "Rate", number: true, value: (row) => row.rate_bytes, text: (value) => `${bytes(value)}/s` },
            { key: "limit", title: "Limit", number: true, optional: true, value: (row) => row.limit_bytes, text: bytes },
            { key: "memory", title: "In memory", number: true, value: (row) => row.memory_bytes, text: bytes },
            { key: "spooled", title: "In a file", number: true, value: (row) => row.spooled_bytes, text: bytes },
            { key: "thread", title: "Thread", optional: true },
            { key: "label", title: "Label", optional: true },
            { key: "pool", title: "Pool", text: (value) => value ?? NOTHING },
            { key: "worker", title: "Worker", number: true, optional: true },
            { key: "peer", title: "Peer" },
            { key: "since", title: "Since", text: localTime },
            { key: "id", title: "Id" },
            { key: "end", title: "End", fixed: true, paint: paintEnd },
        ],
    });
    const number = element("p", { class: "unit" });
    given.root.append(remark("Answers that are not with their clients yet. A slow client holds memory, and a thread where the answer is not spooled."), number, table.root);
    given.follow(["stats", "deliveries"]);
    return {
        hear(name, answer) {
            if (name !== "deliveries") return;
            table.update(answer.deliveries);
            setText(number, plural(answer.total, "delivery", "deliveries"));
        },
    };
}

/** @param {HTMLElement} cell @param {Row} row */
function paintEnd(cell, row) {
    if (cell.firstElementChild) return;
    const end = async () => {
        const what = row.path ? `${row.method} ${row.path}` : row.id;
        if (!(await confirmed("End this delivery?", "End it", `${what} to ${row.peer}: its connection is closed, and the client has a part of the answer.`))) return;
        await changeAndTell("deliveries end", { id: row.id, worker: row.worker });
    };
    cell.replaceChildren(element("button", { class: "small", disabled: !canChange(), "aria-label": `End the delivery ${row.id}`, onclick: end }, "End"));
}

/** @param {PageGiven} given @returns {PageShown} */
export function connectionsPage(given) {
    const totals = new Facts();
    const states = new FoundTable("Connections by state", "No connection is open.");
    const sessions = new FoundTable("TLS sessions of open connections", "No connection speaks TLS.");
    const rules = new Facts();
    const noRules = remark("No limit has been hit.");
    const http2 = new AnyView("HTTP/2", { empty: "No connection has spoken HTTP/2." });
    const sockets = new AnyView("WebSockets", { empty: "No WebSocket was opened." });
    const tls = new AnyView("TLS", { leaveOut: ["certificates"] });
    const certificates = new FoundTable("Certificates");
    const resumed = element("p", { class: "unit" });
    const noTls = remark("No listener speaks TLS.");
    const tlsPart = section("TLS", noTls, resumed, certificates.root, tls.root, sessions.root);
    given.root.append(
        section("Connections", totals.root, states.root),
        section("Limits that were hit", noRules, rules.root),
        tlsPart,
        section("HTTP/2", http2.root),
        section("WebSockets", sockets.root),
    );
    const items = ["stats", "status", "connections", "http2", "websockets"];
    const ofTls = [tls.root, certificates.root, sessions.root, resumed];
    let isTls = false;
    const seeListeners = (/** @type {Row[]} */ listeners) => {
        // Without a certificate this is no question.
        if (!isTls && listeners.some((listener) => listener.tls)) given.follow([...items, "tls"]);
        isTls = listeners.some((listener) => listener.tls);
        noTls.hidden = isTls;
        for (const part of ofTls) part.hidden = !isTls;
    };
    seeListeners([]);
    given.follow(items);
    const showTls = (/** @type {any} */ answer) => {
        certificates.update(answer.certificates ?? []);
        tls.update(answer);
        const of = (/** @type {RegExp} */ name) => Object.entries(answer).filter(([key]) => name.test(key)).reduce((sum, [, value]) => sum + Number(value), 0);
        const [all, again] = [of(/^handshakes/), of(/^handshakes\{.*resum/)];
        setText(resumed, again > 0 && all > 0 ? `${count(all)} handshakes, ${percent(again / all)} of them resumed` : "");
    };
    return {
        hear(name, answer) {
            if (name === "status") seeListeners(answer.listeners ?? []);
            if (name === "tls") showTls(answer);
            if (name === "http2") http2.update(answer);
            if (name === "websockets") sockets.update({ open: answer.open, ...answer.counts, ...(answer.websockets.length > 0 ? { websockets: answer.websockets } : {}) });
            if (name === "stats") showLimits(answer);
            if (name !== "connections") return;
            const all = /** @type {Row[]} */ (answer.connections);
            states.update(all);
            sessions.update(answer.tls_sessions ?? []);
            totals.update([
                ["open", count(answer.total)],
                ["by TLS", count(answer.by_tls)],
                ["by HTTP/2", count(answer.by_http2)],
            ]);
        },
    };

    /** @param {any} stats */
    function showLimits(stats) {
        const pairs = /** @type {[string, number][]} */ (Object.entries(stats.rules ?? {}));
        const hit = pairs.filter(([, number]) => number > 0);
        noRules.hidden = hit.length > 0;
        setText(noRules, `No limit has been hit. There are ${pairs.map(([name]) => name).join(", ")}.`);
        rules.update(hit.map(([name, number]) => [name, count(number)]));
        setAttribute(rules.root, "hidden", hit.length > 0 ? null : "");
    }
}

/** @param {PageGiven} given @returns {PageShown} */
export function locksPage(given) {
    const table = new DataTable({
        label: "Locks",
        key: (row) => `${row.worker ?? ""}/${row.name}`,
        order: { key: "wait", down: true },
        empty: "This server counts no locks.",
        columns: [
            { key: "name", title: "Lock", main: true },
            { key: "worker", title: "Worker", number: true, optional: true },
            { key: "taken", title: "Taken", number: true, value: (row) => row.acquisitions, text: count },
            { key: "contended", title: "Waited for", number: true, text: count },
            { key: "share", title: "Share", number: true, value: (row) => (row.acquisitions > 0 ? row.contended / row.acquisitions : null), text: percent, help: "of those that had to wait" },
            { key: "wait", title: "Waited in all", number: true, value: (row) => row.wait_total_seconds, text: duration },
            { key: "longest", title: "Longest", number: true, value: (row) => row.wait_longest_seconds, text: duration },
        ],
    });
    const sum = element("p", { class: "unit" });
    given.root.append(remark("Locks of the server itself. One that many wait for keeps the processors from working side by side."), sum, table.root);
    given.follow(["stats", "locks"]);
    return {
        hear(name, answer) {
            if (name !== "locks") return;
            const rows = /** @type {Row[]} */ (answer.locks);
            table.update(rows);
            const waited = rows.reduce((all, row) => all + row.wait_total_seconds, 0);
            setText(sum, `${plural(rows.length, "lock")}; threads have waited ${duration(waited)} in all since the start`);
        },
    };
}

/** @param {PageGiven} given @returns {PageShown} */
export function cachesPage(given) {
    const table = new DataTable({
        label: "Caches",
        key: (row) => `${row.worker ?? ""}/${row.name}`,
        order: { key: "name", down: false },
        empty: "This server has no cache: no static files are served.",
        columns: [
            { key: "name", title: "Cache", main: true },
            { key: "worker", title: "Worker", number: true, optional: true },
            { key: "entries", title: "Entries", number: true, text: count },
            { key: "bytes", title: "Size", number: true, text: bytes },
            { key: "descriptors", title: "Open files", number: true, text: count },
            { key: "hits", title: "Hits", number: true, text: count },
            { key: "misses", title: "Misses", number: true, text: count },
            { key: "rate", title: "Hit rate", number: true, value: (row) => (row.hits + row.misses > 0 ? row.hit_rate : null), text: percent },
            { key: "evictions", title: "Evicted", number: true, text: count },
            { key: "checks", title: "Checked", number: true, value: (row) => row.revalidations, text: count, help: "asked whether the file is still the same" },
            { key: "changed", title: "Changed", number: true, value: (row) => row.invalidations, text: count },
            { key: "saved", title: "Saved", number: true, value: (row) => row.saved_seconds, text: duration },
        ],
    });
    const more = new FoundTable("Other caches");
    given.root.append(table.root, more.root);
    more.root.hidden = true;
    given.follow(["stats", "caches"]);
    return {
        hear(name, answer) {
            if (name !== "caches") return;
            // What other caches count has other names.
            const [files, others] = [(/** @type {Row} */ row) => "hit_rate" in row, (/** @type {Row} */ row) => !("hit_rate" in row)];
            table.update(answer.caches.filter(files));
            more.update(answer.caches.filter(others));
            more.root.hidden = !answer.caches.some(others);
        },
    };
}
