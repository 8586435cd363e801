// Suggests texts while somebody types a search.
"use strict";

(() => {
  const ask = document.getElementById("q");
  const list = document.getElementById("suggested");
  let waiting;
  const suggest = async () => {
    const text = ask.value;
    try {
      const answer = await fetch(list.dataset.from + encodeURIComponent(text), { credentials: "omit" });
      if (!answer.ok || ask.value !== text) return;
      list.replaceChildren(...(await answer.json()).data.map(found => new Option(found, found)));
    } catch (error) {} // the search works without suggestions
  };
  ask.addEventListener("input", () => {
    clearTimeout(waiting);
    waiting = setTimeout(suggest, 150);
  });
})();
