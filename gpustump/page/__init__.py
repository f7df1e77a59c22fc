"""The page of a model: one file of HTML in which people explore the model, and try rows on it.

    payload     the model and some rows as data
    document    the file, and what a notebook shows
    page.html, page.css
    model.js    the model again: scores of rows, edits
    text.js, draw.js, shapes.js, overview.js, explore.js, whatif.js, page.js

The scripts are plain JavaScript without any library. They are put into the page as they are, one
after the other in one scope, so nothing has to be built.
"""

from gpustump.page.document import MARK, Page, page

__all__ = ["MARK", "Page", "page"]
