"""The site that scripts/docs.sh builds, opened from the disk in a headless Chromium: every
page is drawn without errors, fits its window, asks for nothing from elsewhere; the
search finds.

    PICTURES=FOLDER test_site.py    keeps the pictures of the pages in FOLDER
"""
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

import pages
from pages import ROOT

sys.path.insert(0, str(ROOT / "tests/report"))
import chromium  # noqa: E402

PICTURES = None
SCHEMES = {"light": "default", "dark": "slate"}


class Site(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        place = tempfile.TemporaryDirectory(prefix="abtrain-site-")
        cls.addClassCleanup(place.cleanup)
        cls.site = pathlib.Path(place.name) / "site"
        # Links, anchors and pages that no menu leads to are errors there.
        done = subprocess.run([ROOT / "scripts/docs.sh", cls.site], stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, timeout=300)
        if done.returncode:
            raise AssertionError(f"scripts/docs.sh: exit code {done.returncode}\n{done.stdout}")

    def js(self, expression):
        return self.browser.evaluate(expression)

    def open(self, page):
        self.browser.open(page)
        self.browser.wait_for(f"location.pathname === {str(page)!r} && "
                              "document.readyState === 'complete'")

    def page_of(self, source):
        path = source.relative_to(ROOT).with_suffix(".html")
        return self.site / (path.with_name("index.html") if path.stem == "README" else path)

    def test_every_page_is_drawn(self):
        sources = [*pages.PAGES, ROOT / "CHANGELOG.md"]
        self.assertGreater(len(sources), 30)
        for scheme, name in SCHEMES.items():
            # A browser of its own: the site remembers the scheme that it first met.
            self.browser = self.enterContext(chromium.Browser(timeout=20))
            self.browser.prefer(scheme)
            for width in (1280, 800, 400):
                self.browser.resize(width, 900)
                for source in sources:
                    page = self.page_of(source)
                    with self.subTest(f"{page.relative_to(self.site)}, {width}, {scheme}"):
                        self.open(page)
                        self.assertEqual(self.js("document.body.dataset.mdColorScheme"), name)
                        title = source.read_text().partition("\n")[0].removeprefix("# ")
                        self.assertEqual(
                            self.js("document.querySelector('h1').firstChild.textContent[0]"),
                            title.replace("`", "")[0])
                        # Wide tables scroll by themselves.
                        self.assertLessEqual(
                            self.js("document.documentElement.scrollWidth"), width)
                        self.assertEqual(
                            self.js("[...document.images].filter(i => !i.naturalWidth).length"), 0)
                        # Text such as <S, D> that was taken for a tag.
                        self.assertEqual(self.js("[...document.querySelectorAll('article *')].filter("
                                                 "e => e instanceof HTMLUnknownElement).length"), 0)
                        self.assertEqual(self.browser.complaints, [])
                        self.assertEqual([url for url in self.browser.requests
                                          if not url.startswith(("file:", "data:", "about:"))], [])
                        if PICTURES:
                            flat = str(page.relative_to(self.site).with_suffix("")).replace("/", "_")
                            self.browser.screenshot(PICTURES / f"{flat}-{width}-{scheme}.png")

    def test_the_search_finds(self):
        for words, page in (("PairBalance", "orders.html"), ("resume", "failures.html"),
                            ("slow network", "hosts.html"), ("own model", "own_model.html"),
                            ("ONNX", "use_it.html")):
            with self.subTest(words):
                self.browser = self.enterContext(chromium.Browser(timeout=20))
                self.open(self.site / "index.html")
                self.js("""(() => {
                    const query = document.querySelector('[data-md-component=search-query]');
                    query.focus();
                    query.value = '%s';
                    query.dispatchEvent(new Event('keyup', {bubbles: true}));
                    query.dispatchEvent(new Event('input', {bubbles: true}));
                })()""" % words)
                self.browser.wait_for(
                    "document.querySelectorAll('.md-search-result__link').length > 0")
                links = self.js(
                    "[...document.querySelectorAll('.md-search-result__link')].map(a => a.href)")
                self.assertTrue(any(page in link for link in links), links)
                self.assertEqual(self.browser.complaints, [])


if __name__ == "__main__":
    if chromium.PROGRAM is None:
        print("skipped: no chromium-headless-shell (scripts/setup.sh --tests)")
        sys.exit(77)
    if "PICTURES" in os.environ:
        PICTURES = pathlib.Path(os.environ["PICTURES"])
        PICTURES.mkdir(parents=True, exist_ok=True)
    unittest.main()
