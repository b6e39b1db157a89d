"""The HTML report in a headless Chromium: real short runs, every plot drawn, no
error in its console, no request to any other place.

    test_page.py ABTRAIN [PICTURE.png]
"""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

import chromium

PROGRAM = None
PICTURE = None
# Labels that would be markup, or close the script that holds them.
ODD_NAME = "odd &<b>x<!--<script>"
DRAWN = "document.body?.dataset.drawn === 'all'"


def train(folder, name, *sets):
    values = ["data.subset=2048", "model.hidden=[32,32,32]", "train.steps=24", "evaluate.every=6",
              "checkpoint.every=0", "data.batch_size=32", "schedule.warmup_steps=4", "method.warmup_steps=6",
              "method.sync_every=6", "method.full_rank_steps=2", *sets]
    command = [PROGRAM, "--config", "fashion_mnist_mlp", "--name", name, "--output", folder]
    for value in values:
        command += ["--set", value]
    done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                          text=True, timeout=120)
    if done.returncode:
        raise AssertionError(f"{name}: exit code {done.returncode}\n{done.stderr}")
    return folder / name


def train_text(folder):
    """A language model, which has bits per byte in place of an accuracy."""
    text = folder / "words"
    text.write_text("All work and no play makes Jack a dull boy. " * 200)
    subprocess.run([PROGRAM, "--config", "gcide_gpt_ddp", "--name", "text", "--output", folder,
                    "data.name=text", f"data.root={text}", "data.test_share=0.2", "data.context=16",
                    "model.layers=1", "model.features=16", "train.steps=8", "evaluate.every=4"],
                   check=True, capture_output=True, timeout=120)
    return folder / "text"


def set_spectra(run):
    """Singular values that the test knows: s_i = 8 / i, cut to the rank at the end."""
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    cuts = [line for line in lines if line["event"] == "decompose"]
    for cut in cuts:
        for layer in cut["layers"]:
            index = [1, 2, 3, 5, 8, 12, 18, 27]
            kept = layer["rank"] if cut is cuts[-1] else 99
            layer["singular_values"] = {
                "index": index, "value": [8 / i if i <= kept else 0 for i in index]}
    (run / "metrics.jsonl").write_text("".join(
        json.dumps(line, separators=(",", ":")) + "\n" for line in lines))


