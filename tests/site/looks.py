"""Save pictures of every page into _build/screenshots: ``python tests/site/looks.py [PAGE...]`` after a build."""

from __future__ import annotations

import sys

from browser import Visit, chromium, serve

from analysis.publish.notebooks import ROOT
from analysis.publish.site import pages

WIDTHS = (360, 768, 1440)


def main() -> None:
    """Take each page in three widths, light and dark, charts unfolded as they are."""
    site, folder = ROOT / "_build" / "html", ROOT / "_build" / "screenshots"
    folder.mkdir(exist_ok=True)
    with serve(site) as origin, chromium() as browser:
        context = browser.new_context()
        for page in sys.argv[1:] or pages():
            for width in WIDTHS:
                visit = Visit(context, "about:blank", origin="about:")
                visit.page.set_viewport_size({"width": width, "height": 900})
                visit.page.goto(f"{origin}/{page}.html")
                for mode in ("light", "dark"):
                    visit.page.emulate_media(color_scheme=mode)
                    visit.settle(mode)
                    visit.page.screenshot(path=folder / f"{page.replace('/', '-')}-{width}-{mode}.png", full_page=True)
                visit.page.close()


if __name__ == "__main__":
    main()
