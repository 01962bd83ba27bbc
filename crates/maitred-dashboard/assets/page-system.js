// The processes and their memory, the logs, and the configuration.

import { age, byName, bytes, count, dateAndTime, localTime, NOTHING } from "./format.js";
import { confirmed, element, remark, section, setAttribute, setText } from "./dom.js";
import { ask, canChange, has, Refused } from "./api.js";
import { note } from "./router.js";
import { DataTable } from "./table.js";
import { AnyView, Facts, FoundTable } from "./generic.js";
import { changeAndTell } from "./page-requests.js";

/** @typedef {import("./page-overview.js").PageGiven} PageGiven */
/** @typedef {import("./page-overview.js").PageShown} PageShown */
/** @typedef {Record<string, any>} Row */

/** Whether the server lacks a query, and the line that says so. @param {string} name @param {string} what @returns {HTMLElement | null} */
function lack(name, what) {
    return has(name) ? null : remark(`This server has no query '${name}': ${what}`);
}

/** @param {PageGiven} given @returns {PageShown} */
export function memoryPage(given) {
    const server = new Facts();
    const budgets = element("div", { class: "cards" });
    const workers = new FoundTable("Workers", "This server is one process.");
    const roles = new FoundTable("Threads by role");
    const memory = new AnyView("Memory", { empty: "Nothing is told of the memory." });
    const drain = element("button", { disabled: !canChange(), onclick: () => end() }, "Drain the server…");
    given.root.append(
        section("Server", server.root, element("p", {}, drain)),
        section("Workers", workers.root),
        section("Budgets", budgets),
        section("Memory", lack("memory", "what it is made of is not told.") ?? memory.root),
        section("Threads by role", roles.root),
    );
    const end = async () => {
        if (await confirmed("Drain the server?", "Drain", "It accepts nothing more, ends what runs, and stops. Nothing starts it again from here.")) await changeAndTell("drain", {});
    };
    given.follow(["stats", "status", "threads", ...(has("memory") ? ["memory"] : [])]);
    return {
        hear(name, answer) {
            if (name === "memory") memory.update(answer);
            if (name === "threads") roles.update(answer.roles);
            if (name !== "status") return;
            server.update([
                ["version", `${answer.version}, ${answer.language}`],
                ["application", byName("", answer.application)],
                ["process", String(answer.pid)],
                ["since", dateAndTime(Date.now() / 1000 - answer.uptime_seconds)],
                ["up for", age(answer.uptime_seconds)],
                ["state", answer.draining ? "drains" : answer.ready ? "ready" : "not ready"],
                ["little left of", byName("", answer.low_on)],
                ["runs as", `${answer.user}, ${answer.group}`],
                ["changed at run time", byName("", answer.changed)],
            ]);
            workers.update(answer.workers ?? []);
            const gauges = /** @type {[string, number, number][]} */ ([
                ["Buffers of connections", answer.buffer_bytes, answer.buffer_budget_bytes],
                ["Bodies of requests", answer.body_memory_bytes, answer.body_budget_bytes],
            ]);
            gauges.forEach(([title, used, most], at) => {
                const card = budgets.children[at] ?? budgets.appendChild(budget(title));
                showBudget(card, used, most);
            });
        },
    };
}

/** @param {string} title */
function budget(title) {
    return element("article", { class: "card" }, element("h3", {}, title), element("meter", { min: 0, max: 1, "aria-label": title }), element("p", { class: "unit" }));
}

/** @param {Element} card @param {number} used @param {number} most */
function showBudget(card, used, most) {
    const meter = /** @type {HTMLMeterElement} */ (card.children[1]);
    meter.value = most > 0 ? used / most : 0;
    setText(card.children[2], `${bytes(used)} of ${bytes(most)}`);
}

const LEVELS = ["error", "warn", "info", "debug"];

/** Lines that are shown at a time. */
const MOST_LINES = 500;

