"""Batch norms folded into the layer before them, for evaluation."""

from copy import deepcopy

from ... import _C
from ..parameter import Parameter

__all__ = ["fuse_conv_bn_eval", "fuse_conv_bn_weights", "fuse_linear_bn_eval", "fuse_linear_bn_weights"]


def _fused(weight, bias, mean, var, eps, scale, shift, channel):
    if bias is None:
        bias = _C.zeros_like(mean)
    scale = _C.ones_like(mean) if scale is None else scale
    shift = _C.zeros_like(mean) if shift is None else shift
    factor = scale * _C.rsqrt(var + eps)
    shape = [1] * weight.dim()
    shape[channel] = -1
    new = (weight * factor.reshape(shape)).to(weight.dtype), ((bias - mean) * factor + shift).to(bias.dtype)
    grads = getattr(weight, "requires_grad", False), getattr(bias, "requires_grad", False)
    return tuple(Parameter(x, grad) for x, grad in zip(new, grads))


def fuse_conv_bn_weights(conv_w, conv_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b, transpose=False):
    """Weight and bias of a convolution that does what it and a batch norm after it did."""
    return _fused(conv_w, conv_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b, 1 if transpose else 0)


def fuse_linear_bn_weights(linear_w, linear_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b):
    """Weight and bias of a linear layer that does what it and a batch norm after it did."""
    return _fused(linear_w, linear_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b, 0)


def _eval(layer, bn, fuse):
    if layer.training or bn.training:
        raise AssertionError("Fusion only for eval!")
    if bn.running_mean is None or bn.running_var is None:
        raise AssertionError("Fusion needs the batch norm's running statistics")
    out = deepcopy(layer)
    out.weight, out.bias = fuse(
        out.weight, out.bias, bn.running_mean, bn.running_var, bn.eps, bn.weight, bn.bias
    )
    return out


def fuse_conv_bn_eval(conv, bn, transpose=False):
    """A copy of ``conv`` that does what it and ``bn`` after it do in evaluation."""
    return _eval(conv, bn, lambda *args: fuse_conv_bn_weights(*args, transpose))


def fuse_linear_bn_eval(linear, bn):
    """A copy of ``linear`` that does what it and ``bn`` after it do in evaluation."""
    if linear.out_features != bn.num_features and bn.num_features != 1:
        raise AssertionError("To fuse, linear.out_features == bn.num_features or bn.num_features == 1")
    return _eval(linear, bn, fuse_linear_bn_weights)
