"""The language model in PyTorch: its own LSTM, and one of separate steps that is compiled."""

# mypy: disable-error-code="import-not-found, import-untyped"

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import nn

from benchmarks.participant import Participant, Request, StepLoop
from benchmarks.torch_setup import compiled, set_threads
from benchmarks.workloads.lstm import data


def build(request: Request) -> Participant:
    """Build a model and an optimizer."""
    set_threads(request.threads)
    if request.variant == "compile":
        steps = _Steps()
        return _participant(steps, compiled(steps.loss), steps.trained)
    library = _Library()
    return _participant(library, library.loss, library.trained)


def _participant(model: Any, loss: Any, trained: Any) -> Participant:
    """Train a model."""
    parameters = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.SGD(parameters, lr=data.LEARNING_RATE, fused=True)

    def step(words: Any, targets: Any) -> None:
        optimizer.zero_grad()
        loss(words, targets).backward()
        nn.utils.clip_grad_norm_(parameters, data.MAX_NORM)
        optimizer.step()

    feeds = [(torch.from_numpy(x).long(), torch.from_numpy(y).long()) for x, y in data.feeds()]
    return StepLoop(step, feeds, final_loss=lambda: data.loss(trained()), lead_in=data.LEAD_IN)


class _Library(nn.Module):
    """The model with the library's own modules."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(data.VOCABULARY, data.UNITS)
        self.lstm = nn.LSTM(data.UNITS, data.UNITS, data.LAYERS)
        self.projection = nn.Linear(data.UNITS, data.VOCABULARY)
        first = data.parameters()
        with torch.no_grad():
            self.embedding.weight.copy_(torch.from_numpy(first.embedding))
            self.projection.weight.copy_(torch.from_numpy(first.projection.T))
            self.projection.bias.copy_(torch.from_numpy(first.projection_bias))
            for layer in range(data.LAYERS):
                kernel, bias = _gates(first.kernels[layer]), _gates(first.biases[layer])
                bias[data.UNITS : 2 * data.UNITS] += data.FORGET_BIAS
                to_gates = torch.from_numpy(np.ascontiguousarray(kernel.T))
                self._of(layer, "weight_ih").copy_(to_gates[:, : data.UNITS])
                self._of(layer, "weight_hh").copy_(to_gates[:, data.UNITS :])
                self._of(layer, "bias_ih").copy_(torch.from_numpy(bias))
                # The library has two biases where one is meant.
                self._of(layer, "bias_hh").zero_().requires_grad_(False)

    def loss(self, words: Any, targets: Any) -> Any:
        """Return the mean loss of a batch."""
        outputs, _ = self.lstm(self.embedding(words.t()))
        logits = self.projection(outputs.reshape(-1, data.UNITS))
        return nn.functional.cross_entropy(logits, targets.t().reshape(-1))

    def trained(self) -> data.Parameters:
        """Return the parameters in the shapes that all participants share."""
        kernels, biases = [], []
        for layer in range(data.LAYERS):
            parts = [self._of(layer, "weight_ih"), self._of(layer, "weight_hh")]
            kernels.append(_gates(torch.cat(parts, 1).detach().numpy().T))
            bias = self._of(layer, "bias_ih").detach().numpy().copy()
            bias[data.UNITS : 2 * data.UNITS] -= data.FORGET_BIAS
            biases.append(_gates(bias))
        return data.Parameters(
            self.embedding.weight.detach().numpy(),
            kernels,
            biases,
            self.projection.weight.detach().numpy().T,
            self.projection.bias.detach().numpy(),
        )

    def _of(self, layer: int, name: str) -> Any:
        """Return a parameter of a layer of the LSTM."""
        return getattr(self.lstm, f"{name}_l{layer}")


class _Steps(nn.Module):
    """The model written step by step: the compiler leaves the library's LSTM as it is."""

    def __init__(self) -> None:
        super().__init__()
        values = [nn.Parameter(torch.from_numpy(value)) for value in data.parameters().flat()]
        self.values = nn.ParameterList(values)

    def loss(self, words: Any, targets: Any) -> Any:
        """Return the mean loss of a batch."""
        all_of = self.trained_tensors()
        inputs = nn.functional.embedding(words.t(), all_of.embedding)
        zeros = torch.zeros(data.BATCH, data.UNITS)
        state = [(zeros, zeros)] * data.LAYERS
        outputs = []
        for at in range(data.STEPS):
            x = inputs[at]
            for layer in range(data.LAYERS):
                output, cell = state[layer]
                joined = torch.cat([x, output], 1)
                gates = torch.addmm(all_of.biases[layer], joined, all_of.kernels[layer])
                write, candidate, keep, show = gates.chunk(4, 1)
                kept = cell * torch.sigmoid(keep + data.FORGET_BIAS)
                cell = kept + torch.sigmoid(write) * torch.tanh(candidate)
                x = torch.tanh(cell) * torch.sigmoid(show)
                state[layer] = (x, cell)
            outputs.append(x)
        logits = torch.addmm(all_of.projection_bias, torch.cat(outputs), all_of.projection)
        return nn.functional.cross_entropy(logits, targets.t().reshape(-1))

    def trained_tensors(self) -> data.Parameters:
        """Return the parameters by their names."""
        values = list(self.values)
        layers = data.LAYERS
        kernels, biases = values[1 : 1 + layers], values[1 + layers : 1 + 2 * layers]
        return data.Parameters(values[0], kernels, biases, *values[-2:])

    def trained(self) -> data.Parameters:
        """Return the parameters as arrays."""
        tensors = self.trained_tensors()
        return data.Parameters(
            tensors.embedding.detach().numpy(),
            [kernel.detach().numpy() for kernel in tensors.kernels],
            [bias.detach().numpy() for bias in tensors.biases],
            tensors.projection.detach().numpy(),
            tensors.projection_bias.detach().numpy(),
        )


def _gates(values: Any) -> Any:
    """Swap the second and third quarter: the library keeps before it has a candidate."""
    write, second, third, show = np.split(values, 4, axis=-1)
    return np.concatenate([write, third, second, show], axis=-1)
