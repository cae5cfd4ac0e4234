"""The language model written by hand on torch's gloo.

A server does what its tables are needed for: it gathers rows, multiplies by its part of the
softmax, and updates what it has. A worker asks each of them in turn for each part of a step.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.ps_train.sizes import (
    BATCH,
    CLASSES,
    FULL,
    RATE,
    SAMPLED,
    SCALE,
    STEPS,
    UNITS,
    WORDS,
    words,
)
from benchmarks.server_jobs.timing import LIMIT_S, Job, measure, watch

# What a worker asks for: a header of its request and the number of rows or words.
_END, _ROWS, _ADD_ROWS, _LSTM, _ADD_LSTM, _LOGITS, _ADD_LOGITS = range(7)
_EMBEDDINGS, _WEIGHTS = range(2)


def play(job: Job) -> None:
    """Play the part of this process."""
    import torch
    import torch.distributed as dist

    dist.init_process_group(
        "gloo",
        init_method=f"tcp://127.0.0.1:{job.ports[0]}",
        world_size=job.workers + job.servers,
        rank=job.index + job.servers,
    )
    torch.manual_seed(1)
    # The rows of each server, as the others divide them.
    counts = [CLASSES // job.servers + (s < CLASSES % job.servers) for s in range(job.servers)]
    if job.index < 0:
        watching = watch(job)
        _serve(torch, dist, counts[job.server], job)
        watching.join(LIMIT_S)
        return
    worker = _Worker(torch, dist, counts, job.kind)
    rng = np.random.default_rng(job.index)
    measure(lambda: worker.step(torch.from_numpy(words(rng))), job)
    for server in range(job.servers):
        dist.send(torch.tensor([_END, 0, 0]), server)


def _serve(torch: Any, dist: Any, rows: int, job: Job) -> None:
    """Answer workers until all have ended."""
    tables = [torch.empty(rows, UNITS + 1).uniform_(-SCALE, SCALE) for _ in range(2)]
    lstm = torch.empty(2 * UNITS + 1, 4 * UNITS).uniform_(-SCALE, SCALE)
    request, left = torch.zeros(3, dtype=torch.int64), job.workers
    hidden: dict[int, Any] = {}
    while left:
        source = dist.recv(request)
        what, table, count = request.tolist()
        if what == _END:
            left -= 1
        elif what == _LSTM:
            dist.send(lstm, source)
        elif what == _ADD_LSTM:
            change = torch.empty_like(lstm)
            dist.recv(change, source)
            lstm.sub_(change, alpha=RATE)
        elif what in (_ROWS, _ADD_ROWS):
            ids = torch.empty(count, dtype=torch.int64)
            dist.recv(ids, source)
            if what == _ROWS:
                dist.send(tables[table][ids], source)
            else:
                change = torch.empty(count, UNITS + 1)
                dist.recv(change, source)
                tables[table].index_add_(0, ids, change, alpha=-RATE)
        elif what == _LOGITS:
            hidden[source] = torch.empty(WORDS, UNITS + 1)
            dist.recv(hidden[source], source)
            dist.send(hidden[source] @ tables[_WEIGHTS].T, source)
        else:
            change = torch.empty(WORDS, rows)
            dist.recv(change, source)
            dist.send(change @ tables[_WEIGHTS], source)
            tables[_WEIGHTS].addmm_(change.T, hidden[source], alpha=-RATE)


class _Worker:
    """Runs steps; the last column of each table is the bias, by which a 1 is multiplied."""

    def __init__(self, torch: Any, dist: Any, counts: list[int], kind: str) -> None:
        self.torch, self.dist, self.counts, self.kind = torch, dist, counts, kind
        self.first = [sum(counts[:server]) for server in range(len(counts))]
        self.lstm = torch.empty(2 * UNITS + 1, 4 * UNITS)

    def step(self, fed: Any) -> float:
        """Run a step, and return its loss."""
        torch = self.torch
        labels = fed[:, 1:].reshape(WORDS)
        ids = fed[:, :-1].reshape(WORDS)
        rows = self._rows(_EMBEDDINGS, ids).requires_grad_()
        self._ask(0, _LSTM)
        self.dist.recv(self.lstm, 0)
        lstm = self.lstm.clone().requires_grad_()
        hidden = self._outputs(rows[:, :UNITS].reshape(BATCH, STEPS, UNITS), lstm)
        hidden = torch.cat([hidden.reshape(WORDS, UNITS), torch.ones(WORDS, 1)], 1)
        loss, change = (
            self._full(hidden.detach(), labels)
            if self.kind == FULL
            else self._sampled(hidden.detach(), labels)
        )
        hidden.backward(change)
        self._add_rows(_EMBEDDINGS, ids, rows.grad)
        self._ask(0, _ADD_LSTM)
        self.dist.send(lstm.grad, 0)
        return loss

    def _full(self, hidden: Any, labels: Any) -> tuple[float, Any]:
        """Return the loss of a softmax over all classes, and its gradient by what it is of."""
        torch, servers = self.torch, range(len(self.counts))
        parts = [torch.empty(WORDS, count) for count in self.counts]
        for server in servers:
            self._ask(server, _LOGITS)
            self.dist.send(hidden, server)
        for server in servers:
            self.dist.recv(parts[server], server)
        logits = torch.cat(parts, 1).requires_grad_()
        loss = torch.nn.functional.cross_entropy(logits, labels)
        loss.backward()
        found = torch.zeros_like(hidden)
        for server, change in enumerate(logits.grad.split(self.counts, 1)):
            self._ask(server, _ADD_LOGITS)
            self.dist.send(change.contiguous(), server)
        for server in servers:
            room = torch.empty_like(hidden)
            self.dist.recv(room, server)
            found += room
        return float(loss), found

    def _sampled(self, hidden: Any, labels: Any) -> tuple[float, Any]:
        """Likewise of a softmax over the words themselves and some sampled classes."""
        torch = self.torch
        drawn = (float(CLASSES + 1) ** torch.rand(SAMPLED) - 1).long().clamp_(0, CLASSES - 1)
        classes = torch.cat([labels, drawn])
        rows = self._rows(_WEIGHTS, classes).requires_grad_()
        hidden = hidden.requires_grad_()
        # How many of a class are expected among the samples.
        expected = SAMPLED * torch.log((classes + 2.0) / (classes + 1.0)) / np.log(CLASSES + 1)
        true = (hidden * rows[:WORDS]).sum(1, keepdim=True) - expected[:WORDS, None].log()
        others = hidden @ rows[WORDS:].T - expected[WORDS:].log()
        others = others.masked_fill(labels[:, None] == drawn, float("-inf"))
        loss = -torch.log_softmax(torch.cat([true, others], 1), 1)[:, 0].mean()
        loss.backward()
        self._add_rows(_WEIGHTS, classes, rows.grad)
        return float(loss.detach()), hidden.grad

    def _outputs(self, inputs: Any, lstm: Any) -> Any:
        torch = self.torch
        state = output = torch.zeros(BATCH, UNITS)
        outputs = []
        for step in range(STEPS):
            joined = torch.cat([inputs[:, step], output], 1)
            gates = torch.addmm(lstm[-1], joined, lstm[:-1])
            taken, fresh, kept, shown = gates.chunk(4, 1)
            state = torch.sigmoid(kept + 1.0) * state + torch.sigmoid(taken) * torch.tanh(fresh)
            output = torch.sigmoid(shown) * torch.tanh(state)
            outputs.append(output)
        return torch.stack(outputs, 1)

    def _divided(self, ids: Any) -> list[tuple[int, Any, Any]]:
        """Return for each server that has some of the rows which of them, and the rows there."""
        found = []
        for server, (first, count) in enumerate(zip(self.first, self.counts, strict=True)):
            (places,) = self.torch.where((ids >= first) & (ids < first + count))
            if len(places):
                found.append((server, places, ids[places] - first))
        return found

    def _rows(self, table: int, ids: Any) -> Any:
        divided = self._divided(ids)
        for server, _, there in divided:
            self._ask(server, _ROWS, table, len(there))
            self.dist.send(there, server)
        rows = self.torch.empty(len(ids), UNITS + 1)
        for server, places, there in divided:
            room = self.torch.empty(len(there), UNITS + 1)
            self.dist.recv(room, server)
            rows[places] = room
        return rows

    def _add_rows(self, table: int, ids: Any, change: Any) -> None:
        for server, places, there in self._divided(ids):
            self._ask(server, _ADD_ROWS, table, len(there))
            self.dist.send(there, server)
            self.dist.send(change[places], server)

    def _ask(self, server: int, what: int, table: int = 0, count: int = 0) -> None:
        self.dist.send(self.torch.tensor([what, table, count]), server)
