"""Kullback and Leibler's divergence, by pairs of distributions."""

import math
import warnings
from functools import total_ordering

import flambeau as torch

from .discrete import Bernoulli, Binomial, Categorical, ContinuousBernoulli, Geometric, OneHotCategorical
from .distribution import Distribution, ExponentialFamily
from .location import Cauchy, Exponential, Laplace, Normal, Poisson, Uniform
from .matrix import LowRankMultivariateNormal, MultivariateNormal, _half_log_det, _mahalanobis
from .positive import Beta, Dirichlet, Gamma
from .transformed import Gumbel, HalfNormal, Independent, Pareto, TransformedDistribution
from .utils import _sum_rightmost, euler_constant

__all__ = ["kl_divergence", "register_kl"]

_KL_REGISTRY = {}
_KL_MEMOIZE = {}


def register_kl(type_p, type_q):
    """Decorates a function of distributions of two classes that gives their divergence."""
    if not isinstance(type_p, type) and issubclass(type_p, Distribution):
        raise TypeError(f"Expected type_p to be a Distribution subclass but got {type_p}")
    if not isinstance(type_q, type) and issubclass(type_q, Distribution):
        raise TypeError(f"Expected type_q to be a Distribution subclass but got {type_q}")

    def decorator(fun):
        _KL_REGISTRY[type_p, type_q] = fun
        _KL_MEMOIZE.clear()
        return fun

    return decorator


@total_ordering
class _Match:
    """Classes, the more special before the more general."""

    __slots__ = ("types",)

    def __init__(self, *types):
        self.types = types

    def __eq__(self, other):
        return self.types == other.types

    def __le__(self, other):
        for x, y in zip(self.types, other.types):
            if not issubclass(x, y):
                return False
            if x is not y:
                break
        return True


def _dispatch_kl(type_p, type_q):
    """The function for the nearest classes."""
    matches = [(p, q) for p, q in _KL_REGISTRY if issubclass(type_p, p) and issubclass(type_q, q)]
    if not matches:
        return NotImplemented
    left_p, left_q = min(_Match(*m) for m in matches).types
    right_q, right_p = min(_Match(*reversed(m)) for m in matches).types
    left, right = _KL_REGISTRY[left_p, left_q], _KL_REGISTRY[right_p, right_q]
    if left is not right:
        warnings.warn(
            f"Ambiguous kl_divergence({type_p.__name__}, {type_q.__name__}). Please register_kl({left_p.__name__}, {right_q.__name__})",
            RuntimeWarning,
            stacklevel=3,
        )
    return left


def kl_divergence(p, q):
    """The divergence of ``p`` from ``q``; ``NotImplementedError`` for a pair that nobody has worked out."""
    key = type(p), type(q)
    fun = _KL_MEMOIZE.get(key)
    if fun is None:
        fun = _KL_MEMOIZE[key] = _dispatch_kl(*key)
    if fun is NotImplemented:
        raise NotImplementedError(
            f"No KL(p || q) is implemented for p type {type(p).__name__} and q type {type(q).__name__}"
        )
    return fun(p, q)


def _infinite(like):
    return torch.full_like(like, math.inf)


def _x_log_x(t):
    return torch.special.xlogy(t, t)


# ---- a family with itself


@register_kl(Bernoulli, Bernoulli)
def _bernoulli_bernoulli(p, q):
    t1 = p.probs * (torch.nn.functional.softplus(-q.logits) - torch.nn.functional.softplus(-p.logits))
    t1 = torch.where(q.probs == 0, math.inf, t1)
    t1 = torch.where(p.probs == 0, 0.0, t1)
    t2 = (1 - p.probs) * (torch.nn.functional.softplus(q.logits) - torch.nn.functional.softplus(p.logits))
    t2 = torch.where(q.probs == 1, math.inf, t2)
    return t1 + torch.where(p.probs == 1, 0.0, t2)


