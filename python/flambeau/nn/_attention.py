"""Attention with several heads as a function of all its weights: what ``nn.MultiheadAttention`` calls.

Source: Vaswani and others, "Attention is all you need", 2017.
"""

from math import sqrt
from warnings import warn

from .. import _C

_nn = _C._nn


def multi_head_attention_forward(
    query,
    key,
    value,
    embed_dim_to_check,
    num_heads,
    in_proj_weight,
    in_proj_bias,
    bias_k,
    bias_v,
    add_zero_attn,
    dropout_p,
    out_proj_weight,
    out_proj_bias,
    training=True,
    key_padding_mask=None,
    need_weights=True,
    attn_mask=None,
    use_separate_proj_weight=False,
    q_proj_weight=None,
    k_proj_weight=None,
    v_proj_weight=None,
    static_k=None,
    static_v=None,
    average_attn_weights=True,
    is_causal=False,
):
    """Attention of ``query`` (L, N, E) to ``key`` and ``value`` (S, N, E), or all without N.

    Gives the output (L, N, E) and, with ``need_weights``, the weights (N, L, S), or (N, heads, L, S) unless
    ``average_attn_weights``. Masks are of bool, True where a key is not seen, or of floats that are added:
    ``key_padding_mask`` (N, S), ``attn_mask`` (L, S) or (N * heads, L, S). ``is_causal`` is a hint that ``attn_mask`` is
    the causal one.
    """
    batched = _check_dims(query, key, value, key_padding_mask, attn_mask, num_heads)
    if not batched:
        query, key, value = query.unsqueeze(1), key.unsqueeze(1), value.unsqueeze(1)
        key_padding_mask = None if key_padding_mask is None else key_padding_mask.unsqueeze(0)
    length, batch, width = query.shape

    if key_padding_mask is not None and attn_mask is not None and key_padding_mask.dtype != attn_mask.dtype:
        warn(
            "Support for mismatched key_padding_mask and attn_mask is deprecated. Use same type for both instead.",
            stacklevel=2,
        )
    padding = _added(key_padding_mask, "key_padding_mask", query.dtype)
    if is_causal and attn_mask is None:
        raise RuntimeError(
            "Need attn_mask if specifying the is_causal hint. You may use the Transformer module method "
            "`generate_square_subsequent_mask` to create this mask."
        )
    if is_causal and padding is None and not need_weights:
        mask = None
    else:
        mask = _added(attn_mask, "attn_mask", query.dtype)
        # Merged with padding, the mask is no longer the causal one.
        is_causal = is_causal and padding is None

    if width != embed_dim_to_check:
        raise AssertionError(f"was expecting embedding dimension of {embed_dim_to_check}, but got {width}")
    if width % num_heads:
        raise AssertionError(f"embed_dim {width} not divisible by num_heads {num_heads}")
    if use_separate_proj_weight:
        q, k, v = _project_apart(query, key, value, (q_proj_weight, k_proj_weight, v_proj_weight), in_proj_bias)
    else:
        if key.shape != value.shape:
            raise AssertionError(f"key shape {key.shape} does not match value shape {value.shape}")
        if in_proj_weight is None:
            raise AssertionError("use_separate_proj_weight is False but in_proj_weight is None")
        q, k, v = _project(query, key, value, in_proj_weight, in_proj_bias)
    mask = _three_dims(mask, batch * num_heads, length, key.size(0))

    more = 0
    if (bias_k is None) != (bias_v is None):
        raise AssertionError("bias_k and bias_v must be given together")
    if bias_k is not None:
        if static_k is not None or static_v is not None:
            raise AssertionError("bias cannot be added to static key or value.")
        k, v = (_C.cat([t, bias.repeat(1, batch, 1)]) for t, bias in ((k, bias_k), (v, bias_v)))
        more += 1
    q = _heads(q, batch * num_heads)
    k = _heads(k, batch * num_heads) if static_k is None else _static("static_k", static_k, q)
    v = _heads(v, batch * num_heads) if static_v is None else _static("static_v", static_v, q)
    if add_zero_attn:
        k, v = (_C.cat([t, t.new_zeros(t.size(0), 1, t.size(2))], dim=1) for t in (k, v))
        more += 1
    mask = _merge(_widened(mask, more), _widened(padding, more), num_heads, k.size(1))

    attend = _with_weights if need_weights else _without_weights
    out, weights = attend(q, k, v, mask, dropout_p if training else 0.0, is_causal, batch)
    out = _nn.linear(out.reshape(length * batch, width), out_proj_weight, out_proj_bias)
    out = out.reshape(length, batch, out.size(-1))
    if weights is not None and average_attn_weights:
        weights = weights.mean(dim=1)
    if batched:
        return out, weights
    return out.squeeze(1), None if weights is None else weights.squeeze(0)