class Page(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        place = tempfile.TemporaryDirectory(prefix="abtrain-page-")
        cls.addClassCleanup(place.cleanup)
        cls.place = pathlib.Path(place.name)
        cls.runs = cls.place / "runs"
        for size in (1, 2):
            for rank in (4, 8):
                for seed in (1, 2) if rank == 4 else (1,):
                    run = train(
                        cls.runs, f"g{size}_r{rank}_{seed}", f"seed={seed}",
                        f"method.group_size={size}",
                        f"method.rank={{rule: fixed, rank: {rank}}}")
                    set_spectra(run)
        train(cls.runs, "ddp_1", "method.name=ddp")
        late = train(cls.runs, "late", "method.name=local-sgd")
        (late / "summary.json").unlink()
        config = (late / "config.yaml").read_text()
        assert "name: late\n" in config
        (late / "config.yaml").write_text(config.replace("name: late\n", f"name: '{ODD_NAME}'\n"))
        broken = cls.runs / "broken"
        broken.mkdir()
        (broken / "config.yaml").write_text("workers: 4\n")
        cls.browser = cls.enterClassContext(chromium.Browser())

    def open(self, *arguments, runs=None, skipped=1):
        page = self.place / "report.html"
        done = subprocess.run(
            [PROGRAM, "report", *(runs or [self.runs]), "-o", page, *arguments],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=60)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stderr.count("; skipped\n"), skipped, done.stderr)
        self.browser.open(page)
        self.browser.wait_for(DRAWN)
        self.page = page

    def check_quiet(self):
        self.assertEqual(self.browser.complaints, [])
        own = self.page.resolve().as_uri()
        far = [url for url in self.browser.requests
               if url != own and not url.startswith(("data:", "blob:"))]
        self.assertEqual(far, [])
        self.assertIn(own, self.browser.requests)

    def js(self, expression):
        return self.browser.evaluate(expression)

    def text(self, selector):
        return self.js(f"document.querySelector({json.dumps(selector)}).textContent")

    def texts_in(self, plot):
        return self.js(f"[...document.querySelectorAll('#{plot} svg text')]"
                       ".map(t => t.textContent).filter(t => t.trim())")

    def lines_in(self, plot):
        return self.js(f"document.querySelectorAll('#{plot} .scatterlayer path.js-line').length")

    def choose(self, selector, label):
        self.js(f"""(() => {{
            const select = document.querySelector({json.dumps(selector)});
            select.value = [...select.options].find(o => o.text.endsWith({json.dumps(label)})).value;
            select.dispatchEvent(new Event("change"));
        }})()""")

    def test_everything_is_drawn(self):
        self.open("--target", "0.3")
        for plot in ("front", "bytes", "seconds", "map", "ranks", "spectra"):
            with self.subTest(plot):
                self.assertGreater(
                    self.js(f"document.querySelectorAll('#{plot} svg.main-svg').length"), 0)
                self.assertGreater(len(self.texts_in(plot)), 4)
        # A line a run: 6 of AB, ddp, and the one that has not ended.
        for plot, title in (("bytes", "bytes sent"), ("seconds", "seconds of")):
            self.assertEqual(self.lines_in(plot), 8)
            texts = self.texts_in(plot)
            self.assertTrue(any(title in t for t in texts), texts)
            self.assertIn("target 30 %", texts)
            # The name as it is, not what it means as markup.
            self.assertIn(ODD_NAME, texts)
        # Each setting that has ended, in three panels; none has another length.
        traces = self.js("document.getElementById('front').data.map(t => [t.mode, t.x.length])")
        self.assertEqual(traces, [["markers", 1]] * 5 * 3)
        for title in ("seconds of training", "bytes sent per worker", "parameters stored"):
            self.assertIn(title, self.texts_in("front"))
        self.assertIn("group_size x rank", self.text("#map-title"))
        for cell in ("method.group_size", "method.rank.rank"):
            self.assertIn(cell, self.texts_in("map"))
        self.assertEqual(self.js("document.querySelectorAll('#map .heatmaplayer image').length"), 1)
        self.assertEqual(self.lines_in("ranks"), 3)
        self.assertEqual(self.lines_in("spectra"), 3 * 2)
        for text in ("fc1", "fc3"):
            self.assertIn(text, self.texts_in("ranks"))
            self.assertIn(text, self.texts_in("spectra"))
        self.check_quiet()
        if PICTURE:
            self.js("new Promise(r => setTimeout(r, 500))")
            self.browser.screenshot(PICTURE)

    def test_the_verdict_what_was_tuned_and_the_link(self):
        tuning = self.runs / "tuning.json"
        why = ODD_NAME + 20 * " and more words"
        tuning.write_text(json.dumps({
            "settings": 2, "seconds": 900,
            "link": {"bandwidth": "1Gbit", "latency": "", "nodes": 0},
            "rivals": [{"name": "small_powersgd_muon", "why": why, "tried": 2, "pilots": 3,
                        "pilot_seconds": 4.5, "chosen": "optimizer.lr: 0.5"}],
            "left_out": [{"name": "powersgd", "why": "no matrices"}]}))
        self.addCleanup(tuning.unlink)
        self.open("--front", "--bandwidth", "10Mbit")
        self.assertIn("sent per worker", self.text("#verdict"))
        self.assertIn("AB-training", self.text("#verdict"))
        row = self.js("[...document.querySelectorAll('#tuning td')].map(cell => cell.textContent)")
        self.assertEqual(
            row, ["small_powersgd_muon", why, "2", "3", "4.5", "optimizer.lr: 0.5"])
        # No column is cut in a window of usual width, and no name is broken.
        for part in ("#tuning .wide", "#table"):
            width = f"document.querySelector({json.dumps(part)})"
            self.assertLessEqual(self.js(width + ".scrollWidth"), self.js(width + ".clientWidth"))
        self.assertEqual(self.js(
            "(() => { const name = document.createRange();"
            " name.selectNodeContents(document.querySelector('#tuning td'));"
            " return name.getClientRects().length; })()"), 1)
        # The question, on the link that was asked for here.
        self.assertRegex(self.text("#verdict li"), "^Within 900 s of training .*10 Mbit/s")
        self.assertNotIn("differ", self.text("#compared"))
        self.assertIn("method.name", self.text("#remarks"))
        self.assertIn("powersgd was left out: no matrices", self.text("#tuning"))
        self.assertIn("seconds over the link", self.texts_in("front"))
        self.assertIn("s over link", self.text("#table"))
        self.check_quiet()

    def test_the_table_is_that_of_the_program_and_sorts(self):
        self.open("--target", "0.3")
        markdown = subprocess.run(
            [PROGRAM, "report", self.runs, "--target", "0.3", "--format", "markdown"],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=True).stdout
        wanted = [[cell.strip().strip("*") for cell in line.strip("|\n").split("|")]
                  for line in markdown.splitlines() if not line.startswith("| ---")]
        rows = ("[...document.querySelectorAll('#table tr')]"
                ".map(row => [...row.cells].map(cell => cell.textContent.trim()))")
        shown = self.js(rows)
        self.assertEqual(shown, wanted)
        self.assertEqual(shown[0][:4], ["run", "method", "state", "seeds"])
        self.assertIn("stopped at step 24 of 24", [row[2] for row in shown])
        methods = {row[0]: row[1] for row in shown[1:]}
        self.assertEqual(methods[ODD_NAME], "local-sgd")
        self.assertEqual(sorted(methods.values()), ["ab"] * 4 + ["ddp", "local-sgd"])
        self.assertGreater(self.js("document.querySelectorAll('#table td.best').length"), 0)
        click = "document.querySelectorAll('#table th button')[4].click()"
        self.js(click)
        order = [row[4] for row in self.js(rows)[1:]]
        means = [float(text.split()[0]) for text in order if text != "-"]
        self.assertEqual(means, sorted(means, reverse=True))
        self.assertEqual(order[-1], "-")
        self.js(click)
        self.assertEqual(self.js("document.querySelector('#table th[aria-sort]').ariaSort"),
                         "ascending")
        self.assertEqual(self.js(rows)[-1][4], "-")
        remarks = self.text("#remarks")
        for word in ("late", "stopped at step", "broken", "no metrics.jsonl"):
            self.assertIn(word, remarks)
        self.check_quiet()

    def test_what_is_chosen_is_drawn(self):
        self.open()
        self.choose("#map-figure", "compression")
        self.assertIn("compression", self.text("#map-title"))
        self.choose("#map-x", "method.rank.rank")  # the same on both axes
        self.assertIn("choose other keys", self.text("#map-note"))
        self.assertEqual(self.js("document.querySelectorAll('#map svg').length"), 0)
        self.choose("#map-y", "method.group_size")
        self.assertGreater(self.js("document.querySelectorAll('#map svg').length"), 0)
        self.choose("select.run", "g2_r8_1")
        self.assertEqual(self.js("[...document.querySelectorAll('select.run')]"
                                 ".map(s => s.selectedOptions[0].text.split('/').pop())"),
                         ["g2_r8_1"] * 2)
        ranks = self.js("document.getElementById('ranks').data.map(line => line.y[0])")
        self.assertEqual(ranks, [8, 8, 8])
        spectrum = self.js("document.getElementById('spectra').data[0]")
        self.assertEqual(spectrum["x"], [1, 2, 3, 5, 8, 12, 18, 27])
        self.assertEqual(spectrum["y"][:3], [8, 4, 2.6667])
        self.js("document.getElementById('bytes-log').click()")
        self.assertIn(self.js("document.getElementById('bytes').layout.xaxis.type"),
                      ("log", "linear"))
        self.browser.prefer("dark")
        self.browser.wait_for(
            "document.getElementById('bytes').layout.paper_bgcolor === '#14181d'")
        self.browser.prefer("light")
        self.check_quiet()

    def test_what_there_is_nothing_of_is_left_out_with_a_sentence(self):
        self.open(runs=[self.runs / "ddp_1"], skipped=0)
        self.assertIn("one configuration", self.text("#map-note"))
        self.assertIn("factored layers", self.text("#ranks-note"))
        self.assertEqual(self.js("document.querySelectorAll('#map svg, #ranks svg').length"), 0)
        self.assertEqual(self.lines_in("bytes"), 1)
        self.check_quiet()

    def test_images_beside_a_text(self):
        folder = self.place / "texts"
        folder.mkdir()
        text = train_text(folder)
        self.open(runs=[self.runs / "g1_r4_1", text], skipped=0)
        self.assertEqual(self.text("#front-note")[:7], "Filled:")
        self.assertIn("accuracy, %", self.texts_in("front"))
        self.assertGreater(self.lines_in("ranks"), 0)
        self.assertEqual(self.js("document.getElementById('bytes').data.map(t => t.name)"), ["g1_r4"])
        self.check_quiet()
        self.open(runs=[text], skipped=0)
        self.assertIn("bits per byte", self.texts_in("front"))
        self.assertEqual(self.js("[...document.querySelectorAll('h2')].slice(0, 2).map(h => h.innerText)"),
                         ["The front: bits per byte against seconds, bytes and parameters",
                          "Bits per byte against bytes"])
        self.check_quiet()

    def test_nothing_covers_a_label(self):
        long = self.place / "long"
        shutil.copytree(self.runs / "ddp_1", long, dirs_exist_ok=True)
        config = long / "config.yaml"
        name = "a_name_of_many_words_that_is_too_long_for_one_line"
        config.write_text(config.read_text().replace("name: ddp_1\n", f"name: {name}\n"))
        rects = ("[...document.querySelectorAll({})].map(e => e.getBoundingClientRect())"
                 ".filter(r => r.width > 0).map(r => [r.left, r.top, r.right, r.bottom])").format

        def cover(a, b):
            return a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]

        try:
            for width in (1280, 800):
                self.browser.resize(width, 900)
                self.open(runs=[self.runs, long])
                for plot in ("front", "bytes", "seconds", "map", "spectra"):
                    with self.subTest(plot, width=width):
                        ticks = self.js(rects(f"'#{plot} g[class$=tick] text'"))
                        titles = self.js(rects(f"'#{plot} .g-xtitle text, #{plot} .g-ytitle text'"))
                        self.assertGreater(len(ticks), 3)
                        labels = ticks + titles
                        covered = [(a, b) for i, a in enumerate(labels) for b in labels[:i] if cover(a, b)]
                        self.assertEqual(covered, [])
                        buttons = self.js(rects(f"'#{plot} .modebar-group'"))
                        self.assertGreater(len(buttons), 0)
                        legend = self.js(rects(f"'#{plot} .legendtext'"))
                        self.assertEqual([(a, b) for a in legend for b in buttons if cover(a, b)], [])
                # A fast machine trains these runs within milliseconds: "5·10<sup>-3</sup> s".
                number = r"([\d.]+|([\d.]+·)?10<sup>-\d+</sup>)"
                for kind, unit in (("bytes", r"[kMG]?B"), ("seconds", "s")):
                    for texts in (self.js(f"document.getElementById('{kind}').layout.xaxis.ticktext"),
                                  self.js("document.getElementById('front').layout."
                                          f"xaxis{2 if kind == 'bytes' else ''}.ticktext")):
                        self.assertGreater(len(texts), 1)
                        for text in texts:
                            self.assertRegex(text, rf"^{number} {unit}$")
                # Zooming in to a tenth of the axis makes new ticks.
                self.js("(() => { const axis = document.getElementById('bytes').layout.xaxis;"
                        "const [a, b] = axis.range; return Plotly.relayout('bytes',"
                        "{'xaxis.range[0]': a, 'xaxis.range[1]': a + (b - a) / 10}).then(() => null); })()")
                self.browser.wait_for("(({range, type, tickvals}) => tickvals.length > 1 && tickvals.every("
                                      "v => (type === 'log' ? Math.log10(v) : v) <= range[1]))"
                                      "(document.getElementById('bytes').layout.xaxis)")
                # Each line of a name is at the right of the line that shows its color.
                left, right = self.js(f"""(() => {{
                    const cell = [...document.querySelectorAll('#table td')]
                        .find(cell => cell.textContent === {json.dumps(name)});
                    const range = document.createRange();
                    range.selectNodeContents(cell);
                    range.setStartAfter(cell.querySelector('.swatch'));
                    const lines = [...range.getClientRects()].filter(r => r.width > 0);
                    return [Math.min(...lines.map(r => r.left)),
                            cell.querySelector('.swatch').getBoundingClientRect().right];
                }})()""")
                self.assertGreater(left, right)
                self.check_quiet()
        finally:
            self.browser.resize(1280, 900)

    def test_it_fits_narrow_windows(self):
        self.browser.resize(800, 700)
        try:
            self.open()
            self.assertLessEqual(self.js("document.documentElement.scrollWidth"), 800)
            # The table's first column stays in sight, and its legends are above the plots.
            self.js("document.querySelector('.wide').scrollLeft = 10000")
            self.assertGreaterEqual(
                self.js("document.querySelector('#table td').getBoundingClientRect().left"), 0)
            for plot in ("bytes", "seconds"):
                legend, title = (self.js(
                    f"document.querySelector('#{plot} {part}').getBoundingClientRect().top")
                    for part in (".legend", ".xtitle"))
                self.assertLess(legend + 100, title)
            self.check_quiet()
        finally:
            self.browser.resize(1280, 900)


if __name__ == "__main__":
    if chromium.PROGRAM is None:
        print("skipped: no chromium-headless-shell (scripts/setup.sh --tests)")
        sys.exit(1 if os.environ.get("ABTRAIN_TESTS_COMPLETE") else 77)
    PROGRAM, *rest = sys.argv[1:]
    PICTURE = rest[0] if rest else None
    unittest.main(argv=sys.argv[:1])
