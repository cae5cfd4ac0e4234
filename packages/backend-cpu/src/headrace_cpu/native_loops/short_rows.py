"""Segment reductions of rows that are shorter than a vector: parts of their loop's text.

Two halves or quarters of a vector hold a row of the result while all rows of one id are folded into
it. They share elements where the row is shorter than both; these come out alike.
"""

from __future__ import annotations

OTHERWISE = """\
elif both(wide == 0, both(not mixed, width >= FEWEST)):
    SLIM
"""
# Runs of rows of one id after the other; what is done with each follows, and goes to the next run.
EACH_RUN = """\
start = first
while start < last:
    id, stop, going = to_i64(load_I(ids, start * STEP, 1)), start, True
    while going:
        i = stop
        FETCH
        stop = stop + 1
        going = False
        if stop < minimum(last, start + RUN):
            going = load_I(ids, stop * STEP, 1) == load_I(ids, start * STEP, 1)
    if id >= 0:
        SEE
        put = out + id * width * SIZE_T
"""
SLIM = f"""\
{EACH_RUN}\
        if width >= LANES // 2:
            HALF_ROWS
        else:
            QUARTER_ROWS
    start = stop
"""
PAIR = """\
second = width - {lanes}
left, right = load_{code}(put, 0, 3), load_{code}(put, second, 3)
for i in range(start, stop):
    PICK
    total, value = left, load_{code}(take, 0, 4)
    SPREAD
    left = FOLD
    total, value = right, load_{code}(take, second, 4)
    SPREAD
    right = FOLD
store_{code}(put, 0, left, 3)
store_{code}(put, second, right, 3)
"""
