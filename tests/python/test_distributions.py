"""Distributions, against what PyTorch 2.15 gives in double precision: log_prob, entropy, divergences, draws."""

import pickle

import pytest

import flambeau as torch
import flambeau.distributions as D
from flambeau.distributions import constraints, transforms

inf = torch.inf


def t(*values):
    return torch.tensor(values, dtype=torch.float64)


# The distribution, a value, log_prob there, the entropy where there is a closed form.
CASES = {
    "Bernoulli": (lambda: D.Bernoulli(t(0.2, 0.7)), lambda: t(0.0, 1.0), [-0.2231435513142097, -0.35667494393873245], [0.5004024235381879, 0.6108643020548935]),
    "Beta": (lambda: D.Beta(t(0.5, 2.0), t(1.0, 3.0)), lambda: t(0.3, 0.6), [-0.09116077839697723, 0.14149956227369975], [-0.30685281944005427, -0.23490664978800035]),
    "Binomial": (lambda: D.Binomial(10, t(0.3, 0.6)), lambda: t(2.0, 10.0), [-1.4546826703914117, -5.108256237659907], [1.7790787840900624, 1.8535550913109577]),
    "Categorical": (lambda: D.Categorical(t(0.2, 0.3, 0.5)), lambda: t(2.0, 0.0), [-0.6931471805599453, -1.6094379124341003], 1.0296530140645737),
    "Cauchy": (lambda: D.Cauchy(t(0.0, 1.0), t(1.0, 2.0)), lambda: t(-1.0, 3.0), [-1.8378770664093453, -2.5310242469692907], [2.5310242469692907, 3.224171427529236]),
    "Chi2": (lambda: D.Chi2(t(1.0, 4.0)), lambda: t(0.5, 3.0), [-0.8223649429247001, -1.7876820724517808], [0.7837571104739339, 2.270362845461478]),
    "ContinuousBernoulli": (lambda: D.ContinuousBernoulli(t(0.2, 0.5)), lambda: t(0.3, 0.9), [0.19842802409409477, 0.0], [-0.07641445280335896, 0.0]),
    "Dirichlet": (lambda: D.Dirichlet(t(0.5, 2.0, 3.0)), lambda: t(0.2, 0.3, 0.5), 0.9067536349052947, -1.9146769909858063),
    "Exponential": (lambda: D.Exponential(t(0.5, 2.0)), lambda: t(1.0, 0.1), [-1.1931471805599454, 0.4931471805599453], [1.6931471805599454, 0.3068528194400547]),
    "FisherSnedecor": (lambda: D.FisherSnedecor(t(3.0, 5.0), t(6.0, 7.0)), lambda: t(0.5, 2.0), [-0.5090687141160921, -1.8234437207564795], None),
    "Gamma": (lambda: D.Gamma(t(0.5, 3.0), t(1.0, 2.0)), lambda: t(0.2, 4.0), [0.03235401329234999, -3.8411169166403285], [0.09060992991398853, 1.154431329803066]),
    "Geometric": (lambda: D.Geometric(t(0.3, 0.8)), lambda: t(3.0, 0.0), [-2.2739976361421332, -0.2231435513142097], [2.0362143401829784, 0.6255030294227348]),
    "Gumbel": (lambda: D.Gumbel(t(0.0, 1.0), t(1.0, 2.0)), lambda: t(-1.0, 4.0), [-1.718281828459045, -2.4162773407083753], [1.5772156649015328, 2.270362845461478]),
    "HalfCauchy": (lambda: D.HalfCauchy(t(1.0, 2.0)), lambda: t(0.5, 3.0), [-0.6747262566036646, -2.3233848821910463], [1.8378770664093453, 2.5310242469692907]),
    "HalfNormal": (lambda: D.HalfNormal(t(1.0, 2.0)), lambda: t(0.5, 3.0), [-0.3507913526447274, -2.0439385332046727], [0.7257913526447274, 1.4189385332046727]),
    "InverseGamma": (lambda: D.InverseGamma(t(3.0, 4.0), t(1.0, 2.0)), lambda: t(0.5, 1.5), [0.07944154167983597, -2.379829620862429], [0.0020098401660773035, 0.2043183076289985]),
    "Kumaraswamy": (lambda: D.Kumaraswamy(t(0.5, 2.0), t(1.0, 3.0)), lambda: t(0.3, 0.6), [-0.09116077839697745, 0.3883596402052255], [-0.3068528194400546, -0.2084261358947218]),
    "Laplace": (lambda: D.Laplace(t(0.0, 1.0), t(1.0, 2.0)), lambda: t(-1.0, 4.0), [-1.6931471805599454, -2.886294361119891], [1.6931471805599454, 2.386294361119891]),
    "LogNormal": (lambda: D.LogNormal(t(0.0, 1.0), t(1.0, 0.5)), lambda: t(0.5, 3.0), [-0.46601785960382813, -1.3438524082655623], [1.4189385332046727, 1.7257913526447273]),
    "LogisticNormal": (lambda: D.LogisticNormal(t(0.0, 1.0), t(1.0, 2.0)), lambda: t(0.2, 0.3, 0.5), 0.4499828852131036, None),
    "MixtureSameFamily": (lambda: D.MixtureSameFamily(D.Categorical(t(0.3, 0.7)), D.Normal(t(0.0, 3.0), t(1.0, 2.0))), lambda: t(1.0)[0], -1.8497214492971272, None),
    "Multinomial": (lambda: D.Multinomial(5, t(0.2, 0.3, 0.5)), lambda: t(1.0, 1.0, 3.0), -1.8971199848858809, 2.5918085962714987),
    "NegativeBinomial": (lambda: D.NegativeBinomial(4.0, t(0.3, 0.5)), lambda: t(2.0, 5.0), [-1.5320602914127561, -2.212972934304358], None),
    "Normal": (lambda: D.Normal(t(0.0, 1.0), t(1.0, 2.0)), lambda: t(-1.0, 4.0), [-1.4189385332046727, -2.737085713764618], [1.4189385332046727, 2.112085713764618]),
    "OneHotCategorical": (lambda: D.OneHotCategorical(t(0.2, 0.3, 0.5)), lambda: t(0.0, 1.0, 0.0), -1.2039728043259361, 1.0296530140645737),
    "Pareto": (lambda: D.Pareto(t(1.0, 2.0), t(3.0, 4.0)), lambda: t(1.5, 5.0), [-0.5232481437645478, -3.88830647881083], [0.23472104466522348, 0.5568528194400547]),
    "Poisson": (lambda: D.Poisson(t(2.0, 20.0)), lambda: t(3.0, 15.0), [-1.7123179275482192, -2.963287280531027], None),
    "RelaxedBernoulli": (lambda: D.RelaxedBernoulli(t(0.7)[0], t(0.2, 0.8)), lambda: t(0.3, 0.9), [-0.33564944263755336, 0.6592238307351634], None),
    "RelaxedOneHotCategorical": (lambda: D.RelaxedOneHotCategorical(t(0.7)[0], t(0.2, 0.3, 0.5)), lambda: t(0.2, 0.3, 0.5), 0.17147534096008332, None),
    "StudentT": (lambda: D.StudentT(t(3.0, 5.0), t(0.0, 1.0), t(1.0, 2.0)), lambda: t(-1.0, 4.0), [-1.5762529945270716, -2.7764574389121184], [1.7734775718632918, 2.3206498529743413]),
    "Uniform": (lambda: D.Uniform(t(0.0, 1.0), t(1.0, 3.0)), lambda: t(0.5, 2.0), [0.0, -0.6931471805599453], [0.0, 0.6931471805599453]),
    "VonMises": (lambda: D.VonMises(t(0.0, 1.0), t(1.0, 5.0)), lambda: t(-1.0, 2.0), [-1.5334890955758707, -2.4410473154899606], None),
    "Weibull": (lambda: D.Weibull(t(1.0, 2.0), t(2.0, 0.5)), lambda: t(0.5, 3.0), [-0.25, -2.813771786565562], [0.5954606518908212, 1.8090786962183576]),
    "TransformedDistribution": (lambda: D.TransformedDistribution(D.Normal(t(0.0, 1.0), t(1.0, 2.0)), [D.SigmoidTransform(), D.AffineTransform(1.0, 2.0)]), lambda: t(1.5, 2.5), [-0.5415837605992372, -0.632472008687437], None),
}  # fmt: skip

