"""Sets of values: what a parameter may be, where a distribution lives.

>>> import flambeau as torch
>>> positive.check(torch.tensor([-1.0, 2.0]))
tensor([False,  True])
"""

import flambeau as torch

__all__ = [
    "Constraint", "MixtureSameFamilyConstraint", "boolean", "cat", "corr_cholesky", "dependent", "dependent_property",
    "greater_than", "greater_than_eq", "half_open_interval", "independent", "integer_interval", "interval",
    "is_dependent", "less_than", "lower_cholesky", "lower_triangular", "multinomial", "nonnegative",
    "nonnegative_integer", "one_hot", "positive", "positive_definite", "positive_integer", "positive_semidefinite",
    "real", "real_vector", "simplex", "square", "stack", "symmetric", "unit_interval",
]  # fmt: skip


class Constraint:
    """A set of values; an element has ``event_dim`` dimensions."""

    is_discrete = False
    event_dim = 0

    def check(self, value):
        """Which elements of ``value`` are in the set, as bools of its batch."""
        raise NotImplementedError

    def __repr__(self):
        return type(self).__name__[1:] + "()"


class _Dependent(Constraint):
    """A set that other parameters decide."""

    def __init__(self, *, is_discrete=NotImplemented, event_dim=NotImplemented):
        self._is_discrete, self._event_dim = is_discrete, event_dim
        super().__init__()

    @property
    def is_discrete(self):
        """Whether it holds single points; an error where that is not known."""
        if self._is_discrete is NotImplemented:
            raise NotImplementedError(".is_discrete cannot be determined statically")
        return self._is_discrete

    @property
    def event_dim(self):
        """Dimensions of an element; an error where that is not known."""
        if self._event_dim is NotImplemented:
            raise NotImplementedError(".event_dim cannot be determined statically")
        return self._event_dim

    def __call__(self, *, is_discrete=NotImplemented, event_dim=NotImplemented):
        """The same with other answers."""
        return _Dependent(
            is_discrete=self._is_discrete if is_discrete is NotImplemented else is_discrete,
            event_dim=self._event_dim if event_dim is NotImplemented else event_dim,
        )

    def check(self, x):
        """An error: nobody knows yet."""
        raise ValueError("Cannot determine validity of dependent constraint")


def is_dependent(constraint):
    """Whether other parameters decide a set."""
    return isinstance(constraint, _Dependent)


class _DependentProperty(property, _Dependent):
    """A property that gives a set, and stands for it in the class."""

    def __init__(self, fn=None, *, is_discrete=NotImplemented, event_dim=NotImplemented):
        super().__init__(fn)
        self._is_discrete, self._event_dim = is_discrete, event_dim

    def __call__(self, fn):
        """The property, where it was made with answers only."""
        return _DependentProperty(fn, is_discrete=self._is_discrete, event_dim=self._event_dim)


class _IndependentConstraint(Constraint):
    """A set whose elements are whole stacks of another's."""

    def __init__(self, base_constraint, reinterpreted_batch_ndims):
        self.base_constraint, self.reinterpreted_batch_ndims = base_constraint, reinterpreted_batch_ndims
        super().__init__()

    @property
    def is_discrete(self):
        """As the other's."""
        return self.base_constraint.is_discrete

    @property
    def event_dim(self):
        """The other's and the stack's."""
        return self.base_constraint.event_dim + self.reinterpreted_batch_ndims

    def check(self, value):
        """Stacks all of whose elements are in the other set."""
        result = self.base_constraint.check(value)
        if result.dim() < self.reinterpreted_batch_ndims:
            expected = self.base_constraint.event_dim + self.reinterpreted_batch_ndims
            raise ValueError(f"Expected value.dim() >= {expected} but got {value.dim()}")
        return result.reshape(result.shape[: result.dim() - self.reinterpreted_batch_ndims] + (-1,)).all(-1)

    def __repr__(self):
        return f"{type(self).__name__[1:]}({self.base_constraint!r}, {self.reinterpreted_batch_ndims})"


