// Takes away the marks of pictures that cannot be loaded, because their files were removed or are not here.
"use strict";

for (const picture of document.querySelectorAll(".hits img, .gallery img")) {
  const hide = () => { picture.style.visibility = "hidden"; };
  picture.addEventListener("error", hide);
  if (picture.complete && !picture.naturalWidth) hide();
}
