"""Where a table trains, and by which engine: decided once, as a value with its reason in words.

The decision follows from the table (its array library, where it lies, its size), the device asked
for, the learner, the memory limit, and what is installed. All engines return the same integers, so
the decision affects nothing but time:

* Arrays on a CUDA device go to the CUDA kernels if CuPy can launch them there, otherwise to the
  reference scan on that device.
* Arrays on the host go to the CPU kernels if Numba is installed, otherwise to the reference. Small
  tables are scanned directly, others through histograms; for Newton votes, tables of medium size
  are both sorted and cut into small bins.
* With device="auto", a table on the host goes to a GPU if table and number of rounds are large
  enough to gain from it, and if the kernels there can train on it. With "auto", nothing is moved to
  a GPU for the reference scan.
* Loading Numba takes half a second in every process. A process with little to do finishes sooner
  without it. So the reference trains until it has worked for about half a second.
* Kernels that are not compiled yet are compiled by another process. Until then the reference
  trains; then a scan by few kernels, which are ready soon; then the engine itself. Each goes on in
  the middle of the run.
* max_memory decides first: an engine that fits is taken before a faster one that does not.

The environment variable GPUSTUMP_KERNELS is for tests and comparisons: "reference" disables the
kernels, "sorted" and "coded" choose one of the CPU's engines, and "cuda" chooses the CUDA
kernels. An engine that cannot train the task is not taken even then.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, replace

from gpustump import arrays
from gpustump.arrays import Array, is_sparse
from gpustump.arrays.devices import DeviceError, explained_errors
from gpustump.arrays.moving import moved_to_device, moved_to_device_of
from gpustump.data.readable import readable_bytes
from gpustump.engines.category_columns import CategoryColumns
from gpustump.engines.category_table import with_sets
from gpustump.engines.contract import Engine, Resources, Task, Trainer
from gpustump.engines.cpu.engine import (
    CODED,
    KERNELS,
    MOST_CODED,
    SCANNED,
    SORTED,
    SPARSE,
    START_SECONDS,
    stages_of,
)
from gpustump.engines.cpu.runtime.kernel_folder import are_compiled
from gpustump.engines.cuda import device as cuda_device
from gpustump.engines.cuda.engine import CudaEngine
from gpustump.engines.handover import handing_over
from gpustump.engines.reference.engine import REFERENCE

CHOICES = ("auto", "reference", "sorted", "coded", "cuda")

SORTED_SAMPLES, SORTED_ELEMENTS, SORTED_ADDITIONS = 2**17, 2**24, 2**23
"""Tables of up to so many samples and elements are sorted; with several outputs, of up to so many
elements times outputs."""

_ALWAYS_SORTED = 2**12
"""So few samples are sorted, however many features they have."""

USUAL_ROUNDS = 100
"""Taken where the number of rounds is not known."""

_GPU_START = 0.5
"""Seconds that the first training on a GPU takes to load CuPy and the kernels."""

_GPU_ROUND = 4e-4
"""Seconds of a round on a GPU, however small the table is."""

_GPU_ELEMENT, _GPU_ELEMENT_ROUND = 1.3e-9, 1e-12
"""Seconds of an element on a GPU: to send and prepare it, and in a round for each integer that is
added up. All of these were measured on an H100; see `bench/NOTES.md`."""

_HOST_ELEMENT, _HOST_ELEMENT_ROUND = 5e-9, 0.4e-9
"""The same with the CPU's kernels. Preparing an element was measured to take 4 to 15 ns; a round
0.2 to 0.6 ns on two cores, and early rounds 0.3 to 1.0 ns on 16 cores of another machine."""

_waited = 0.0
"""Seconds for which the reference has trained in this process although the kernels could have."""


@dataclass(frozen=True)
class Route:
    """Where and by which engine a table trains, and why, in words.

    Attributes
    ----------
    place : str
        "cpu", "cuda:0", ...: the device that trains.
    engine : str
        "reference", "sorted", "coded", "sparse" or "cuda".
    summary : str
        What that engine is.
    reason : str
        Why this engine.
    passed_over : tuple of str
        Other engines or devices, and why each was not taken.
    """

    place: str
    engine: str
    summary: str
    reason: str
    passed_over: tuple[str, ...] = ()

    def __str__(self) -> str:
        passed_over = "".join(f"; not {other.rstrip('.')}" for other in self.passed_over)
        return f"{self.place}, {self.summary}: {self.reason.rstrip('.')}{passed_over}"


@dataclass(frozen=True)
class Choice:
    """A route, and what it takes to prepare a table along it.

    Attributes
    ----------
    route : Route
    engine : Engine
    task : Task
        Its table is where the route wants it.
    resources : Resources
    fallback : Engine or None
        The engine to take if the device's memory is too small for this one.
    until_compiled : tuple of Engine
        The engines that train in turn until the kernels of this one are compiled; empty if they
        are.
    """

    route: Route
    engine: Engine
    task: Task
    resources: Resources
    fallback: Engine | None = None
    until_compiled: tuple[Engine, ...] = ()

    def prepare(self, rows: Array | None = None) -> Trainer:
        """Make the table, or some rows (n_samples,) of it, ready for the rounds.

        Raises
        ------
        DeviceError
            If the device's memory is too small.
        """
        X = self.task.X
        if rows is not None:
            rows = moved_to_device_of(rows, X)
        with explained_errors(self.route.place), arrays.computing_on(X):
            categorical = self.task.categorical
            columns = CategoryColumns.of(X, rows, categorical) if categorical else None
            return with_sets(self._trainer(rows, *self.until_compiled, self.engine), columns)

    def _trainer(self, rows: Array | None, engine: Engine, *successors: Engine) -> Trainer:
        """A trainer by an engine until a successor is ready: the last one that is, and so on."""
        trainer = Trainer(engine.prepare(self.task, rows, self.resources), engine.start)

        def successor() -> Trainer | None:
            for at in reversed(range(len(successors))):
                if KERNELS.load(*stages_of(successors[at], self.task), waits=False):
                    return self._trainer(rows, *successors[at:])
            return None

        return handing_over(trainer, successor) if successors else trainer


def prepared(
    task: Task,
    rows: Array | None,
    resources: Resources,
    device: str | None = None,
    *,
    gpu_problem: str | None = None,
) -> tuple[Route, Trainer]:
    """A route and the trainer of the table prepared along it; see `choose`.

    Arrays on a GPU whose library keeps most of the device's memory for itself, as JAX does, may
    leave too little for the kernels. Then the reference scan trains there.
    """
    choice = choose(task, resources, device=device, gpu_problem=gpu_problem)
    try:
        return choice.route, choice.prepare(rows)
    except DeviceError as error:
        if choice.fallback is None:
            raise
        reason = f"the memory that {arrays.library_name(task.X)} leaves is too little: {error}"
        place = choice.route.place
        choice = _choice(place, choice.fallback, reason, choice.task, resources)
        return choice.route, choice.prepare(rows)


def choose(
    task: Task,
    resources: Resources | None = None,
    *,
    device: str | None = None,
    gpu_problem: str | None = None,
) -> Choice:
    """Decide where and how to train.

    If the table has to move to another device, it is moved, and the choice's task holds it there.

    Parameters
    ----------
    task : Task
    resources : Resources, optional
    device : str, optional
        As `arrays.devices.check_device` allows. By default the table stays where it is.
    gpu_problem : str, optional
        What went wrong on a GPU that "auto" had chosen. Now "auto" chooses the host.

    Raises
    ------
    DeviceError
        If the device asked for cannot be used.
    ValueError
        If max_memory is too little on the host; the message says how much is needed. If a sparse
        table is given for what dense ones alone can do.
    """
    resources = resources or Resources()
    if is_sparse(task.X):
        _check_sparse(task, device)
        return _on_host(task, resources, ())
    here = arrays.device_name(task.X)
    if device == "auto" and here == "cpu":
        problem = gpu_problem or why_not_on_gpu(task)
        if problem is not None:
            return _on_host(task, resources, (f"a GPU: {problem}",))
        device = "cuda"
    if device in (None, "auto") or (device == "cuda" and here.startswith("cuda")):
        device = here
    if device.startswith("cuda"):
        return _on_gpu(task, resources, device)
    if device == "cpu":
        return _on_host(_moved(task, device), resources, ())
    return _choice(device, REFERENCE, f"nothing else trains on {device}", task, resources)


def _check_sparse(task: Task, device: str | None) -> None:
    """Refuse what only dense tables can do."""
    if device not in (None, "auto", "cpu"):
        raise DeviceError(
            f"sparse tables are trained on the host, not on {device!r}. Take device='cpu', or pass "
            "a dense table: X.toarray()."
        )
    if task.objective.learner == "interval":
        raise ValueError(
            "weak_learner='interval' needs a dense table. Take weak_learner='stump', or pass "
            "X.toarray()."
        )


def why_not_on_gpu(task: Task) -> str | None:
    """Why "auto" leaves a table on the host; None if a GPU is to train on it."""
    if asked_for() not in ("auto", "cuda"):
        return f"GPUSTUMP_KERNELS asks for {asked_for()!r}"
    if not gains_from_gpu(task):
        return f"{task.n_elements} elements and {_rounds(task)} rounds are too few to gain from it"
    return cuda_device.problem_of("cuda") or CudaEngine.refusal(task)


def gains_from_gpu(task: Task) -> bool:
    """Whether training is expected to take less time on a GPU, for a table on the host.

    Sending and preparing the table takes time there; in return each round is faster.
    """
    return task.n_elements >= least_elements(task.objective.n_layers, _rounds(task))


def least_elements(n_layers: int = 1, n_rounds: int = USUAL_ROUNDS) -> int:
    """How many elements a table needs to gain from a GPU; `Objective.n_layers` are added up."""
    in_rounds = n_rounds * n_layers * (_HOST_ELEMENT_ROUND - _GPU_ELEMENT_ROUND)
    gained_by_each = _HOST_ELEMENT - _GPU_ELEMENT + in_rounds
    return 1 + int((_GPU_START + n_rounds * _GPU_ROUND) / gained_by_each)


def _rounds(task: Task) -> int:
    return USUAL_ROUNDS if task.n_rounds is None else task.n_rounds


def _on_gpu(task: Task, resources: Resources, device: str) -> Choice:
    """A route on a CUDA device: by its kernels, or else by the reference scan."""
    if not arrays.on_host(task.X):
        task = _moved(task, device)
    problem = CudaEngine.refusal(task)
    if asked_for() not in ("auto", "cuda"):
        problem = f"GPUSTUMP_KERNELS asks for {asked_for()!r}"
    if problem is None:
        is_there = not arrays.on_host(task.X)
        found = cuda_device.device_of(task.X) if is_there else cuda_device.device_named(device)
        if found is not None:
            reason = "its kernels can train this"
            choice = _choice(found.name, CudaEngine(found), reason, task, resources)
            is_foreign = is_there and arrays.library_name(task.X) != "cupy"
            may_be_crowded = is_foreign and resources.max_memory is None
            return replace(choice, fallback=REFERENCE) if may_be_crowded else choice
        problem = cuda_device.problem_of(device) or "its kernels cannot be used"
    task = _moved(task, device)
    passed_over = (f"its kernels: {problem}",)
    reason = "nothing faster can train this there"
    return _choice(arrays.device_name(task.X), REFERENCE, reason, task, resources, passed_over)


def _on_host(task: Task, resources: Resources, passed_over: tuple[str, ...]) -> Choice:
    """A route on the host: the fastest engine that the memory limit allows."""
    if asked_for() == "cuda" and CudaEngine.refusal(task) is None:
        found = cuda_device.device_of(task.X)
        if found is not None:  # a stand-in for a device, in tests
            reason = "GPUSTUMP_KERNELS asks for it"
            return _choice("cpu", CudaEngine(found), reason, task, resources, passed_over)
    engine, reason, others = _fastest(task)
    passed_over += others
    limit = resources.max_memory
    if limit is not None:
        needs = {one.name: one.least_bytes(task, resources) for one in _able(task)}
        if needs[engine.name] > limit:
            fitting = [one for one in _able(task) if needs[one.name] <= limit]
            if not fitting:
                raise ValueError(
                    f"max_memory is {limit} bytes, but training on {task.n_samples} samples of "
                    f"{task.n_features} features takes at least {min(needs.values())} bytes beside "
                    "the table."
                )
            needed = readable_bytes(needs[engine.name])
            passed_over += (f"{engine.summary}: it takes {needed}",)
            engine, reason = fitting[0], f"it keeps to max_memory, {readable_bytes(limit)}"
    waits = asked_for() != "auto" or limit is not None
    scans = not waits and engine is not REFERENCE and _have_scan_compiled(engine, task)
    if engine is REFERENCE or KERNELS.load(*stages_of(engine, task), waits=waits):
        return _choice("cpu", engine, reason, task, resources, passed_over)
    if engine.refusal(task) is None and not waits:
        reason += "; until its kernels are compiled, slower engines train"
        choice = _choice("cpu", engine, reason, task, resources, passed_over)
        return replace(choice, until_compiled=(REFERENCE, SCANNED) if scans else (REFERENCE,))
    return _on_host(task, resources, passed_over)  # now the kernels refuse


def _fastest(task: Task) -> tuple[Engine, str, tuple[str, ...]]:
    """The host's fastest engine, why it was chosen, and why others were passed over."""
    asked = asked_for()
    if asked == "reference":
        return REFERENCE, "GPUSTUMP_KERNELS asks for it", ()
    engine, reason = _of_kernels(task)
    refusal = engine.refusal(task)
    if refusal is not None:
        return REFERENCE, "nothing faster can train this", (f"the CPU kernels: {refusal}",)
    by_name: dict[str, Engine] = {"sorted": SORTED, "coded": CODED}
    chosen = by_name.get(asked)
    if chosen is not None and chosen.refusal(task) is None:
        return chosen, "GPUSTUMP_KERNELS asks for it", ()
    seconds = None if task.n_rounds is None else REFERENCE.seconds(task)
    if seconds is not None and not is_worth_its_start(seconds, engine.name):
        return REFERENCE, "the job is too short to load Numba for", ()
    return engine, reason, ()


