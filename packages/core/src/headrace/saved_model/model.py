"""A saved model ready to answer: its signatures as functions of arrays."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Self, final

from headrace.errors import FeedError, GraphError, SavedModelDamagedError, listing
from headrace.graph.graph import Graph
from headrace.graph.sparse_tensor import SparseTensor
from headrace.saved_model.checks import check_harmless
from headrace.saved_model.directory import SavedModelDirectory
from headrace.saved_model.messages import SignatureDef
from headrace.saved_model.meta_graph import MetaGraph
from headrace.saved_model.utils import get_tensor_from_tensor_info
from headrace.session.session import Session

if TYPE_CHECKING:
    from headrace.graph.tensor import Tensor
    from headrace.session.config import Config


@final
class Signature:
    """A signature of a model, as a function of arrays by name that any thread may call.

    Attributes:
        name: Its name in the model.
        method_name: Which kind of request it answers.
        inputs: The tensors that it takes, by name, with their dtypes and shapes.
        outputs: The tensors that it returns, by name.
    """

    def __init__(self, session: Session, name: str, definition: SignatureDef) -> None:
        self.name = name
        self.method_name = definition.method_name
        self.definition = definition
        graph = session.graph
        self.inputs: Mapping[str, Tensor | SparseTensor] = MappingProxyType(
            {
                key: get_tensor_from_tensor_info(info, graph)
                for key, info in definition.inputs.items()
            }
        )
        self.outputs: Mapping[str, Tensor | SparseTensor] = MappingProxyType(
            {
                key: get_tensor_from_tensor_info(info, graph)
                for key, info in definition.outputs.items()
            }
        )
        self._session = session
        self._keys = tuple(self.inputs)
        self._known = frozenset(self._keys)
        self._call: Callable[..., dict[str, Any]] | None = None

    def prepare(self) -> Self:
        """Do now what the first call would do: place the graph, and bind its kernels.

        Raises:
            SavedModelDamagedError: if it would write files.
        """
        if self._call is None:
            self._prepared()
        return self

    def _prepared(self) -> Callable[..., dict[str, Any]]:
        ends = []
        for output in self.outputs.values():
            if isinstance(output, SparseTensor):
                ends += [output.indices.op, output.values.op, output.dense_shape.op]
            else:
                ends.append(output.op)
        check_harmless(ends, f"the signature {self.name!r}")
        feeds = [self.inputs[key] for key in self._keys]
        call: Callable[..., dict[str, Any]]
        call = self._call = self._session.make_callable(dict(self.outputs), feeds)
        return call

    def __call__(self, inputs: Mapping[str, Any]) -> dict[str, Any]:
        """Compute the outputs.

        Args:
            inputs: A value for each input: an array, or what an array can be made of; for a
                sparse tensor a ``SparseTensorValue``.

        Returns:
            The outputs by name, as arrays.

        Raises:
            FeedError: if an input is missing or unknown, or of the wrong shape or dtype.
        """
        if inputs.keys() != self._known:
            self._refuse(inputs)
        call = self._call
        if call is None:
            call = self._prepared()
        return call(*[inputs[key] for key in self._keys])

    def _refuse(self, inputs: Mapping[str, Any]) -> None:
        missing = [repr(key) for key in self._keys if key not in inputs]
        unknown = [repr(str(key)[:40]) for key in inputs if key not in self._known]
        parts = [f"{listing(missing)} missing"] if missing else []
        parts += [f"{listing(unknown)} unknown"] if unknown else []
        raise FeedError(
            f"the signature {self.name!r} takes {listing(map(repr, self._keys)) or 'no inputs'}: "
            f"{', '.join(parts)}"
        )

    def __repr__(self) -> str:
        return f"<Signature {self.name!r} from {list(self.inputs)} to {list(self.outputs)}>"


@final
class Model:
    """A saved model with a session of its own, ready to answer.

    As in::

        with hr.saved_model.Model("exported/1") as model:
            answer = model.signatures["serving_default"]({"x": images})

    Attributes:
        graph: Its graph.
        session: Its session.
        meta_graph: What the model says of the graph.
        signatures: Its signatures by name.
    """

    def __init__(
        self,
        export_dir: str | os.PathLike[str],
        tags: Iterable[str] | None = None,
        config: Config | None = None,
    ) -> None:
        """Load a model.

        Args:
            export_dir: The folder of the model.
            tags: The tags of the graph; that for serving if None, or the only one.
            config: How the session runs.

        Raises:
            SavedModelNotFoundError: if there is no saved model.
            SavedModelTagsError: if it has no graph with these tags.
            SavedModelDamagedError: if it is damaged.
        """
        folder = SavedModelDirectory(export_dir)
        record = folder.only_record() if tags is None else folder.record(tags)
        self.graph: Graph = folder.read_graph(record)
        self.meta_graph = MetaGraph(record, self.graph)
        self.session = Session(graph=self.graph, config=config)
        try:
            folder.restore(self.session, record)
            folder.initialize(self.session, record)
            found = {
                name: _signature(self.session, name, definition)
                for name, definition in record.signatures.items()
            }
            self.signatures: Mapping[str, Signature] = MappingProxyType(found)
        except BaseException:
            self.session.close()
            raise

    def close(self) -> None:
        """Close the session; its signatures cannot be called any more."""
        self.session.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Model of signatures {sorted(self.signatures)}>"


def _signature(session: Session, name: str, definition: SignatureDef) -> Signature:
    try:
        return Signature(session, name, definition)
    except GraphError as error:
        raise SavedModelDamagedError(f"the signature {name!r} of the model: {error}") from error
