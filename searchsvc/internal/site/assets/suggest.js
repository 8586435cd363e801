// Suggests texts while somebody types a search, and sends no empty parameters.
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
  ask.form.addEventListener("formdata", event => { // leaves out what is empty
    const data = event.formData, all = [...data];
    for (const [name] of all) data.delete(name);
    for (const pair of all) if (pair[1]) data.append(...pair);
  });
  ask.addEventListener("input", () => {
    clearTimeout(waiting);
    waiting = setTimeout(suggest, 150);
  });
})();
