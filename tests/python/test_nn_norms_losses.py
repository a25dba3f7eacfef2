"""Norms, losses, dropouts and attention of nn.functional.

Numbers were found with PyTorch 2.15 on the CPU by the same calls.
"""

import pytest

import flambeau as torch
import flambeau.nn.functional as F


def close(got, wanted, tolerance=2e-5):
    got = got.flatten().tolist() if isinstance(got, torch.Tensor) else got
    assert got[: len(wanted)] == pytest.approx(wanted, rel=tolerance, abs=tolerance)


def images():
    return (torch.arange(24.0).reshape(2, 3, 4) / 10).sin()


def pair():
    x = torch.arange(12.0).reshape(3, 4)
    return x.cos(), x.sin()


def test_batch_norm():
    x, mean, var = images(), torch.zeros(3), torch.ones(3)
    weight, bias = torch.tensor([1.0, 2.0, 3.0]), torch.tensor([0.0, 1.0, -1.0])
    y = F.batch_norm(x, mean, var, weight, bias, True, 0.3)
    close(y, [-1.336617, -1.0979369, -0.8616416, -0.630092, -2.0020537, -1.2498461])
    close(mean, [0.1677212, 0.22459088, 0.2460026])
    close(var, [0.75998014, 0.7196325, 0.70141023])
    close(F.batch_norm(x, mean, var), [-0.19239067, -0.07787313, 0.03550017, 0.14659648])
    x.requires_grad_()
    (F.batch_norm(x, None, None, training=True) * x.detach().cos()).sum().backward()
    close(x.grad, [-0.12383035, -0.01722824, 0.06497178, 0.12332584])


def test_batch_norm_refuses():
    with pytest.raises(ValueError, match="more than 1 value per channel"):
        F.batch_norm(torch.ones(1, 3), None, None, training=True)
    with pytest.raises(RuntimeError, match="running_mean must be defined in evaluation mode"):
        F.batch_norm(torch.ones(2, 3), None, None)
    with pytest.raises(RuntimeError, match="running_mean should contain 3 elements not 2"):
        F.batch_norm(torch.ones(2, 3), torch.ones(2), torch.ones(2))
    with pytest.raises(ValueError, match="eps must be positive"):
        F.batch_norm(torch.ones(2, 3), None, None, training=True, eps=0.0)


def test_layout_and_dtype_are_kept():
    x = torch.randn(2, 4, 3, 3).contiguous(memory_format=torch.channels_last)
    assert F.batch_norm(x, None, None, training=True).stride() == (36, 1, 12, 4)
    wanted = F.batch_norm(x.contiguous(), None, None, training=True)
    assert torch.allclose(F.batch_norm(x, None, None, training=True), wanted, atol=1e-6)
    half = F.batch_norm(x.bfloat16(), None, None, torch.ones(4), torch.zeros(4), training=True)
    assert half.dtype == torch.bfloat16


def test_other_norms():
    x = images()
    close(F.instance_norm(x), [-1.3473742, -0.44159794, 0.45512798, 1.333844])
    close(F.group_norm(x, 3), [-1.3473742, -0.44159794, 0.45512798, 1.333844])
    close(F.group_norm(x[:, :2], 1), [-1.5745145, -1.1038402, -0.6378688])
    close(F.local_response_norm(x, 2, 1.0, 0.75, 2.0), [0.0, 0.05925062, 0.11726274, 0.1728939, 0.2251768])
    with pytest.raises(RuntimeError, match="divisible by num_groups"):
        F.group_norm(x, 2)


