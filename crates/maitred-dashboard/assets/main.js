// The frame of all pages: where one is, whether answers come, who is signed in, and how it looks.

import { age, clock, dateAndTime, isNumber } from "./format.js";
import { download, element, forgetColours, setAttribute, setText, tell } from "./dom.js";
import { begin, canChange, Refused, savedPage, signIn, signOut, snapshot } from "./api.js";
import { addressOf, place } from "./router.js";
import { Live } from "./live.js";
import { Gathered } from "./series.js";
import { overviewPage } from "./page-overview.js";
import { routesPage } from "./page-routes.js";
import { threadsPage } from "./page-threads.js";
import { requestsPage } from "./page-requests.js";
import { cachesPage, connectionsPage, deliveriesPage, locksPage } from "./page-network.js";
import { upstreamsPage } from "./page-upstreams.js";
import { configurationPage, logsPage, memoryPage } from "./page-system.js";

/** @typedef {import("./page-overview.js").PageGiven} PageGiven */
/** @typedef {import("./page-overview.js").PageShown} PageShown */
/** @typedef {{ key: string, title: string, show: (given: PageGiven) => PageShown }} Page */

/** @type {Page[]} */
const PAGES = [
    { key: "overview", title: "Overview", show: overviewPage },
    { key: "routes", title: "Routes", show: routesPage },
    { key: "threads", title: "Pools and threads", show: threadsPage },
    { key: "requests", title: "Requests", show: requestsPage },
    { key: "deliveries", title: "Deliveries", show: deliveriesPage },
    { key: "connections", title: "Connections", show: connectionsPage },
    { key: "upstreams", title: "Other servers", show: upstreamsPage },
    { key: "locks", title: "Locks", show: locksPage },
    { key: "caches", title: "Caches", show: cachesPage },
    { key: "memory", title: "Memory and processes", show: memoryPage },
    { key: "logs", title: "Logs", show: logsPage },
    { key: "configuration", title: "Configuration", show: configurationPage },
];

/** What somebody may type for a page. @type {Record<string, string>} */
const OTHER_NAMES = { pools: "threads", stacks: "threads", active: "requests", recent: "requests", history: "overview", stats: "routes", websockets: "connections" };

/** Where the choice of the theme is kept. */
const THEME = "maitred-theme";

const gathered = new Gathered();
/** @type {PageShown} */
let shown = {};
let shownAddress = "";

const state = element("span", { class: "connection" }, "connecting");
const about = element("span", { class: "about" });
const warned = element("b", { class: "warned" });
const banner = element("p", { class: "banner", role: "status" });
banner.hidden = true;
const main = element("main", { id: "main", tabindex: -1 });
const links = PAGES.map((page) => element("a", { href: addressOf(page.key) }, page.title));
const nav = element("nav", { id: "pages", "aria-label": "Pages" }, element("ul", {}, ...links.map((link) => element("li", {}, link))));
const menu = element("button", { class: "menu", "aria-controls": "pages", "aria-expanded": "false", onclick: () => openMenu(nav.dataset.open !== "") }, "Menu");
const leave = element("button", { onclick: () => void goOut() }, "Sign out");
leave.hidden = true;
const save = element("button", { onclick: () => void saveSnapshot(), disabled: !canChange(), "aria-label": "Save snapshot" }, "Save", element("span", { class: "long" }, " snapshot"));
const frame = element("div", { class: "frame" }, nav, main);

const live = new Live(
    (name, answer) => {
        // Those of one route come by the same name.
        const isWhole = answer.route === undefined;
        if (isWhole) gathered.hear(name, answer);
        if (name === "status") {
            setText(about, `up ${age(answer.uptime_seconds)}`);
            setText(warned, answer.draining ? "drains" : answer.low_on ? `little left: ${answer.low_on}` : "");
        }
        shown.hear?.(name, answer);
    },
    (condition) => showCondition(condition),
    async () => {
        try {
            leave.hidden = !(await begin()).hasToken;
            return true;
        } catch (error) {
            if (!(error instanceof Refused)) throw error;
            if (error.status === 401) showSignIn();
            return false;
        }
    },
);

/** @param {import("./live.js").Condition} condition */
function showCondition(condition) {
    const words = { connecting: "connecting", live: "live", lost: "no answer", paused: "paused", refused: "signed out", saved: "snapshot" };
    setText(state, words[condition]);
    setAttribute(state, "data-condition", condition);
    if (condition === "lost") showBanner(`No answer from the server since ${clock(Date.now() / 1000)}. What is shown is from before; it is tried again every 2 seconds.`);
    else if (condition === "saved") showBanner(`A snapshot${isNumber(snapshot?.taken) && snapshot.taken > 0 ? ` of ${dateAndTime(snapshot.taken)}` : ""}: nothing changes here, and nothing can be changed.`);
    else showBanner("");
}

/** @param {string} text */
function showBanner(text) {
    setText(banner, text);
    banner.hidden = text === "";
}

