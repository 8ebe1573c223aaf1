"""How Sphinx makes a book of docs/ and of the root's texts: `make book`. docs/index.md lists the chapters."""

import re
import shutil

from docutils import nodes
from sphinx.util import logging

project = html_title = "Fairlab"
extensions = ["myst_parser"]
include_patterns = ["*.md", "docs/**.md"]
# Folders that need not be walked.
exclude_patterns = [".*", "crates", "fuzz", "out", "target", "web"]
root_doc = "docs/index"

# Anchors are those that GitHub makes, and quotes stay as they are written.
myst_heading_anchors = 6
smartquotes = False
highlight_language = "text"

html_theme = "furo"
html_copy_source = False
html_show_copyright = False
html_use_index = False


def write_all_after_a_change(app, env, added, changed, removed):
    """Sphinx looks at links while it writes a page, and would write only those that changed, not those that lead there."""
    if added or changed or removed:
        shutil.rmtree(app.outdir, ignore_errors=True)
        app.connect("env-updated", lambda app, env: env.all_docs)
    return []


def refuse_what_is_not_followed(app, doctree):
    """Sphinx follows no link in HTML, and loads pictures from anywhere."""
    warn = logging.getLogger(__name__).warning
    for node in doctree.findall(nodes.raw):
        if re.search(r"\b(href|src|url)\b", node.astext()):
            warn("HTML with a link: write the link in Markdown", location=node)
    for node in doctree.findall(nodes.image):
        if "://" in node["uri"]:
            warn("a picture from a network: put it beside the page", location=node)


def setup(app):
    app.connect("env-get-outdated", write_all_after_a_change)
    app.connect("doctree-read", refuse_what_is_not_followed)