/** @param {PageGiven} given @returns {PageShown} */
export function logsPage(given) {
    const level = element("select", { id: "log-level", disabled: !canChange() }, ...LEVELS.map((name) => element("option", { value: name }, name)));
    const set = element("button", { disabled: !canChange(), onclick: () => void changeAndTell("log-level", { level: level.value }) }, "Set");
    const present = element("span", { class: "unit" });
    const dropped = element("p", { class: "unit" });
    const list = element("ol", { class: "log" });
    const box = element("div", { class: "scroll tall", tabindex: 0, role: "log", "aria-label": "Lines of the logs", "aria-live": "off" }, list);
    const request = field("log-request", "Request id or text", given.parameters.get("request") ?? "");
    const least = element("select", { id: "log-least", onchange: () => show() }, element("option", { value: "" }, "all"), ...LEVELS.slice(0, 3).map((name) => element("option", { value: name }, name)));
    const isFollowed = element("input", { type: "checkbox", id: "log-tail", checked: true });
    const nothing = remark("No line fits.");
    const tools = element(
        "div",
        { class: "row" },
        request.label,
        request.input,
        element("label", { for: "log-least" }, "At least"),
        least,
        element("label", { for: "log-tail", class: "check" }, isFollowed, " follow the end"),
    );
    const which = element("select", { id: "log-which", onchange: () => show() }, element("option", { value: "" }, "both"), element("option", { value: "error" }, "error"), element("option", { value: "access" }, "access"));
    tools.prepend(element("label", { for: "log-which" }, "Log"), which);
    const goes = element("p", { class: "unit" });
    const collectors = new FoundTable("OpenTelemetry", "Nothing goes to a collector (--otlp).");
    // Lines of one request are looked for by the server, in more than is shown here.
    const isId = (/** @type {string} */ text) => canChange() && /^[0-9a-f]+-[0-9a-f-]+$/i.test(text);
    const items = () => {
        const id = request.input.value.trim();
        const query = isId(id) ? `&request=${encodeURIComponent(id)}` : "";
        return ["stats", "status", ...(has("otlp") ? ["otlp"] : []), ...(has("logs") ? [`logs?last=200${query}`] : [])];
    };
    request.input.addEventListener("input", () => {
        note({ request: request.input.value });
        given.follow(items());
        show();
    });
    const missing = lack("logs", "read its lines where they are written, on standard error or in the files of error-log and access-log.");
    given.root.append(
        section("Error log", element("div", { class: "row" }, element("label", { for: "log-level" }, "Level"), level, set, present), dropped),
        section("Lines", missing ?? element("div", {}, tools, goes, box, nothing)),
        section("OpenTelemetry", lack("otlp", "what goes to a collector is not told.") ?? collectors.root),
    );
    /** @type {Row[]} */
    let lines = [];
    let isChosen = false;
    level.addEventListener("change", () => (isChosen = true));

    const show = () => {
        const wanted = request.input.value.trim();
        const at = least.value === "" ? LEVELS.length : LEVELS.indexOf(least.value);
        const fits = (/** @type {Row} */ line) => (!wanted || isId(wanted) || line.text.includes(wanted)) && (!which.value || which.value === line.log) && (!line.level || LEVELS.indexOf(line.level) <= at);
        const shown = lines.filter(fits).slice(-MOST_LINES);
        nothing.hidden = shown.length > 0;
        box.hidden = shown.length === 0;
        while (list.children.length > shown.length) list.lastElementChild?.remove();
        shown.forEach((line, place) => {
            const item = list.children[place] ?? list.appendChild(element("li", {}, element("time"), element("b"), element("span")));
            setText(item.children[0], line.time);
            setText(item.children[1], line.level || line.log);
            setText(item.children[2], line.text);
            setAttribute(item, "data-level", line.level || null);
        });
        if (isFollowed.checked) box.scrollTop = box.scrollHeight;
    };
    given.follow(items());
    return {
        hear(name, answer) {
            if (name === "stats") {
                const { error, access } = answer.log_lines_dropped ?? {};
                setText(dropped, `Lines that could not be written: ${count(error)} of the error log, ${access === null ? "there is no access log" : `${count(access)} of the access log`}`);
            }
            if (name === "status") {
                setText(present, `is ${answer.log_level}`);
                if (!isChosen) level.value = answer.log_level;
            }
            if (name === "otlp") collectors.update(answer.otlp ?? []);
            if (name === "logs") {
                lines = linesOfLogs(answer);
                setText(goes, `The access log goes to ${answer.access_log_goes_to ?? NOTHING}${answer.access_log_trouble ? `: ${answer.access_log_trouble}` : ""}`);
                show();
            }
        },
    };
}

