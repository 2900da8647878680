// Shows the stages of a fit as they come, and the result when it is there.
(function () {
  "use strict";
  const PAUSE = 500; // milliseconds between two looks
  const place = document.getElementById("running");
  const stages = document.getElementById("stages");

  async function look() {
    try {
      const answer = await fetch(place.dataset.progress);
      const state = await answer.json();
      if (state.kind !== "running") { window.location.reload(); return; }
      document.getElementById("seconds").textContent = Math.round(state.seconds);
      state.stages.slice(stages.children.length).forEach((stage) => {
        const line = document.createElement("li");
        line.textContent = stage;
        stages.appendChild(line);
      });
    } catch (error) {
      console.error(error);
    }
    setTimeout(look, PAUSE);
  }
  setTimeout(look, PAUSE);
})();
