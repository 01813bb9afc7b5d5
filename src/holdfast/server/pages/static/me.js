// /me: how many facts are chosen, and the focus to the question about them.

function told() {
  const place = document.querySelector("[data-picked]");
  if (!place) return;
  const count = document.querySelectorAll(".pick:checked").length;
  const words = count === 0 ? place.dataset.none : count === 1 ? place.dataset.one : place.dataset.many;
  place.textContent = words.replace("{count}", count);
  document.getElementById("several-form").toggleAttribute("data-dirty", count > 0); // a live update would undo the choice
}

document.addEventListener("change", (event) => {
  if (event.target.matches(".pick")) told();
});

document.addEventListener("holdfast:section", (event) => {
  const heading = event.detail.id === "several" ? event.detail.querySelector("h2") : null;
  heading?.scrollIntoView({ block: "center" });
  heading?.focus({ preventScroll: true });
});
