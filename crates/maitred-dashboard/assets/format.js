// Numbers, times and names in words, in the reader's own notation.
//
// Promises: the same value always has the same text, and what is not known is a dash. Leaves out: where they are shown.

export const NOTHING = "–";

const three = new Intl.NumberFormat(undefined, { maximumSignificantDigits: 3, minimumSignificantDigits: 3 });
const shortest = new Intl.NumberFormat(undefined, { maximumSignificantDigits: 3 });
const whole = new Intl.NumberFormat(undefined, { maximumFractionDigits: 0 });
const tenths = new Intl.NumberFormat(undefined, { maximumFractionDigits: 1, minimumFractionDigits: 1 });
const timeOfDay = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" });
const hourAndMinute = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", hourCycle: "h23" });
const dayOfMonth = new Intl.DateTimeFormat(undefined, { day: "numeric", month: "short" });
const dayAndTime = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium" });

/** @param {unknown} value @returns {value is number} */
export function isNumber(value) {
    return typeof value === "number" && Number.isFinite(value);
}

/** With three digits, and all of a large one. @param {number} value */
function digits(value) {
    return Math.abs(value) >= 99.95 ? whole.format(value) : three.format(value);
}

/** For marks of axes: no digit that is none. @param {number} value */
function fewDigits(value) {
    return Math.abs(value) >= 999.5 ? whole.format(value) : shortest.format(value);
}

/** A number of things. @param {unknown} value */
export function count(value) {
    if (!isNumber(value)) return NOTHING;
    return Number.isInteger(value) ? whole.format(value) : digits(value);
}

/** A mark of an axis. @param {unknown} value */
export function axisCount(value) {
    return isNumber(value) ? fewDigits(value) : NOTHING;
}

/** @param {unknown} value in seconds */
export function axisDuration(value) {
    return durationIn(value, fewDigits);
}

/** @param {unknown} value in bytes */
export function axisBytes(value) {
    return bytesIn(value, fewDigits);
}

/** So many each second, without the unit. @param {unknown} value */
export function rate(value) {
    if (!isNumber(value)) return NOTHING;
    if (value === 0) return "0";
    return Math.abs(value) < 10 ? three.format(value) : Math.abs(value) < 100 ? tenths.format(value) : whole.format(value);
}

/** A time, with its unit. @param {unknown} value in seconds */
export function duration(value) {
    return durationIn(value, digits);
}

/** @param {unknown} value in seconds @param {(value: number) => string} written */
function durationIn(value, written) {
    if (!isNumber(value)) return NOTHING;
    const size = Math.abs(value);
    if (size === 0) return "0 s";
    if (size < 0.9995e-6) return `${written(value * 1e9)} ns`;
    if (size < 0.9995e-3) return `${written(value * 1e6)} µs`;
    if (size < 0.9995) return `${written(value * 1e3)} ms`;
    if (size < 120) return `${written(value)} s`;
    return longDuration(value);
}

/** How long something is there, in whole seconds. @param {unknown} value in seconds */
export function age(value) {
    return isNumber(value) ? longDuration(Math.max(0, Math.floor(value))) : NOTHING;
}

/** A time of minutes or more: two units. @param {number} value in seconds */
function longDuration(value) {
    const seconds = Math.round(value);
    const parts = /** @type {[number, string][]} */ ([
        [Math.floor(seconds / 86400), "d"],
        [Math.floor(seconds / 3600) % 24, "h"],
        [Math.floor(seconds / 60) % 60, "min"],
        [seconds % 60, "s"],
    ]);
    const first = parts.findIndex(([number]) => number > 0);
    if (first < 0) return "0 s";
    const shown = parts.slice(first, first + 2).filter(([number]) => number > 0);
    return shown.map(([number, unit]) => `${whole.format(number)} ${unit}`).join(" ");
}

/** A size, with its unit. @param {unknown} value in bytes */
export function bytes(value) {
    return bytesIn(value, digits);
}

/** @param {unknown} value in bytes @param {(value: number) => string} written */
function bytesIn(value, written) {
    if (!isNumber(value)) return NOTHING;
    const units = ["B", "KiB", "MiB", "GiB", "TiB"];
    let size = value;
    let unit = 0;
    while (Math.abs(size) >= 1000 && unit < units.length - 1) {
        size /= 1024;
        unit += 1;
    }
    return `${unit === 0 ? whole.format(size) : written(size)} ${units[unit]}`;
}

/** @param {unknown} value a part of 1 */
export function percent(value) {
    if (!isNumber(value)) return NOTHING;
    const parts = value * 100;
    return `${parts === 0 || Math.abs(parts) >= 9.95 ? whole.format(parts) : tenths.format(parts)} %`;
}

/** The time of day. @param {number} unix seconds since 1970 */
export function clock(unix) {
    return timeOfDay.format(unix * 1000);
}

/** @param {number} unix seconds since 1970 */
export function dateAndTime(unix) {
    return dayAndTime.format(unix * 1000);
}

/** The marks of a time axis, which lie so many seconds apart. @param {number} unix @param {number} apart */
export function axisTime(unix, apart) {
    if (apart >= 86400) return dayOfMonth.format(unix * 1000);
    return (apart < 60 ? timeOfDay : hourAndMinute).format(unix * 1000);
}

/** A time that the server writes in UTC (RFC 3339), in the reader's zone. @param {unknown} text */
export function localTime(text) {
    const time = typeof text === "string" ? Date.parse(text) : Number.NaN;
    if (Number.isNaN(time)) return typeof text === "string" ? text : NOTHING;
    const isToday = new Date().toDateString() === new Date(time).toDateString();
    return isToday ? timeOfDay.format(time) : dayAndTime.format(time);
}

/** @param {number} number @param {string} one @param {string} [many] */
export function plural(number, one, many) {
    return `${count(number)} ${number === 1 ? one : many ?? `${one}s`}`;
}

/** The name of a figure without its unit: `wait_total_seconds` is "wait total". @param {string} name @returns {string} */
export function plainName(name) {
    const labels = / *\{(.*)\}$/.exec(name)?.[1].replaceAll('"', "").replaceAll("=", " ");
    if (labels) return `${plainName(name.replace(/ *\{.*\}$/, ""))} (${labels})`;
    return name.replace(/_(seconds|bytes)$/, "").replaceAll("_", " ").replaceAll("-", " ");
}

/** A figure with the unit that its name ends in. @param {string} name @param {unknown} value @returns {string} */
export function byName(name, value) {
    if (value === null || value === undefined || value === "") return NOTHING;
    if (typeof value === "boolean") return value ? "yes" : "no";
    if (typeof value === "string") return /^\d{4}-\d\d-\d\dT/.test(value) ? localTime(value) : value;
    if (Array.isArray(value)) return value.length === 0 ? "none" : value.map((part) => byName("", part)).join(", ");
    if (typeof value === "object") {
        return Object.entries(value).map(([key, part]) => `${plainName(key)} ${byName(key, part)}`).join(", ");
    }
    if (/seconds$/.test(name)) return duration(value);
    if (/bytes$/.test(name)) return bytes(value);
    if (/(_rate|_share)$/.test(name)) return percent(value);
    // Numbers that name something are no quantities.
    if (/^(pid|tid|worker|number|line)$/.test(name)) return String(value);
    return count(value);
}