@register_kl(Beta, Beta)
def _beta_beta(p, q):
    sum_p, sum_q = p.concentration1 + p.concentration0, q.concentration1 + q.concentration0
    t1 = q.concentration1.lgamma() + q.concentration0.lgamma() + sum_p.lgamma()
    t2 = p.concentration1.lgamma() + p.concentration0.lgamma() + sum_q.lgamma()
    t3 = (p.concentration1 - q.concentration1) * torch.digamma(p.concentration1)
    t4 = (p.concentration0 - q.concentration0) * torch.digamma(p.concentration0)
    return t1 - t2 + t3 + t4 + (sum_q - sum_p) * torch.digamma(sum_p)


@register_kl(Binomial, Binomial)
def _binomial_binomial(p, q):
    if (p.total_count < q.total_count).any():
        raise NotImplementedError("KL between Binomials where q.total_count > p.total_count is not implemented")
    kl = p.total_count * (p.probs * (p.logits - q.logits) + (-p.probs).log1p() - (-q.probs).log1p())
    return torch.where(p.total_count > q.total_count, _infinite(kl), kl)


@register_kl(Categorical, Categorical)
def _categorical_categorical(p, q):
    t = p.probs * (p.logits - q.logits)
    t = torch.where((q.probs == 0).expand_as(t), math.inf, t)
    return torch.where((p.probs == 0).expand_as(t), 0.0, t).sum(-1)


@register_kl(ContinuousBernoulli, ContinuousBernoulli)
def _continuous_bernoulli(p, q):
    t1 = p.mean * (p.logits - q.logits)
    t2 = p._cont_bern_log_norm() + torch.log1p(-p.probs)
    return t1 + t2 - q._cont_bern_log_norm() - torch.log1p(-q.probs)


@register_kl(Dirichlet, Dirichlet)
def _dirichlet_dirichlet(p, q):
    sum_p, sum_q = p.concentration.sum(-1), q.concentration.sum(-1)
    t2 = (p.concentration.lgamma() - q.concentration.lgamma()).sum(-1)
    t3 = p.concentration - q.concentration
    t4 = p.concentration.digamma() - sum_p.digamma().unsqueeze(-1)
    return sum_p.lgamma() - sum_q.lgamma() - t2 + (t3 * t4).sum(-1)


@register_kl(Exponential, Exponential)
def _exponential_exponential(p, q):
    ratio = q.rate / p.rate
    return -ratio.log() + ratio - 1


@register_kl(ExponentialFamily, ExponentialFamily)
def _family(p, q):
    if type(p) is not type(q):
        raise NotImplementedError(
            "The cross KL-divergence between different exponential families cannot be computed using Bregman divergences"
        )
    params = [x.detach().requires_grad_() for x in p._natural_params]
    other = q._natural_params
    with torch.enable_grad():
        normal = p._log_normalizer(*params)
        gradients = torch.autograd.grad(normal.sum(), params, create_graph=True)
    result = q._log_normalizer(*other) - normal
    for x, y, g in zip(params, other, gradients):
        result = result - _sum_rightmost((y - x) * g, len(q.event_shape))
    return result


@register_kl(Gamma, Gamma)
def _gamma_gamma(p, q):
    t1 = q.concentration * (p.rate / q.rate).log()
    t2 = torch.lgamma(q.concentration) - torch.lgamma(p.concentration)
    t3 = (p.concentration - q.concentration) * torch.digamma(p.concentration)
    return t1 + t2 + t3 + (q.rate - p.rate) * (p.concentration / p.rate)


@register_kl(Gumbel, Gumbel)
def _gumbel_gumbel(p, q):
    ct1 = p.scale / q.scale
    ct2, ct3 = q.loc / q.scale, p.loc / q.scale
    return (
        -ct1.log() - ct2 + ct3 + ct1 * euler_constant + torch.exp(ct2 + (1 + ct1).lgamma() - ct3) - (1 + euler_constant)
    )


@register_kl(Geometric, Geometric)
def _geometric_geometric(p, q):
    return -p.entropy() - torch.log1p(-q.probs) / p.probs - q.logits


@register_kl(HalfNormal, HalfNormal)
def _half_normal(p, q):
    return _normal_normal(p.base_dist, q.base_dist)


