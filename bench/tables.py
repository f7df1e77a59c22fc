"""Tables from the JSON of a run, as Markdown that reads well in a terminal, too.

Nothing is measured here. What follows from the timings is computed turn by turn first; medians are
taken last. A cell is a median; in brackets behind it are the least and the greatest of the turns.
"""

from __future__ import annotations

import math
import statistics
from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any

from bench.accuracy_tables import pages as accuracy_pages
from bench.cluster import LOCAL
from bench.contenders import is_ours
from bench.markdown import NOTHING, markdown, number
from bench.records import Report, Result
from bench.timing import AXES

Quantity = Callable[[Result], list[float]]
"""One value a turn."""
Column = tuple[str, Callable[[Result], str]]
"""A title, and what a result has below it."""


def whole_fit(result: Result) -> list[float]:
    """Seconds of the long fit, from the arrays to the model."""
    return list(result.values.get("long", ()))


def per_round(result: Result) -> list[float]:
    """Seconds that one more round costs: the slope between the short and the long fit."""
    return slope(result, "short", "long")


def slope(result: Result, short: str, long: str) -> list[float]:
    """By how much something grows with a round, from a short fit to a long one, in each turn."""
    if long not in result.values:
        return []
    rounds = result.rounds[1] - result.rounds[0]
    pairs = zip(result.values[short], result.values[long], strict=True)
    return [(b - a) / rounds for a, b in pairs]


def preparation(result: Result) -> list[float]:
    """Seconds of a fit that do not grow with the rounds: where that line meets zero rounds."""
    pairs = zip(result.values.get("short", ()), per_round(result), strict=True)
    return [short - result.rounds[0] * cost for short, cost in pairs]


def ratios(of: Quantity, result: Result, base: Result) -> list[float]:
    """A result's values divided by the base's, in the turns that both took."""
    return [a / b for a, b in zip(of(result), of(base), strict=False) if b > 0]


def measured(results: Sequence[Result]) -> list[Result]:
    """Those that were measured to the end."""
    return [result for result in results if result.reason is None]


def fastest_peer(of: Quantity, results: Sequence[Result]) -> Result | None:
    """The contender with the least median that is not gpustump, if there is one.

    A peer whose median noise made negative does not count, as no ratio could be formed.
    """
    medians = [
        (statistics.median(of(result)), index)
        for index, result in enumerate(results)
        if result.reason is None and not is_ours(result.contender)
    ]
    found = min((each for each in medians if each[0] > 0), default=None)
    return results[found[1]] if found else None


def exponents(of: Quantity, sizes: Sequence[float], results: Sequence[Result]) -> list[float]:
    """The exponent of a power law through the results, in each turn that all took.

    A straight line is put through the logarithms by least squares. Turns in which noise made a
    time negative have none.
    """
    x = [math.log(size) for size in sizes]
    return [
        statistics.linear_regression(x, [math.log(value) for value in values]).slope
        for values in zip(*map(of, results), strict=False)
        if len(set(sizes)) > 1 and min(values) > 0
    ]


def disagreement(results: Sequence[Result]) -> str | None:
    """A message if two contenders of the same job made different models; None if not."""
    found: dict[tuple[object, ...], set[tuple[str, str]]] = defaultdict(set)
    for result in results:
        models = [result.facts["digest"]] if "digest" in result.facts else []
        if is_ours(result.contender):
            models += result.values.get("model", ())
        given = {name: value for name, value in result.parameters.items() if name != "device"}
        job = result.data_sha256, result.rounds, result.estimator, repr(given)
        found[job] |= {(str(model), result.contender) for model in models}
    for models_of_job in found.values():
        if len({model for model, _ in models_of_job}) > 1:
            pairs = "; ".join(f"{who}: {model[:12]}" for model, who in sorted(models_of_job))
            return f"different models were trained on the same data: {pairs}"
    return None


# ---- pages ----