class MixtureSameFamilyConstraint(Constraint):
    """Where a mixture lives: where its components do."""

    def __init__(self, base_constraint):
        if not isinstance(base_constraint, Constraint):
            raise AssertionError(f"Expected base_constraint to be a Constraint, but got {type(base_constraint)}")
        self.base_constraint = base_constraint

    @property
    def is_discrete(self):
        """As the components'."""
        return self.base_constraint.is_discrete

    @property
    def event_dim(self):
        """As the components'."""
        return self.base_constraint.event_dim

    def check(self, value):
        """Elements that all components may give."""
        unsqueezed = value.unsqueeze(-1 - self.event_dim)
        result = self.base_constraint.check(unsqueezed)
        if value.dim() < self.event_dim:
            raise ValueError(f"Expected value.dim() >= {self.event_dim} but got {value.dim()}")
        keep = value.dim() - self.event_dim
        return result.reshape(result.shape[:keep] + (-1,)).all(-1)

    def __repr__(self):
        return f"{type(self).__name__}({self.base_constraint!r})"


def _simple(name, check, discrete=False, dims=0):
    """The class of a set without parameters."""
    body = {"check": lambda self, value: check(value), "is_discrete": discrete, "event_dim": dims}
    return type(name, (Constraint,), body)


def _is_integer(x):
    return x % 1 == 0


_Boolean = _simple("_Boolean", lambda x: (x == 0) | (x == 1), True)
_OneHot = _simple("_OneHot", lambda x: ((x == 0) | (x == 1)).all(-1) & x.sum(-1).eq(1), True, 1)
_Real = _simple("_Real", lambda x: x == x)  # all but NaN
_Simplex = _simple("_Simplex", lambda x: (x >= 0).all(-1) & ((x.sum(-1) - 1).abs() < 1e-6), False, 1)
_LowerTriangular = _simple("_LowerTriangular", lambda x: (x.tril() == x).flatten(-2).all(-1), False, 2)
_LowerCholesky = _simple(
    "_LowerCholesky",
    lambda x: (x.tril() == x).flatten(-2).all(-1) & (x.diagonal(dim1=-2, dim2=-1) > 0).all(-1),
    False,
    2,
)
_Square = _simple(
    "_Square",
    lambda x: torch.full(x.shape[:-2], x.shape[-2] == x.shape[-1], dtype=torch.bool, device=x.device),
    False,
    2,
)


def _corr_cholesky(x):
    tolerance = torch.finfo(x.dtype).eps * x.size(-1) * 10
    norm = torch.linalg.vector_norm(x.detach(), dim=-1)
    return ((norm - 1).abs() <= tolerance).all(-1) & _LowerCholesky().check(x)


def _is_symmetric(x):
    square_check = _Square().check(x)
    if not square_check.all():
        return square_check
    return torch.isclose(x, x.mT, atol=1e-6).all(-2).all(-1)


def _positive_definite(x):
    symmetric_check = _is_symmetric(x)
    if not symmetric_check.all():
        return symmetric_check
    return torch.linalg.cholesky_ex(x).info.eq(0)


_CorrCholesky = _simple("_CorrCholesky", _corr_cholesky, False, 2)
_Symmetric = _simple("_Symmetric", _is_symmetric, False, 2)
_PositiveSemidefinite = _simple(
    "_PositiveSemidefinite", lambda x: _is_symmetric(x) & (torch.linalg.eigvalsh(x) >= 0).all(-1), False, 2
)
_PositiveDefinite = _simple("_PositiveDefinite", _positive_definite, False, 2)


class _Bounded(Constraint):
    """A set with bounds."""

    _names = ()

    def __init__(self, *bounds, **named):
        for name, bound in {**dict(zip(self._names, bounds)), **named}.items():
            setattr(self, name, bound)
        super().__init__()

    def __repr__(self):
        name = type(self).__name__[1:]
        return f"{name}({', '.join(f'{n}={getattr(self, n)}' for n in self._names)})"