@register_kl(Laplace, Laplace)
def _laplace_laplace(p, q):
    ratio = p.scale / q.scale
    distance = (p.loc - q.loc).abs()
    return -ratio.log() + distance / q.scale + ratio * torch.exp(-distance / p.scale) - 1


def _trace(a):
    """The trace of ``a @ a.T`` along the last dimensions."""
    return a.pow(2).flatten(-2).sum(-1)


def _low_rank_distance(p, q):
    """The squared distance of the means under ``q``'s covariance (Woodbury's identity), and what its inverse takes away."""
    diff = q.loc - p.loc
    d = q._unbroadcasted_cov_diag
    scaled = q._unbroadcasted_cov_factor.mT / d.unsqueeze(-2)
    inside = (scaled @ diff.unsqueeze(-1)).squeeze(-1)
    distance = (diff.pow(2) / d).sum(-1) - _mahalanobis(q._capacitance_tril, inside)
    return distance, torch.linalg.solve_triangular(q._capacitance_tril, scaled, upper=False)


@register_kl(LowRankMultivariateNormal, LowRankMultivariateNormal)
def _low_rank_low_rank(p, q):
    if p.event_shape != q.event_shape:
        raise ValueError(
            "KL-divergence between two Low Rank Multivariate Normals with different event shapes cannot be computed"
        )
    d = q._unbroadcasted_cov_diag
    distance, a = _low_rank_distance(p, q)
    t1 = (p._unbroadcasted_cov_diag / d).sum(-1)
    t2 = _trace(p._unbroadcasted_cov_factor * d.rsqrt().unsqueeze(-1))
    t3 = _trace(a * p._unbroadcasted_cov_diag.sqrt().unsqueeze(-2))
    t4 = _trace(a @ p._unbroadcasted_cov_factor)
    return 0.5 * (q._log_det() - p._log_det() + (t1 + t2 - t3 - t4) + distance - p.event_shape[0])


@register_kl(MultivariateNormal, LowRankMultivariateNormal)
def _full_low_rank(p, q):
    if p.event_shape != q.event_shape:
        raise ValueError(
            "KL-divergence between two (Low Rank) Multivariate Normals with different event shapes cannot be computed"
        )
    d = q._unbroadcasted_cov_diag
    distance, a = _low_rank_distance(p, q)
    t1 = _trace(p._unbroadcasted_scale_tril * d.rsqrt().unsqueeze(-1))
    t2 = _trace(a @ p._unbroadcasted_scale_tril)
    return 0.5 * (
        q._log_det() - 2 * _half_log_det(p._unbroadcasted_scale_tril) + (t1 - t2) + distance - p.event_shape[0]
    )


@register_kl(LowRankMultivariateNormal, MultivariateNormal)
def _low_rank_full(p, q):
    if p.event_shape != q.event_shape:
        raise ValueError(
            "KL-divergence between two (Low Rank) Multivariate Normals with different event shapes cannot be computed"
        )
    tril = q._unbroadcasted_scale_tril
    distance = _mahalanobis(tril, q.loc - p.loc)
    t1 = _trace(torch.linalg.solve_triangular(tril, p.cov_factor, upper=False))
    t2 = _trace(torch.linalg.solve_triangular(tril, torch.diag_embed(p.cov_diag.sqrt()), upper=False))
    return 0.5 * (2 * _half_log_det(tril) - p._log_det() + t1 + t2 + distance - p.event_shape[0])


@register_kl(MultivariateNormal, MultivariateNormal)
def _full_full(p, q):
    if p.event_shape != q.event_shape:
        raise ValueError(
            "KL-divergence between two Multivariate Normals with different event shapes cannot be computed"
        )
    tril = q._unbroadcasted_scale_tril
    shape = torch.broadcast_shapes(tril.shape, p._unbroadcasted_scale_tril.shape)
    inside = _trace(
        torch.linalg.solve_triangular(tril.expand(shape), p._unbroadcasted_scale_tril.expand(shape), upper=False)
    )
    distance = _mahalanobis(tril, q.loc - p.loc)
    return (
        _half_log_det(tril) - _half_log_det(p._unbroadcasted_scale_tril) + 0.5 * (inside + distance - p.event_shape[0])
    )


