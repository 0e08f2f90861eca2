// A formula that is wider than its column scrolls by itself; then a keyboard has to reach it.
(() => {
  const reach = (formula) => {
    if (formula.scrollWidth > formula.clientWidth) formula.tabIndex = 0;
    else formula.removeAttribute("tabindex");
  };
  // columns change their width after the window did, and fonts come late: ask each formula, not the window
  const watch = new ResizeObserver((seen) => seen.forEach((one) => reach(one.target)));
  const begin = () => {
    for (const formula of document.querySelectorAll('mjx-container[display="true"]')) {
      reach(formula);
      watch.observe(formula);
    }
  };
  addEventListener("load", () => window.MathJax?.startup?.promise.then(begin));
})();
