// A sign-in link carries the key behind the #, which browsers never send.  It is taken out of the address at once, whatever
// it looks like, so that it stays in no history, and posted; the sentence around a link may have left its full stop on it.
// Somebody who is signed in already is asked first: nobody is to be signed in as somebody else by a link.

const form = document.getElementById("sign-in");

function keyOf(hash) {
  let text = hash.replace(/^#key=?/, "");
  try {
    text = decodeURIComponent(text);
  } catch {
    // a stray % is no key either way
  }
  return text.replace(/^[^A-Za-z0-9]+|[^A-Za-z0-9_-]+$/g, "").slice(0, 200);
}

function take() {
  if (!location.hash.startsWith("#key")) return;
  const key = keyOf(location.hash);
  history.replaceState(null, "", location.pathname + location.search);
  if (!form || !key) return;
  form.elements.key.value = key;
  if (form.dataset.held === "no") form.requestSubmit();
}

take();
addEventListener("hashchange", take);