def _of_kernels(task: Task) -> tuple[Engine, str]:
    """The engine whose kernels are the fastest, and why."""
    if is_sparse(task.X):
        return SPARSE, "the table is sparse"
    if task.objective.learner == "interval":
        return SORTED, "intervals are found by a scan"
    n_outputs = task.objective.n_outputs
    most = SORTED_ELEMENTS if n_outputs == 1 else SORTED_ADDITIONS // n_outputs
    is_small = task.n_elements <= most and task.n_samples <= SORTED_SAMPLES
    if is_small or task.n_samples <= _ALWAYS_SORTED:
        return SORTED, "the table is small"
    if task.n_samples >= MOST_CODED:
        return SORTED, "the table is too long for codes"
    return CODED, "the table is large"


def is_worth_its_start(seconds: float, *stages: str) -> bool:
    """Whether to load the kernels for work that takes the reference this many seconds.

    If not, the seconds are added to the reference's total in this process. When the total would
    reach the time that loading takes, the answer is yes.
    """
    global _waited
    if KERNELS.are_loaded(*stages) or _waited + seconds >= START_SECONDS:
        return True
    _waited += seconds
    return False


def _able(task: Task) -> list[Engine]:
    """The host's engines that can train this; under a memory limit the first that fits is taken."""
    engines: tuple[Engine, ...] = (CODED, REFERENCE, SORTED, SPARSE)
    if asked_for() == "reference":
        engines = (REFERENCE,)
    return [engine for engine in engines if engine.refusal(task) is None]


