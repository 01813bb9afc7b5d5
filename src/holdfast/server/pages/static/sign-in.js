// A sign-in link carries the key behind the #, which browsers never send.  It is taken out of the address at once, so
// that it stays in no history, and posted.  Somebody who is signed in already is asked first: nobody is to be
// signed in as somebody else by a link.

const form = document.getElementById("sign-in");

function take() {
  const found = /^#key=([A-Za-z0-9_-]{20,200})$/.exec(location.hash);
  if (!form || !found) return;
  history.replaceState(null, "", location.pathname + location.search);
  form.elements.key.value = found[1];
  if (form.dataset.held === "no") form.requestSubmit();
}

take();
addEventListener("hashchange", take);
