"""Probability distributions: draws, densities, entropies, divergences.

>>> import flambeau as torch
>>> p = torch.distributions.Normal(0.0, 1.0)
>>> p.log_prob(torch.tensor(0.0))
tensor(-0.9189)
>>> torch.distributions.kl_divergence(p, torch.distributions.Normal(1.0, 1.0))
tensor(0.5000)
"""

import sys as _sys
from types import ModuleType as _Module

from . import (
    constraint_registry,
    constraints,
    discrete,
    distribution,
    kl,
    location,
    matrix,
    positive,
    transformed,
    transforms,
    utils,
)
from .constraint_registry import biject_to, transform_to
from .discrete import *  # noqa: F403
from .distribution import *  # noqa: F403
from .kl import kl_divergence, register_kl
from .location import *  # noqa: F403
from .matrix import *  # noqa: F403
from .positive import *  # noqa: F403
from .transformed import *  # noqa: F403
from .transforms import *  # noqa: F403

_FAMILIES = (discrete, distribution, location, matrix, positive, transformed, transforms)
__all__ = ["biject_to", "kl_divergence", "register_kl", "transform_to", *(n for m in _FAMILIES for n in m.__all__)]
for _name in ("ExpRelaxedCategorical", "LogitRelaxedBernoulli"):
    __all__.remove(_name)

# The modules in which PyTorch has them, one a distribution.
_MODULES = {
    "bernoulli": "Bernoulli", "beta": "Beta", "binomial": "Binomial", "categorical": "Categorical", "cauchy": "Cauchy",
    "chi2": "Chi2", "continuous_bernoulli": "ContinuousBernoulli", "dirichlet": "Dirichlet", "exp_family": "ExponentialFamily",
    "exponential": "Exponential", "fishersnedecor": "FisherSnedecor", "gamma": "Gamma",
    "generalized_pareto": "GeneralizedPareto", "geometric": "Geometric", "gumbel": "Gumbel", "half_cauchy": "HalfCauchy",
    "half_normal": "HalfNormal", "independent": "Independent", "inverse_gamma": "InverseGamma",
    "kumaraswamy": "Kumaraswamy", "laplace": "Laplace", "lkj_cholesky": "LKJCholesky", "log_normal": "LogNormal",
    "logistic_normal": "LogisticNormal", "lowrank_multivariate_normal": "LowRankMultivariateNormal",
    "mixture_same_family": "MixtureSameFamily", "multinomial": "Multinomial", "multivariate_normal": "MultivariateNormal",
    "negative_binomial": "NegativeBinomial", "normal": "Normal",
    "one_hot_categorical": "OneHotCategorical OneHotCategoricalStraightThrough", "pareto": "Pareto", "poisson": "Poisson",
    "relaxed_bernoulli": "LogitRelaxedBernoulli RelaxedBernoulli",
    "relaxed_categorical": "ExpRelaxedCategorical RelaxedOneHotCategorical", "studentT": "StudentT",
    "transformed_distribution": "TransformedDistribution", "uniform": "Uniform", "von_mises": "VonMises",
    "weibull": "Weibull", "wishart": "Wishart",
}  # fmt: skip
for _name, _classes in _MODULES.items():
    _made = _Module(f"{__name__}.{_name}", f"Where PyTorch has {_classes}.")
    _made.__dict__.update({c: globals()[c] for c in _classes.split()}, __all__=_classes.split())
    _sys.modules[_made.__name__] = globals()[_name] = _made
del _name, _classes, _made


def __getattr__(name):
    raise AttributeError(f"flambeau has no 'distributions.{name}' yet")