def _bounded(name, names, check, discrete=False, dims=0):
    body = {"_names": names, "is_discrete": discrete, "event_dim": dims}
    body["check"] = lambda self, value: check(value, *(getattr(self, n) for n in names))
    return type(name, (_Bounded,), body)


_BOUNDS = ("lower_bound", "upper_bound")
_IntegerInterval = _bounded("_IntegerInterval", _BOUNDS, lambda x, a, b: _is_integer(x) & (a <= x) & (x <= b), True)
_IntegerLessThan = _bounded("_IntegerLessThan", ("upper_bound",), lambda x, b: _is_integer(x) & (x <= b), True)
_IntegerGreaterThan = _bounded("_IntegerGreaterThan", ("lower_bound",), lambda x, a: _is_integer(x) & (x >= a), True)
_GreaterThan = _bounded("_GreaterThan", ("lower_bound",), lambda x, a: a < x)
_GreaterThanEq = _bounded("_GreaterThanEq", ("lower_bound",), lambda x, a: a <= x)
_LessThan = _bounded("_LessThan", ("upper_bound",), lambda x, b: x < b)
_Interval = _bounded("_Interval", _BOUNDS, lambda x, a, b: (a <= x) & (x <= b))
_HalfOpenInterval = _bounded("_HalfOpenInterval", _BOUNDS, lambda x, a, b: (a <= x) & (x < b))
_Multinomial = _bounded("_Multinomial", ("upper_bound",), lambda x, n: (x >= 0).all(-1) & (x.sum(-1) <= n), True, 1)


class _Cat(Constraint):
    """Parts of several sets beside one another."""

    def __init__(self, cseq, dim=0, lengths=None):
        self.cseq, self.dim = list(cseq), dim
        self.lengths = [1] * len(self.cseq) if lengths is None else list(lengths)
        super().__init__()

    @property
    def is_discrete(self):
        """Whether one of them is."""
        return any(c.is_discrete for c in self.cseq)

    @property
    def event_dim(self):
        """The most of theirs."""
        return max(c.event_dim for c in self.cseq)

    def check(self, value):
        """Each part by its set."""
        checks, start = [], 0
        for part, length in zip(self.cseq, self.lengths):
            checks.append(part.check(value.narrow(self.dim, start, length)))
            start += length
        return torch.cat(checks, self.dim)


class _Stack(_Cat):
    """Slices of several sets on one another."""

    def __init__(self, cseq, dim=0):
        super().__init__(cseq, dim)

    @property
    def event_dim(self):
        """The most of theirs, and the stack's."""
        dim = super().event_dim
        return dim + 1 if self.dim + dim < 0 else dim

    def check(self, value):
        """Each slice by its set."""
        slices = [value.select(self.dim, i) for i in range(value.size(self.dim))]
        return torch.stack([c.check(v) for v, c in zip(slices, self.cseq)], self.dim)


dependent = _Dependent()
dependent_property = _DependentProperty
independent = _IndependentConstraint
boolean = _Boolean()
one_hot = _OneHot()
nonnegative_integer = _IntegerGreaterThan(0)
positive_integer = _IntegerGreaterThan(1)
integer_interval = _IntegerInterval
real = _Real()
real_vector = independent(real, 1)
positive = _GreaterThan(0.0)
nonnegative = _GreaterThanEq(0.0)
greater_than = _GreaterThan
greater_than_eq = _GreaterThanEq
less_than = _LessThan
multinomial = _Multinomial
unit_interval = _Interval(0.0, 1.0)
interval = _Interval
half_open_interval = _HalfOpenInterval
simplex = _Simplex()
lower_triangular = _LowerTriangular()
lower_cholesky = _LowerCholesky()
corr_cholesky = _CorrCholesky()
square = _Square()
symmetric = _Symmetric()
positive_semidefinite = _PositiveSemidefinite()
positive_definite = _PositiveDefinite()
cat = _Cat
stack = _Stack