OTHERS = {
    "Beta": lambda: D.Beta(t(1.5, 0.5), t(2.0, 2.0)),
    "Poisson": lambda: D.Poisson(t(3.0, 4.0)),
    "Gumbel": lambda: D.Gumbel(t(1.0, 0.0), t(2.0, 1.0)),
    "Geometric": lambda: D.Geometric(t(0.5, 0.5)),
}
DIVERGENCES = [
    ("Normal", "Gumbel", [0.22978273749545552, 0.22978273749545552]),
    ("Gamma", "Gumbel", [1.1164968512725588, 0.6328611413553451]),
    ("Uniform", "Beta", [0.1931471805599453, inf]),
    ("Beta", "Beta", [0.5988026183378433, 0.5642553889064477]),
    ("Pareto", "Gamma", [2.0043105649261435, 1.5038917916534973]),
    ("Laplace", "Normal", [0.2257913526447275, 0.2257913526447275]),
    ("Exponential", "Gamma", [0.9371835201939609, 1.8475785103630114]),
    ("Poisson", "Poisson", [0.189069783783671, 16.188758248682007]),
    ("Gumbel", "Gumbel", [0.3656805307703179, 0.6198273666844725]),
    ("Uniform", "Gamma", [0.5723649429247001, 0.6247215923158351]),
    ("Normal", "Laplace", [0.07209320815813802, 0.07209320815813802]),
    ("Chi2", "Gamma", [0.15342640972002736, 2.1114797621018067]),
    ("Beta", "Gamma", [0.2125510956980881, 1.8152789553347766]),
    ("Pareto", "Normal", [2.184217488539449, 1.513566227657897]),
    ("Exponential", "Gumbel", [0.6401861527733879, 1.455271377679993]),
    ("Uniform", "Gumbel", [1.1321205588285577, 1.1321205588285577]),
    ("Uniform", "Pareto", [inf, inf]),
    ("Geometric", "Geometric", [0.27427626168350594, 0.2409309462771967]),
    ("Normal", "Beta", [inf, inf]),
]


