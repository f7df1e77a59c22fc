"""
The rooms of the code
=====================

The code is divided into packages, its *rooms*, and imports go one way only. This page is for
you if you open the code for the first time. At the end you will know what each room holds, which
rooms it may use, and which path a table takes through them. The drawings of rooms are made from
what the tests check, so they are not out of date.
"""

# %%
# The layers
# ----------
#
# `pyproject.toml` lists the rooms as layers, from the top down. `import-linter` runs with the tests
# and fails if a room imports from one above it, or from one beside it. Here is its list:

import ast
import itertools
import tomllib
from pathlib import Path

import matplotlib.pyplot as plt
from sklearn.datasets import load_breast_cancer

from gpustump import boost

folders = [Path.cwd(), *Path.cwd().parents]  # one of them is the repository
root = next(folder for folder in folders if (folder / "gpustump").is_dir())
settings = tomllib.loads((root / "pyproject.toml").read_text())
contracts = settings["tool"]["importlinter"]["contracts"]
for contract in contracts:
    print(contract["name"])
rooms, engines, *_ = (
    own["layers"] for own in contracts if own["type"] == "layers"
)

# %%
# This is what the rooms hold. Rooms on one line do not import each other.

HOLDS = {
    "__main__": "starts the command line",
    "cli": "the command line: files, tables, summaries",
    "plots": "pictures",
    "theory": "bounds, margins, loss curves",
    "dask": "Dask's conventions: collections, workers, messages",
    "estimators": "scikit-learn's conventions",
    "boosting": "votes, rounds, early stopping, checkpoints",
    "exports": "the model as ONNX, C, SQL",
    "page": "the model as a page to explore",
    "model": "the finished model: scores, step tables, its file",
    "engines": "the search for the best cut",
    "learners": "stumps, splits, intervals, as values",
    "data": "what the caller gave, checked",
    "arrays": "array libraries and devices",
}


# sphinx_gallery_start_ignore
def draw_layers(layers, ax, holds, separator):
    """One line of boxes for each layer, the first on top."""
    for row, layer in enumerate(layers):
        names = [name.strip() for name in layer.split(separator)]
        width = 1 / len(names)
        for column, name in enumerate(names):
            box = plt.Rectangle(
                (column * width + 0.005, -row + 0.08),
                width - 0.01,
                0.84,
                facecolor="#dbe9f6",
                edgecolor="#1f5a96",
            )
            ax.add_patch(box)
            text = f"{name}\n{holds[name]}" if name in holds else name
            where = (column + 0.5) * width, -row + 0.5
            ax.text(*where, text, ha="center", va="center", fontsize=9)
    ax.set(xlim=(0, 1), ylim=(1 - len(layers), 1))
    ax.axis("off")
    ax.annotate(
        "",
        (1.03, 1 - len(layers)),
        (1.03, 1),
        arrowprops={"arrowstyle": "->"},
        annotation_clip=False,
    )
    middle = 1 - len(layers) / 2
    ax.text(1.05, middle, "may use", rotation=270, va="center")


# sphinx_gallery_end_ignore

known = {name.strip() for layer in rooms for name in layer.split("|")}
assert known == set(HOLDS)  # a new room needs a line here

fig, ax = plt.subplots(figsize=(7, 8), layout="constrained")
draw_layers(rooms, ax, HOLDS, "|")
plt.show()

# %%
# What users meet (`cli`, `plots`, `estimators`, `dask`) lies above what decides a model, so it can
# change without changing any model. `model` does not import training. `engines` import nothing of
# scikit-learn's conventions, files or pictures.
#
# Do the packages keep to the layers? Here are the imports between rooms, counted in the source. The
# one upwards is in a method of models, `to_html`, which makes a page:

level = {
    name.strip(): row
    for row, layer in enumerate(rooms)
    for name in layer.split("|")
}
upwards, downwards = [], 0
for file in sorted((root / "gpustump").rglob("*.py")):
    room = file.relative_to(root / "gpustump").parts[0].removesuffix(".py")
    for node in ast.walk(ast.parse(file.read_text())):
        if room in level and isinstance(node, ast.ImportFrom) and node.module:
            package, _, rest = node.module.partition(".")
            other = rest.partition(".")[0] or node.names[0].name
            if package == "gpustump" and other in level and other != room:
                downwards += level[other] > level[room]
                if level[other] <= level[room]:
                    upwards.append((room, other))
print(downwards, "imports downwards,", len(upwards), "upwards or beside")
assert upwards == [
    ("model", "page")
]  # in a method, `to_html`, that makes the page

