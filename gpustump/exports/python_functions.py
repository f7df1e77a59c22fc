"""The functions of an exported Python file, and those that read each kind of column."""

from __future__ import annotations

SCORES = '''
def scores(row):
    """The scores of a row, whole numbers of 2**-36: {one_or_more}."""
    values = _values(row)
    found = list(CONSTANT)
    for column, thresholds, votes in STEPS:
        x = values[column]
        for output, vote in enumerate(votes[bisect_left(thresholds, x) if x == x else -1]):
            found[output] += vote
    return found


def predict(row):
    """The label of a row."""
    return CLASSES[_class_of(scores(row))]

'''

READ = '''

def _values(row):
    """The row as floats: codes for text, NaN where a value is missing."""
    if isinstance(row, Mapping):
        if len(set(COLUMNS)) < len(COLUMNS):
            raise ValueError("two columns have one name: give a row as a sequence")
        row = [row[name] for name in COLUMNS]
    if len(row) != len(COLUMNS):
        raise ValueError(f"a row has {len(COLUMNS)} values; got {len(row)}")
    return [read(value, column) for column, (read, value) in enumerate(zip(_READERS, row))]

'''

BINARY = '''
def predict_proba(row):
    """The probability of each class; their last bits may differ from the model's own."""
    score = 2.0 * scores(row)[0] / 2**36
    small = math.exp(-abs(score))
    pair = [small / (1.0 + small), 1.0 / (1.0 + small)]
    return pair if score >= 0 else pair[::-1]


def _class_of(found):
    return int(found[0] > 0)
'''

LOGISTIC = """
def _log_of(score):
    return 2.0 * min(score, 0.0) - math.log1p(math.exp(-2.0 * abs(score)))
"""

SOFTMAX = """
def _log_of(score):
    return 2.0 * score
"""

CLASSES = '''
def predict_proba(row):
    """The probability of each class; their last bits may differ from the model's own."""
    logs = [_log_of(score / 2**36) for score in scores(row)]
    largest = max(logs)
    shares = [math.exp(log - largest) for log in logs]
    total = sum(shares)
    return [share / total for share in shares]


def _class_of(found):
    return found.index(max(found))
'''

NUMBER = """
def _number(value, column):
    if value is None:
        return math.nan
    if isinstance(value, (str, bytes)):
        raise TypeError(f"column {COLUMNS[column]!r} holds numbers; got {value!r}")
    return float(value)
"""

TEXT = """
def _text(value, column):
    if value is None or value != value:
        return math.nan
    if not isinstance(value, str):
        raise TypeError(f"column {COLUMNS[column]!r} holds text; got {value!r}")
    return CODES[column].get(value, -1.0)
"""

TIMES = {
    "date": '''
def _date(value, column):
    if isinstance(value, datetime.datetime):
        return _datetime(value, column) / 86400.0
    if isinstance(value, datetime.date):
        return float((value - datetime.date(1970, 1, 1)).days)
    return _number(value, column)
''',
    "datetime": '''
def _datetime(value, column):
    if isinstance(value, datetime.datetime):
        start = datetime.datetime(1970, 1, 1, tzinfo=value.tzinfo and datetime.timezone.utc)
        return _duration(value - start, column)
    if isinstance(value, datetime.date):
        return 86400.0 * (value - datetime.date(1970, 1, 1)).days
    return _number(value, column)
''',
    "time": '''
def _time(value, column):
    if isinstance(value, datetime.time):
        whole = 3600 * value.hour + 60 * value.minute + value.second
        return float(1000000 * whole + value.microsecond) / 1e6
    return _number(value, column)
''',
    "duration": '''
def _duration(value, column):
    if isinstance(value, datetime.timedelta):
        return float(value // datetime.timedelta(microseconds=1)) / 1e6
    return _number(value, column)
''',
}  # fmt: skip
