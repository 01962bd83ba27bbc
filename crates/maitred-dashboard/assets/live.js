// Answers as they change: one stream of events, which mends itself, and rests while the page is not looked at.

import { ask, Refused, snapshot } from "./api.js";

/** @typedef {"connecting" | "live" | "lost" | "paused" | "refused" | "saved"} Condition */

/** How long nothing may come, in milliseconds: answers come each second. */
const SILENCE = 5000;

/** When it is tried again, in milliseconds. */
const AGAIN = 2000;

export class Live {
    /**
     * @param {(name: string, answer: any) => void} hear
     * @param {(condition: Condition, text?: string) => void} changed
     * @param {() => Promise<boolean>} renew asks for the session anew; whether there is one
     */
    constructor(hear, changed, renew) {
        this.hear = hear;
        this.changed = changed;
        this.renew = renew;
        /** @type {string[]} */
        this.items = [];
        /** @type {EventSource | null} */
        this.source = null;
        this.heard = 0;
        /** @type {Condition} */
        this.condition = "connecting";
        this.isBeingRenewed = false;
        if (snapshot) return;
        document.addEventListener("visibilitychange", () => this.look());
        setInterval(() => this.watch(), 1000);
    }

    /** @param {string[]} items */
    follow(items) {
        const isSame = items.length === this.items.length && items.every((item) => this.items.includes(item));
        this.items = items;
        if (snapshot) return void this.replay();
        if (!isSame || !this.source) this.open();
    }

    async replay() {
        this.say("saved");
        for (const item of this.items) {
            try {
                this.hear(item.split("?")[0], await ask(item));
            } catch (error) {
                if (!(error instanceof Refused)) throw error;
            }
        }
    }

    open() {
        this.source?.close();
        this.source = null;
        if (document.hidden || this.items.length === 0) return this.say(document.hidden ? "paused" : "connecting");
        const query = new URLSearchParams(this.items.map((item) => ["of", item]));
        const source = new EventSource(`feed?${query}`);
        this.source = source;
        this.heard = Date.now();
        for (const name of new Set(this.items.map((item) => item.split("?")[0]))) {
            source.addEventListener(name, (event) => {
                if (this.source !== source) return;
                this.heard = Date.now();
                this.say("live");
                this.hear(name, JSON.parse(event.data));
            });
        }
        source.addEventListener("refused", () => {
            // A query that does not fit this server, such as the one for TLS: it is asked in vain, and the others go on.
            this.heard = Date.now();
        });
        source.addEventListener("error", () => {
            if (this.source === source) this.lose();
        });
    }

    /** The stream has ended: a new one is opened as soon as somebody answers. */
    lose() {
        this.source?.close();
        this.source = null;
        this.say("lost");
    }

    look() {
        if (document.hidden) {
            this.source?.close();
            this.source = null;
            this.say("paused");
        } else this.open();
    }

    async watch() {
        if (document.hidden || this.items.length === 0 || this.isBeingRenewed || this.condition === "refused") return;
        const late = Date.now() - this.heard;
        if (this.source && late < SILENCE) return;
        if (this.source) return this.lose();
        if (late < AGAIN) return;
        this.heard = Date.now();
        this.isBeingRenewed = true;
        try {
            // A server that has started anew has another session.
            if (await this.renew()) this.open();
        } finally {
            this.isBeingRenewed = false;
        }
    }

    /** Nobody is signed in. */
    refuse() {
        this.source?.close();
        this.source = null;
        this.say("refused");
    }

    /** @param {Condition} condition */
    say(condition) {
        if (condition === this.condition) return;
        this.condition = condition;
        this.changed(condition);
    }
}
