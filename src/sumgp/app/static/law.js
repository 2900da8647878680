// Says how the law is understood while it is typed.
(function () {
  "use strict";
  const PAUSE = 250; // milliseconds after the last change
  const form = document.getElementById("choice");
  const law = document.getElementById("law");
  const feedback = document.getElementById("feedback");
  const constants = document.getElementById("constants");
  let waiting = 0;
  let latest = 0;
  document.documentElement.classList.add("script");

  async function ask() {
    const mine = ++latest;
    const answer = await fetch(form.dataset.law, { method: "POST", body: new FormData(form) });
    if (!answer.ok || mine !== latest) return;
    const found = await answer.json();
    feedback.innerHTML = found.feedback;
    feedback.dataset.state = found.state;
    law.setAttribute("aria-invalid", String(found.state === "mistake"));
    if (constants.dataset.names !== found.names) {
      constants.innerHTML = found.constants;
      constants.dataset.names = found.names;
    }
  }

  function soon() {
    clearTimeout(waiting);
    feedback.dataset.state = "waiting";
    waiting = setTimeout(() => ask().catch((error) => console.error(error)), PAUSE);
  }

  // Names with spaces or signs stand between backticks in a law.
  function quoted(name) {
    return /^[\p{L}_][\p{L}\p{N}_]*$/u.test(name) ? name : "`" + name + "`";
  }

  form.addEventListener("input", soon);
  form.addEventListener("change", (event) => {
    if (event.target.name === "constant-kind") event.target.closest("fieldset").dataset.kind = event.target.value;
    soon();
  });
  form.addEventListener("click", (event) => {
    const button = event.target.closest("button[data-start], button[data-insert]");
    if (!button) return;
    if (button.dataset.insert !== undefined) {
      law.setRangeText(quoted(button.dataset.insert), law.selectionStart, law.selectionEnd, "end");
      soon();
    } else {
      const start = Number(button.dataset.start), end = Number(button.dataset.end);
      law.setSelectionRange(start, end);
      if (button.dataset.text !== undefined) {
        law.setRangeText(quoted(button.dataset.text), start, end, "end");
        soon();
      }
    }
    law.focus();
  });
  form.addEventListener("submit", () => { document.getElementById("fit").textContent = "Starting …"; });
  // A page that comes back from the browser's memory shows its button as before.
  window.addEventListener("pageshow", () => { document.getElementById("fit").textContent = "Fit"; });
  // A browser may have kept what was typed before the page was loaded again.
  soon();
})();