/** Lines of both logs, those of the error log in their order and those of the access log behind. @param {any} answer @returns {Row[]} */
function linesOfLogs(answer) {
    const errors = /** @type {Row[]} */ (answer.error_log ?? []).map((row) => {
        const from = row.worker === undefined ? "" : `worker ${row.worker}: `;
        // The line has its time and its level itself.
        const text = String(row.line).replace(/^\d{4}-\S+Z\s+/, "").replace(new RegExp(`^${row.level ?? "-"}\\s+`), "");
        return { time: localTime(row.time), level: row.level ?? "", text: from + text, log: "error" };
    });
    const access = /** @type {Row[]} */ (answer.access_log ?? []).map((row) => ({ time: "", level: "", text: String(row.line), log: "access" }));
    return [...errors, ...access];
}

/** @param {string} id @param {string} title @param {string} [value] @param {string} [placeholder] */
function field(id, title, value = "", placeholder = "") {
    return { label: element("label", { for: id }, title), input: element("input", { type: "text", id, value, placeholder, autocomplete: "off", spellcheck: "false" }) };
}

/** @param {PageGiven} given @returns {PageShown} */
export function configurationPage(given) {
    const settings = new DataTable({
        label: "What can be set at run time",
        key: (row) => row.name,
        order: { key: "name", down: false },
        columns: [
            { key: "name", title: "Setting", main: true },
            { key: "value", title: "Value", paint: paintSetting },
            { key: "configured", title: "Configured", help: "where the value is another one", text: (value, row) => (value === row.value ? NOTHING : String(value)) },
            { key: "takes", title: "Takes", fixed: true, wrap: true },
        ],
    });
    const inForce = new DataTable({
        label: "Options in force",
        key: (row) => row.name,
        columns: [
            { key: "name", title: "Option", main: true },
            { key: "value", title: "Value", wrap: true, text: (value) => value ?? NOTHING },
            { key: "from", title: "From", wrap: true },
        ],
    });
    const isAll = element("input", { type: "checkbox", id: "all-options", onchange: () => showInForce() });
    const effective = element("div", {}, element("p", {}, element("label", { for: "all-options", class: "check" }, isAll, " those with their default, too")), inForce.root);
    /** @type {Row[]} */
    let options = [];
    const showInForce = () => inForce.update(options.filter((option) => isAll.checked || option.from !== "default"));
    const filter = field("setting-filter", "Filter", given.parameters.get("filter") ?? "", "pool.");
    /** @type {Row[]} */
    let rows = [];
    const show = () => settings.update(rows.filter((row) => row.name.includes(filter.input.value.trim())));
    filter.input.addEventListener("input", () => {
        note({ filter: filter.input.value });
        show();
    });
    const views = [
        { name: "handlers", title: "Handlers", view: new FoundTable("Handlers", "There are no handlers.") },
        { name: "map", list: "rules", title: "Rules that lead to pools", view: new FoundTable("Rules", "There are no rules: every request has the default pool of its application.") },
        { name: "filters", title: "Filters", view: new FoundTable("Filters", "There are no filters.") },
    ];
    given.root.append(
        section("Where a request goes", explainForm(given)),
        section("Set at run time", element("div", { class: "row" }, filter.label, filter.input), settings.root),
        section("In force", lack("configuration", "what is in force, and where it came from, is not told.") ?? effective),
        ...views.map(({ title, view }) => section(title, view.root)),
    );
    given.follow(["stats", "settings", "handlers", "map", "filters", ...(has("configuration") ? ["configuration"] : [])]);
    return {
        hear(name, answer) {
            if (name === "settings") {
                rows = answer.settings;
                show();
            }
            if (name === "configuration") {
                options = answer.configuration ?? [];
                showInForce();
            }
            for (const { name: own, list, view } of views) if (own === name) view.update(answer[list ?? own] ?? []);
        },
    };
}

