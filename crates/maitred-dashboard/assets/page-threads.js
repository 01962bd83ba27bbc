// Pools and threads: who is busy with what, now and in the last minute, and where its Python code stands.

import { count, duration, NOTHING, percent, plural } from "./format.js";
import { arrange, colour, element, remark, section, setAttribute, setText, tell } from "./dom.js";
import { canChange, change, Refused } from "./api.js";
import { DataTable } from "./table.js";
import { Facts } from "./generic.js";

/** @typedef {import("./page-overview.js").PageGiven} PageGiven */
/** @typedef {import("./page-overview.js").PageShown} PageShown */
/** @typedef {Record<string, any>} Row */
/** @typedef {"idle" | "busy" | "gate" | "stuck"} ThreadState */

/** Seconds of the time line. */
const SHOWN_SECONDS = 60;

const STATE_COLOURS = { idle: "--idle", busy: "--span-run", gate: "--span-gate", stuck: "--stuck" };
const STATE_NAMES = { idle: "idle", busy: "busy", gate: "waits for the interpreter", stuck: "stuck" };

/** Why threads are made, and end. @type {Record<string, string>} */
const START_REASONS = {
    least: "are the least",
    waiting: "for requests that waited",
    reading: "because nobody read",
    lost: "in place of one that is stuck",
    spent: "in place of one that had run its number of requests",
};
/** @type {Record<string, string>} */
const END_REASONS = { idle: "idle", limit: "above the most", spent: "had run their number of requests", stop: "the server stops" };

/** A count with its parts that are not zero. @param {Record<string, number> | undefined} counts @param {Record<string, string>} names */
function reasons(counts, names) {
    const parts = Object.entries(counts ?? {}).filter(([, number]) => number > 0);
    const all = parts.reduce((sum, [, number]) => sum + number, 0);
    const words = parts.map(([reason, number]) => `${count(number)} ${names[reason] ?? reason}`);
    return words.length > 0 ? `${count(all)}: ${words.join(", ")}` : count(all);
}

/** @param {Row} thread */
function keyOf(thread) {
    return `${thread.worker ?? ""}/${thread.tid}`;
}

/** Those that run application code. @param {Row} thread */
function isOfApplication(thread) {
    return thread.role === "worker" || thread.role === "event loop";
}

/** What a thread is doing, as far as the server says so. @param {Row} thread @param {Row[]} pools @returns {ThreadState} */
function stateOf(thread, pools) {
    if (thread.stuck === true) return "stuck";
    if ((thread.for_seconds ?? null) === null) return "idle";
    const pool = pools.find((one) => one.name === thread.pool && one.worker === thread.worker);
    const limit = pool?.request_timeout_seconds;
    if (limit && thread.role === "worker" && thread.for_seconds > limit) return "stuck";
    return thread.waits_for_interpreter === true || thread.waits === "interpreter" ? "gate" : "busy";
}

