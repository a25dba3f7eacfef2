"""Prints the coefficients of the polynomials in crates/cpu/src/math, as Sollya's fpminimax finds them.

Needs the program `sollya` (Debian package sollya). Each row: name, function of x, exponents, interval, format (SG is f32,
D is f64), what the error is relative to. erfinv, which Sollya does not know, is interpolated by `erfinv.py` beside this.
"""

import subprocess

SHIFTED = "({c}/(x+0.5)-{c})"
GELU_ZERO = "0.75179152469356445745790494677877154923303"
GELU_TANH_ZERO = "0.75246142207101625848795444328891609060539217803763"
SILU_ZERO = "1.27846454276107379510935873902298015543947"


def even(count):
    return [2 * i for i in range(count)]


def phi(c):
    t = SHIFTED.format(c=c)
    return f"erfc({t}/sqrt(2))*exp({t}^2/2)/2/(x+0.5)"


def phi_slope(c):
    t = SHIFTED.format(c=c)
    return f"(erfc({t}/sqrt(2))*exp({t}^2/2)/2-{t}/sqrt(2*pi))/({t}-{GELU_ZERO})"


def erfc_scaled(c):
    t = SHIFTED.format(c=c)
    return f"erfc({t})*exp({t}^2)/(x+0.5)"


def gelu_tanh_factor(middle):
    t = f"(x+{middle})"
    u = f"sqrt(2/pi)*({t}+0.044715*{t}^3)"
    return f"(1+exp(-2*{u})-{t}*2*sqrt(2/pi)*(1+0.134145*{t}^2))/({t}-{GELU_TANH_ZERO})"


def silu_factor(middle):
    t = f"(x+{middle})"
    return f"(1+exp(-{t})-{t})/({t}-{SILU_ZERO})"


LOG2_E_F32 = "1.44269502162933349609375"
LOG10_E_F32 = "0.4342944920063018798828125"
LN2_F64 = "0.693147180559945286226764"

