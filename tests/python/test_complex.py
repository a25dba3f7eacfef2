"""Complex numbers: conjugates as views, elementwise functions, gradients after Wirtinger.

Values were printed by PyTorch 2.15.
"""
import flambeau as torch
import numpy as np
import pytest


def numbers():
    return torch.tensor([1 + 2j, 3 - 1j])


def test_conj_is_a_view_that_is_resolved_when_it_is_read():
    x = numbers()
    c = x.conj()
    assert c.is_conj() and not x.is_conj() and c.data_ptr() == x.data_ptr()
    assert not c.conj().is_conj() and c.conj().data_ptr() == x.data_ptr()
    assert c.tolist() == [1 - 2j, 3 + 1j]
    assert not (c * 1).is_conj() and (c * 1).tolist() == [1 - 2j, 3 + 1j]
    assert not c.resolve_conj().is_conj() and c.resolve_conj().tolist() == [1 - 2j, 3 + 1j]
    x[0] = 5j
    assert c.tolist() == [-5j, 3 + 1j]


def test_views_of_conjugates_stay_conjugates():
    x = numbers().reshape(1, 2)
    assert x.H.is_conj() and x.mH.is_conj() and x.adjoint().is_conj() and x.conj()[0].is_conj() and x.conj().T.is_conj()
    assert x.H.tolist() == [[1 - 2j], [3 + 1j]]
    assert not x.conj().clone().is_conj() and x.conj().clone().tolist() == [[1 - 2j, 3 + 1j]]


def test_parts_of_conjugates():
    c = numbers().conj()
    assert not c.real.is_neg() and c.imag.is_neg() and not numbers().imag.is_neg()
    assert c.imag.tolist() == [-2.0, 1.0] and (c.imag + 1).tolist() == [-1.0, 2.0]
    assert c.imag.resolve_neg().is_neg() is False
    assert torch._neg_view(torch.tensor([1.0, -2.0])).tolist() == [-1.0, 2.0]


def test_writes_through_conjugates():
    y = torch.ones(2, dtype=torch.complex64) * (1 + 2j)
    c = y.conj()
    c.add_(1j)
    assert y.tolist() == [1 + 1j, 1 + 1j]
    c.copy_(torch.tensor([5 + 1j, 2 - 3j]))
    assert y.tolist() == [5 - 1j, 2 + 3j]
    c.fill_(3j)
    assert y.tolist() == [-3j, -3j]
    c.imag.mul_(2)
    assert y.tolist() == [-6j, -6j]
    c[0] = 9j
    assert y.tolist() == [-9j, -6j]


def test_what_refuses_conjugates():
    c = numbers().conj()
    with pytest.raises(RuntimeError, match="conjugate bit"):
        c.numpy()
    with pytest.raises(RuntimeError, match="negative bit"):
        c.imag.numpy()
    with pytest.raises(RuntimeError, match="unresolved conjugated"):
        torch.view_as_real(c)
    assert c.numpy(force=True).tolist() == [1 - 2j, 3 + 1j]
    assert "1.-2.j" in repr(c)


def test_real_numbers_are_their_own_conjugates():
    r = torch.tensor([1.0, -2.0])
    assert r.conj() is r and r.resolve_conj() is r and torch.conj_physical(r) is r


@pytest.mark.parametrize(
    "name, want",
    [
        ("exp", -1.13120436668396 + 2.471726655960083j),
        ("log", 0.8047189712524414 + 1.1071487665176392j),
        ("sqrt", 1.272019624710083 + 0.7861514091491699j),
        ("sin", 3.165778636932373 + 1.9596009254455566j),
        ("tanh", 1.1667362451553345 - 0.24345821142196655j),
        ("asin", 0.427078515291214 + 1.5285710096359253j),
        ("atanh", 0.1732867956161499 + 1.1780972480773926j),
        ("sgn", 0.4472135901451111 + 0.8944271802902222j),
        ("reciprocal", 0.2000000029802322 - 0.4000000059604645j),
    ],
)
def test_elementwise(name, want):
    got = getattr(torch, name)(numbers())[0].item()
    assert abs(got - want) <= 3e-7 * abs(want)


def test_gradients_are_conjugate_wirtinger():
    z = torch.tensor([1 + 2j], dtype=torch.complex128, requires_grad=True)
    (z * z).abs().sum().backward()
    assert np.allclose(z.grad.numpy(), [2 + 4j])
    z.grad = None
    (z * (3 - 1j)).real.sum().backward()
    assert np.allclose(z.grad.numpy(), [3 + 1j])
    z.grad = None
    torch.angle(z).sum().backward()
    assert np.allclose(z.grad.numpy(), [-0.4 + 0.2j])


def test_multiply_adds_round_once():
    a, b = torch.tensor([1.0]), torch.tensor([1 + 2.0**-12])
    # (1 + 2^-12)^2 = 1 + 2^-11 + 2^-24, of which two roundings lose the last digit.
    assert torch.addcmul(-a, b, b).item() == 2.0**-11 + 2.0**-24
    assert torch.sub(torch.tensor([1 + 2.0**-11]), b, alpha=1 + 2.0**-12).item() == -(2.0**-24)


def test_signs_and_ties():
    nan = float("nan")
    assert torch.sign(torch.tensor([nan, -0.0, -3.0])).tolist() == [0.0, 0.0, -1.0]
    assert torch.signbit(torch.relu(torch.tensor([-0.0, 0.0]))).tolist() == [True, False]
    assert torch.signbit(torch.clamp(torch.tensor([-0.0]), min=0.0)).tolist() == [True]


def test_numbers_do_not_stand_for_every_tensor():
    t = torch.ones(2)
    for call in (lambda: torch.atan2(1, t), lambda: torch.maximum(t, 1), lambda: torch.eq(1, t), lambda: torch.pow(2, 3)):
        with pytest.raises(TypeError):
            call()
    assert torch.add(1, 2).item() == 3
    assert torch.where(t > 0, 1.0, t).tolist() == t.where(t > 0, t).tolist() == [1.0, 1.0]
