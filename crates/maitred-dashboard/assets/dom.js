// Elements, and what pages do with them. Data becomes text and never markup: nothing here takes HTML.

/** @typedef {Record<string, string | number | boolean | null | undefined | ((event: any) => void)>} Attributes */

/**
 * An element. `onclick` and its like are listeners; an attribute that is null, undefined or false is left out.
 * @template {keyof HTMLElementTagNameMap} K
 * @param {K} tag
 * @param {Attributes} [attributes]
 * @param {...(Node | string | null)} children
 * @returns {HTMLElementTagNameMap[K]}
 */
export function element(tag, attributes = {}, ...children) {
    const made = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) {
        if (typeof value === "function") made.addEventListener(name.slice(2), value);
        else if (value !== null && value !== undefined && value !== false) made.setAttribute(name, value === true ? "" : String(value));
    }
    made.append(...children.filter((child) => child !== null));
    return made;
}

/** Changes a text only where it differs, so that nothing flickers and a selection stays. @param {Node} node @param {string} text */
export function setText(node, text) {
    if (node.textContent !== text) node.textContent = text;
}

/** @param {Element} node @param {string} name @param {string | null} value */
export function setAttribute(node, name, value) {
    if (value === null) node.removeAttribute(name);
    else if (node.getAttribute(name) !== value) node.setAttribute(name, value);
}

/** Puts these children in this order, and moves only those that are elsewhere. @param {Element} parent @param {Element[]} children */
export function arrange(parent, children) {
    let place = parent.firstElementChild;
    for (const child of children) {
        if (child === place) place = place.nextElementSibling;
        else parent.insertBefore(child, place);
    }
    while (place) {
        const next = place.nextElementSibling;
        place.remove();
        place = next;
    }
}

/** A part of a page with a heading. @param {string} title @param {...(Node | null)} children */
export function section(title, ...children) {
    const heading = element("h2", { id: freshId("part") }, title);
    return element("section", { class: "part", "aria-labelledby": heading.id }, heading, ...children);
}

/** What stands where nothing is to be shown. @param {string} text */
export function remark(text) {
    return element("p", { class: "remark" }, text);
}

let lastId = 0;

/** @param {string} start */
export function freshId(start) {
    lastId += 1;
    return `${start}-${lastId}`;
}

/**
 * Asks before something is changed.
 * @param {string} question @param {string} action what the button says
 * @param {string} [detail]
 * @returns {Promise<boolean>}
 */
export function confirmed(question, action, detail = "") {
    const title = element("h2", { id: freshId("question") }, question);
    const dialog = element(
        "dialog",
        { "aria-labelledby": title.id },
        element(
            "form",
            { method: "dialog" },
            title,
            detail ? element("p", {}, detail) : null,
            element("div", { class: "row end" }, element("button", { value: "no" }, "Cancel"), element("button", { value: "yes", class: "primary" }, action)),
        ),
    );
    document.body.append(dialog);
    dialog.showModal();
    return new Promise((resolve) => {
        dialog.addEventListener("close", () => {
            dialog.remove();
            resolve(dialog.returnValue === "yes");
        });
    });
}

/** Says for a while what has become of something; screen readers read it. @param {string} text @param {boolean} [isBad] */
export function tell(text, isBad = false) {
    const place = document.getElementById("told");
    if (!place) return;
    const line = element("p", { class: isBad ? "told bad" : "told" }, text);
    place.append(line);
    setTimeout(() => line.remove(), isBad ? 12000 : 6000);
}

/** Hands a file to the reader. @param {string} name @param {string} type @param {BlobPart} content */
export function download(name, type, content) {
    const address = URL.createObjectURL(new Blob([content], { type }));
    const link = element("a", { href: address, download: name });
    document.body.append(link);
    link.click();
    link.remove();
    setTimeout(() => URL.revokeObjectURL(address), 60000);
}

/** A field of a table in CSV (RFC 4180). @param {unknown} value */
export function csvField(value) {
    const text = value === null || value === undefined ? "" : String(value);
    return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/** A colour of the style sheet, in a form that a canvas takes. @param {string} name such as `--accent` */
export function colour(name) {
    const known = colours.get(name);
    if (known !== undefined) return known;
    const probe = element("i", { hidden: true });
    probe.style.setProperty("color", `var(${name})`);
    document.body.append(probe);
    const found = getComputedStyle(probe).color;
    probe.remove();
    colours.set(name, found);
    return found;
}

/** @type {Map<string, string>} */
const colours = new Map();

/** After the theme has changed. */
export function forgetColours() {
    colours.clear();
}
