// Values at given points, without leaving the page.
(function () {
  "use strict";
  const form = document.getElementById("ask");
  const answers = document.getElementById("answers");
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const button = form.querySelector("button");
    button.disabled = true;
    answers.textContent = "Predicting …";
    try {
      const answer = await fetch(form.action, { method: "POST", body: new FormData(form) });
      const found = new DOMParser().parseFromString(await answer.text(), "text/html").getElementById("answers");
      if (found) answers.replaceChildren(...found.childNodes); else answers.textContent = "This was refused (" + answer.status + ").";
    } catch (error) {
      answers.textContent = "The program does not answer; is it still running?";
    } finally {
      button.disabled = false;
    }
  });
})();
