// A file that is too large is refused before it is sent.
(function () {
  "use strict";
  const form = document.querySelector("form[data-largest]");
  const trouble = document.getElementById("file-trouble");
  form.addEventListener("submit", (event) => {
    const file = form.elements.file.files[0];
    const largest = Number(form.dataset.largest);
    trouble.hidden = !(file && file.size > largest);
    if (!trouble.hidden) {
      trouble.textContent = "This file has " + (file.size / 1e6).toFixed(1) + " MB; at most " + largest / 1e6 + " MB are taken. Keep only the rows you need.";
      event.preventDefault();
      return;
    }
    form.querySelector("button.main").textContent = "Reading …";
  });
})();