def near(result, want):
    assert torch.as_tensor(result).tolist() == pytest.approx(want, rel=1e-7, abs=1e-9)


@pytest.mark.parametrize("name", CASES)
def test_log_prob_and_entropy(name):
    make, value, log_prob, entropy = CASES[name]
    near(make().log_prob(value()), log_prob)
    if entropy is not None:
        near(make().entropy(), entropy)


@pytest.mark.parametrize("p, q, want", DIVERGENCES)
def test_divergences(p, q, want):
    other = OTHERS[q] if p == q else CASES[q][0]
    near(D.kl_divergence(CASES[p][0](), other()), want)


@pytest.mark.parametrize("name", CASES)
def test_draws_lie_in_the_support(name):
    dist = CASES[name][0]()
    torch.manual_seed(0)
    x = dist.sample((7,))
    assert x.shape == (7, *dist.batch_shape, *dist.event_shape) and not x.requires_grad
    assert bool(dist.support.check(x).all())
    assert dist.expand((3, *dist.batch_shape)).log_prob(x[0]).shape == (3, *dist.batch_shape)
    assert repr(dist).startswith(name) and dist.log_prob(x).shape == (7, *dist.batch_shape)


# Draws of PyTorch 2.15 after manual_seed(0).
DRAWS = {
    "Bernoulli": [0.0, 0.0],
    "Beta": [0.006590448295019493, 0.5120418827883711],
    "Binomial": [6.0, 6.0],
    "Categorical": 2,
    "Cauchy": [10.597729326682297, 2.5295345192117997],
    "Dirichlet": [0.00022113564084090109, 0.17692365171596452, 0.8228552126431946],
    "Exponential": [7.016652373415284, 0.6151923820898384],
    "Gamma": [0.0007893582063475732, 0.636421708945544],
    "Geometric": [0.0, 0.0],
    "Gumbel": [3.493162420680662, 3.125145299108809],
    "Laplace": [2.8151790061476967, 2.0744751672394632],
    "MixtureSameFamily": 4.136862554561335,
    "Multinomial": [0.0, 1.0, 4.0],
    "NegativeBinomial": [3.0, 3.0],
    "Normal": [1.5409961082440433, 0.41314218847810724],
    "Pareto": [3.2201954685608682, 2.720303273233576],
    "Poisson": [6.0, 18.0],
    "StudentT": [9.318286800763724, 0.4743156951520163],
    "Uniform": [0.9700530018065531, 2.415639728799576],
    "VonMises": [-0.2782016080009875, 0.7269277766536519],
}  # fmt: skip