def test_ctc_loss():
    scores = torch.arange(30.0).reshape(5, 2, 3).sin().log_softmax(2).detach().requires_grad_()
    targets = torch.tensor([[1, 2], [2, 2]])
    loss = F.ctc_loss(scores, targets, torch.tensor([5, 4]), torch.tensor([2, 2]), reduction="none")
    close(loss, [1.6705238, 3.5897353])
    loss.sum().backward()
    close(scores.grad, [-0.03790165, -0.3899551, 0.42785695, 0.34933615, 0.23411012, -0.5834463])
    close([F.ctc_loss(scores, torch.tensor([1, 2, 2]), [5, 4], [2, 1]).item()], [1.3373276])
    assert F.ctc_loss(scores, targets, [5, 1], [2, 2], reduction="none")[1].item() == float("inf")
    assert F.ctc_loss(scores, targets, [5, 1], [2, 2], reduction="none", zero_infinity=True)[1].item() == 0
    with pytest.raises(RuntimeError, match="input_lengths"):
        F.ctc_loss(scores, targets, [5, 6], [2, 2])


def test_losses():
    a, b = pair()
    weight = torch.tensor([1.0, 2.0, 3.0, 4.0])
    classes = torch.tensor([0, 1, 3])
    one = lambda loss: [loss.item()]  # noqa: E731
    close(one(F.multi_margin_loss(a, classes)), [0.40339714])
    close(one(F.multi_margin_loss(a, classes, p=2, margin=0.5, weight=weight, reduction="sum")), [1.2857265])
    labels = torch.tensor([[0, 1, -1, 2], [1, -1, 0, 0], [3, 2, 1, 0]])
    close(one(F.multilabel_margin_loss(a, labels)), [0.27108276])
    found = F.cosine_embedding_loss(a, b, torch.tensor([1, -1, 1]), 0.1, reduction="none")
    close(found, [1.0325466, 0.124843, 1.034564])
    close(one(F.triplet_margin_loss(a, b, a.flip(0), swap=True)), [2.1674957])
    close(one(F.gaussian_nll_loss(a, b, b.square() + 0.1, full=True)), [2.2589984])
    close(one(F.poisson_nll_loss(a, b.abs() * 3, full=True)), [2.1572871])
    close(one(F.soft_margin_loss(a, b.sign())), [0.7822277])
    close(one(F.hinge_embedding_loss(a, b.sign(), 0.3)), [0.18633850])
    close(one(F.margin_ranking_loss(a, b, a.sign(), 0.2)), [0.07561765])
    close(one(F.multilabel_soft_margin_loss(a, (b > 0).float())), [0.83390385])
    close(one(F.linear_cross_entropy(a, b, torch.tensor([0, 1, 2]), label_smoothing=0.1)), [1.7927139])


def test_distances():
    a, b = pair()
    close(torch.pdist(a, 3), [2.31766, 1.7778938, 2.006846])
    close(torch.cdist(a, b, 1.0), [3.7577252, 5.0397396, 0.2766976, 1.8751075])
    close(F.pairwise_distance(a, b), [2.0314815, 1.7608615, 2.0334191])
    close(F.cosine_similarity(a, b), [-0.03254668, 0.22484296, -0.03456406])
    x, y = torch.randn(30, 5).double(), torch.randn(4, 5).double()
    direct = torch.cdist(x, y, compute_mode="donot_use_mm_for_euclid_dist")
    assert torch.allclose(torch.cdist(x, y), direct)
    with pytest.raises(ValueError, match="compute_mode"):
        torch.cdist(a, b, compute_mode="quick")
    with pytest.raises(RuntimeError, match="columns"):
        torch.cdist(a, b[:, :3])


def drawn(f):
    torch.manual_seed(3)
    return f()


