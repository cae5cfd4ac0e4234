"""Distributions are as a table of TensorFlow 1.15 says, and samples as they say themselves."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import headrace as hr
from headrace import distributions as d
from headrace import errors
from tests.core.ops.distributions import distribution_programs

pytestmark = pytest.mark.needs("backend-cpu", "autodiff")

HERE = Path(__file__).parent
TABLE = json.loads((HERE / "distribution_table.json").read_text())

FAMILIES: dict[str, type[Exception]] = {
    "ValueError": ValueError,
    "TypeError": TypeError,
    "NotImplementedError": NotImplementedError,
    "InvalidArgumentError": errors.InvalidArgumentError,
}
MADE = {name: made for name, (made, _) in distribution_programs.MADE.items()}


def evaluated(text: str) -> Any:
    return eval(text, {**vars(distribution_programs), "tf": hr, "d": d})


def made(program: str) -> list[hr.Tensor]:
    found = evaluated(program)
    return found if isinstance(found, list) else [found]


@pytest.mark.parametrize("program", distribution_programs.PROGRAMS)
def test_results_are_those_of_tensorflow(program: str) -> None:
    expected = TABLE["outcomes"][program]
    with hr.Graph().as_default(), hr.Session() as session:
        tensors = made(program)
        for tensor, value, entry in zip(tensors, session.run(tensors), expected, strict=True):
            assert tensor.dtype.name == entry["dtype"]
            known = hr.TensorShape(entry["static"])
            assert tensor.shape.is_compatible_with(known)
            assert tensor.shape.is_fully_defined() or not known.is_fully_defined()
            assert list(np.shape(value)) == entry["shape"]
            wanted = np.array(entry["values"]).reshape(entry["shape"])
            # TensorFlow's logarithms of small probabilities have an error of that size.
            np.testing.assert_allclose(value, wanted, rtol=3e-5, atol=2e-6)


@pytest.mark.parametrize("program", distribution_programs.REFUSED)
def test_what_tensorflow_refuses_is_refused(program: str) -> None:
    family = FAMILIES[TABLE["refused"][program]]
    with hr.Graph().as_default(), hr.Session() as session, pytest.raises(family):
        session.run(made(program))


# -- samples

DRAWN = {
    **{name: MADE[name] for name in MADE if name not in ("normal64", "far", "unit", "student")},
    "student": "d.StudentT([5., 9.], 0.5, 2.)",
    "half": "d.Categorical(probs=[0.5, 0.5], dtype=tf.int64)",
}


@pytest.mark.parametrize("name", DRAWN)
def test_samples_have_the_moments_of_their_distribution(name: str) -> None:
    count = 20_000
    with hr.Graph().as_default(), hr.Session() as session:
        found = evaluated(DRAWN[name])
        drawn = session.run(found.sample(count, seed=5)).astype(np.float64)
        assert drawn.shape[1:] == tuple(found.batch_shape) + tuple(found.event_shape)
        if isinstance(found, d.Categorical):
            likely = session.run(found.probs)
            shares = np.stack([(drawn == k).mean(0) for k in range(likely.shape[-1])], -1)
            np.testing.assert_allclose(shares, likely, atol=0.02)
            return
        mean, deviation = session.run([found.mean(), found.stddev()])
        error = deviation / np.sqrt(count)
        assert (np.abs(drawn.mean(0) - mean) < 5 * error).all()
        np.testing.assert_allclose(drawn.std(0), deviation, rtol=0.1)


@pytest.mark.parametrize("name", sorted({*DRAWN} - {"categorical", "shares", "half"}))
def test_covariances_and_entropies_are_those_of_samples(name: str) -> None:
    count = 20_000
    with hr.Graph().as_default(), hr.Session() as session:
        found = evaluated(DRAWN[name])
        drawn = found.sample(count, seed=7)
        if found.event_shape.ndims:
            drawn, covariance = session.run([drawn, found.covariance()])
            apart = drawn - drawn.mean(0)
            measured = np.einsum("n...i,n...j->...ij", apart, apart) / count
            spread = np.abs(covariance).max()
            np.testing.assert_allclose(measured, covariance, atol=0.05 * spread)
        if not isinstance(found, d.Multinomial | d.DirichletMultinomial):
            told, log_prob = session.run([found.entropy(), found.log_prob(drawn)])
            log_prob = log_prob.astype(np.float64)
            spread = log_prob.std(0) / np.sqrt(count)
            assert (np.abs(log_prob.mean(0) + told) < 5 * spread + 1e-5).all()


def test_equal_seeds_draw_the_same_and_others_do_not() -> None:
    with hr.Graph().as_default(), hr.Session() as session:
        found = d.StudentT(3.0, 0.0, 1.0)
        one, two, other = session.run([found.sample(9, seed=s) for s in (1, 1, 2)])
    assert (one == two).all()
    assert (one != other).all()


@pytest.mark.parametrize(
    ("text", "types"),
    [
        ("d.Normal(p, 2.)", d.FULLY_REPARAMETERIZED),
        ("d.Laplace(0., p)", d.FULLY_REPARAMETERIZED),
        ("d.Uniform(0., p)", d.FULLY_REPARAMETERIZED),
        ("d.Exponential(p)", d.FULLY_REPARAMETERIZED),
        ("d.Gamma(p, 2.)", d.FULLY_REPARAMETERIZED),
        ("d.Beta(p, 2.)", d.FULLY_REPARAMETERIZED),
        ("d.StudentT(p + 3., 0., 1.)", d.FULLY_REPARAMETERIZED),
        ("d.Dirichlet(tf.stack([p, 2.]))", d.FULLY_REPARAMETERIZED),
        ("d.Bernoulli(p)", d.NOT_REPARAMETERIZED),
        ("d.Categorical(tf.stack([p, 2.]))", d.NOT_REPARAMETERIZED),
        ("d.Multinomial(3., tf.stack([p, 2.]))", d.NOT_REPARAMETERIZED),
        ("d.DirichletMultinomial(3., tf.stack([p, 2.]))", d.NOT_REPARAMETERIZED),
    ],
)
def test_samples_have_gradients_where_they_say_so(
    text: str, types: d.ReparameterizationType
) -> None:
    with hr.Graph().as_default(), hr.Session() as session:
        p = hr.constant(1.5)
        names = {"p": p, "tf": hr, "d": d}
        found = eval(text, names)
        assert found.reparameterization_type is types
        assert found.reparameterization_type == types
        (gradient,) = hr.gradients(hr.cast(found.sample(64, seed=3), hr.float32), [p])
        if types is d.NOT_REPARAMETERIZED:
            assert gradient is None
        else:
            value = session.run(gradient)
            assert np.isfinite(value)
            assert value != 0 or text.startswith("d.Dirichlet")
    assert repr(types).startswith("<Reparameterization Type: ")


# -- shapes


@pytest.mark.parametrize("name", MADE)
def test_shapes_that_are_not_known_before_the_step_give_the_same(name: str) -> None:
    text, values = distribution_programs.MADE[name]
    given = text[text.index("(") + 1 : -1]
    kind = text[: text.index("(")]

    def hidden(value: Any) -> hr.Tensor:
        return hr.placeholder_with_default(hr.convert_to_tensor(value), None)

    def unknown(*args: Any, **named: Any) -> Any:
        make = evaluated(kind)
        return make(*map(hidden, args), **{key: hidden(value) for key, value in named.items()})

    with hr.Graph().as_default(), hr.Session() as session:
        known = evaluated(text)
        found = eval(f"unknown({given})", {"unknown": unknown, "np": np})
        value = hr.constant(evaluated(values), known.dtype)
        for what in (
            "batch_shape_tensor",
            "event_shape_tensor",
            "is_scalar_event",
            "is_scalar_batch",
        ):
            one, two = session.run([getattr(each, what)() for each in (known, found)])
            np.testing.assert_array_equal(one, two)
        one, two = session.run([known.log_prob(value), found.log_prob(hidden(value))])
        np.testing.assert_allclose(one, two, rtol=1e-6)
        size = hr.placeholder_with_default(hr.constant([2, 3]), None)
        one, two, three = session.run(
            [known.sample([2, 3], seed=1), found.sample([2, 3], seed=1), found.sample(size, seed=1)]
        )
        np.testing.assert_allclose(one, two, rtol=1e-6)
        np.testing.assert_allclose(one, three, rtol=1e-6)
        assert session.run(found.sample(seed=1)).shape == one.shape[2:]
        assert session.run(found.sample(0)).shape == (0, *one.shape[2:])


def test_modes_of_a_batch_are_told_one_by_one() -> None:
    with hr.Graph().as_default(), hr.Session() as session:
        found = session.run(d.Dirichlet([[1.5, 2.0, 3.0], [0.5, 2.0, 3.0]]).mode())
    np.testing.assert_allclose(found[0], np.array([0.5, 1.0, 2.0]) / 3.5, rtol=1e-6)
    assert np.isnan(found[1]).all()


# -- subclasses and divergences


class Square(d.Distribution):
    """Samples that are the square of a uniform one; it says no more than it must."""

    def __init__(self, name: str = "Square") -> None:
        super().__init__(hr.float32, d.NOT_REPARAMETERIZED, False, True, {"name": name}, None, name)

    def _prob(self, value: Any) -> Any:
        return 0.5 / hr.sqrt(value)

    def _cdf(self, value: Any) -> Any:
        return hr.sqrt(value)

    def _variance(self) -> Any:
        return hr.constant(4 / 45)


def test_what_follows_from_others_need_not_be_said() -> None:
    with hr.Graph().as_default(), hr.Session() as session:
        found = Square()
        assert found.name == "Square/"
        assert Square().name == "Square_1/"
        assert found.copy(name="other").name == "other/"
        got = session.run(
            [
                *(found.log_prob(0.25), found.log_cdf(0.25), found.survival_function(0.25)),
                *(found.log_survival_function(0.25), found.stddev()),
            ]
        )
        np.testing.assert_allclose(
            got, [0.0, np.log(0.5), 0.5, np.log(0.5), np.sqrt(4 / 45)], rtol=1e-6
        )
        for what in ("mean", "mode", "entropy", "covariance", "sample", "batch_shape_tensor"):
            with pytest.raises(errors.UnimplementedError, match="is not implemented: Square"):
                getattr(found, what)()
        with pytest.raises(errors.UnimplementedError, match="quantile is not implemented: Square"):
            found.quantile(0.5)
        with pytest.raises(errors.UnimplementedError, match="_param_shapes not implemented"):
            Square.param_shapes([2])
        assert str(found) == 'hr.distributions.Square("Square/", dtype=float32)'
        assert repr(d.Normal([0.0, 1.0], 1.0)).startswith(
            "<hr.distributions.Normal 'Normal/' batch"
        )
        assert "batch_shape=(2,), event_shape=()" in str(d.Normal([0.0, 1.0], 1.0))


def test_divergences_are_taught_for_pairs_and_what_derives_from_them() -> None:
    class Wide(d.Normal):
        pass

    with hr.Graph().as_default(), hr.Session() as session:
        wide, normal = Wide(1.0, 2.0), d.Normal(0.0, 1.0)
        one, two = session.run(
            [d.kl_divergence(wide, normal), d.Normal(1.0, 2.0).kl_divergence(normal)]
        )
        assert one == two

        @d.RegisterKL(Wide, d.Normal)
        def taught(a: Any, b: Any, name: str | None = None) -> Any:
            return hr.constant(np.float32(np.nan))

        assert np.isnan(session.run(d.kl_divergence(wide, normal)))
        with pytest.raises(errors.InvalidArgumentError, match="returned NaN values"):
            session.run(d.kl_divergence(wide, normal, allow_nan_stats=False))
        assert session.run(d.kl_divergence(normal, d.Normal(0.0, 1.0), allow_nan_stats=False)) == 0
        with pytest.raises(ValueError, match=r"KL\(Wide \|\| Normal\) has already been registered"):
            d.RegisterKL(Wide, d.Normal)(taught)
        with pytest.raises(TypeError, match="kl_fn must be callable, received: 3"):
            d.RegisterKL(Wide, Wide)(3)  # type: ignore[arg-type]
        with pytest.raises(
            NotImplementedError, match="type Uniform and distribution_b type Normal"
        ):
            d.kl_divergence(d.Uniform(), normal)


def test_parameters_are_told_and_replaced() -> None:
    with hr.Graph().as_default():
        found = d.Exponential(2.0, validate_args=True, name="decay")
        assert found.parameters == {
            "rate": 2.0, "validate_args": True, "allow_nan_stats": True, "name": "decay"
        }  # fmt: skip
        assert found.copy(rate=3.0).parameters["rate"] == 3.0
        assert found.validate_args
        assert found.allow_nan_stats
        assert found.mean().name == "decay/mean/truediv:0"
        assert d.Normal.param_static_shapes([2, 3])["loc"].as_list() == [2, 3]
        assert d.Normal.param_static_shapes(hr.TensorShape([2]))["scale"].as_list() == [2]
        with pytest.raises(ValueError, match="sample_shape must be fully defined"):
            d.Normal.param_static_shapes(hr.TensorShape([None]))
        with pytest.raises(ValueError, match="must be a fully-defined TensorShape or list"):
            d.Normal.param_static_shapes(hr.placeholder(hr.int32, [1]))
        with pytest.raises(ValueError, match="Graph parent item 0 is not a Tensor; 3"):
            d.Distribution(hr.float32, d.NOT_REPARAMETERIZED, False, True, graph_parents=[3])
        with pytest.raises(TypeError, match="log_ndtr takes float32 and float64, got float16"):
            d.Normal(np.float16(0), np.float16(1)).log_cdf(np.float16(0))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("d.Uniform(3., 1., validate_args=True).mean()", "uniform not defined when low >= high"),
        ("d.Gamma(0.5, 1., allow_nan_stats=False).mode()", "mode not defined when any concen"),
        ("d.StudentT(1., 0., 1., allow_nan_stats=False).mean()", "mean not defined for compon"),
        ("d.Beta(1., 1., validate_args=True).prob(1.5)", "sample must be less than `1`"),
        ("d.Bernoulli()", "Must pass probs or logits, but not both"),
        ("d.Bernoulli(probs=[1])", "probs must have a floating dtype, got int32"),
        ("d.Bernoulli(probs=[1.5], validate_args=True).mean()", "components greater than 1"),
        ("d.Bernoulli(probs=[0.5], validate_args=True).prob([0.5])", "Elements must be whole"),
        ("d.Bernoulli(probs=[0.5], validate_args=True).prob([2])", "Elements cannot exceed 1"),
        ("d.Categorical(0.5, validate_args=True)", "must have at least 1 dimension"),
        ("d.Categorical([0.5], validate_args=True)", "must have at least 2 events"),
        ("d.Categorical([0., 1.], validate_args=True).prob(-1)", "must be non-negative"),
        ("d.Categorical([0., 1.], validate_args=True).prob(tf.constant(1 << 40))", "cannot exceed"),
        ("d.Categorical([0., 1.], validate_args=True).prob(0.5)", "must be int32-equivalent"),
        ("d.Categorical([0., 1.]).prob('1')", "`value` should have integer `dtype`"),
        (
            "d.Categorical(probs=[0.5, 0.2], validate_args=True).entropy()",
            "probs does not sum to 1",
        ),
        ("d.Dirichlet(1., validate_args=True)", "must have >=1 dimensions"),
        ("d.Dirichlet([1.], validate_args=True)", "must have event_size >= 2"),
        ("d.Dirichlet([1., 3.], validate_args=True).prob([0.5, 0.6])", "must sum to `1`"),
        ("d.Multinomial(2., [1., 1.], validate_args=True).prob([1., 2.])", "counts must sum to"),
        ("d.DirichletMultinomial(2., [1., 0.], validate_args=True).mean()", "must be positive"),
        ("d.Normal(0., 1.).sample([[1]])", "Input is neither scalar nor vector"),
    ],
)
def test_errors_say_what_is_wrong(text: str, message: str) -> None:
    with hr.Graph().as_default(), hr.Session() as session, pytest.raises(Exception, match=message):
        session.run(evaluated(text))


@pytest.mark.parametrize("text", ["d.Categorical({}, validate_args=True).entropy()",
                                  "d.Dirichlet({}, validate_args=True).mean()"])  # fmt: skip
def test_sizes_that_are_not_known_are_checked_in_the_step(text: str) -> None:
    with hr.Graph().as_default(), hr.Session() as session:
        value = hr.placeholder(hr.float32, None)
        found = eval(text.format("value"), {"d": d, "value": value})
        session.run(found, {value: [1.0, 2.0]})
        with pytest.raises(errors.InvalidArgumentError, match=r"at least 2 events|event_size >= 2"):
            session.run(found, {value: [1.0]})
