// Questions to the server, and changes; in a saved page, what it said when it was saved.
//
// A question is written with its arguments: `stats?route=GET%20/x`. Leaves out: answers that are followed (live.js).

/** @typedef {{ taken: number, answers: Record<string, any> }} Snapshot */
/** @typedef {{ path: string, method: string, usage: string, help: string }} Command */

/** An answer that is none, with the server's own words. */
export class Refused extends Error {
    /** @param {number} status 0: nobody answers @param {string} text */
    constructor(status, text) {
        super(text);
        this.status = status;
    }
}

/** @type {Snapshot | null} */
export const snapshot = savedAnswers();

function savedAnswers() {
    const found = document.getElementById("snapshot");
    if (!found) return null;
    try {
        const saved = JSON.parse(found.textContent ?? "");
        return { taken: saved.taken, answers: saved.answers ?? {} };
    } catch {
        return { taken: 0, answers: {} };
    }
}

/** @type {Set<string>} */
const names = new Set();

/** What a change has to show. */
let shownForChanges = "";

/** Whether the server has this query or change: `recent`, `deliveries end`. @param {string} name */
export function has(name) {
    return names.has(name);
}

/** Whether anything can be changed from here. */
export function canChange() {
    return snapshot === null;
}

/**
 * Who is let in, and what there is to ask.
 * @returns {Promise<{ hasToken: boolean }>}
 */
export async function begin() {
    if (snapshot) {
        for (const key of Object.keys(snapshot.answers)) names.add(key.split("?")[0]);
        return { hasToken: false };
    }
    const session = await received(await sent("session"));
    shownForChanges = session.csrf;
    const help = await received(await sent("../", { headers: { Accept: "application/json" } }));
    names.clear();
    for (const command of /** @type {Command[]} */ (help.commands)) names.add(command.path.slice(1).replaceAll("/", " "));
    return { hasToken: session.token };
}

/** @param {string} item @returns {Promise<any>} */
export async function ask(item) {
    if (snapshot) return saved(snapshot, item);
    return received(await sent(`../${item.replace(" ", "/")}`));
}

/** What a saved page has to this question. @param {Snapshot} from @param {string} item */
function saved(from, item) {
    const [name, query] = item.split("?");
    const wanted = new URLSearchParams(query);
    // How much of a list was asked for makes no difference, and what it is about does.
    const matters = ["route", "method", "url", "tid", "request"];
    const found = Object.entries(from.answers).find(([key, answer]) => {
        const [other, text] = key.split("?");
        const given = new URLSearchParams(text);
        const resolution = wanted.get("resolution");
        const isOfRange = resolution === null || resolution === `${answer?.resolution_seconds}s`;
        return other === name && isOfRange && matters.every((argument) => given.get(argument) === wanted.get(argument));
    });
    if (!found) throw new Refused(404, "The snapshot has no answer to this.");
    if (found[1]?.error) throw new Refused(409, found[1].error);
    return found[1];
}

/**
 * Changes something. @param {string} name such as `deliveries end` @param {Record<string, string | number | undefined>} given
 * @returns {Promise<any>}
 */
export async function change(name, given) {
    if (snapshot) throw new Refused(0, "this is a snapshot: nothing can be changed");
    const values = Object.entries(given).filter(([, value]) => value !== undefined && value !== "");
    const body = JSON.stringify(Object.fromEntries(values.map(([key, value]) => [key, String(value)])));
    return received(await sent(`../${name.replace(" ", "/")}`, posted(body)));
}

/** The lines that a change has said. @param {any} answer @returns {string} */
export function linesOf(answer) {
    return Array.isArray(answer?.changed) ? answer.changed.join("; ") : "done";
}

/** @param {string} token */
export async function signIn(token) {
    await received(await sent("session", posted(JSON.stringify({ token }))));
}

export async function signOut() {
    await received(await sent("leave", posted("{}")));
}

/** One file that shows what the server says now. @returns {Promise<Blob>} */
export async function savedPage() {
    const answer = await sent("snapshot");
    if (!answer.ok) await received(answer);
    return answer.blob();
}

/** @param {string} body @returns {RequestInit} */
function posted(body) {
    return { method: "POST", body, headers: { "Content-Type": "application/json", "X-CSRF-Token": shownForChanges } };
}

/** @param {string} address @param {RequestInit} [given] */
async function sent(address, given) {
    try {
        return await fetch(address, { credentials: "same-origin", cache: "no-store", ...given });
    } catch {
        throw new Refused(0, "the server does not answer");
    }
}

/** @param {Response} answer @returns {Promise<any>} */
async function received(answer) {
    const text = await answer.text();
    let value = null;
    try {
        value = text === "" ? null : JSON.parse(text);
    } catch {
        value = { error: `the answer is no JSON (${answer.status})` };
    }
    if (answer.ok && !value?.error) return value;
    throw new Refused(answer.status, value?.error ?? `refused (${answer.status})`);
}