# %%
# Inside `engines`
# ----------------
#
# The engines find the best cut: the best feature and threshold. `reference`, `cpu` and `cuda` do
# not import each other. All import `contract`, which defines what an engine must provide, and
# `gain`, which defines the score of a cut. `route` decides which engine trains a table. `cluster`
# is the search of `cpu` for rows in many places. In the other lines of the drawing, files that
# stand side by side may use each other.

SEARCH = {
    "cluster": "rows in many places",
    "reference": "the array API",
    "cpu": "compiled kernels",
    "cuda": "CUDA kernels",
    "monotone": "which cuts a constraint allows",
    "contract": "what an engine answers, and the order of ties",
}
fig, ax = plt.subplots(figsize=(7, 4.6), layout="constrained")
draw_layers([layer.replace(":", "|") for layer in engines], ax, SEARCH, "|")
for text in ax.texts:
    if "_" in text.get_text():
        text.set_text(text.get_text().replace("_", "_\n", 1))
plt.show()

# %%
# The path of a table
# -------------------
#
# The second drawing is made by hand, after :doc:`/design`. Each box is a step, with the place in
# the code where it is taken.

STEPS = [
    (0, 2, "X, y, weights", "any array library, a frame"),
    (1, 2, "checked", "data"),
    (2, 2, "a Route", "engines.route"),
    (3, 2, "a PreparedTable", "an engine: sorts or codes"),
    (3, 1, "a State", "integers, scores so far"),
    (2, 1, "the best Cut", "State.best_cut()"),
    (1, 1, "votes, factors", "boosting: Votes"),
    (0, 1, "a Round", "boosting: the record"),
    (0, 0, "a StumpEnsemble", "model"),
    (1, 0, "step functions", "model: by feature"),
    (2, 0, "predict, explain", "model"),
    (3, 0, "file, C, SQL, ...", "model, exports"),
]


# sphinx_gallery_start_ignore
def arrow(ax, start, end, style="-", bend=0.0):
    """An arrow between two places."""
    ax.annotate(
        "",
        end,
        start,
        arrowprops={
            "arrowstyle": "->",
            "linestyle": style,
            "connectionstyle": f"arc3,rad={bend}",
        },
    )


fig, ax = plt.subplots(figsize=(7, 4.2), layout="constrained")
for column, row, what, where in STEPS:
    corner = (column - 0.4, row - 0.25)
    box = plt.Rectangle(
        corner, 0.8, 0.5, facecolor="#dbe9f6", edgecolor="#1f5a96"
    )
    ax.add_patch(box)
    ax.text(column, row + 0.08, what, ha="center", va="center")
    ax.text(column, row - 0.12, where, ha="center", va="center", fontsize=7)
for (x0, y0, *_), (x1, y1, *_) in itertools.pairwise(STEPS):
    if y0 == y1:
        side = 0.4 if x1 > x0 else -0.4
        arrow(ax, (x0 + side, y0), (x1 - side, y1))
    else:
        arrow(ax, (x0, y0 - 0.25), (x1, y1 + 0.25))
arrow(ax, (1, 1.25), (3, 1.25), "--", bend=-0.3)
ax.text(2, 1.36, "State.advance(step): next round", ha="center", fontsize=8)
ax.set(xlim=(-0.5, 3.5), ylim=(-0.35, 2.35))
ax.axis("off")
# sphinx_gallery_end_ignore
plt.show()

# %%
# 1. An estimator (or `boost`, or `fit_stump`) has the table, the labels and the weights checked.
#    They stay in the caller's array library.
# 2. The route is decided once, from the device that was asked for, the library, the size, the
#    memory limit, and what is installed. `classifier.route_` holds it, with its reason in words.
# 3. The engine prepares what depends on the values alone: sorted features, or codes that number
#    their bins.
# 4. For each run (one for two classes) `Boosting` starts a state on the prepared table: integers
#    for the weights, and the scores so far.
# 5. In a round, the votes object asks the state for the best cut. It decides what the cut's regions
#    vote, and by which factors the weights change. The state makes that step. A record says what
#    happened.
# 6. The rounds become a :class:`gpustump.StumpEnsemble`. Its step functions, one for each feature,
#    are what predicts, what is drawn, and what is exported.
#
# You can watch all of it from outside:

X, y = load_breast_cancer(return_X_y=True)
rounds = boost(X, 2 * y - 1, n_rounds=3)
for record in rounds:
    print(record.number, record.stump, f"vote {record.vote:.3f}")
print(rounds.model.shape_function(record.stump.feature).values)

# %%
# How to write an engine of your own is in :doc:`/auto/how/an_engine`. Why all engines make the same
# model is in :doc:`/auto/how/exactness`.