/** @param {PageGiven} given @returns {PageShown} */
export function threadsPage(given) {
    const cards = element("div", { class: "cards" });
    /** @type {Map<string, PoolCard>} */
    const known = new Map();
    const line = new TimeLine();
    const stacks = new Stacks();
    const roles = new Roles();
    const table = new DataTable({
        label: "Threads",
        key: keyOf,
        order: { key: "state", down: false },
        columns: [
            { key: "name", title: "Thread", main: true },
            { key: "worker", title: "Worker", number: true, optional: true },
            { key: "role", title: "Role", text: (value, row) => (row.pool ? `${value}, ${row.pool}` : value) },
            { key: "state", title: "State", value: (row) => row.rank, paint: paintState },
            { key: "request", title: "Request", wrap: true, value: (row) => row.path, text: (_, row) => (row.path ? `${row.method ?? ""} ${row.path}`.trim() : NOTHING) },
            { key: "for", title: "For", number: true, value: (row) => row.for_seconds, text: duration },
            { key: "cpu", title: "Processor", number: true, value: (row) => row.user_seconds + row.system_seconds, text: duration, help: "time of the processor, of the thread's life" },
            { key: "tid", title: "Number", number: true, text: (value) => String(value) },
            { key: "stack", title: "Stack", fixed: true, paint: (cell, row) => paintStackButton(cell, row, stacks) },
        ],
    });
    /** @type {Row[]} */
    let pools = [];
    given.root.append(
        section("Pools", cards),
        section("The last minute", remark("Each line is a thread that runs the application; one column is a second."), line.legend, line.root),
        section("Threads", table.root),
        section("Processor by role", remark("What the server itself takes, beside the threads that run the application."), roles.table.root),
        section("Stacks", stacks.root),
    );
    given.follow(["stats", "pools", "threads"]);
    return {
        hear(name, answer) {
            if (name === "pools") {
                pools = answer.pools;
                arrange(
                    cards,
                    pools.map((pool) => {
                        const key = `${pool.worker ?? ""}/${pool.name}`;
                        const card = known.get(key) ?? new PoolCard(pool);
                        known.set(key, card);
                        card.update(pool);
                        return card.root;
                    }),
                );
            }
            if (name !== "threads") return;
            const ranks = ["stuck", "gate", "busy", "idle"];
            const rows = /** @type {Row[]} */ (answer.threads).map((thread) => {
                const state = stateOf(thread, pools);
                const rank = isOfApplication(thread) ? ranks.indexOf(state) : ranks.length;
                return { ...thread, doing: state, rank };
            });
            line.add(rows.filter(isOfApplication));
            table.update(rows);
            roles.update(answer.roles ?? []);
        },
        repaint: () => line.paint(),
    };
}

/** What the threads of each role have taken of the processors, in all and between the last two answers. */
class Roles {
    constructor() {
        /** @type {Map<string, number>} */
        this.before = new Map();
        this.asked = 0;
        this.table = new DataTable({
            label: "Processor by role",
            key: (row) => row.role,
            order: { key: "seconds", down: true },
            columns: [
                { key: "role", title: "Role", main: true },
                { key: "threads", title: "Threads", number: true },
                { key: "now", title: "Now", number: true, text: (value) => (value === undefined ? NOTHING : percent(value)), help: "part of one processor" },
                { key: "seconds", title: "Since the start", number: true, text: duration },
            ],
        });
    }

    /** @param {Row[]} listed with several workers one row for each of them */
    update(listed) {
        const now = performance.now() / 1000;
        /** @type {Map<string, Row>} */
        const sums = new Map();
        for (const { role, threads, user_seconds, system_seconds } of listed) {
            const sum = sums.get(role) ?? { role, threads: 0, seconds: 0 };
            sums.set(role, { role, threads: sum.threads + threads, seconds: sum.seconds + user_seconds + system_seconds });
        }
        const rows = /** @type {Row[]} */ ([...sums.values()].map((row) => {
            const before = this.before.get(row.role);
            // What ended threads have taken is not in it any more.
            const taken = before === undefined ? undefined : Math.max(0, row.seconds - before) / (now - this.asked);
            return { ...row, now: taken };
        }));
        this.before = new Map(rows.map((row) => [row.role, row.seconds]));
        this.asked = now;
        this.table.update(rows);
    }
}

/** @param {HTMLElement} cell @param {Row} row */
function paintState(cell, row) {
    cell.classList.toggle("nothing", !isOfApplication(row));
    if (!isOfApplication(row)) return setText(cell, NOTHING);
    if (!cell.firstElementChild) cell.replaceChildren(element("span", { class: "state" }));
    const mark = /** @type {Element} */ (cell.firstElementChild);
    setText(mark, STATE_NAMES[/** @type {ThreadState} */ (row.doing)]);
    setAttribute(mark, "data-state", row.doing);
}