@register_kl(Normal, Normal)
def _normal_normal(p, q):
    ratio = (p.scale / q.scale).pow(2)
    return 0.5 * (ratio + ((p.loc - q.loc) / q.scale).pow(2) - 1 - ratio.log())


@register_kl(OneHotCategorical, OneHotCategorical)
def _one_hot(p, q):
    return _categorical_categorical(p._categorical, q._categorical)


@register_kl(Pareto, Pareto)
def _pareto_pareto(p, q):
    ratio = q.alpha / p.alpha
    result = q.alpha * (p.scale / q.scale).log() - ratio.log() + ratio - 1
    return torch.where(p.support.lower_bound < q.support.lower_bound, math.inf, result)


@register_kl(Poisson, Poisson)
def _poisson_poisson(p, q):
    return p.rate * (p.rate.log() - q.rate.log()) - (p.rate - q.rate)


@register_kl(TransformedDistribution, TransformedDistribution)
def _transformed_transformed(p, q):
    if p.transforms != q.transforms or p.event_shape != q.event_shape:
        raise NotImplementedError
    return kl_divergence(p.base_dist, q.base_dist)


@register_kl(Uniform, Uniform)
def _uniform_uniform(p, q):
    result = ((q.high - q.low) / (p.high - p.low)).log()
    return torch.where((q.low > p.low) | (q.high < p.high), math.inf, result)


@register_kl(Independent, Independent)
def _independent_independent(p, q):
    if p.reinterpreted_batch_ndims != q.reinterpreted_batch_ndims:
        raise NotImplementedError
    return _sum_rightmost(kl_divergence(p.base_dist, q.base_dist), p.reinterpreted_batch_ndims)


@register_kl(Cauchy, Cauchy)
def _cauchy_cauchy(p, q):
    # From https://arxiv.org/abs/1905.10965
    return ((p.scale + q.scale).pow(2) + (p.loc - q.loc).pow(2)).log() - (4 * p.scale * q.scale).log()


# ---- different families


@register_kl(Bernoulli, Poisson)
def _bernoulli_poisson(p, q):
    return -p.entropy() - (p.probs * q.rate.log() - q.rate)


@register_kl(Poisson, Bernoulli)
@register_kl(Poisson, Binomial)
def _poisson_bounded(p, q):
    return _infinite(p.rate)


@register_kl(Beta, ContinuousBernoulli)
def _beta_continuous_bernoulli(p, q):
    return -p.entropy() - p.mean * q.logits - torch.log1p(-q.probs) - q._cont_bern_log_norm()


@register_kl(Beta, Pareto)
def _beta_pareto(p, q):
    return _infinite(p.concentration1)


@register_kl(Beta, Exponential)
def _beta_exponential(p, q):
    return -p.entropy() - q.rate.log() + q.rate * p.mean


@register_kl(Beta, Gamma)
def _beta_gamma(p, q):
    t1 = -p.entropy() + q.concentration.lgamma() - q.concentration * q.rate.log()
    mean_log = p.concentration1.digamma() - (p.concentration1 + p.concentration0).digamma()
    return t1 - (q.concentration - 1) * mean_log + q.rate * p.mean


def _to_normal(p, q):
    """The divergence of what has an entropy, a mean and a variance from a normal distribution."""
    spread = p.variance + (p.mean - q.loc).pow(2)
    return -p.entropy() + 0.5 * (2 * math.pi * q.scale.pow(2)).log() + 0.5 * spread / q.scale.pow(2)


for _family_of_p in (Beta, ContinuousBernoulli, Exponential, Gamma, Gumbel, Laplace, Uniform):
    register_kl(_family_of_p, Normal)(_to_normal)


@register_kl(Beta, Uniform)
def _beta_uniform(p, q):
    result = -p.entropy() + (q.high - q.low).log()
    return torch.where((q.low > p.support.lower_bound) | (q.high < p.support.upper_bound), math.inf, result)


