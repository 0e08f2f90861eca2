// A formula that is wider than its column scrolls by itself; then a keyboard has to reach it.
(() => {
  const reach = () => {
    for (const formula of document.querySelectorAll('mjx-container[display="true"]')) {
      if (formula.scrollWidth > formula.clientWidth) formula.tabIndex = 0;
      else formula.removeAttribute("tabindex");
    }
  };
  addEventListener("load", () => window.MathJax?.startup?.promise.then(reach));
  addEventListener("resize", reach);
})();
