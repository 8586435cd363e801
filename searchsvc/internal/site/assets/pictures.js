// Takes away the marks of pictures that cannot be loaded, because their files were removed or are not here.
"use strict";

for (const picture of document.images) {
  const hide = () => { picture.style.visibility = "hidden"; };
  picture.onerror = hide;
  if (picture.complete && !picture.naturalWidth) hide();
}
