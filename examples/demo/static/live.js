// Lets requests hang, measures others meanwhile, shows what the server's threads do, and begins a gentle load.

const HUNG = 3;
const SECONDS = 5;
const PAUSE = 500;

const shown = (id) => document.getElementById(id);
const sleep = (time) => new Promise((done) => setTimeout(done, time));

// The whole time of a request in milliseconds.
async function timed(path) {
  const start = performance.now();
  const response = await fetch(path, { cache: "no-store" });
  const text = await response.text();
  if (!response.ok) {
    throw new Error(text || response.statusText);
  }
  return [performance.now() - start, text];
}

async function measure(id, path) {
  try {
    const [time, text] = await timed(path);
    shown(id).textContent = `${time.toFixed(time < 10 ? 1 : 0)} ms`;
    return text;
  } catch (error) {
    shown(id).textContent = "no answer";
    return null;
  }
}

function row(thread) {
  const line = document.createElement("tr");
  line.className = thread.request ? "busy" : "";
  const since = thread.seconds === null ? "" : `${thread.seconds.toFixed(1)} s`;
  for (const text of [thread.name, thread.request ?? "–", since]) {
    line.insertCell().textContent = text;
  }
  return line;
}

function show(text) {
  if (text === null) {
    return;
  }
  const { threads, queued, dashboard, load } = JSON.parse(text);
  showLoad(load);
  shown("dashboard").hidden = dashboard === null;
  shown("open-dashboard").href = dashboard ?? "";
  const busy = threads.filter((thread) => thread.request && thread.role !== "event loop").length;
  shown("queued").textContent = `${busy} in a request, ${queued} ${queued === 1 ? "request waits" : "requests wait"} for a thread`;
  shown("threads").replaceChildren(...threads.map(row));
}

function showLoad(left) {
  shown("load").textContent = left === null ? "Start a gentle load" : "End the load";
  shown("load-said").textContent = left === null ? "" : `for ${left} s more`;
  shown("load").disabled = false;
}

// One request at a time: a browser has six connections to a site by HTTP/1.1.
async function watch() {
  for (;;) {
    show(await measure("asgi", "/live/state"));
    await measure("wsgi", "/");
    await measure("file", "/static/cloche.svg");
    await sleep(PAUSE);
  }
}

async function hang(number) {
  const line = document.createElement("li");
  line.textContent = `request ${number} hangs`;
  line.style.setProperty("--time", `${SECONDS}s`);
  shown("hung").append(line);
  try {
    const [time] = await timed(`/slow?seconds=${SECONDS}&number=${number}`);
    line.textContent = `request ${number} took ${(time / 1000).toFixed(1)} s`;
  } catch (error) {
    line.textContent = `request ${number} failed`;
  }
  line.className = "over";
}

shown("hang").addEventListener("click", async () => {
  shown("hang").disabled = true;
  shown("hung").replaceChildren();
  await Promise.all(Array.from({ length: HUNG }, (_, number) => hang(number + 1)));
  shown("hang").disabled = false;
});

shown("load").addEventListener("click", async () => {
  shown("load").disabled = true;
  const response = await fetch("/live/load", { method: "POST" });
  if (response.ok) {
    showLoad((await response.json()).load);
  } else {
    shown("load-said").textContent = await response.text();
    shown("load").disabled = false;
  }
});

shown("hang").disabled = false;
watch();