def test_dropouts_draw_as_pytorch_does():
    ones = torch.ones
    close(drawn(lambda: F.dropout1d(ones(2, 3, 2))), [2, 2, 2, 2, 0, 0, 2, 2, 0, 0, 0, 0])
    close(drawn(lambda: F.dropout2d(ones(2, 3, 1, 1), 0.25)), [4 / 3, 4 / 3, 0, 4 / 3, 0, 4 / 3])
    high, low = 1.4703772, -0.910642
    close(drawn(lambda: F.alpha_dropout(ones(5), 0.4, True)), [high, high, low, high, low])
    close(drawn(lambda: F.feature_alpha_dropout(ones(2, 2, 1), 0.4, True)), [high, high, low, high])
    close(drawn(lambda: F.rrelu(-ones(4), training=True)), [-0.13210587, -0.18473755, -0.28602394, -0.16144313])
    close(drawn(lambda: F.gumbel_softmax(torch.zeros(3))), [0.88801247, 0.09119926, 0.02078822])
    assert drawn(lambda: F.gumbel_softmax(torch.zeros(3), hard=True)).tolist() == [1, 0, 0]
    out, mask = drawn(lambda: torch.native_dropout(ones(6), 0.5, True))
    assert out.tolist() == [2, 2, 0, 2, 0, 0] and mask.tolist() == [True, True, False, True, False, False]


def wave(*shape, k=1.0):
    n = 1
    for size in shape:
        n *= size
    return (torch.arange(float(n)) * k).sin().reshape(shape)


def test_recurrent_networks():
    params = [wave(8, 3), wave(8, 2, k=0.7), wave(8, k=0.3), wave(8, k=0.2)]
    states = [wave(1, 2, 2), wave(1, 2, 2, k=2)]
    out, _, memory = torch._VF.lstm(wave(3, 2, 3), states, params, True, 1, 0.0, False, False, False)
    close(out[-1], [0.9660998, 0.27642623, 0.05656085, 0.9017941])
    close(memory, [2.3331065, 0.637768, 0.08314385, 2.2682843])
    both = [t[:6] for t in params] * 2
    out, last = torch._VF.gru(wave(3, 2, 3), wave(2, 2, 2), both, True, 1, 0.0, False, True, False)
    close(out[0], [0.10725915, 0.6273801, -0.38575417, -0.60550785, 0.18445522, 0.25810796, -0.1992712, 0.7409764])
    close(last, [0.2653938, 0.23531192, -0.2143097, 0.3685825])
    both = [t[:2] for t in params] * 2
    sizes = torch.tensor([2, 2, 1])
    out, last = torch._VF.rnn_tanh(wave(5, 3), sizes, wave(2, 2, 2), both, True, 1, 0.0, False, True)
    close(out, [0.9690816, -0.2804953, 0.7539367, -0.7972725, -0.8891522, 0.99528855, -0.70628655, 0.97176224])
    close(last, [0.7930172, -0.2372117, -0.6205408, 0.9567403, 0.7539367, -0.7972725, -0.70628655, 0.97176224])
    close(torch.rnn_relu_cell(wave(2, 3), wave(2, 2), params[0][:2], params[1][:2]), [2.0769856, 0, 0, 2.5300837])
    with pytest.raises(RuntimeError, match="parameters"):
        torch._VF.lstm(wave(3, 2, 3), states, params[:3], True, 1, 0.0, False, False, False)


def test_multi_head_attention():
    x = wave(3, 2, 4)
    padding = torch.tensor([[False, False, True], [False, False, False]])
    mask = torch.ones(3, 3).triu(1).bool()
    call = lambda **options: F.multi_head_attention_forward(  # noqa: E731
        x, x, x, 4, 2, wave(12, 4), wave(12), None, None, True, 0.0, wave(4, 4), wave(4),
        key_padding_mask=padding, attn_mask=mask, **options,
    )  # fmt: skip
    out, weights = call()
    close(out, [-0.443445, 0.9498743, 1.2110281, -0.36173207, -0.61095655, 0.4202034])
    close(weights, [0.20592043, 0.0, 0.0, 0.79407954, 0.7048414, 0.09157293, 0.0, 0.20358573])
    fast, none = call(need_weights=False)
    assert none is None and torch.allclose(fast, out, atol=1e-5)


def test_softmax_of_masked_rows():
    row = [-float("inf")] * 2
    close(torch._safe_softmax(torch.tensor([[0.0, 1.0], row]), -1), [0.26894143, 0.73105858, 0.0, 0.0])
