// Tables whose rows stay where they are while their figures change: sorted by any column, and as cards where there is no width.

import { NOTHING } from "./format.js";
import { arrange, element, freshId, setAttribute, setText } from "./dom.js";

/** @typedef {Record<string, any>} Row */
/**
 * @typedef {object} Column
 * @property {string} key its name in addresses, and the key of its value if there is no `value`
 * @property {string} title
 * @property {string} [help] what it means
 * @property {(row: Row) => any} [value] what is sorted by
 * @property {(value: any, row: Row) => string} [text] what is shown
 * @property {(cell: HTMLElement, row: Row) => void} [paint] where it is more than text
 * @property {boolean} [number] aligned to the right, and sorted with the largest first
 * @property {boolean} [main] names the row
 * @property {boolean} [wrap] may take several lines
 * @property {boolean} [fixed] not sorted by
 * @property {boolean} [optional] left out where no row has it
 */
/** @typedef {{ key: string, down: boolean }} Order */

/** @param {Column} column @param {Row} row */
function valueOf(column, row) {
    return column.value ? column.value(row) : row[column.key];
}

/** @param {any} one @param {any} other */
function compare(one, other) {
    if (typeof one === "number" && typeof other === "number") return one - other;
    return String(one).localeCompare(String(other), undefined, { numeric: true });
}

export class DataTable {
    /**
     * @param {{
     *   label: string, columns: Column[], key: (row: Row) => string, empty?: string, order?: Order,
     *   sorted?: (order: Order) => void, tall?: boolean,
     * }} given
     */
    constructor(given) {
        this.given = given;
        /** @type {Order | null} */
        this.order = given.order ?? null;
        /** @type {Row[]} */
        this.rows = [];
        /** @type {Map<string, HTMLTableRowElement>} */
        this.lines = new Map();
        /** @type {Column[]} */
        this.columns = [];
        this.head = element("tr", { role: "row" });
        this.body = element("tbody", { role: "rowgroup" });
        this.empty = element("p", { class: "remark" }, given.empty ?? "Nothing is there.");
        this.choice = element("select", { id: freshId("sort"), onchange: () => this.sortBy(this.choice.value) });
        this.picker = element("p", { class: "picker" }, element("label", { for: this.choice.id }, "Sort by "), this.choice);
        this.table = element(
            "table",
            { role: "table", "aria-label": given.label },
            element("thead", { role: "rowgroup" }, this.head),
            this.body,
        );
        this.box = element("div", { class: given.tall ? "scroll tall" : "scroll", tabindex: 0, role: "region", "aria-label": given.label }, this.table);
        this.root = element("div", { class: "table" }, this.picker, this.box, this.empty);
        this.update([]);
    }

    /** @param {Row[]} rows */
    update(rows) {
        this.rows = rows;
        const columns = this.given.columns.filter((column) => !column.optional || rows.some((row) => (valueOf(column, row) ?? null) !== null));
        if (columns.length !== this.columns.length || columns.some((column, at) => column !== this.columns[at])) this.begin(columns);
        /** @type {HTMLTableRowElement[]} */
        const shown = [];
        /** @type {Map<string, HTMLTableRowElement>} */
        const lines = new Map();
        for (const row of this.inOrder(rows)) {
            const key = this.given.key(row);
            if (lines.has(key)) continue;
            const line = this.lines.get(key) ?? this.line();
            this.fill(line, row);
            lines.set(key, line);
            shown.push(line);
        }
        this.lines = lines;
        arrange(this.body, shown);
        this.box.hidden = rows.length === 0;
        this.picker.hidden = rows.length === 0;
        this.empty.hidden = rows.length > 0;
    }

    /** @param {Row[]} rows */
    inOrder(rows) {
        const { order } = this;
        const column = order && this.columns.find((one) => one.key === order.key);
        if (!column) return rows;
        const known = (/** @type {Row} */ row) => (valueOf(column, row) ?? null) !== null;
        const sign = order.down ? -1 : 1;
        return [...rows].sort((one, other) => {
            // What is not known stands last, whichever way it is sorted.
            if (!known(one) || !known(other)) return Number(known(other)) - Number(known(one));
            return sign * compare(valueOf(column, one), valueOf(column, other)) || this.given.key(one).localeCompare(this.given.key(other));
        });
    }

    /** @param {Column[]} columns */
    begin(columns) {
        this.columns = columns;
        // A few columns have room everywhere.
        this.root.classList.toggle("wide", columns.length > 4);
        this.lines = new Map();
        this.body.replaceChildren();
        this.head.replaceChildren(
            ...columns.map((column) => {
                const attributes = { role: "columnheader", scope: "col", class: column.number ? "number" : null, title: column.help };
                if (column.fixed) return element("th", attributes, element("span", {}, column.title));
                return element("th", attributes, element("button", { class: "plain", onclick: () => this.sortBy(column.key) }, column.title));
            }),
        );
        this.picker.classList.toggle("none", columns.every((column) => column.fixed));
        this.choice.replaceChildren(
            ...columns.filter((column) => !column.fixed).map((column) => element("option", { value: column.key }, column.title)),
        );
        this.mark();
    }

    mark() {
        this.columns.forEach((column, at) => {
            const isBy = this.order?.key === column.key;
            setAttribute(this.head.children[at], "aria-sort", isBy ? (this.order?.down ? "descending" : "ascending") : null);
        });
        if (this.order) this.choice.value = this.order.key;
    }

    /** @param {string} key */
    sortBy(key) {
        const column = this.columns.find((one) => one.key === key);
        const down = this.order?.key === key ? !this.order.down : Boolean(column?.number);
        this.order = { key, down };
        this.mark();
        this.given.sorted?.(this.order);
        this.update(this.rows);
    }

    line() {
        const cells = this.columns.map((column) => {
            const attributes = { class: column.number ? "number" : column.main ? "main" : column.wrap ? "wrap" : null, "data-title": column.title };
            return column.main ? element("th", { ...attributes, scope: "row", role: "rowheader" }) : element("td", { ...attributes, role: "cell" });
        });
        return element("tr", { role: "row" }, ...cells);
    }

    /** @param {HTMLTableRowElement} line @param {Row} row */
    fill(line, row) {
        this.columns.forEach((column, at) => {
            const cell = /** @type {HTMLElement} */ (line.children[at]);
            if (column.paint) return column.paint(cell, row);
            const value = valueOf(column, row);
            const text = column.text ? column.text(value, row) : (value ?? null) === null ? NOTHING : String(value);
            setText(cell, text);
            cell.classList.toggle("nothing", text === NOTHING);
        });
    }
}