/** A value with a button that changes it. @param {HTMLElement} cell @param {Row} row */
function paintSetting(cell, row) {
    if (!cell.firstElementChild) {
        const button = element("button", { class: "small", disabled: !canChange(), "aria-label": `Change ${row.name}` }, "Change");
        cell.replaceChildren(element("span", { class: "value" }), button);
        button.addEventListener("click", () => edit(cell));
    }
    settingsOfCells.set(cell, row);
    setText(/** @type {Element} */ (cell.firstElementChild), String(row.value));
    setAttribute(cell, "data-weight", row.value === row.configured ? null : "slow");
}

/** @type {WeakMap<HTMLElement, Row>} */
const settingsOfCells = new WeakMap();

/** @param {HTMLElement} cell */
async function edit(cell) {
    const row = settingsOfCells.get(cell);
    if (!row) return;
    const title = element("h2", { id: "setting-name" }, row.name);
    const value = field("setting-value", "New value", row.value);
    const dialog = element(
        "dialog",
        { "aria-labelledby": title.id },
        element(
            "form",
            { method: "dialog" },
            title,
            element("p", {}, `Takes ${row.takes}. It lasts until it is changed again, or the configuration is read again; configured is ${row.configured}.`),
            element("p", { class: "row" }, value.label, value.input),
            // The first button is the one of the Enter key.
            element("div", { class: "row end reverse" }, element("button", { value: "yes", class: "primary" }, "Set"), element("button", { value: "no" }, "Cancel")),
        ),
    );
    document.body.append(dialog);
    dialog.showModal();
    dialog.addEventListener("close", () => {
        dialog.remove();
        if (dialog.returnValue === "yes") void changeAndTell("set", { name: row.name, value: value.input.value });
    });
}

/** Asks where a request would be led. @param {PageGiven} given */
function explainForm(given) {
    const method = field("explain-method", "Method", given.parameters.get("method") ?? "GET");
    const url = field("explain-url", "Path or URL", given.parameters.get("url") ?? "/");
    const from = field("explain-from", "Client", "", "address, any");
    const header = field("explain-header", "Field", "", "Name: value");
    const view = new AnyView("Explanation", { leaveOut: ["socket_options"] });
    const answer = element("div", { "aria-live": "polite", hidden: true }, view.root);
    const wrong = element("p", { class: "told bad", role: "alert", hidden: true });
    const explain = async () => {
        const given = /** @type {[string, string][]} */ ([["method", method.input.value], ["url", url.input.value], ["from", from.input.value], ["header", header.input.value]]);
        note({ method: method.input.value, url: url.input.value });
        try {
            view.update(await ask(`explain?${new URLSearchParams(given.filter(([, value]) => value !== ""))}`));
            [answer.hidden, wrong.hidden] = [false, true];
        } catch (error) {
            if (!(error instanceof Refused)) throw error;
            setText(wrong, error.message);
            [answer.hidden, wrong.hidden] = [true, false];
        }
    };
    const submit = (/** @type {Event} */ event) => {
        event.preventDefault();
        void explain();
    };
    const form = element(
        "form",
        { class: "row", onsubmit: submit, "aria-label": "Explain a request" },
        ...[method, url, from, header].map(({ label, input }) => element("span", { class: "field" }, label, input)),
        element("button", { class: "primary", disabled: !canChange() }, "Explain"),
    );
    return element("div", {}, remark("Where a request would be led, and why. It is not made."), form, wrong, answer);
}