@register_kl(ContinuousBernoulli, Pareto)
def _continuous_bernoulli_pareto(p, q):
    return _infinite(p.probs)


@register_kl(ContinuousBernoulli, Exponential)
def _continuous_bernoulli_exponential(p, q):
    return -p.entropy() - torch.log(q.rate) + q.rate * p.mean


@register_kl(ContinuousBernoulli, Uniform)
def _continuous_bernoulli_uniform(p, q):
    result = -p.entropy() + (q.high - q.low).log()
    return torch.where((q.low > p.support.lower_bound) | (q.high < p.support.upper_bound), math.inf, result)


def _no_overlap(p, q):
    """Infinite: where ``p`` lives ``q`` does not."""
    return _infinite(next(getattr(p, name) for name in ("rate", "loc", "concentration") if hasattr(p, name)))


for _p, _others in {
    Exponential: (Beta, ContinuousBernoulli, Pareto, Uniform),
    Gamma: (Beta, ContinuousBernoulli, Pareto, Uniform),
    Gumbel: (Beta, ContinuousBernoulli, Exponential, Gamma, Pareto, Uniform),
    Laplace: (Beta, ContinuousBernoulli, Exponential, Gamma, Pareto, Uniform),
    Normal: (Beta, ContinuousBernoulli, Exponential, Gamma, Pareto, Uniform),
}.items():
    for _q in _others:
        register_kl(_p, _q)(_no_overlap)


@register_kl(Pareto, Beta)
@register_kl(Pareto, ContinuousBernoulli)
@register_kl(Pareto, Uniform)
def _pareto_bounded(p, q):
    return _infinite(p.scale)


@register_kl(Exponential, Gamma)
def _exponential_gamma(p, q):
    ratio = q.rate / p.rate
    t1 = -q.concentration * torch.log(ratio)
    return t1 + ratio + q.concentration.lgamma() + q.concentration * euler_constant - (1 + euler_constant)


@register_kl(Exponential, Gumbel)
def _exponential_gumbel(p, q):
    scale_rate = p.rate * q.scale
    ratio = q.loc / q.scale
    t2 = torch.exp(ratio) * scale_rate / (scale_rate + 1)
    return scale_rate.log() - 1 - ratio + t2 + scale_rate.reciprocal()


@register_kl(Gamma, Exponential)
def _gamma_exponential(p, q):
    return -p.entropy() - q.rate.log() + q.rate * p.concentration / p.rate


@register_kl(Gamma, Gumbel)
def _gamma_gumbel(p, q):
    beta_scale = p.rate * q.scale
    ratio = q.loc / q.scale
    t1 = (p.concentration - 1) * p.concentration.digamma() - p.concentration.lgamma() - p.concentration
    t2 = beta_scale.log() + p.concentration / beta_scale
    return t1 + t2 + torch.exp(ratio) * (1 + beta_scale.reciprocal()).pow(-p.concentration) - ratio


@register_kl(Laplace, Normal)
def _laplace_normal(p, q):
    ratio = (p.scale / q.scale).pow(2)
    t1 = 0.5 * torch.log(2 * ratio / math.pi)
    return (
        -t1
        + 0.5 * p.loc.pow(2) / q.scale.pow(2)
        - p.loc * q.loc / q.scale.pow(2)
        + 0.5 * q.loc.pow(2) / q.scale.pow(2)
        - 1
        + ratio
    )


@register_kl(Normal, Gumbel)
def _normal_gumbel(p, q):
    mean_ratio, spread, loc_ratio = p.loc / q.scale, (p.scale / q.scale).pow(2), q.loc / q.scale
    t2 = torch.exp(-mean_ratio + 0.5 * spread + loc_ratio)
    return -0.5 * torch.log(spread) + mean_ratio - loc_ratio + t2 - 0.5 * (1 + math.log(2 * math.pi))


