"""Prints expected.rs, from the draws of the PyTorch that runs it (measured: 2.15.0, x86-64).

Each row names a draw and holds the 64-bit FNV-1a hash of the bytes drawn, followed by those of the generator's
state after it: values, words taken and the pending normal are all in it.
"""
import warnings

import torch

warnings.simplefilter("ignore")
DTYPES = {"f32": torch.float32, "f64": torch.float64, "f16": torch.float16, "bf16": torch.bfloat16, "i8": torch.int8, "i16": torch.int16,
          "i32": torch.int32, "i64": torch.int64, "u8": torch.uint8, "u16": torch.uint16, "u32": torch.uint32, "u64": torch.uint64, "bool": torch.bool}
FRACTIONS = ["f32", "f64", "f16", "bf16"]


def fnv(data, value=0xCBF29CE484222325):
    for byte in data:
        value = (value ^ byte) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
    return value


def ramp(n, period, scale, dtype):
    """(i mod period) / scale, in double, then rounded."""
    return (torch.arange(n, dtype=torch.float64) % period / scale).to(DTYPES[dtype])


def row(kind, dtype, n, a, b, draw):
    torch.manual_seed(42)
    drawn = draw(torch.empty(n, dtype=DTYPES[dtype])).contiguous().reshape(-1)
    data = drawn.view(torch.uint8).numpy().tobytes() if drawn.numel() else b""
    number = "0x{:016x}".format(fnv(torch.get_rng_state().numpy().tobytes(), fnv(data)))
    print(f'    ("{kind}", "{dtype}", {n}, {float(a)!r}, {float(b)!r}, {number}),')


print("//! What PyTorch 2.15.0 drew on x86-64 from the seed 42; printed by expected.py.\n")
print("/// The draw, its element type, length and two parameters; the hash of what was drawn and of the state after it.")
print("pub const EXPECTED: &[(&str, &str, usize, f64, f64, u64)] = &[")
for dtype in FRACTIONS:
    for n in (0, 1, 15, 16, 17, 33, 640):
        row("normal", dtype, n, 0.3, 1.7, lambda x: x.normal_(0.3, 1.7))
    row("normal_small", dtype, 33, 0.3, 1.7, lambda x: torch.empty(33, 2, dtype=x.dtype)[:, 0].normal_(0.3, 1.7))
    for a, b in ((0, 1), (-0.3, 0.7), (2, 2)):
        row("uniform", dtype, 641, a, b, lambda x: x.uniform_(a, b))
    row("exponential", dtype, 40, 1.5, 0, lambda x: x.exponential_(1.5))
    row("cauchy", dtype, 40, 0.5, 2, lambda x: x.cauchy_(0.5, 2))
    row("log_normal", dtype, 41, 0.1, 0.7, lambda x: x.log_normal_(0.1, 0.7))
    if dtype in ("f32", "f64"):
        row("rrelu", dtype, 60, 0.125, 1 / 3, lambda x: torch.nn.functional.rrelu(ramp(60, 7, 4, dtype).sub(1), training=True))
    for p in (0, 0.4, 1):
        row("dropout", dtype, 40, p, 0, lambda x: torch.dropout(torch.ones_like(x), p, True))
    row("bernoulli_each", dtype, 61, 0, 0, lambda x: torch.bernoulli(ramp(61, 61, 60, dtype)))
    row("poisson", dtype, 200, 0, 0, lambda x: torch.poisson(ramp(200, 97, 4, dtype)))
    for n, k in ((30, 1), (30, 10), (30, 30), (700, 10)):
        row("multinomial", dtype, n, k, 0, lambda x: torch.multinomial(ramp(n, 13, 4, dtype), k))
        row("multinomial", dtype, n, k, 1, lambda x: torch.multinomial(ramp(n, 13, 4, dtype), k, True))
    row("multinomial_rows", dtype, 60, 5, 1, lambda x: torch.multinomial(ramp(60, 13, 4, dtype).reshape(3, 20), 5, True))
    if dtype in ("f32", "f64"):
        row("gamma", dtype, 200, 0, 0, lambda x: torch._standard_gamma(ramp(200, 89, 12, dtype)))
        row("binomial", dtype, 200, 40, 0, lambda x: torch.binomial(torch.full_like(x, 40), ramp(200, 61, 60, dtype)))
row("dirichlet", "f32", 60, 6, 0, lambda x: torch._sample_dirichlet(ramp(60, 7, 4, "f32").add(0.25).reshape(-1, 6)))
for dtype in DTYPES:
    if dtype not in ("u16", "u32", "u64"):
        row("random", dtype, 50, 0, 0, lambda x: x.random_())
        for p in (0, 0.3, 1):
            row("bernoulli", dtype, 50, p, 0, lambda x: x.bernoulli_(p))
        if dtype != "bool":
            row("geometric", dtype, 50, 0.3, 0, lambda x: x.geometric_(0.3))
            row("permutation", dtype, 101, 0, 0, lambda x: torch.randperm(101, dtype=x.dtype))
for dtype, a, b in (("i64", 0, 1000), ("i64", -(2**40), 2**41), ("i64", 0, 2**28 - 1), ("i64", 0, 2**28), ("i32", -7, 2**31 - 1), ("u8", 0, 256), ("i8", -128, 128),
                    ("bool", 0, 2), ("u16", 3, 65536), ("u32", 0, 2**32), ("u64", 5, 2**62), ("f16", 0, 2060), ("f16", -3000, 60000), ("f32", -(2**25), 2**25 + 3),
                    ("bf16", 0, 1000), ("f64", 0, 2**53)):
    row("range", dtype, 50, a, b, lambda x: x.random_(a, b))
for dtype, a in (("i64", 5), ("i64", -(2**63)), ("f32", -(2**63)), ("u8", 7), ("f16", 100)):
    row("from", dtype, 50, a, 0, lambda x: x.random_(a, None))
row("permutation", "i64", 2000, 0, 0, lambda x: torch.randperm(2000))
print("];")