FITS = [
    ("exp", "(exp(x)-1-x)/x^2", range(5), "-0.34664", "0.34664", "SG", "absolute"),
    ("exp", "(exp(x)-1-x)/x^2", range(10), "-0.34664", "0.34664", "D", "absolute"),
    ("exp2", "(2^x-1)/x", range(6), "-0.50001", "0.50001", "SG", "absolute"),
    ("exp2", f"(2^x-1-x*{LN2_F64})/x", range(11), "-0.50001", "0.50001", "D", "absolute"),
    ("log", "(log(1+x)-x)/x^2", range(9), "-1/3", "1/3", "SG", "absolute"),
    ("log (after -1/2)", "(log(1+x)-x+x^2/2)/x^3", range(20), "-1/3", "1/3", "D", "absolute"),
    ("log2", f"(log(1+x)/log(2)-x*{LOG2_E_F32})/x", range(9), "-1/3", "1/3", "SG", "absolute"),
    ("log10", f"(log(1+x)/log(10)-x*{LOG10_E_F32})/x", range(9), "-1/3", "1/3", "SG", "absolute"),
    ("sin", "(sin(x)-x)/x^3", even(3), "1b-20", "0.7864", "SG", "absolute"),
    ("sin", "(sin(x)-x)/x^3", even(6), "1b-30", "0.7864", "D", "absolute"),
    ("cos", "(cos(x)-1+x^2/2)/x^4", even(3), "1b-20", "0.7864", "SG", "absolute"),
    ("cos", "(cos(x)-1+x^2/2)/x^4", even(6), "1b-30", "0.7864", "D", "absolute"),
    ("tan", "(tan(x)-x)/x^3", even(7), "1b-20", "0.7875", "SG", "absolute"),
    ("asin", "(asin(x)-x)/x^3", even(5), "1b-20", "0.5", "SG", "absolute"),
    ("asin", "(asin(x)-x)/x^3", even(13), "1b-30", "0.5", "D", "absolute"),
    ("atan", "(atan(x)-x)/x^3", even(9), "1b-20", "1", "SG", "absolute"),
    ("atan", "(atan(x)-x)/x^3", even(11), "1b-30", "0.4143", "D", "absolute"),
    ("tanh", "(tanh(x)-x)/x^3", even(5), "1b-20", "0.6", "SG", "absolute"),
    ("sinh", "(sinh(x)-x)/x^3", even(4), "1b-20", "1", "SG", "absolute"),
    ("sinh", "(sinh(x)-x)/x^3", even(9), "1b-30", "1", "D", "absolute"),
    ("asinh", "(asinh(x)-x)/x^3", even(9), "1b-20", "1", "SG", "absolute"),
    ("asinh", "(asinh(x)-x)/x^3", even(14), "1b-30", "0.6", "D", "absolute"),
    ("atanh", "(atanh(x)-x)/x^3", even(6), "1b-20", "0.5", "SG", "absolute"),
    ("atanh", "(atanh(x)-x)/x^3", even(14), "1b-30", "0.5", "D", "absolute"),
    ("erf, near", "erf(x)/x-1", even(6), "1b-20", "1", "SG", "absolute"),
    ("erf, near", "erf(x)/x-1", even(13), "1b-30", "1", "D", "absolute"),
    ("erf, far", "-log(erfc(x))/x", range(8), "0.9", "4", "SG", "absolute"),
    ("erfc", erfc_scaled(3), range(11), "3/13.1-0.5", "0.5", "SG", "relative"),
    ("erfc", erfc_scaled(3), range(22), "3/30.3-0.5", "0.5", "D", "relative"),
    ("gelu", phi(3), range(11), "3/17.6-0.5", "0.5", "SG", "relative"),
    ("gelu", phi(4), range(24), "4/42.7-0.5", "0.5", "D", "relative"),
    ("gelu_derivative", phi_slope(3), range(10), "3/17.6-0.5", "0.5", "SG", "relative"),
    ("gelu_derivative", phi_slope(4), range(24), "4/42.7-0.5", "0.5", "D", "relative"),
    ("gelu_tanh_derivative", gelu_tanh_factor("0.9"), range(10), "-0.9", "0.9", "SG", "relative"),
    ("gelu_tanh_derivative", gelu_tanh_factor("1"), range(19), "-1", "1", "D", "relative"),
    ("silu_derivative", silu_factor("1.3"), range(9), "-1.3", "1.3", "SG", "relative"),
    ("silu_derivative", silu_factor("1.25"), range(16), "-1.25", "1.25", "D", "relative"),
    ("pow of f32: log2", "log(1+x)/log(2)/x", range(15), "-1/3", "1/3", "D", "absolute"),
    ("pow of f32: exp2", "2^x", range(9), "-0.50001", "0.50001", "D", "absolute"),
    ("pow of f64: artanh", "(atanh(x)/x-1-x^2/3)/x^4", even(8), "1b-20", "0.17175", "D", "absolute"),
]


def fit(name, function, exponents, low, high, form, mode):
    exponents = list(exponents)
    error = "p/f-1" if mode == "relative" else "p-f"
    lines = [
        f"prec=300; f={function};",
        f"p=fpminimax(f,[|{','.join(map(str, exponents))}|],[|{','.join([form] * len(exponents))}|],[{low};{high}],{mode});",
        f'print("error", dirtyinfnorm({error},[{low};{high}]));',
    ]
    lines += [f'print("c", coeff(p,{k}));' for k in exponents]
    lines.append("quit;")
    output = subprocess.run(["sollya"], input="\n".join(lines), capture_output=True, text=True, check=True).stdout
    rows = [line.split() for line in output.splitlines()]
    size = next(float(row[1]) for row in rows if row[:1] == ["error"])
    print(f"{name} ({'f32' if form == 'SG' else 'f64'}): {mode} error {size:.2e}")
    print("   ", ", ".join(row[1] for row in rows if row[:1] == ["c"]))


for row in FITS:
    fit(*row)