/** @param {boolean} isOpen */
function openMenu(isOpen) {
    if (isOpen) nav.dataset.open = "";
    else delete nav.dataset.open;
    setAttribute(menu, "aria-expanded", String(isOpen));
}

/** Shows the page of the address. */
function go() {
    const { page: key, parameters } = place();
    const found = PAGES.find((one) => one.key === (OTHER_NAMES[key] ?? key));
    if (!found) tell(`There is no page '${key}'. This is the overview.`, true);
    const page = found ?? PAGES[0];
    shown.end?.();
    shown = {};
    openMenu(false);
    links.forEach((link, at) => setAttribute(link, "aria-current", PAGES[at] === page ? "page" : null));
    document.title = `${page.title} · maitred`;
    const root = element("div", { class: `page page-${page.key}` });
    main.replaceChildren(element("h1", {}, page.title), root);
    // What is heard before the page is there belongs to the page before it.
    shown = page.show({ root, parameters, gathered, follow: (items) => live.follow([...new Set(["stats", "pools", "status", ...items])]) });
    if (shownAddress !== "" && shownAddress !== page.key) main.focus();
    shownAddress = page.key;
    if (shownAddress) window.scrollTo(0, 0);
}

/** Asks for the token. */
function showSignIn() {
    live.refuse();
    shown.end?.();
    shown = {};
    leave.hidden = true;
    nav.hidden = menu.hidden = save.hidden = true;
    const token = element("input", { type: "password", id: "token", autocomplete: "current-password", required: true });
    const wrong = element("p", { class: "told bad", role: "alert" });
    wrong.hidden = true;
    const submit = async (/** @type {Event} */ event) => {
        event.preventDefault();
        try {
            await signIn(token.value.trim());
            await start();
        } catch (error) {
            if (!(error instanceof Refused)) throw error;
            setText(wrong, error.message);
            wrong.hidden = false;
        }
    };
    const form = element(
        "form",
        { class: "sign-in", onsubmit: submit },
        element("h1", {}, "Sign in"),
        element("p", {}, "This server shows itself to who has the token of admin-token-file."),
        element("label", { for: "token" }, "Token"),
        token,
        wrong,
        element("button", { class: "primary" }, "Sign in"),
    );
    main.replaceChildren(form);
    token.focus();
}

async function goOut() {
    try {
        await signOut();
    } catch (error) {
        if (!(error instanceof Refused)) throw error;
        tell(error.message, true);
    }
    showSignIn();
}

async function saveSnapshot() {
    save.disabled = true;
    try {
        const name = `maitred-${new Date().toISOString().slice(0, 19).replaceAll(":", "")}.html`;
        download(name, "text/html", await savedPage());
    } catch (error) {
        if (!(error instanceof Refused)) throw error;
        tell(error.status === 404 ? "This server makes no snapshots." : error.message, true);
    } finally {
        save.disabled = false;
    }
}

function themeChoice() {
    const names = [["", "System"], ["light", "Light"], ["dark", "Dark"]];
    const choice = element("select", { id: "theme", "aria-label": "Theme" }, ...names.map(([value, title]) => element("option", { value }, title)));
    /** @param {string} theme */
    const set = (theme) => {
        if (theme) document.documentElement.dataset.theme = theme;
        else delete document.documentElement.dataset.theme;
        repaint();
    };
    const kept = keptTheme();
    choice.value = kept;
    set(kept);
    choice.addEventListener("change", () => {
        set(choice.value);
        try {
            localStorage.setItem(THEME, choice.value);
        } catch {
            // A page from a file, or a browser that keeps nothing: it lasts as long as the page.
        }
    });
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", repaint);
    return choice;
}

function keptTheme() {
    try {
        return localStorage.getItem(THEME) ?? "";
    } catch {
        return "";
    }
}

function repaint() {
    forgetColours();
    shown.repaint?.();
}

async function start() {
    try {
        leave.hidden = !(await begin()).hasToken;
    } catch (error) {
        if (!(error instanceof Refused)) throw error;
        if (error.status === 401) return showSignIn();
        showCondition("lost");
        return void setTimeout(start, 2000);
    }
    nav.hidden = menu.hidden = save.hidden = false;
    live.source?.close();
    live.source = null;
    live.condition = "connecting";
    go();
}

document.body.prepend(
    element("a", { class: "skip", href: "#main", onclick: (/** @type {Event} */ event) => {
        event.preventDefault();
        main.focus();
    } }, "Skip to the content"),
    element(
        "header",
        { class: "top" },
        menu,
        element("a", { class: "brand", href: addressOf("overview") }, "maitred"),
        state,
        about,
        warned,
        element("span", { class: "space" }),
        themeChoice(),
        save,
        leave,
    ),
    banner,
    frame,
    element("div", { id: "told", role: "status", "aria-live": "polite" }),
);
window.addEventListener("hashchange", () => live.condition !== "refused" && go());
await start();
