"""Who takes part in `python -m bench cluster`, in a process that leads its fits.

gpustump with each kind of votes, XGBoost and LightGBM through their estimators for Dask, and
gpustump in one process. Each is timed as its users call it, from Dask arrays to the model.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib
import json
import time
import uuid
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import psutil

from bench.cluster_places import Place, Rows
from bench.contenders import VOTES, Contender, is_ours, rounds_made
from bench.servant import WithdrawnError
from bench.worker import timed

_SETTLE = 0.1  # seconds before a fit, for what the last one left behind


def _on_dask(local: Contender) -> Contender:
    """One of gpustump's contenders on a cluster."""
    given = {name: value for name, value in local.parameters.items() if name != "device"}
    needs = ("gpustump", "gpustump.dask", "dask", "distributed", "numba")
    return replace(local, needs=needs, parameters=given)


OURS = tuple(map(_on_dask, VOTES))

CONTENDERS = (
    *OURS,
    Contender(
        "XGBoost hist",
        ("xgboost.dask", "dask", "distributed"),
        "DaskXGBClassifier",
        {"max_depth": 1, "tree_method": "hist"},
        exact=False,
    ),
    Contender(
        "LightGBM",
        ("lightgbm", "dask", "distributed"),
        "DaskLGBMClassifier",
        {"num_leaves": 2, "verbosity": -1},
        exact=False,
    ),
)
"""On a cluster. `VOTES` are those in one process."""


class Fit(NamedTuple):
    """What one fit took."""

    seconds: float
    passed: int
    """Bytes through the loopback, of all processes."""
    messages: int | None
    round_bytes: float | None


class Made(NamedTuple):
    """What the last fit made: hashes of the model and of what it predicts."""

    model: str
    predictions: str


class Leader:
    """The orders to a process that leads the fits of one contender, on one place after the other.

    Parameters
    ----------
    contender : Contender
    threads : int
        Of a fit in this process alone.
    """

    def __init__(self, contender: Contender, threads: int) -> None:
        self._contender, self._threads = contender, threads
        self._open: dict[Place, Rows] = {}
        self._ending = contextlib.ExitStack()
        self._model: Any = None
        self._rows: Rows | None = None

    def load(self) -> None:
        """Import all that the contender needs."""
        self._contender.load()
        for module in self._contender.large:  # small tables would not wait for them to be loaded
            importlib.import_module(module)

    def fit(self, place: Place, rounds: int) -> Fit:
        """A whole fit on the rows of a place."""
        rows = self._rows = self._at(place)
        self._model = None  # its memory is free before the next fit
        time.sleep(_SETTLE)
        before = _through_the_loopback()
        seconds, self._model = timed(lambda: self._fitted(rounds, rows))
        passed = max(0, _through_the_loopback() - before)
        made = rounds_made(self._model)
        if made != rounds:
            raise WithdrawnError(f"it stopped after {made} of {rounds} rounds")
        use = getattr(self._model, "cluster_", None)
        return Fit(seconds, passed, *((use.n_messages, use.round_bytes) if use else (None, None)))

    def judge(self) -> Made:
        """What the last fit made."""
        assert self._rows is not None
        held_out = self._rows.data.X_test
        return Made(model_sha256(self._model), _sha256(probabilities(self._model, held_out)))

    def converse(self, place: Place, times: int) -> list[float]:
        """Seconds of messages without content to all workers, one after the other."""
        from gpustump.dask.conversation import Conversation, Message

        client, name = self._at(place).client, f"gpustump-{uuid.uuid4().hex[:12]}"
        client.run(_open_host, name)
        conversation = Conversation(client, name)
        try:
            messages = [Message("", worker, "") for worker in conversation.workers()]
            conversation.send(messages)  # finds out whether workers can be reached
            return [timed(lambda: conversation.send(messages))[0] for _ in range(times)]
        finally:
            conversation.close()
            client.run(_close_host, name)

    def leave(self) -> None:
        """Let go of all rows."""
        self._open.clear()
        self._rows = self._model = None
        self._ending.close()

    def _at(self, place: Place) -> Rows:
        if place not in self._open:
            self._open[place] = self._ending.enter_context(place.opened())
        return self._open[place]

    def _fitted(self, rounds: int, rows: Rows) -> Any:
        model = self._contender.make(rounds, self._threads)
        if rows.client is None:
            return model.fit(rows.data.X, rows.data.y)
        with rows.client.as_current():  # libraries ask for the current one here and there
            if is_ours(self._contender.name):
                from gpustump import dask

                return dask.fit(model, rows.data.X, rows.data.y, client=rows.client)
            model.client = rows.client
            return model.fit(rows.data.X, rows.data.y)


def model_sha256(model: Any) -> str:
    """The digest of one of our models; for a peer's the hash of its trees alone."""
    if hasattr(model, "model_"):
        return str(model.model_.digest())
    if hasattr(model, "get_booster"):
        return _sha256("\n".join(model.get_booster().get_dump(dump_format="json")).encode())
    return _sha256(json.dumps(model.booster_.dump_model()["tree_info"]).encode())


def probabilities(model: Any, X: np.ndarray) -> np.ndarray:
    """What a model predicts for rows in this process."""
    if hasattr(model, "get_booster"):
        return np.asarray(model.get_booster().inplace_predict(X))
    local = model.to_local() if hasattr(model, "to_local") else model
    return np.asarray(local.predict_proba(X))


def _open_host(fit: str, dask_worker: Any) -> None:
    """Make a worker answer messages as in a fit; its answer is that it holds no shard."""
    from gpustump.dask.worker import Host

    Host(dask_worker, fit, None)  # lives as long as the worker knows it


def _close_host(fit: str, dask_worker: Any) -> None:
    """Undo `_open_host`."""
    dask_worker.handlers[fit].__self__.close()


def _sha256(content: bytes | np.ndarray) -> str:
    return hashlib.sha256(np.ascontiguousarray(content).data).hexdigest()


def _through_the_loopback() -> int:
    """Bytes so far; 0 where the system does not tell."""
    found = psutil.net_io_counters(pernic=True)
    own = found.get("lo") or found.get("lo0")
    return int(own.bytes_sent) if own else 0
