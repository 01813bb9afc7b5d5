// The theme: light, dark, or as the system has it.  A classic script in the head, so that the page is never drawn in
// the wrong one first.
"use strict";
(() => {
  const root = document.documentElement;
  let chosen = "auto";
  try {
    chosen = localStorage.getItem("holdfast-theme") || "auto";
  } catch {
    // a browser that stores nothing goes with the system
  }
  const show = (theme) => {
    if (theme === "light" || theme === "dark") root.dataset.theme = theme;
    else delete root.dataset.theme;
  };
  show(chosen);
  addEventListener("DOMContentLoaded", () => {
    const box = document.getElementById("theme");
    if (!box) return;
    box.hidden = false;
    for (const input of box.querySelectorAll("input")) {
      input.checked = input.value === chosen;
      input.addEventListener("change", () => {
        show(input.value);
        try {
          localStorage.setItem("holdfast-theme", input.value);
        } catch {
          // it holds for this page then
        }
      });
    }
  });
})();