@pytest.mark.parametrize("name", DRAWS)
def test_draws_are_pytorchs(name):
    torch.manual_seed(0)
    near(CASES[name][0]().sample(), DRAWS[name])


def test_gradients_of_draws():
    # The quantile at a fixed probability, differentiated: for an exponential (a gamma of shape 1) against mpmath.
    shape = t(1.0, 2.5, 30.0).requires_grad_()
    torch.manual_seed(1)
    x = D.Gamma(shape, torch.ones(3, dtype=torch.float64)).rsample()
    (slope,) = torch.autograd.grad(x.sum(), shape)
    eps = 1e-5
    gammainc = torch.special.gammainc
    moved = (gammainc(shape + eps, x) - gammainc(shape - eps, x)) / (2 * eps)
    density = D.Gamma(shape, torch.ones(3, dtype=torch.float64)).log_prob(x).exp()
    assert torch.allclose(slope, (-moved / density).detach(), rtol=1e-6)


def test_parameters_and_values_are_checked():
    with pytest.raises(ValueError, match=r"Expected parameter scale \(Tensor of shape \(\)\) of distribution Normal"):
        D.Normal(0.0, -1.0)
    with pytest.raises(ValueError, match="to be within the support"):
        D.Exponential(1.0).log_prob(torch.tensor(-1.0))
    with pytest.raises(ValueError, match="Either `probs` or `logits`"):
        D.Bernoulli()
    with pytest.raises(NotImplementedError, match="No KL"):
        D.kl_divergence(D.Bernoulli(0.5), D.Cauchy(0.0, 1.0))
    D.Normal(0.0, -1.0, validate_args=False)


SETS = {
    "positive": constraints.positive, "unit_interval": constraints.unit_interval, "simplex": constraints.simplex,
    "corr_cholesky": constraints.corr_cholesky, "less_than": constraints.less_than(2.0),
    "interval": constraints.interval(-1.0, 3.0), "real_vector": constraints.real_vector,
}  # fmt: skip


@pytest.mark.parametrize("name", SETS)
def test_transforms_to_sets(name):
    to = D.biject_to(SETS[name])
    torch.manual_seed(0)
    x = torch.randn(4, 6, dtype=torch.float64)
    y = to(x)
    assert bool(SETS[name].check(y).all())
    assert torch.allclose(to.inv(y), x, atol=1e-9)
    assert to.forward_shape(x.shape) == y.shape and to.inverse_shape(y.shape) == x.shape
    assert torch.allclose(to.inv.log_abs_det_jacobian(y, x), -to.log_abs_det_jacobian(x, y))


@pytest.mark.parametrize("to", [transforms.ExpTransform(), transforms.SigmoidTransform(), transforms.TanhTransform(), transforms.SoftplusTransform(), transforms.AffineTransform(1.0, -3.0), transforms.PowerTransform(torch.tensor(2.0))], ids=repr)  # fmt: skip
def test_volumes(to):
    x = t(0.3, 1.2).requires_grad_()
    y = to(x)
    (slope,) = torch.autograd.grad(y.sum(), x)
    assert torch.allclose(to.log_abs_det_jacobian(x, y), slope.abs().log())


def test_modules_and_pickle():
    from flambeau.distributions.multivariate_normal import MultivariateNormal
    from flambeau.distributions.normal import Normal

    assert Normal is D.Normal and MultivariateNormal is D.MultivariateNormal
    again = pickle.loads(pickle.dumps(D.Normal(t(1.0), t(2.0))))
    near(again.log_prob(t(0.0)), [-1.737085713764618])