def _check_dims(query, key, value, key_padding_mask, attn_mask, num_heads):
    """Whether there is a batch."""
    dims = query.dim()
    if dims not in (2, 3):
        raise AssertionError(f"query should be unbatched 2D or batched 3D tensor but received {dims}-D query tensor")
    kind = "batched (3-D)" if dims == 3 else "unbatched (2-D)"
    if key.dim() != dims or value.dim() != dims:
        raise AssertionError(
            f"For {kind} `query`, expected `key` and `value` to be {dims}-D but found {key.dim()}-D and "
            f"{value.dim()}-D tensors respectively"
        )
    if key_padding_mask is not None and key_padding_mask.dim() != dims - 1:
        raise AssertionError(
            f"For {kind} `query`, expected `key_padding_mask` to be `None` or {dims - 1}-D but found "
            f"{key_padding_mask.dim()}-D tensor instead"
        )
    if attn_mask is not None:
        if attn_mask.dim() not in (2, 3):
            raise AssertionError(
                f"For {kind} `query`, expected `attn_mask` to be `None`, 2-D or 3-D but found {attn_mask.dim()}-D "
                "tensor instead"
            )
        wanted = (num_heads, query.shape[0], key.shape[0])
        if dims == 2 and attn_mask.dim() == 3 and tuple(attn_mask.shape) != wanted:
            raise AssertionError(f"Expected `attn_mask` shape to be {wanted} but got {tuple(attn_mask.shape)}")
    return dims == 3


def _added(mask, name, dtype):
    """A mask of floats: -inf where a mask of bool says that a key is not seen."""
    if mask is None or mask.is_floating_point():
        return mask
    if mask.dtype != _C.bool:
        raise AssertionError(f"only bool and floating types of {name} are supported, got {mask.dtype}")
    return _C.zeros_like(mask, dtype=dtype).masked_fill_(mask, float("-inf"))


def _three_dims(mask, heads, length, keys):
    if mask is None:
        return None
    wanted = (length, keys) if mask.dim() == 2 else (heads, length, keys)
    if tuple(mask.shape) != wanted:
        raise RuntimeError(
            f"The shape of the {mask.dim()}D attn_mask is {tuple(mask.shape)}, but should be {wanted}."
        )
    return mask.unsqueeze(0) if mask.dim() == 2 else mask


def _project(query, key, value, weight, bias):
    """Queries, keys and values from one weight of three parts, in as few products as there are inputs."""
    width = query.size(-1)
    if key is value and query is key:
        return _nn.linear(query, weight, bias).chunk(3, -1)
    if key is value:
        parts = [width, 2 * width]
        first, rest = weight.split(parts)
        bias_first, bias_rest = (None, None) if bias is None else bias.split(parts)
        return (_nn.linear(query, first, bias_first), *_nn.linear(key, rest, bias_rest).chunk(2, -1))
    biases = (None,) * 3 if bias is None else bias.chunk(3)
    return [_nn.linear(t, w, b) for t, w, b in zip((query, key, value), weight.chunk(3), biases)]


def _project_apart(query, key, value, weights, bias):
    """Queries, keys and values from a weight for each, whose inputs may be of other widths."""
    if key.shape[:2] != value.shape[:2]:
        raise AssertionError(
            f"key's sequence and batch dims {key.shape[:2]} do not match value's {value.shape[:2]}"
        )
    width = query.size(-1)
    biases = (None,) * 3 if bias is None else bias.chunk(3)
    out = []
    for name, t, weight, b in zip(("query", "key", "value"), (query, key, value), weights, biases):
        if weight is None:
            raise AssertionError(f"use_separate_proj_weight is True but {name[0]}_proj_weight is None")
        if tuple(weight.shape) != (width, t.size(-1)):
            raise AssertionError(
                f"expecting {name} weights shape of {(width, t.size(-1))}, but got {tuple(weight.shape)}"
            )
        out.append(_nn.linear(t, weight, b))
    return out


def _heads(t, count):
    """(length, batch, width) as (batch * heads, length, width of a head)."""
    return t.reshape(t.size(0), count, -1).transpose(0, 1)


def _static(name, given, q):
    if given.size(0) != q.size(0) or given.size(2) != q.size(2):
        raise AssertionError(
            f"expecting {name} of size ({q.size(0)}, length, {q.size(2)}), but got {tuple(given.shape)}"
        )
    return given


def _widened(mask, more):
    """The mask with so many keys more, which are seen."""
    if mask is None or more == 0:
        return mask
    return _C.cat([mask, mask.new_zeros(*mask.shape[:-1], more)], dim=-1)


def _merge(mask, padding, heads, keys):
    """One mask from both, (1 or batch * heads, 1 or queries, keys)."""
    if padding is None:
        return mask
    if padding.size(-1) != keys:
        raise AssertionError(f"Expected key_padding_mask to have {keys} keys, but got shape {tuple(padding.shape)}")
    padding = padding.unsqueeze(1).expand(-1, heads, -1).reshape(-1, 1, keys)
    return padding if mask is None else mask + padding


def _with_weights(q, k, v, mask, dropout, is_causal, batch):
    """The values weighted, (queries, batch * heads, width), and the weights of each head."""
    q = q * sqrt(1.0 / q.size(-1))
    scores = _C.bmm(q, k.transpose(-2, -1))
    weights = (scores if mask is None else scores + mask).softmax(-1)
    if dropout > 0.0:
        weights = _C.dropout(weights, dropout, True)
    return _C.bmm(weights, v).transpose(0, 1), weights.reshape(batch, -1, *weights.shape[1:])


def _without_weights(q, k, v, mask, dropout, is_causal, batch):
    """The same without the weights, which are never held all at once."""
    if mask is not None:
        mask = mask.unsqueeze(0) if mask.size(0) == 1 else mask.reshape(batch, -1, *mask.shape[1:])
    q, k, v = (t.reshape(batch, -1, *t.shape[1:]) for t in (q, k, v))
    out = _nn.scaled_dot_product_attention(q, k, v, mask, dropout, is_causal)
    return out.permute(2, 0, 1, 3), None
