// A form that is on its way cannot be sent a second time.
for (const form of document.forms) {
  form.addEventListener("submit", () => {
    for (const button of form.querySelectorAll("button")) {
      button.disabled = true;
    }
  });
}

// A page that comes back from the browser's cache can be used again.
addEventListener("pageshow", () => {
  for (const button of document.querySelectorAll("button:disabled")) {
    button.disabled = false;
  }
});
