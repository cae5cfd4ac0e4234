# Use a tensor outside of the loop that makes it.
# refused: building
# got: 'while/add:0'
# expected: belongs to the inside of 'while/body'
# fix: return it from there

import headrace as hr

kept = []


def body(i):
    kept.append(i + 1)
    return kept[0]


n = hr.while_loop(lambda i: i < 9, body, [0])
twice = kept[0] * 2  # the mistake
