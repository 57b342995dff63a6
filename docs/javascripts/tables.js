// A table that is wider than the page can be scrolled with the keyboard too.
document$.subscribe(() => {
  for (const scrolled of document.querySelectorAll(".md-typeset__scrollwrap")) scrolled.tabIndex = 0;
});
