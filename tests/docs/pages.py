"""The pages of the documentation: their code blocks, links and anchors."""
import pathlib
import re
import shlex

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGES = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "slurm/README.md",
                                  "packaging/README.md",
                                  "notebooks/README.md")]
PAGES += sorted((ROOT / "docs").rglob("*.md"))


def blocks(page, language):
    """The code blocks of a page in one language."""
    return re.findall(rf"^```{language}\n(.*?)^```$", page.read_text(), re.DOTALL | re.MULTILINE)


def prose(page):
    """A page without its code blocks."""
    return re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)


def commands(page):
    """The words of each command in the shell blocks of a page."""
    for block in blocks(page, "sh"):
        for line in block.replace("\\\n", " ").splitlines():
            lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
            lexer.whitespace_split = True
            words, skip = [], False
            for word in [*lexer, ";"]:
                if set(word) <= set("();<>|&"):
                    skip = word in ("<", ">", ">>")  # the next word is a file
                    if words and not skip:
                        yield line.strip(), words
                    words = words if skip else []
                elif skip:
                    skip = False
                else:
                    words.append(word)


def anchors(page):
    """The anchors of a page's headings, as GitHub and the site make them."""
    found = set()
    for heading in re.findall(r"^#+ (.*)$", prose(page), re.MULTILINE):
        text = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading).replace("`", "")
        found.add(re.sub(r"[^\w\- ]", "", text.lower()).strip().replace(" ", "-"))
    return found


def links(page):
    """(path, anchor) of each link of a page into the repository."""
    for target in re.findall(r"\]\(([^)\s]+)\)", prose(page)):
        if "://" not in target:
            yield target.partition("#")[::2]