def _have_scan_compiled(engine: Engine, task: Task) -> bool:
    """Have the few kernels that scan a table compiled by another process.

    Returns whether a scan may train until the engine's own kernels are compiled.
    """
    if are_compiled(*stages_of(engine, task)) or SCANNED.refusal(task) is not None:
        return False
    KERNELS.have_compiled(*stages_of(SCANNED, task))
    return True


def have_scan_compiled(task: Task) -> None:
    """The same for a table that will be trained on, if it will need them."""
    engine, _ = _of_kernels(task)
    if asked_for() == "auto" and engine.refusal(task) is None:
        _have_scan_compiled(engine, task)


def _choice(
    place: str,
    engine: Engine,
    reason: str,
    task: Task,
    resources: Resources,
    passed_over: tuple[str, ...] = (),
) -> Choice:
    route = Route(place, engine.name, engine.summary, reason, passed_over)
    return Choice(route, engine, task, resources)


def _moved(task: Task, device: str) -> Task:
    if arrays.device_name(task.X) == device:
        return task
    return replace(task, X=moved_to_device(task.X, device))


def asked_for() -> str:
    """What GPUSTUMP_KERNELS asks for: one of `CHOICES`.

    Raises
    ------
    ValueError
        If its value is none of them.
    """
    choice = os.environ.get("GPUSTUMP_KERNELS") or "auto"
    if choice not in CHOICES:
        raise ValueError(f"GPUSTUMP_KERNELS must be one of {', '.join(CHOICES)}; got {choice!r}.")
    return choice


def kernels_will_train(task: Task) -> bool:
    """Whether the CPU's kernels would train this on the host; the number of rounds must be known.

    Unlike `choose`, this adds no seconds to the reference's total.
    """
    asked = asked_for()
    kernels, _ = _of_kernels(task)
    if asked == "reference" or kernels.refusal(task) is not None:
        return False
    engine = kernels.name
    is_worth_it = _waited + REFERENCE.seconds(task) >= START_SECONDS
    return asked != "auto" or KERNELS.are_loaded(engine) or (is_worth_it and are_compiled(engine))


def device_of_route(route: Route, X: Array) -> cuda_device.CudaDevice | None:
    """The device whose kernels train along a route; None if no device's do."""
    if route.engine != "cuda":
        return None
    is_named = route.place.startswith("cuda")  # a stand-in for a device, in tests, has no name
    return cuda_device.device_named(route.place) if is_named else cuda_device.device_of(X)
