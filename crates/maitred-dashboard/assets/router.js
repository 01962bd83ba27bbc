// Addresses behind the hash: `#/routes?sort=p99&route=GET%20/x`, which work in a saved page, too.

/** @typedef {{ page: string, parameters: URLSearchParams }} Place */

/** @returns {Place} */
export function place() {
    const [path, query] = location.hash.replace(/^#\/?/, "").split(/\?(.*)/s);
    return { page: path || "overview", parameters: new URLSearchParams(query) };
}

/** @param {string} page @param {Record<string, string>} [parameters] */
export function addressOf(page, parameters = {}) {
    const query = new URLSearchParams(parameters).toString();
    return `#/${page}${query ? `?${query}` : ""}`;
}

/** Notes in the address what is shown; an empty value takes it out. @param {Record<string, string>} changed */
export function note(changed) {
    const { page, parameters } = place();
    for (const [name, value] of Object.entries(changed)) {
        if (value) parameters.set(name, value);
        else parameters.delete(name);
    }
    history.replaceState(null, "", addressOf(page, Object.fromEntries(parameters)));
}