/** @param {HTMLElement} cell @param {Row} row @param {Stacks} stacks */
function paintStackButton(cell, row, stacks) {
    const isWanted = isOfApplication(row);
    if (!isWanted) return setText(cell, "");
    if (cell.firstElementChild) return;
    cell.replaceChildren(
        element("button", { class: "small", "aria-label": `Stack of ${row.name}, thread ${row.tid}`, disabled: !canChange(), onclick: () => stacks.ask(row) }, "Stack"),
    );
}

/** A pool: its threads as a bar, and its limits. */
class PoolCard {
    /** @param {Row} pool */
    constructor(pool) {
        this.bar = element("div", { class: "threads-bar", role: "img" });
        this.words = element("p", { class: "unit" });
        this.queue = element("p", {});
        this.facts = new Facts();
        const title = pool.worker === undefined ? pool.name : `${pool.name}, worker ${pool.worker}`;
        this.root = element(
            "article",
            { class: "card", "aria-label": `Pool ${title}` },
            element("h3", {}, title),
            this.bar,
            this.words,
            this.queue,
            element("details", {}, element("summary", {}, "Limits and counts"), this.facts.root),
        );
    }

    /** @param {Row} pool */
    update(pool) {
        const busy = Math.max(0, pool.threads - pool.idle - pool.lost);
        const states = /** @type {[ThreadState, number][]} */ ([["stuck", pool.lost], ["busy", busy], ["idle", pool.idle]]);
        const most = Math.max(pool.max_threads, pool.threads);
        while (this.bar.children.length < states.length) this.bar.append(element("i"));
        states.forEach(([state, number], at) => {
            const part = /** @type {HTMLElement} */ (this.bar.children[at]);
            setAttribute(part, "data-state", state);
            part.style.setProperty("width", `${most > 0 ? (100 * number) / most : 0}%`);
        });
        const words = `${count(busy)} busy, ${count(pool.idle)} idle${pool.lost > 0 ? `, ${count(pool.lost)} stuck` : ""}; ${pool.min_threads} to ${plural(pool.max_threads, "thread")}`;
        setAttribute(this.bar, "aria-label", words);
        setText(this.words, pool.max_threads === 0 ? "an event loop: no threads of its own" : words);
        setText(this.queue, `${plural(pool.queued, "request")} in the queue of ${count(pool.queue)}`);
        setAttribute(this.queue, "class", pool.queued > 0 ? "weight-slow" : null);
        this.facts.update([
            ["have waited", count(pool.waited)],
            ["refused", count(pool.refused)],
            ["when the queue is full", String(pool.overflow)],
            ["queue for low priority", `above ${percent(pool.queue_high / 100)}`],
            ["request timeout", pool.request_timeout_seconds ? duration(pool.request_timeout_seconds) : "none"],
            ["lost threads at most", count(pool.max_lost_threads)],
            ["threads made", reasons(pool.starts, START_REASONS)],
            ["threads ended", reasons(pool.ends, END_REASONS)],
            ["a thread ends after", `${duration(pool.thread_idle_seconds)} idle or ${plural(pool.thread_requests, "request")}`],
            ["waited beside idle threads", `${plural(pool.idle_while_waiting?.requests ?? 0, "request")}, longest ${duration(pool.idle_while_waiting?.longest_seconds)}`],
        ]);
    }
}

/** What each thread did, second by second. */
class TimeLine {
    constructor() {
        this.canvas = element("canvas", { role: "img" });
        this.names = element("ol", { class: "names", "aria-hidden": "true" });
        this.root = element("div", { class: "time-line" }, this.names, this.canvas);
        this.legend = element(
            "ul",
            { class: "legend" },
            .../** @type {ThreadState[]} */ (["idle", "busy", "gate", "stuck"]).map((state) => {
                const mark = element("i", { class: "swatch" });
                mark.style.setProperty("--swatch", `var(${STATE_COLOURS[state]})`);
                return element("li", {}, mark, STATE_NAMES[state]);
            }),
        );
        /** @type {Map<string, { name: string, states: (ThreadState | null)[], seen: number }>} */
        this.lines = new Map();
        this.second = 0;
        new ResizeObserver(() => this.paint()).observe(this.root);
    }