@register_kl(Normal, Laplace)
def _normal_laplace(p, q):
    diff = p.loc - q.loc
    ratio = diff / p.scale
    t2 = math.sqrt(2 / math.pi) * p.scale * torch.exp(-0.5 * ratio.pow(2)) + diff * torch.erf(math.sqrt(0.5) * ratio)
    return -torch.log(p.scale / q.scale) + t2 / q.scale - (0.5 * (1 + math.log(0.5 * math.pi)))


@register_kl(Pareto, Exponential)
def _pareto_exponential(p, q):
    t1 = (p.alpha / (p.scale * q.rate)).log() - p.alpha.reciprocal() + q.rate * p.scale * p.alpha / (p.alpha - 1) - 1
    return torch.where(p.alpha <= 1, math.inf, t1)


@register_kl(Pareto, Gamma)
def _pareto_gamma(p, q):
    common = p.scale.log() + p.alpha.reciprocal()
    t1 = p.alpha.log() - common + q.concentration.lgamma() - q.concentration * q.rate.log()
    result = t1 + (1 - q.concentration) * common + q.rate * p.alpha * p.scale / (p.alpha - 1) - 1
    return torch.where(p.alpha <= 1, math.inf, result)


@register_kl(Pareto, Normal)
def _pareto_normal(p, q):
    spread = 2 * q.scale.pow(2)
    common = p.scale / (p.alpha - 1)
    t1 = (math.sqrt(2 * math.pi) * q.scale * p.alpha / p.scale).log() - p.alpha.reciprocal()
    result = t1 + p.alpha * common.pow(2) / (p.alpha - 2) / spread + (p.alpha * common - q.loc).pow(2) / spread - 1
    return torch.where(p.alpha <= 2, math.inf, result)


@register_kl(Uniform, Beta)
def _uniform_beta(p, q):
    common = p.high - p.low
    t1 = torch.log(common)
    t2 = (q.concentration1 - 1) * (_x_log_x(p.high) - _x_log_x(p.low) - common) / common
    t3 = (q.concentration0 - 1) * (_x_log_x(1 - p.high) - _x_log_x(1 - p.low) + common) / common
    t4 = q.concentration1.lgamma() + q.concentration0.lgamma() - (q.concentration1 + q.concentration0).lgamma()
    return torch.where((p.high > q.support.upper_bound) | (p.low < q.support.lower_bound), math.inf, t3 + t4 - t1 - t2)


@register_kl(Uniform, ContinuousBernoulli)
def _uniform_continuous_bernoulli(p, q):
    result = -p.entropy() - p.mean * q.logits - torch.log1p(-q.probs) - q._cont_bern_log_norm()
    return torch.where((p.high > q.support.upper_bound) | (p.low < q.support.lower_bound), math.inf, result)


@register_kl(Uniform, Exponential)
def _uniform_exponential(p, q):
    result = q.rate * (p.high + p.low) / 2 - ((p.high - p.low) * q.rate).log()
    return torch.where(p.low < q.support.lower_bound, math.inf, result)


@register_kl(Uniform, Gamma)
def _uniform_gamma(p, q):
    common = p.high - p.low
    t1 = common.log()
    t2 = q.concentration.lgamma() - q.concentration * q.rate.log()
    t3 = (1 - q.concentration) * (_x_log_x(p.high) - _x_log_x(p.low) - common) / common
    result = -t1 + t2 + t3 + q.rate * (p.high + p.low) / 2
    return torch.where(p.low < q.support.lower_bound, math.inf, result)


@register_kl(Uniform, Gumbel)
def _uniform_gumbel(p, q):
    common = q.scale / (p.high - p.low)
    high, low = (p.high - q.loc) / q.scale, (p.low - q.loc) / q.scale
    return common.log() + 0.5 * (high + low) - common * (torch.exp(-high) - torch.exp(-low))


@register_kl(Uniform, Pareto)
def _uniform_pareto(p, q):
    support = p.high - p.low
    t1 = (q.alpha * q.scale.pow(q.alpha) * support).log()
    t2 = (_x_log_x(p.high) - _x_log_x(p.low) - support) / support
    return torch.where(p.low < q.support.lower_bound, math.inf, t2 * (q.alpha + 1) - t1)
