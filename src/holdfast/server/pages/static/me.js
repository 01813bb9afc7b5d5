// /me and the page of a user: how many are chosen, and the focus to the question about them.

function told() {
  for (const form of document.querySelectorAll("form.several")) {
    const count = document.querySelectorAll(`.pick[form="${form.id}"]:checked`).length;
    form.toggleAttribute("data-dirty", count > 0); // a live update would undo the choice
    const place = form.querySelector("[data-picked]");
    const words = place && (count === 0 ? place.dataset.none : count === 1 ? place.dataset.one : place.dataset.many);
    if (place) place.textContent = words.replace("{count}", count);
  }
}

document.addEventListener("change", (event) => {
  if (event.target.matches(".pick")) told();
});

document.addEventListener("holdfast:section", (event) => {
  const heading = event.detail.id === "several" ? event.detail.querySelector("h2") : null;
  heading?.scrollIntoView({ block: "center" });
  heading?.focus({ preventScroll: true });
});