def page(report: Report, *, only_means: bool = False) -> str:
    """All that a report says, as Markdown.

    With `only_means` a run of `accuracy` is cut down to its means, a panel to its shares.
    """
    if report.benchmark == "accuracy":
        parts = accuracy_pages(report, only_means=only_means)
    else:
        parts = _shares(report) if report.benchmark == "panel" else []
        for results in {} if only_means else report.cases.values():
            parts.append(_growth(results) if report.benchmark == "growth" else _case(results))
            reasons = {who.contender: who.reason for who in results if who.reason is not None}
            listed = "; ".join(f"{who} ({reason[:120]})" for who, reason in reasons.items())
            parts += [f"Not measured: {listed}."] if listed else []
    return "\n\n".join([*parts, *([] if only_means else [origin(report)])])


def ranged(values: Sequence[float], scale: float = 1.0) -> str:
    """A median with the least and the greatest; or that there was only one value."""
    if len(values) < 2:
        return f"{number(values[0] * scale)} (once)" if values else NOTHING
    low, high = (number(end(values) * scale) for end in (min, max))
    return f"{middle(values, scale)} ({low}..{high})"


def middle(values: Sequence[float], scale: float = 1.0) -> str:
    """A median alone."""
    return number(statistics.median(values) * scale) if values else NOTHING


def _case(results: Sequence[Result]) -> str:
    """Who took turns with each other: a row for each, and the columns that say something."""
    base = next(iter(measured(results)), results[0])  # what ratios compare with
    cluster = "workers" in base.facts

    def times(of: Quantity) -> Column:
        bases = {own.contender: own for own in reversed(measured(results)) if cluster}
        cell = lambda own: middle(ratios(of, own, bases.get(own.contender, base)))  # noqa: E731
        return f"x {_where(base)}" if cluster else f"x {base.contender}", cell

    def fact(title: str, name: str, shown: Callable[[Any], str]) -> Column:
        return title, lambda own: shown(own.facts[name]) if name in own.facts else NOTHING

    def model(own: Result) -> str:
        found = own.values.get("model") or [own.facts.get("digest", NOTHING)]
        differ = len(set(found)) > 1
        return f"{len(set(found))} in {len(found)} turns" if differ else str(found[0])[:12]

    columns: list[Column] = [
        ("workers", lambda own: _where(own) if cluster else NOTHING),
        ("threads each", lambda own: str(own.threads) if cluster else NOTHING),
        fact("exact", "exact", lambda exact: "yes" if exact else "no"),
        ("ms per round", lambda own: ranged(per_round(own), 1e3)),
        ("ns per element", _per_element),
        times(per_round),
        ("prepare, s", lambda own: ranged(preparation(own))),
        (f"{base.rounds[1]} rounds, s", lambda own: ranged(whole_fit(own))),
        times(whole_fit),
        ("predict, ms", lambda own: ranged(own.values.get("predict", ()), 1e3)),
        fact("load, s", "load", number),
        ("first fit, +s", _first_fit),
        fact("memory, MB", "host_memory", lambda n_bytes: number(n_bytes / 1e6)),
        *(
            fact(title, name, "{:.4f}".format)
            for title, name in (("accuracy", "accuracy"), ("AUC", "auc"), ("R2", "r2"))
        ),
        ("messages a round", lambda own: middle(messages_per_round(own))),
        ("bytes a worker and round", lambda own: middle(own.values.get("round_bytes_long", ()))),
        ("on the loopback", _loopback),
        ("digest", model),
    ]
    found = measured(results)
    cells = [(title, [cell(own) for own in found]) for title, cell in columns]
    kept = [("", [own.contender for own in found])]
    kept += [(title, column) for title, column in cells if set(column) - {NOTHING}]
    rows = zip(*(column for _, column in kept), strict=True)
    heading = f"**{base.data}, {base.samples} x {base.features}**, {_held(results)}"
    return f"{heading}\n\n{markdown([title for title, _ in kept], [*rows])}"


def _per_element(result: Result) -> str:
    return middle(per_round(result), 1e9 / (result.samples * result.features))


def _first_fit(result: Result) -> str:
    """What a process's first fit takes beyond a later one: what it compiles, mostly."""
    if "first_fit" not in result.facts:
        return NOTHING
    return number(result.facts["first_fit"] - statistics.median(result.values["short"]))


def _where(result: Result) -> str:
    return "local" if result.facts["workers"] == LOCAL else str(result.facts["workers"])


