"""The timing harness measures what happens: known sleeps, in turns, compared turn by turn."""

from __future__ import annotations

import io
import time

import pytest
from made_up import report, run
from tqdm import tqdm

from bench.play import take_turns
from bench.records import Run, Speed, Turn
from bench.summary import (
    bytes_to_move,
    exponents,
    first_fit_extra,
    per_round,
    preparation,
    ratios,
    shares,
    spread,
    whole_fit,
    yardsticks,
)
from bench.worker import WithdrawnError, timed

ROUNDS = (1, 5)


class Sleeper:
    """A player in this process: so long a fit, and so long a round."""

    def __init__(self, name: str, heard: list[str], preparing: float = 0.0, a_round: float = 0.0):
        self.name, self.heard = name, heard
        self.preparing, self.a_round = preparing, a_round
        self.judged = 0

    def warm_up(self) -> None:
        self.heard.append(f"warm {self.name}")

    def turn(self) -> Turn:
        self.heard.append(self.name)
        return Turn(*(timed(lambda r=r: self.fit(r))[0] for r in ROUNDS))

    def judge(self) -> None:
        self.judged += 1

    def fit(self, rounds: int) -> None:
        time.sleep(self.preparing + rounds * self.a_round)


class Quitter(Sleeper):
    def turn(self) -> Turn:
        if self.heard.count(self.name) == 1:
            raise WithdrawnError("had enough")
        return super().turn()


def measured(player: Sleeper, turns: int) -> Run:
    ((taken, reason),) = take_turns([player], turns)
    assert reason is None
    return run(*((turn.short, turn.long) for turn in taken), rounds=ROUNDS)


def test_the_slope_between_two_sleeps_is_the_cost_of_a_round_and_the_rest_is_preparation():
    found = measured(Sleeper("a", [], preparing=0.05, a_round=0.02), 5)
    assert spread(per_round(found)).median == pytest.approx(0.02, rel=0.2)
    assert spread(preparation(found)).median == pytest.approx(0.05, rel=0.3)
    assert spread(whole_fit(found)).median == pytest.approx(0.15, rel=0.2)


def test_a_sleep_four_times_as_long_has_a_ratio_of_four():
    players = [Sleeper("a", [], a_round=0.01), Sleeper("b", [], a_round=0.04)]
    taken = take_turns(players, 5)
    a, b = (run(*((t.short, t.long) for t in turns), rounds=ROUNDS) for turns, _ in taken)
    assert spread(ratios(per_round, b, a)).median == pytest.approx(4.0, rel=0.25)


def test_everyone_warms_up_first_and_then_takes_turns():
    heard: list[str] = []
    players = [Sleeper(name, heard) for name in "ABC"]
    take_turns(players, 2, before_turn=lambda: heard.append("|"))
    assert " ".join(heard) == "warm A warm B warm C | A B C | A B C"
    assert [player.judged for player in players] == [1, 1, 1]


def test_what_there_is_so_far_is_handed_on_after_every_step():
    seen = []
    take_turns(
        [Quitter("A", []), Sleeper("B", [])],
        3,
        after_step=lambda taken: seen.append([len(turns) for turns, _ in taken]),
    )
    assert seen == [[0, 0], [0, 0], [1, 0], [1, 1], [1, 1], [1, 2], [1, 3]]


def test_a_slow_spell_of_the_machine_leaves_ratios_as_they_are():
    slow_spell = 10.0
    a = run((1, 2), (1 * slow_spell, 2 * slow_spell), (1, 2))
    b = run((3, 6), (3 * slow_spell, 6 * slow_spell), (3, 6))
    assert ratios(whole_fit, b, a) == [3.0, 3.0, 3.0]
    assert ratios(per_round, b, a) == pytest.approx([3.0, 3.0, 3.0])


def test_ratios_are_formed_before_medians_are_taken():
    a, b = run((0.5, 1), (0.5, 2), (0.5, 3)), run((0.5, 2), (0.5, 8), (0.5, 9))
    assert spread(ratios(whole_fit, b, a)).median == 3.0  # of 2, 4 and 3
    assert ratios(whole_fit, run((1, 6)), a) == [6.0]  # the turns that both took


def test_who_is_slower_than_patience_at_first_takes_one_turn():
    heard: list[str] = []
    players = [Sleeper("A", heard), Sleeper("B", heard, preparing=0.2)]
    taken = take_turns(players, 3, patience=0.3)
    assert [len(turns) for turns, _ in taken] == [3, 1]
    assert heard[2:] == ["A", "B", "A", "A"]


def test_a_slow_spell_later_costs_nobody_a_turn():
    class Stumbler(Sleeper):
        def fit(self, rounds: int) -> None:
            if self.heard.count("A") == 2:
                time.sleep(0.2)

    ((turns, _),) = take_turns([Stumbler("A", [])], 4, patience=0.3)
    assert len(turns) == 4


def test_who_withdraws_keeps_the_turns_taken_and_stops_nobody():
    heard: list[str] = []
    players = [Quitter("A", heard), Sleeper("B", heard)]
    bar = tqdm(total=8, disable=False, file=io.StringIO())
    taken = take_turns(players, 3, bar=bar)
    assert [(len(turns), reason) for turns, reason in taken] == [(1, "had enough"), (3, None)]
    assert bar.n == 8


def test_the_first_fit_is_compared_with_later_ones_of_as_many_rounds():
    found = run((1, 3), (2, 4), (3, 5), first_fit=5.0)
    assert first_fit_extra(found) == 5.0 - 2.0
    assert first_fit_extra(run(first_fit=5.0)) is None


def test_a_power_law_has_its_exponent_in_every_turn():
    sizes = [10, 100, 1000]
    runs = [run((0, m**1.5 * 1e-6), (0, m**0.5 * 1e-3)) for m in sizes]
    assert exponents(whole_fit, sizes, runs) == pytest.approx([1.5, 0.5])


def test_turns_in_which_noise_made_a_cost_negative_have_no_exponent():
    runs = [run((1, 2), (2, 1)), run((1, 3), (1, 4))]
    assert len(exponents(per_round, [10, 20], runs)) == 1
    assert exponents(per_round, [10, 10], runs) == []


def test_the_yardstick_is_what_the_bytes_take_at_the_speed_of_the_same_turn():
    found = run((0, 10.0), (0, 40.0), rounds=(0, 10))  # 1 s and 4 s a round
    speed = Speed("cpu", 1, copied=24_000, copy=(1.0, 2.0), gathered=4_000, gather=(1.0, 0.5))
    assert bytes_to_move(found) == 1000 * 8 + 16 * 1000
    copied, gathered = yardsticks(report("limit", speeds=(speed,)), found)
    assert shares(copied, found) == pytest.approx([1.0, 0.5])
    assert shares(gathered, found) == pytest.approx([2.0, 0.25])
    elsewhere = run((0, 10.0), device="cuda:0")
    assert yardsticks(report("limit", speeds=(speed,)), elsewhere) == []


def test_timed_gives_the_result_with_its_seconds():
    seconds, result = timed(lambda: time.sleep(0.02) or "done")
    assert (result, 0.02 <= seconds < 2.0) == ("done", True)
