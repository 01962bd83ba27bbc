// Any answer of the server: lists of objects as tables, everything else as names and values. For what has no picture of its own, and for
// figures that a later server adds.

import { byName, NOTHING, plainName } from "./format.js";
import { arrange, element, remark, setText } from "./dom.js";
import { DataTable } from "./table.js";

/** @param {unknown} value @returns {value is Record<string, any>} */
function isObject(value) {
    return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** What rows are told apart by, in this order. */
const NAMES = ["worker", "signal", "id", "tid", "name", "listener", "number", "option", "path", "host", "protocol", "cipher", "sni", "peer", "role"];

/** Names and values. */
export class Facts {
    constructor() {
        this.root = element("dl", { class: "facts" });
        /** @type {Map<string, HTMLElement>} */
        this.lines = new Map();
    }

    /** @param {[string, string][]} pairs */
    update(pairs) {
        const shown = pairs.map(([name, text]) => {
            const line = this.lines.get(name) ?? element("div", {}, element("dt", {}, name), element("dd"));
            this.lines.set(name, line);
            setText(/** @type {Element} */ (line.lastElementChild), text);
            return line;
        });
        arrange(this.root, shown);
    }
}

/** A table of rows whose columns are found in them. */
export class FoundTable {
    /** @param {string} label @param {string} [empty] */
    constructor(label, empty) {
        this.label = label;
        this.empty = empty;
        this.keys = "";
        this.root = element("div", {}, remark(empty ?? "None."));
        /** @type {DataTable | null} */
        this.table = null;
    }

    /** @param {Record<string, any>[]} rows */
    update(rows) {
        const keys = [...new Set(rows.flatMap((row) => Object.keys(row)))];
        if (keys.length > 0 && keys.join() !== this.keys) this.begin(keys, rows);
        this.table?.update(rows);
    }

    /** @param {string[]} keys @param {Record<string, any>[]} rows */
    begin(keys, rows) {
        this.keys = keys.join();
        const isFull = (/** @type {string} */ key) => key !== "worker" && rows.every((row) => (row[key] ?? null) !== null);
        const main = keys.find(isFull) ?? keys[0];
        const named = NAMES.filter((name) => keys.includes(name));
        const columns = keys.map((key) => ({
            key,
            title: plainName(key).replace(/^(?!p\d)./, (first) => first.toUpperCase()),
            wrap: rows.some((row) => String(row[key] ?? "").length > 40),
            main: key === main,
            number: rows.some((row) => typeof row[key] === "number") && key !== main,
            optional: key !== main,
            text: (/** @type {any} */ value) => byName(key, value),
        }));
        const key = (/** @type {Record<string, any>} */ row) => named.map((name) => row[name]).join("\n") || JSON.stringify(row);
        this.table = new DataTable({ label: this.label, columns, key, empty: this.empty });
        this.root.replaceChildren(this.table.root);
    }
}

/** Any object: what is plain in it, and a table for each list. */
export class AnyView {
    /** @param {string} label @param {{ leaveOut?: string[], empty?: string }} [given] */
    constructor(label, given = {}) {
        this.label = label;
        this.given = given;
        this.facts = new Facts();
        this.none = remark(given.empty ?? "Nothing has been counted yet.");
        this.root = element("div", { class: "any" }, this.none, this.facts.root);
        /** @type {Map<string, { part: HTMLElement, view: FoundTable | AnyView | HTMLElement }>} */
        this.parts = new Map();
    }

    /** @param {any} answer */
    update(answer) {
        /** @type {[string, string][]} */
        const plain = [];
        const entries = Object.entries(isObject(answer) ? answer : { [this.label]: answer });
        const shown = entries.filter(([name]) => !this.given.leaveOut?.includes(name));
        for (const [name, value] of shown) {
            const isTable = Array.isArray(value) && value.length > 0 && value.every(isObject);
            if (isTable) this.table(name, value);
            else if (isObject(value) && Object.keys(value).length > 0) this.object(name, value);
            else plain.push([plainName(name), isObject(value) ? NOTHING : byName(name, value)]);
        }
        this.facts.update(plain);
        this.facts.root.hidden = plain.length === 0;
        this.none.hidden = shown.length > 0;
    }

    /** @param {string} name @param {Record<string, any>[]} rows */
    table(name, rows) {
        let known = this.parts.get(name);
        if (!known || !(known.view instanceof FoundTable)) known = this.part(name, new FoundTable(`${this.label}: ${plainName(name)}`));
        /** @type {FoundTable} */ (known.view).update(rows);
    }

    /** @param {string} name @param {Record<string, any>} value */
    object(name, value) {
        let known = this.parts.get(name);
        if (!known || !(known.view instanceof AnyView)) known = this.part(name, new AnyView(plainName(name)));
        /** @type {AnyView} */ (known.view).update(value);
    }

    /** @param {string} name @param {FoundTable | AnyView} view */
    part(name, view) {
        const part = element("div", { class: "any-part" }, element("h3", {}, plainName(name)), view.root);
        this.parts.get(name)?.part.remove();
        const made = { part, view };
        this.parts.set(name, made);
        this.root.append(part);
        return made;
    }
}
