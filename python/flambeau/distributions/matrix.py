"""Distributions of vectors and matrices, and of angles."""

import math

import flambeau as torch

from . import constraints
from .distribution import Distribution, ExponentialFamily
from .positive import Beta, Chi2
from .utils import _standard_normal, broadcast_all, lazy_property

__all__ = ["LKJCholesky", "LowRankMultivariateNormal", "MultivariateNormal", "VonMises", "Wishart"]


def _batch_mv(matrix, vector):
    return torch.matmul(matrix, vector.unsqueeze(-1)).squeeze(-1)


def _mahalanobis(tril, x):
    """``x @ inverse(tril @ tril.T) @ x`` along the last dimension, with broadcasting."""
    solved = torch.linalg.solve_triangular(tril, x.unsqueeze(-1), upper=False)
    return solved.squeeze(-1).pow(2).sum(-1)


def _half_log_det(tril):
    return tril.diagonal(dim1=-2, dim2=-1).log().sum(-1)


def _precision_to_scale_tril(precision):
    flipped = torch.linalg.cholesky(torch.flip(precision, (-2, -1)))
    inverse = torch.transpose(torch.flip(flipped, (-2, -1)), -2, -1)
    eye = torch.eye(precision.shape[-1], dtype=precision.dtype, device=precision.device)
    return torch.linalg.solve_triangular(inverse, eye.expand(precision.shape), upper=False)


class _Covariance:
    """A covariance as one of three matrices; the others are computed when asked for."""

    @lazy_property
    def scale_tril(self):
        """The covariance's Cholesky factor."""
        return self._unbroadcasted_scale_tril.expand(self._batch_shape + self._matrix_shape)

    @lazy_property
    def covariance_matrix(self):
        """The covariance."""
        tril = self._unbroadcasted_scale_tril
        return torch.matmul(tril, tril.mT).expand(self._batch_shape + self._matrix_shape)

    @lazy_property
    def precision_matrix(self):
        """The covariance's inverse."""
        return torch.cholesky_inverse(self._unbroadcasted_scale_tril).expand(self._batch_shape + self._matrix_shape)


class MultivariateNormal(_Covariance, Distribution):
    """A normal vector, of a covariance, its inverse, or its Cholesky factor."""

    arg_constraints = {
        "loc": constraints.real_vector, "covariance_matrix": constraints.positive_definite,
        "precision_matrix": constraints.positive_definite, "scale_tril": constraints.lower_cholesky,
    }  # fmt: skip
    support = constraints.real_vector
    has_rsample = True

    def __init__(self, loc, covariance_matrix=None, precision_matrix=None, scale_tril=None, validate_args=None):
        if loc.dim() < 1:
            raise ValueError("loc must be at least one-dimensional.")
        given = {"covariance_matrix": covariance_matrix, "precision_matrix": precision_matrix, "scale_tril": scale_tril}
        given = {name: m for name, m in given.items() if m is not None}
        if len(given) != 1:
            raise ValueError("Exactly one of covariance_matrix or precision_matrix or scale_tril may be specified.")
        ((name, matrix),) = given.items()
        if matrix.dim() < 2:
            raise ValueError(f"{name} must be at least two-dimensional, with optional leading batch dimensions")
        batch_shape = torch.broadcast_shapes(matrix.shape[:-2], loc.shape[:-1])
        setattr(self, name, matrix.expand(batch_shape + matrix.shape[-2:]))
        self.loc = loc.expand(batch_shape + loc.shape[-1:])
        self._matrix_shape = loc.shape[-1:] + loc.shape[-1:]
        super().__init__(batch_shape, self.loc.shape[-1:], validate_args=validate_args)
        if scale_tril is not None:
            self._unbroadcasted_scale_tril = scale_tril
        elif covariance_matrix is not None:
            self._unbroadcasted_scale_tril = torch.linalg.cholesky(covariance_matrix)
        else:
            self._unbroadcasted_scale_tril = _precision_to_scale_tril(precision_matrix)

    def expand(self, batch_shape, _instance=None):
        new = self._get_checked_instance(MultivariateNormal, _instance)
        batch_shape = torch.Size(batch_shape)
        new.loc = self.loc.expand(batch_shape + self.event_shape)
        new._matrix_shape = self._matrix_shape
        new._unbroadcasted_scale_tril = self._unbroadcasted_scale_tril
        for name in ("covariance_matrix", "scale_tril", "precision_matrix"):
            if name in self.__dict__:
                setattr(new, name, self.__dict__[name].expand(batch_shape + self._matrix_shape))
        super(MultivariateNormal, new).__init__(batch_shape, self.event_shape, validate_args=False)
        new._validate_args = self._validate_args
        return new

    mean = mode = property(lambda self: self.loc)

    @property
    def variance(self):
        return self._unbroadcasted_scale_tril.pow(2).sum(-1).expand(self._batch_shape + self._event_shape)

    def rsample(self, sample_shape=torch.Size()):
        eps = _standard_normal(self._extended_shape(sample_shape), dtype=self.loc.dtype, device=self.loc.device)
        return self.loc + _batch_mv(self._unbroadcasted_scale_tril, eps)

    def log_prob(self, value):
        self._check(value)
        distance = _mahalanobis(self._unbroadcasted_scale_tril, value - self.loc)
        return -0.5 * (self._event_shape[0] * math.log(2 * math.pi) + distance) - _half_log_det(
            self._unbroadcasted_scale_tril
        )

    def entropy(self):
        h = 0.5 * self._event_shape[0] * (1.0 + math.log(2 * math.pi)) + _half_log_det(self._unbroadcasted_scale_tril)
        return h if len(self._batch_shape) == 0 else h.expand(self._batch_shape)


