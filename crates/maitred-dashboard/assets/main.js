// The page: what is asked for by the address, and what is shown.
const session = await fetch("session").then((answer) => answer.json());
document.body.append(JSON.stringify(session));