def messages_per_round(result: Result) -> list[float]:
    """Messages to each worker that one more round takes, of each turn; none if not counted."""
    found = slope(result, "messages_short", "messages_long")
    return [each / result.facts["workers"] for each in found]


def _loopback(result: Result) -> str:
    """Bytes between processes that one more round takes, for each worker."""
    workers = result.facts.get("workers", LOCAL)
    passed = slope(result, "passed_short", "passed_long") if workers != LOCAL else []
    return middle(passed, 1 / (workers or 1))


def _shares(report: Report) -> list[str]:
    """Of the panel: what share of the fastest peer's time gpustump takes, case by case."""
    names = dict.fromkeys(own.contender for own in report.results if is_ours(own.contender))
    parts = []
    for of, what, unit, scale in (
        (per_round, "A round", "its ms", 1e3),
        (whole_fit, "A whole fit", "its s", 1.0),
    ):
        rows = []
        for results in report.cases.values():
            first, peer = results[0], fastest_peer(of, results)
            rounds = "{} to {}".format(*first.rounds) if of is per_round else str(first.rounds[1])
            found = {own.contender: ratios(of, own, peer) for own in measured(results) if peer}
            its = [peer.contender, middle(of(peer), scale)] if peer else [NOTHING, NOTHING]
            size = f"{first.samples} x {first.features}"
            shares = [ranged(found.get(name, [])) for name in names]
            rows.append([first.data, size, rounds, *its, *shares])
        table = markdown(["data", "size", "rounds", "fastest peer", unit, *names], rows)
        parts.append(f"**{what}, as a share of the fastest peer's**\n\n{table}")
    return parts


def _growth(results: Sequence[Result]) -> str:
    """A row for each contender and size, and the exponents of a contender below its sizes."""
    axis, rows = results[0].case, []
    for name in dict.fromkeys(own.contender for own in measured(results)):
        runs = [own for own in measured(results) if own.contender == name]
        sizes = [own.rounds[1] if axis == "rounds" else getattr(own, axis) for own in runs]
        for own, size in zip(runs, sizes, strict=True):
            cells = (ranged(per_round(own), 1e3), _per_element(own), middle(preparation(own), 1e3))
            rows.append([name, str(size), *cells])
        if len(runs) > 1:
            a_round, rest = (exponents(of, sizes, runs) for of in (per_round, preparation))
            rows.append([name, "exponent", _exponent(a_round), "", _exponent(rest)])
    heading = f"**Over {axis}**: {results[0].data}, {_held(results)}"
    columns = ["", axis, "ms per round", "ns per element", "prepare, ms"]
    return f"{heading}\n\n{markdown(columns, rows)}"


def _exponent(slopes: Sequence[float]) -> str:
    if not slopes:
        return NOTHING
    return f"{statistics.median(slopes):z.2f} ({min(slopes):z.2f}..{max(slopes):z.2f})"


def _held(results: Sequence[Result]) -> str:
    """The numbers that were the same in all results, as text."""
    parts = []
    for name in ("samples", "features", "threads"):
        found = {getattr(own, name) for own in results}
        if len(found) == 1 and (name == "threads" or results[0].case in AXES):
            parts.append(f"{found.pop()} {name}")
    if len({own.rounds for own in results}) == 1:
        parts.append("{} and {} rounds".format(*results[0].rounds))
    return ", ".join([*parts, f"turns: {max(own.n_turns for own in results)}"])


def origin(report: Report) -> str:
    """Where, when and how a run was measured."""
    machine = report.machine
    versions = ", ".join(f"{name} {version}" for name, version in machine.versions.items())
    memory = f", {machine.memory / 2**30:.0f} GiB" if machine.memory else ""
    commit = f" at {machine.commit}" if machine.commit else ""
    return (
        f"{machine.processor}, cores: {machine.cores}{memory}, "
        f"{'; '.join(machine.gpus) or 'no GPU'}, {machine.system}. "
        f"Python {machine.python}, {versions}. "
        f"gpustump {machine.gpustump}{commit}, {report.started[:10]}: `{report.command}`"
    )
