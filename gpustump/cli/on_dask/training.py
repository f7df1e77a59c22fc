"""Train on a cluster as `train` does on one machine, and refuse what needs one machine."""

from __future__ import annotations

import argparse
import importlib.util
import os
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from gpustump.cli.checkpoint import checkpoint_of
from gpustump.cli.errors import InputError, as_input_error
from gpustump.cli.input.constraints import by_feature, constraints_of
from gpustump.cli.input.training_data import FittedTraining
from gpustump.cli.method import Method, estimator
from gpustump.cli.on_dask.cluster import check_library, connected
from gpustump.cli.on_dask.files import files_of, parts_of, source_of
from gpustump.cli.on_dask.parts import check_columns

if TYPE_CHECKING:
    from gpustump.cli.on_dask.table import SpreadTraining
    from gpustump.estimators.boosted import BoostedClassifier


def checked_files(method: Method, arguments: argparse.Namespace) -> list[str]:
    """The files that are given; refuses options that are not for clusters, or not for the table.

    Raises
    ------
    InputError
    """
    if ":" in arguments.device:
        raise InputError(
            f"--device {arguments.device} is for one machine; with --dask, --device cuda is each "
            "worker's own GPU."
        )
    if method.weak_learner != "stump":
        raise InputError(
            f"--weak-learner {method.weak_learner} is for one machine; with --dask, leave it out."
        )
    if arguments.report is not None:
        raise InputError(
            "--report draws rows, which with --dask are on the workers; leave it out, and draw the "
            "model with gpustump inspect --plot."
        )
    if arguments.dask and arguments.jobs is not None:
        raise InputError(
            "--jobs is the number of workers that are started here, but those of "
            f"{arguments.dask} are there already; leave it out."
        )
    if not arguments.files:
        raise InputError("--dask needs DATA, the names of files.")
    check_library()
    files = files_of(arguments.files)
    check_columns(files[0], arguments)
    return files


@contextmanager
def fitted(
    method: Method, arguments: argparse.Namespace, files: Sequence[str]
) -> Iterator[FittedTraining]:
    """Train on the workers, which stay until the caller is done with the result.

    Raises
    ------
    InputError
        If the options, the data or the cluster are to blame.
    """
    from gpustump.cli.on_dask.table import learned

    if arguments.dask:  # whose workers were started elsewhere
        files = [os.path.abspath(file) for file in files]
    with connected(arguments) as client, _told_in_one_line():
        n_workers = len(client.scheduler_info(n_workers=-1)["workers"])
        found = learned(client, parts_of(files, n_workers), source_of(arguments.files), arguments)
        started = time.perf_counter()
        classifier = _classifier(found, method, arguments)
        seconds = time.perf_counter() - started
        fingerprint, dtype = found.table.fingerprint(found.data)
        data = replace(found.data, X=found.data.X.astype(dtype))  # without rows: only the dtype
        yield FittedTraining(classifier, data, found.trained, found.held_out, seconds, fingerprint)


def _classifier(
    found: SpreadTraining, method: Method, arguments: argparse.Namespace
) -> BoostedClassifier:
    constraints = constraints_of(found.data, arguments.monotone)
    has_bar = not arguments.quiet and importlib.util.find_spec("tqdm") is not None
    classifier = estimator(
        method,
        on_dask=True,
        client=found.table.client,
        categorical_features=found.data.encoding.categorical_features or None,
        device=arguments.device,
        random_state=arguments.seed,
        max_memory=arguments.max_memory,
        verbose=int(has_bar),
        monotonic_cst=by_feature(found.data.encoding, constraints),
        checkpoint=checkpoint_of(arguments),
    )
    X, y, weights = found.table.collections(found.data.y, found.data.weights is not None)
    with as_input_error():
        return classifier.fit(X, y, weights)


@contextmanager
def _told_in_one_line() -> Iterator[None]:
    """Turn failures of a cluster into errors of one line that say what to do."""
    from distributed import KilledWorker
    from distributed.comm.core import CommClosedError

    from gpustump.dask import ClusterLostError, WorkerMemoryError

    try:
        yield
    except (WorkerMemoryError, ClusterLostError) as error:
        raise InputError(f"--dask: {error}") from error
    except KilledWorker as error:
        raise InputError(
            "--dask: workers ended again and again while they read the files, most likely for lack "
            "of memory. Start fewer workers (--jobs), or give each of them more memory. "
            f"({error})"
        ) from error
    except (CancelledError, CommClosedError, TimeoutError) as error:
        raise InputError(f"--dask: the scheduler is gone: {error}") from error