def _capacitance(w, d):
    """The Cholesky factor of ``I + W.T inv(D) W``."""
    scaled = w.mT / d.unsqueeze(-2)
    k = torch.matmul(scaled, w).contiguous()
    return torch.linalg.cholesky(k + torch.eye(w.shape[-1], dtype=w.dtype, device=w.device))


class LowRankMultivariateNormal(Distribution):
    """A normal vector of covariance ``cov_factor @ cov_factor.T + diag(cov_diag)``."""

    arg_constraints = {
        "loc": constraints.real_vector, "cov_factor": constraints.independent(constraints.real, 2),
        "cov_diag": constraints.independent(constraints.positive, 1),
    }  # fmt: skip
    support = constraints.real_vector
    has_rsample = True

    def __init__(self, loc, cov_factor, cov_diag, validate_args=None):
        if loc.dim() < 1:
            raise ValueError("loc must be at least one-dimensional.")
        event_shape = loc.shape[-1:]
        if cov_factor.dim() < 2:
            raise ValueError("cov_factor must be at least two-dimensional, with optional leading batch dimensions")
        if cov_factor.shape[-2:-1] != event_shape:
            raise ValueError(f"cov_factor must be a batch of matrices with shape {event_shape[0]} x m")
        if cov_diag.shape[-1:] != event_shape:
            raise ValueError(f"cov_diag must be a batch of vectors with shape {event_shape}")
        try:
            batch_shape = torch.broadcast_shapes(loc.shape[:-1], cov_factor.shape[:-2], cov_diag.shape[:-1])
        except RuntimeError as e:
            raise ValueError(
                f"Incompatible batch shapes: loc {loc.shape}, cov_factor {cov_factor.shape}, cov_diag {cov_diag.shape}"
            ) from e
        self.loc = loc.expand(batch_shape + event_shape)
        self.cov_diag = cov_diag.expand(batch_shape + event_shape)
        self.cov_factor = cov_factor.expand(batch_shape + cov_factor.shape[-2:])
        self._unbroadcasted_cov_factor, self._unbroadcasted_cov_diag = cov_factor, cov_diag
        self._capacitance_tril = _capacitance(cov_factor, cov_diag)
        super().__init__(batch_shape, event_shape, validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        new = self._get_checked_instance(LowRankMultivariateNormal, _instance)
        batch_shape = torch.Size(batch_shape)
        new.loc = self.loc.expand(batch_shape + self.event_shape)
        new.cov_diag = self.cov_diag.expand(batch_shape + self.event_shape)
        new.cov_factor = self.cov_factor.expand(batch_shape + self.cov_factor.shape[-2:])
        for name in ("_unbroadcasted_cov_factor", "_unbroadcasted_cov_diag", "_capacitance_tril"):
            setattr(new, name, getattr(self, name))
        super(LowRankMultivariateNormal, new).__init__(batch_shape, self.event_shape, validate_args=False)
        new._validate_args = self._validate_args
        return new

    mean = mode = property(lambda self: self.loc)

    @lazy_property
    def variance(self):
        """Of each component."""
        value = self._unbroadcasted_cov_factor.pow(2).sum(-1) + self._unbroadcasted_cov_diag
        return value.expand(self._batch_shape + self._event_shape)

    def _full(self, matrix):
        return matrix.expand(self._batch_shape + self._event_shape + self._event_shape)

    @lazy_property
    def scale_tril(self):
        """The covariance's Cholesky factor."""
        root = self._unbroadcasted_cov_diag.sqrt().unsqueeze(-1)
        scaled = self._unbroadcasted_cov_factor / root
        k = torch.matmul(scaled, scaled.mT).contiguous()
        k = k + torch.eye(k.shape[-1], dtype=k.dtype, device=k.device)
        return self._full(root * torch.linalg.cholesky(k))

    @lazy_property
    def covariance_matrix(self):
        """The covariance."""
        w = self._unbroadcasted_cov_factor
        return self._full(torch.matmul(w, w.mT) + torch.diag_embed(self._unbroadcasted_cov_diag))

    @lazy_property
    def precision_matrix(self):
        """The covariance's inverse, by Woodbury's identity."""
        scaled = self._unbroadcasted_cov_factor.mT / self._unbroadcasted_cov_diag.unsqueeze(-2)
        a = torch.linalg.solve_triangular(self._capacitance_tril, scaled, upper=False)
        return self._full(torch.diag_embed(self._unbroadcasted_cov_diag.reciprocal()) - a.mT @ a)

    def rsample(self, sample_shape=torch.Size()):
        shape = self._extended_shape(sample_shape)
        eps_w = _standard_normal(shape[:-1] + self.cov_factor.shape[-1:], dtype=self.loc.dtype, device=self.loc.device)
        eps_d = _standard_normal(shape, dtype=self.loc.dtype, device=self.loc.device)
        return self.loc + _batch_mv(self._unbroadcasted_cov_factor, eps_w) + self._unbroadcasted_cov_diag.sqrt() * eps_d

    def _log_det(self):
        return 2 * _half_log_det(self._capacitance_tril) + self._unbroadcasted_cov_diag.log().sum(-1)

    def log_prob(self, value):
        self._check(value)
        diff = value - self.loc
        inside = _batch_mv(self._unbroadcasted_cov_factor.mT / self._unbroadcasted_cov_diag.unsqueeze(-2), diff)
        distance = (diff.pow(2) / self._unbroadcasted_cov_diag).sum(-1) - _mahalanobis(self._capacitance_tril, inside)
        return -0.5 * (self._event_shape[0] * math.log(2 * math.pi) + self._log_det() + distance)

    def entropy(self):
        h = 0.5 * (self._event_shape[0] * (1.0 + math.log(2 * math.pi)) + self._log_det())
        return h if len(self._batch_shape) == 0 else h.expand(self._batch_shape)


class Wishart(_Covariance, ExponentialFamily):
    """Wishart: sums of outer products of ``df`` normal vectors."""

    arg_constraints = {
        "covariance_matrix": constraints.positive_definite, "precision_matrix": constraints.positive_definite,
        "scale_tril": constraints.lower_cholesky, "df": constraints.greater_than(0),
    }  # fmt: skip
    support = constraints.positive_definite
    has_rsample = True
    _mean_carrier_measure = 0

    def __init__(self, df, covariance_matrix=None, precision_matrix=None, scale_tril=None, validate_args=None):
        given = {"covariance_matrix": covariance_matrix, "precision_matrix": precision_matrix, "scale_tril": scale_tril}
        given = {name: m for name, m in given.items() if m is not None}
        if len(given) != 1:
            raise ValueError("Exactly one of covariance_matrix or precision_matrix or scale_tril may be specified.")
        ((name, matrix),) = given.items()
        if matrix.dim() < 2:
            raise ValueError("scale_tril must be at least two-dimensional, with optional leading batch dimensions")
        df = torch.tensor(df, dtype=matrix.dtype, device=matrix.device) if isinstance(df, (int, float)) else df
        batch_shape = torch.broadcast_shapes(matrix.shape[:-2], df.shape)
        self.df = df.expand(batch_shape)
        if self.df.le(matrix.shape[-1] - 1).any():
            raise ValueError(f"Value of df={df} expected to be greater than ndim - 1 = {matrix.shape[-1] - 1}.")
        setattr(self, name, matrix.expand(batch_shape + matrix.shape[-2:]))
        self._matrix_shape = matrix.shape[-2:]
        super().__init__(batch_shape, matrix.shape[-2:], validate_args=validate_args)
        if scale_tril is not None:
            self._unbroadcasted_scale_tril = scale_tril
        elif covariance_matrix is not None:
            self._unbroadcasted_scale_tril = torch.linalg.cholesky(covariance_matrix)
        else:
            self._unbroadcasted_scale_tril = _precision_to_scale_tril(precision_matrix)
        self._set_chi2()

    def _set_chi2(self):
        n = self._event_shape[-1]
        self._dist_chi2 = Chi2(
            df=self.df.unsqueeze(-1)
            - torch.arange(n, dtype=self.df.dtype, device=self.df.device).expand(self._batch_shape + (n,))
        )

    def expand(self, batch_shape, _instance=None):
        new = self._get_checked_instance(Wishart, _instance)
        batch_shape = torch.Size(batch_shape)
        new._matrix_shape = self._matrix_shape
        new._unbroadcasted_scale_tril = self._unbroadcasted_scale_tril.expand(batch_shape + self._matrix_shape)
        new.df = self.df.expand(batch_shape)
        for name in ("covariance_matrix", "scale_tril", "precision_matrix"):
            if name in self.__dict__:
                setattr(new, name, self.__dict__[name].expand(batch_shape + self._matrix_shape))
        super(Wishart, new).__init__(batch_shape, self.event_shape, validate_args=False)
        new._set_chi2()
        new._validate_args = self._validate_args
        return new

    mean = property(lambda self: self.df.view(self._batch_shape + (1, 1)) * self.covariance_matrix)

    @property
    def mode(self):
        factor = self.df - self.covariance_matrix.shape[-1] - 1
        factor = factor.masked_fill(factor <= 0, math.nan)
        return factor.view(self._batch_shape + (1, 1)) * self.covariance_matrix

    @property
    def variance(self):
        v = self.covariance_matrix
        diag = v.diagonal(dim1=-2, dim2=-1)
        return self.df.view(self._batch_shape + (1, 1)) * (v.pow(2) + torch.einsum("...i,...j->...ij", diag, diag))

    def rsample(self, sample_shape=torch.Size(), max_try_correction=None):
        """Draws, by Bartlett's decomposition."""
        sample_shape = torch.Size(sample_shape)
        tiny = torch.finfo(self._unbroadcasted_scale_tril.dtype).tiny
        noise = self._dist_chi2.rsample(sample_shape).clamp(min=tiny).sqrt().diag_embed(dim1=-2, dim2=-1)
        n = self._event_shape[-1]
        i, j = torch.tril_indices(n, n, offset=-1)
        below = torch.zeros_like(noise)
        below[..., i, j] = torch.randn(
            sample_shape + self._batch_shape + (n * (n - 1) // 2,), dtype=noise.dtype, device=noise.device
        )
        chol = self._unbroadcasted_scale_tril @ (noise + below)
        return chol @ chol.mT

    def log_prob(self, value):
        self._check(value)
        nu, p = self.df, self._event_shape[-1]
        return (
            -nu * (p * math.log(2.0) / 2 + _half_log_det(self._unbroadcasted_scale_tril)) - torch.mvlgamma(nu / 2, p=p)
            + (nu - p - 1) / 2 * torch.linalg.slogdet(value).logabsdet
            - torch.cholesky_solve(value, self._unbroadcasted_scale_tril).diagonal(dim1=-2, dim2=-1).sum(-1) / 2
        )  # fmt: skip

    def entropy(self):
        nu, p = self.df, self._event_shape[-1]
        steps = torch.arange(p, dtype=nu.dtype, device=nu.device)
        digammas = torch.digamma((nu.unsqueeze(-1) - steps) / 2).sum(-1)
        return (
            (p + 1) * (p * math.log(2.0) / 2 + _half_log_det(self._unbroadcasted_scale_tril)) + torch.mvlgamma(nu / 2, p=p)
            - (nu - p - 1) / 2 * digammas + nu * p / 2
        )  # fmt: skip

    _natural_params = property(lambda self: (-self.precision_matrix / 2, (self.df - self._event_shape[-1] - 1) / 2))

    def _log_normalizer(self, x, y):
        p = self._event_shape[-1]
        return (y + (p + 1) / 2) * (-torch.linalg.slogdet(-2 * x).logabsdet + math.log(2.0) * p) + torch.mvlgamma(
            y + (p + 1) / 2, p=p
        )


class LKJCholesky(Distribution):
    """Cholesky factors of correlation matrices (Lewandowski, Kurowicka and Joe, 2009), by their onion method."""

    arg_constraints = {"concentration": constraints.positive}
    support = constraints.corr_cholesky

    def __init__(self, dim, concentration=1.0, validate_args=None):
        if dim < 2:
            raise ValueError(f"Expected dim to be an integer greater than or equal to 2. Found dim={dim}.")
        self.dim = dim
        (self.concentration,) = broadcast_all(concentration)
        batch_shape = self.concentration.size()
        marginal = self.concentration + 0.5 * (dim - 2)
        offset = torch.arange(dim - 1, dtype=self.concentration.dtype, device=self.concentration.device)
        offset = torch.cat([offset.new_zeros((1,)), offset])
        self._beta = Beta(offset + 0.5, marginal.unsqueeze(-1) - 0.5 * offset)
        super().__init__(batch_shape, torch.Size((dim, dim)), validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        new = self._expanded(LKJCholesky, batch_shape, ("concentration",), _instance)
        new.dim = self.dim
        new._beta = self._beta.expand(torch.Size(batch_shape) + (self.dim,))
        return new

    def sample(self, sample_shape=torch.Size()):
        with torch.no_grad():
            y = self._beta.sample(sample_shape).unsqueeze(-1)
            u = torch.randn(self._extended_shape(sample_shape), dtype=y.dtype, device=y.device).tril(-1)
            sphere = u / u.norm(dim=-1, keepdim=True)
            sphere[..., 0, :].fill_(0.0)
            w = torch.sqrt(y) * sphere
            eps = torch.finfo(w.dtype).tiny
            diag = torch.clamp(1 - torch.sum(w**2, dim=-1), min=eps).sqrt()
            return w + torch.diag_embed(diag)

    def log_prob(self, value):
        self._check(value)
        diag = value.diagonal(dim1=-1, dim2=-2)[..., 1:]
        order = torch.arange(2, self.dim + 1, device=self.concentration.device)
        order = 2 * (self.concentration - 1).unsqueeze(-1) + self.dim - order
        plain = torch.sum(order * diag.log(), dim=-1)
        m = self.dim - 1
        alpha = self.concentration + 0.5 * m
        below = torch.lgamma(alpha) * m
        above = torch.mvlgamma(alpha - 0.5, m)
        return plain - (0.5 * m * math.log(math.pi) + above - below)


_I0_SMALL = [1.0, 3.5156229, 3.0899424, 1.2067492, 0.2659732, 0.360768e-1, 0.45813e-2]
_I0_LARGE = [
    0.39894228,
    0.1328592e-1,
    0.225319e-2,
    -0.157565e-2,
    0.916281e-2,
    -0.2057706e-1,
    0.2635537e-1,
    -0.1647633e-1,
    0.392377e-2,
]
_I1_SMALL = [0.5, 0.87890594, 0.51498869, 0.15084934, 0.2658733e-1, 0.301532e-2, 0.32411e-3]
_I1_LARGE = [
    0.39894228,
    -0.3988024e-1,
    -0.362018e-2,
    0.163801e-2,
    -0.1031555e-1,
    0.2282967e-1,
    -0.2895312e-1,
    0.1787654e-1,
    -0.420059e-2,
]


def _polynomial(y, coefficients):
    result = coefficients[-1]
    for c in reversed(coefficients[:-1]):
        result = c + y * result
    return result


def _log_bessel(x, order=0):
    """The logarithm of a modified Bessel function (polynomials 9.8.1 to 9.8.4 of Abramowitz and Stegun)."""
    y = (x / 3.75) ** 2
    small = _polynomial(y, _I1_SMALL if order else _I0_SMALL)
    if order:
        small = x.abs() * small
    y = 3.75 / x
    large = x - 0.5 * x.log() + _polynomial(y, _I1_LARGE if order else _I0_LARGE).log()
    return torch.where(x < 3.75, small.log(), large)


class VonMises(Distribution):
    """An angle around ``loc``, more closely where ``concentration`` is larger; draws after Best and Fisher (1979)."""

    arg_constraints = {"loc": constraints.real, "concentration": constraints.positive}
    support = constraints.real
    has_rsample = False

    def __init__(self, loc, concentration, validate_args=None):
        self.loc, self.concentration = broadcast_all(loc, concentration)
        super().__init__(self.loc.shape, torch.Size(), validate_args)

    def log_prob(self, value):
        self._check(value)
        plain = self.concentration * torch.cos(value - self.loc)
        return plain - math.log(2 * math.pi) - _log_bessel(self.concentration)

    @lazy_property
    def _loc(self):
        return self.loc.to(torch.double)

    @lazy_property
    def _concentration(self):
        return self.concentration.to(torch.double)

    @lazy_property
    def _proposal_r(self):
        kappa = self._concentration
        tau = 1 + (1 + 4 * kappa**2).sqrt()
        rho = (tau - (2 * tau).sqrt()) / (2 * kappa)
        # A Taylor expansion where the formula would divide 0 by 0.
        return torch.where(kappa < 1e-5, 1 / kappa + kappa, (1 + rho**2) / (2 * rho))

    def sample(self, sample_shape=torch.Size()):
        with torch.no_grad():
            shape = self._extended_shape(sample_shape)
            kappa, r = self._concentration.expand(shape), self._proposal_r.expand(shape)
            x = torch.empty(shape, dtype=torch.double, device=self.loc.device)
            done = torch.zeros(shape, dtype=torch.bool, device=self.loc.device)
            while not done.all():
                u1, u2, u3 = torch.rand((3,) + tuple(shape), dtype=torch.double, device=self.loc.device).unbind()
                z = torch.cos(math.pi * u1)
                f = (1 + r * z) / (r + z)
                c = kappa * (r - f)
                accept = ((c * (2 - c) - u2) > 0) | ((c / u2).log() + 1 - c >= 0)
                x = torch.where(accept, (u3 - 0.5).sign() * f.acos(), x)
                done = done | accept
            turned = (x + math.pi + self._loc) % (2 * math.pi) - math.pi
            return turned.to(self.loc.dtype)

    def expand(self, batch_shape, _instance=None):
        return type(self)(self.loc.expand(batch_shape), self.concentration.expand(batch_shape), validate_args=False)

    mean = mode = property(lambda self: self.loc)

    @lazy_property
    def variance(self):
        """The circular variance."""
        return 1 - (_log_bessel(self.concentration, 1) - _log_bessel(self.concentration)).exp()
