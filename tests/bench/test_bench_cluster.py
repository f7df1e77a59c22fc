"""`python -m bench cluster`: one model on every cluster, its costs, and what is made of them."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from benchmark_runs import whole_run
from made_up import machine

from bench import cluster_records, records
from bench.__main__ import _parser, main
from bench.benchmarks import UsageError
from bench.cluster import disagreement, measure
from bench.cluster_contenders import CONTENDERS
from bench.cluster_places import cut, dealt
from bench.cluster_records import Case, Cluster, ClusterRun, ClusterTurn, RoundTrips, Said
from bench.cluster_tables import page
from bench.contenders import is_ours
from bench.larger_clusters import Costs, Latency, costs, messages_per_round
from bench.records import FormatError
from bench.report import page_of

TINY = ["--data", "synthetic", "--sizes", "600x4", "--rounds", "2", "6", "--turns", "1"]
MADE = ("a" * 64, "b" * 64)


def run(contender: str, workers: int, *turns: ClusterTurn, **others: Any) -> ClusterRun:
    fields = {"parameters": {}, "threads": 1, "rounds": (10, 110), "first_fit": 1.0}
    return ClusterRun(contender=contender, workers=workers, turns=turns, **{**fields, **others})


def turn(short: float, long: float, *made: str, said: Said | None = None) -> ClusterTurn:
    return ClusterTurn(short, long, (1000, 3000), *(made or MADE), said)


def case(*runs: ClusterRun, trips: tuple[RoundTrips, ...] = ()) -> Case:
    return Case("drawn", "d" * 64, 1000, 8, (400, 600), runs, trips)


def report(*cases: Case) -> Cluster:
    started = "2026-01-01T00:00:00Z"
    return Cluster("cluster", "python -m bench cluster", started, 1.0, machine(), 2, cases)


SAID = Said((40, 440), 50_000.0)
OURS = (run("gpustump", 2, turn(0.2, 1.2, said=SAID)), run("gpustump", 0, turn(0.1, 0.9)))
TRIPS = (RoundTrips(1, (0.001, 0.002, 0.003)), RoundTrips(2, (0.003,)))


@whole_run
def test_a_run_compares_models_and_counts_bytes_on_two_workers_and_on_none(tmp_path, capsys):
    pytest.importorskip("distributed")
    target = tmp_path / "cluster.json"
    chosen = ["--only", "gpustump", "LightGBM", "--workers", "2", "--messages", "3"]
    assert main(["cluster", *TINY, *chosen, "-o", str(target)]) == 0
    found = cluster_records.read(target)
    assert capsys.readouterr().out == page(found) + "\n"
    (only,) = found.cases
    assert sum(only.chunks) == only.samples == 600
    assert [(trips.workers, len(trips.seconds)) for trips in only.trips] == [(2, 3)]
    ours = [each for each in only.runs if is_ours(each.contender)]
    assert [each.workers for each in ours] == [2, 0]
    assert len({each.turns[0].model for each in ours}) == 1
    assert len({each.turns[0].predictions for each in ours}) == 1
    assert messages_per_round(ours[0])[0] >= 1
    assert ours[0].turns[0].said.round_bytes > 0
    for peer in (each for each in only.runs if each not in ours):
        assert peer.reason in (None, "lightgbm is not installed")


def test_show_and_report_print_the_tables(tmp_path, capsys):
    found = report(case(*OURS, trips=TRIPS))
    records.write(found, tmp_path / "cluster.json")
    assert main(["show", str(tmp_path / "cluster.json")]) == 0
    assert capsys.readouterr().out == page(found) + "\n"
    assert main(["report", str(tmp_path)]) == 0
    text = (tmp_path / "report.md").read_text()
    assert "## On the workers of a cluster: cluster" in text
    assert page_of(tmp_path / "cluster.json") in text


def test_costs_are_those_of_one_more_round():
    text = page(report(case(*OURS)))
    row = next(line for line in text.splitlines() if line.startswith("| gpustump"))
    assert [cell.strip() for cell in row.split("|")[1:-1]] == [
        *("gpustump", "2", "1", "10.0 (once)", "1.00", "0.100 (once)", "1.20 (once)"),
        *("2.00", "50000", "10.0"),
    ]


def test_peers_that_differ_are_shown_and_ours_fail_the_run():
    other = ("c" * 64, "b" * 64)
    peers = case(run("XGBoost hist", 1, turn(1, 2)), run("XGBoost hist", 2, turn(1, 2, *other)))
    assert disagreement([peers]) is None
    (row,) = (line for line in page(report(peers)).splitlines() if "aaaaaaaaaaaa" in line)
    cells = [cell.strip() for cell in row.split("|")[1:-1]]
    assert cells == ["XGBoost hist", "no", "yes", "a" * 12, "c" * 12]
    ours = case(*OURS, run("gpustump", 4, turn(1, 2), turn(1, 2, *other)))
    assert disagreement([peers, ours]).endswith("of drawn: aaaaaaaaaaaa, cccccccccccc")
    assert "2 in 2 turns" in page(report(ours))


def test_who_was_not_measured_is_named_with_the_reason():
    absent = run("LightGBM", 2, reason="lightgbm is not installed", first_fit=None)
    text = page(report(case(*OURS, absent)))
    assert "Not measured: LightGBM, 2 (lightgbm is not installed)." in text
    assert text.count("LightGBM") == 1


def test_a_run_needs_turns_or_a_reason(tmp_path):
    records.write(report(case(run("gpustump", 1))), tmp_path / "x.json")
    with pytest.raises(FormatError, match="gpustump on 1 workers has neither"):
        cluster_records.read(tmp_path / "x.json")


def test_larger_clusters_are_calculated_by_the_formula():
    found = costs(case(*OURS, trips=TRIPS), "gpustump")
    assert found.compute == pytest.approx(0.008)
    assert found.messages == 2
    assert found.latency == pytest.approx((0.001, 0.001))
    share, waiting, sending = 0.008 / 8, 2 * 0.009, 50_000 * 8 * 8 / 10e9
    assert found.same_table(8, 10) == pytest.approx(share + waiting + sending)
    assert found.same_share(8, 10) == pytest.approx(0.008 + waiting + sending)
    assert "a calculation from measured latency and bytes" in page(report(case(*OURS, trips=TRIPS)))


def test_nothing_is_calculated_of_what_was_not_measured():
    assert costs(case(*OURS), "gpustump") is None
    assert costs(case(OURS[0], trips=TRIPS), "gpustump") is None
    assert "calculation" not in page(report(case(*OURS)))


def test_latency_is_a_line_that_noise_cannot_make_negative():
    assert Latency.through(TRIPS[:1]) == (0.002, 0.0)
    falling = (RoundTrips(1, (0.003,)), RoundTrips(2, (0.001,)))
    assert Latency.through(falling).each == 0.0
    assert Costs(0.0, 1.0, 0.0, Latency(1.0, 0.5)).waiting(4) == 3.0


def test_chunks_are_uneven_and_the_workers_shares_are_even():
    chunks = cut(1_000_000)
    assert sum(chunks) == 1_000_000
    assert max(chunks) >= 3.9 * min(chunks)
    assert min(cut(300)) > 0
    for workers in ("a", "ab", "abcd"):
        held = dict.fromkeys(workers, 0)
        for rows, home in zip(chunks, dealt(chunks, workers), strict=True):
            held[home] += rows
        assert max(held.values()) < 1.01 * min(held.values())


def test_contenders_on_dask_are_those_in_one_process():
    names = [each.name for each in CONTENDERS]
    assert names == [
        *("gpustump", "gpustump real", "gpustump LogitBoost", "XGBoost hist", "LightGBM"),
    ]
    assert [each.estimator for each in CONTENDERS] == [
        *("AdaBoostClassifier", "AdaBoostClassifier", "LogitBoostClassifier"),
        *("DaskXGBClassifier", "DaskLGBMClassifier"),
    ]
    assert dataclasses.asdict(CONTENDERS[1])["parameters"] == {"votes": "real"}


@pytest.mark.parametrize(
    "wrong",
    [["--rounds", "5", "5"], ["--threads", "100000"], ["--data", "noise", "--sizes", "300x3"]],
)
def test_options_that_contradict_each_other_are_refused_before_anything_starts(wrong, capsys):
    assert main(["cluster", *wrong]) == 2
    assert "error" in capsys.readouterr().err


@pytest.mark.parametrize("size", ["10", "299x4", "400x2", "ax4"])
def test_a_size_is_samples_and_features(size):
    with pytest.raises(SystemExit):
        _parser().parse_args(["cluster", "--sizes", size])


def test_dask_is_needed(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(UsageError, match="dask is not installed"):
        measure(_parser().parse_args(["cluster", *TINY]), lambda cases: None)