    /** @param {Row[]} threads */
    add(threads) {
        this.second += 1;
        for (const line of this.lines.values()) line.states.push(null);
        for (const thread of threads) {
            const key = keyOf(thread);
            const line = this.lines.get(key) ?? { name: "", states: Array(SHOWN_SECONDS).fill(null), seen: 0 };
            line.name = thread.worker === undefined ? thread.name : `${thread.worker}: ${thread.name}`;
            line.states = line.states.slice(-SHOWN_SECONDS);
            line.states[SHOWN_SECONDS - 1] = thread.doing;
            line.seen = this.second;
            this.lines.set(key, line);
        }
        for (const [key, line] of this.lines) if (line.seen < this.second - SHOWN_SECONDS) this.lines.delete(key);
        this.paint();
    }

    paint() {
        const lines = [...this.lines.values()].sort((one, other) => one.name.localeCompare(other.name, undefined, { numeric: true }));
        while (this.names.children.length > lines.length) this.names.lastElementChild?.remove();
        lines.forEach((line, at) => setText(this.names.children[at] ?? this.names.appendChild(element("li")), line.name.replace(/^(\d+: )?maitred-/, "$1")));
        const [width, height] = [this.canvas.clientWidth, Math.max(1, lines.length) * 18];
        const scale = window.devicePixelRatio || 1;
        this.canvas.style.setProperty("height", `${height}px`);
        this.canvas.width = Math.round(width * scale);
        this.canvas.height = Math.round(height * scale);
        const context = this.canvas.getContext("2d");
        if (!context || width === 0) return;
        context.scale(scale, scale);
        const column = width / SHOWN_SECONDS;
        lines.forEach((line, row) => {
            line.states.slice(-SHOWN_SECONDS).forEach((state, at) => {
                if (!state) return;
                context.fillStyle = colour(STATE_COLOURS[state]);
                context.fillRect(at * column, row * 18 + 3, Math.max(1, column - 1), 12);
            });
        });
        const busy = lines.filter((line) => line.states.at(-1) !== "idle" && line.states.at(-1) !== null).length;
        setAttribute(this.canvas, "aria-label", `Time line of ${plural(lines.length, "thread")}: ${count(busy)} in a request now; the table below has the same`);
    }
}

/** Where threads stand in Python code. */
class Stacks {
    constructor() {
        this.list = element("div", { class: "stacks", "aria-live": "polite" });
        const all = element("button", { disabled: !canChange(), onclick: () => this.ask(null) }, "Stacks of all application threads");
        this.root = element("div", {}, element("p", {}, all), this.list);
    }

    /** @param {Row | null} thread */
    async ask(thread) {
        try {
            const answer = await change("stacks", thread ? { tid: thread.tid, worker: thread.worker } : {});
            this.show(answer.stacks ?? []);
            this.list.scrollIntoView({ block: "nearest" });
        } catch (error) {
            if (!(error instanceof Refused)) throw error;
            tell(error.message, true);
        }
    }

    /** @param {Row[]} stacks */
    show(stacks) {
        if (stacks.length === 0) return this.list.replaceChildren(remark("None of these threads is in application code."));
        this.list.replaceChildren(
            ...stacks.map((stack) => {
                const about = [`thread ${stack.tid}`, stack.worker === undefined ? "" : `worker ${stack.worker}`, stack.state ?? "", stack.doing ?? ""].filter(Boolean).join(", ");
                const frames = (stack.stack ?? []).join("\n");
                return element("article", { class: "card" }, element("h3", {}, stack.name), element("p", { class: "unit" }, about), element("pre", { class: "scroll", tabindex: 0 }, frames || "no frames"));
            }),
        );
    }
}
