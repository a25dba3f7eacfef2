//! Scaled dot-product attention.

use super::second_vjp;
use crate::Tensor;
use crate::autograd::{Cx, Grads};
use crate::backend::{backend, layers};
use crate::ops::table::{Args, Op, Out, function, place};
use crate::ops::{OutSpec, Outputs, Primitive, Reads};
use crate::transform::bind;
use crate::transform::vectorize::Batch;
use flambeau_base::{DType, Dims, Error, Layout, Result, broadcast, show};
use smallvec::{SmallVec, smallvec};
use std::any::Any;

/// `softmax(scale * q @ k.T + mask) @ v` for each batch and head: inputs are `q`, `k`, `v` of shapes `[batch, heads, length, width]` and
/// the mask `[batch, heads, queries, keys]`, where there is one (strides may be 0). A further output is the logarithm of the sum of
/// exponentials of each row of scores.
#[derive(Clone, Copy, Debug)]
pub struct Attention {
    causal: bool,
    scale: f64,
}

impl Attention {
    fn call(&self, q: &Tensor, k: &Tensor, v: &Tensor, mask: Option<&Tensor>) -> Result<layers::Attention> {
        let nothing = layers::Heads { ptr: std::ptr::null_mut(), strides: [0; 4] };
        Ok(layers::Attention {
            dtype: q.dtype(),
            batch: q.shape()[0],
            heads: q.shape()[1],
            group: q.shape()[1] / k.shape()[1].max(1),
            queries: q.shape()[2],
            keys: k.shape()[2],
            width: q.shape()[3],
            value_width: v.shape()[3],
            scale: self.scale,
            causal: self.causal,
            q: heads(q)?,
            k: heads(k)?,
            v: heads(v)?,
            mask: mask.map(heads).transpose()?,
            mask_is_bool: mask.is_some_and(|m| m.dtype() == DType::Bool),
            out: nothing,
            lse: std::ptr::null_mut(),
        })
    }
}

fn heads(t: &Tensor) -> Result<layers::Heads> {
    let s = t.strides();
    Ok(layers::Heads { ptr: t.data_ptr()?, strides: [s[0], s[1], s[2], s[3]] })
}

fn heads_mut(t: &Tensor) -> Result<layers::Heads> {
    t.data_ptr_mut()?;
    heads(t)
}

impl Primitive for Attention {
    fn name(&self) -> &'static str {
        "scaled_dot_product_attention"
    }

    fn infer(&self, inputs: &[&Tensor]) -> Result<SmallVec<[OutSpec; 1]>> {
        let (q, v) = (inputs[0], inputs[2]);
        super::check_float(self.name(), q.dtype())?;
        let mut sizes = Dims::from_slice(q.shape());
        let rows = Layout::contiguous(&sizes[..3])?;
        sizes[3] = v.shape()[3];
        // Laid out like the queries, so that heads that were split off a wider tensor go back without a copy.
        let layout = Layout::in_order(&sizes, &q.layout().stride_order())?;
        Ok(smallvec![OutSpec { layout, dtype: q.dtype() }, OutSpec { layout: rows, dtype: q.dtype().accumulator() }])
    }

    fn compute(&self, inputs: &[&Tensor], outputs: &[Tensor]) -> Result<()> {
        if outputs[0].numel() == 0 {
            return Ok(());
        }
        let mut call = self.call(inputs[0], inputs[1], inputs[2], inputs.get(3).copied())?;
        call.out = heads_mut(&outputs[0])?;
        call.lse = outputs[1].data_ptr_mut()?;
        // SAFETY: `Tensor::attention` checked the shapes; outputs are made by `run`.
        unsafe { backend(inputs[0].device())?.attention(&call) }
    }

    fn vjp(&self, cx: &Cx, grads: &mut Grads) -> Result<Grads> {
        let mut out: Grads = smallvec![None; cx.inputs()];
        let Some(g) = grads[0].take() else { return Ok(out) };
        let mut inputs: SmallVec<[Tensor; 7]> = smallvec![g];
        for i in 0..cx.inputs() {
            inputs.push(cx.input(i)?);
        }
        inputs.extend([cx.output(0)?.alias(), cx.output(1)?.alias()]);
        let inputs: SmallVec<[&Tensor; 7]> = inputs.iter().collect();
        for (slot, found) in out.iter_mut().zip(bind(&AttentionBackward(*self), &inputs)?) {
            *slot = Some(found);
        }
        Ok(out)
    }

    fn reads(&self) -> Reads {
        Reads::both(0b1111, 0b11)
    }

    fn differentiable(&self, i: usize) -> bool {
        i == 0
    }

    fn batched(&self, batch: &Batch) -> Result<Option<Outputs>> {
        batch.on_folded(self, batch.inputs.len())
    }

    fn boxed(&self) -> Box<dyn Primitive> {
        Box::new(*self)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// The derivative of [`Attention`]: inputs are the gradient, the forward inputs and both outputs; outputs the gradients of `q`, `k`, `v`.
#[derive(Clone, Copy, Debug)]
pub struct AttentionBackward(Attention);

impl Primitive for AttentionBackward {
    fn name(&self) -> &'static str {
        "scaled_dot_product_attention_backward"
    }

    fn infer(&self, inputs: &[&Tensor]) -> Result<SmallVec<[OutSpec; 1]>> {
        // Rows of all heads beside each other: what the heads were split off has its gradient in this order.
        let spec = |t: &&Tensor| Ok(OutSpec { layout: Layout::in_order(t.shape(), &[0, 2, 1, 3])?, dtype: t.dtype() });
        inputs[1..4].iter().map(spec).collect()
    }

    fn run(&self, inputs: &[&Tensor]) -> Result<Outputs> {
        let device = self.device(inputs)?;
        // Where there are no queries or no keys, nothing is written.
        let empty = inputs[0].numel() == 0 || inputs[2].numel() == 0 || inputs[1].numel() == 0;
        let make = |s: OutSpec| match empty {
            true => Tensor::zeros_layout(s.layout, s.dtype, device),
            false => Tensor::empty_layout(s.layout, s.dtype, device),
        };
        let outputs = self.infer(inputs)?.into_iter().map(make).collect::<Result<Outputs>>()?;
        if !device.is_meta() && !empty {
            self.compute(inputs, &outputs)?;
        }
        Ok(outputs)
    }

    fn compute(&self, inputs: &[&Tensor], outputs: &[Tensor]) -> Result<()> {
        let n = inputs.len();
        let mut forward = self.0.call(inputs[1], inputs[2], inputs[3], if n == 7 { Some(inputs[4]) } else { None })?;
        forward.out = heads(inputs[n - 2])?;
        forward.lse = inputs[n - 1].data_ptr()?;
        let grads = [heads_mut(&outputs[0])?, heads_mut(&outputs[1])?, heads_mut(&outputs[2])?];
        let call = layers::AttentionBackward { forward, grad: heads(inputs[0])?, grads };
        // SAFETY: the shapes are those of the forward pass; outputs are made by `run`.
        unsafe { backend(inputs[0].device())?.attention_backward(&call) }
    }

    fn vjp(&self, cx: &Cx, grads: &mut Grads) -> Result<Grads> {
        let mask = if cx.inputs() == 7 { Some(cx.input(4)?) } else { None };
        let f = |all: &[Tensor]| Ok(vec![attention_composite(&all[0], &all[1], &all[2], mask.as_ref(), self.0.causal, self.0.scale, 0.0)?]);
        second_vjp(&f, cx, grads, 3, &[true; 3])
    }

    fn reads(&self) -> Reads {
        Reads::inputs(0b11111)
    }

    fn batched(&self, batch: &Batch) -> Result<Option<Outputs>> {
        batch.on_folded(self, batch.inputs.len())
    }

    fn boxed(&self) -> Box<dyn Primitive> {
        Box::new(*self)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// Attention in tensor operations, over any leading dimensions that broadcast; holds all scores. Keys and values of fewer heads than
/// the queries are repeated.
pub fn attention_composite(
    q: &Tensor,
    k: &Tensor,
    v: &Tensor,
    mask: Option<&Tensor>,
    causal: bool,
    scale: f64,
    dropout: f64,
) -> Result<Tensor> {
    let (k, v) = (repeat_heads(k, q)?, repeat_heads(v, q)?);
    let mut scores = q.matmul(&k.transpose(-2, -1)?)?.mul(scale)?;
    if causal {
        let (l, s) = (scores.shape()[scores.ndim() - 2] as i64, scores.shape()[scores.ndim() - 1] as i64);
        let rows = Tensor::arange(0, l, 1, Some(DType::I64), q.device())?.reshape(&[l, 1])?;
        let columns = Tensor::arange(0, s, 1, Some(DType::I64), q.device())?;
        scores = scores.masked_fill(&columns.gt(&rows)?, f64::NEG_INFINITY)?;
    }
    match mask {
        Some(m) if m.dtype() == DType::Bool => scores = Tensor::where_(m, &scores, f64::NEG_INFINITY)?,
        Some(m) => scores = scores.add(m)?,
        None => {}
    }
    // A row that is masked wholly gives zeros.
    let masked = scores.alias().eq(f64::NEG_INFINITY)?.all_dims(Some(&[-1]), true)?;
    let mut p = scores.masked_fill(&masked, 0.0)?.softmax(-1, None)?.masked_fill(&masked, 0.0)?;
    if dropout > 0.0 {
        p = p.dropout(dropout, true)?;
    }
    p.matmul(&v)
}

/// Repeats each head of keys or values for the heads of queries that share it.
fn repeat_heads(t: &Tensor, q: &Tensor) -> Result<Tensor> {
    if t.ndim() < 3 || t.ndim() != q.ndim() {
        return Ok(t.clone());
    }
    let (mine, theirs) = (t.shape()[t.ndim() - 3], q.shape()[q.ndim() - 3]);
    if mine == theirs || mine <= 1 {
        return Ok(t.clone());
    }
    let at = t.ndim() - 2;
    let mut sizes: SmallVec<[i64; 6]> = t.shape().iter().map(|&n| n as i64).collect();
    sizes.insert(at, 1);
    let single = t.reshape(&sizes)?;
    sizes[at] = (theirs / mine) as i64;
    let repeated = single.expand(&sizes)?;
    sizes.remove(at);
    sizes[at - 1] = theirs as i64;
    repeated.reshape(&sizes)
}

/// What [`Tensor::attention`] takes besides queries, keys and values.
#[derive(Clone, Copy, Debug, Default)]
pub struct AttentionOptions<'a> {
    /// Added to the scores, or (bool) whether a key is seen; broadcast.
    pub mask: Option<&'a Tensor>,
    /// Probability with which a weight is dropped.
    pub dropout: f64,
    /// Query `i` sees keys up to `i` only.
    pub causal: bool,
    /// Factor of the scores; `1 / sqrt(width)` where there is none.
    pub scale: Option<f64>,
    /// Keys and values may have fewer heads, each shared by several heads of queries.
    pub grouped: bool,
}

impl Tensor {
    /// Attention of these queries `[..., queries, width]` to keys `[..., keys, width]` and values `[..., keys, value width]`.
    ///
    /// Scores are never held all at once where neither dropout nor a mask's gradient is wanted. A row that is masked wholly gives
    /// zeros. `RuntimeError` where shapes or dtypes do not fit.
    pub fn attention(&self, k: &Tensor, v: &Tensor, options: &AttentionOptions) -> Result<Tensor> {
        let q = self;
        check(q, k, v, options)?;
        let width = q.shape()[q.ndim() - 1];
        let scale = options.scale.unwrap_or(1.0 / (width.max(1) as f64).sqrt());
        let mask_grad = options.mask.is_some_and(|m| m.is_followed());
        let plain = options.dropout == 0.0 && !mask_grad;
        if plain && let Some([q4, k4, v4]) = four_dimensional(q, k, v)? {
            let mask = options.mask.map(|m| mask4(m, q, k)).transpose()?;
            let mut inputs: SmallVec<[&Tensor; 4]> = smallvec![&q4, &k4, &v4];
            inputs.extend(mask.as_ref());
            let out = bind(&Attention { causal: options.causal, scale }, &inputs)?.swap_remove(0);
            let mut sizes = Dims::from_slice(q.shape());
            let last = sizes.len() - 1;
            sizes[last] = v.shape()[v.ndim() - 1];
            return if q.ndim() == 4 { Ok(out) } else { out.reshape_to(&sizes) };
        }
        attention_composite(q, k, v, options.mask, options.causal, scale, options.dropout)
    }
}

fn check(q: &Tensor, k: &Tensor, v: &Tensor, options: &AttentionOptions) -> Result<()> {
    let op = "scaled_dot_product_attention";
    if q.ndim() < 2 || k.ndim() < 2 || v.ndim() < 2 {
        return Err(Error::runtime(format!(
            "{op}: Expected query, key, and value to all be  at least 2 dimensional, but got query.dim: {} key.dim: {} and value.dim: {} instead.",
            q.ndim(),
            k.ndim(),
            v.ndim()
        )));
    }
    if q.dtype() != k.dtype() || q.dtype() != v.dtype() {
        return Err(Error::runtime(format!(
            "{op}: Expected query, key, and value to have the same dtype, but got query.dtype: {} key.dtype: {} and value.dtype: {} instead.",
            q.dtype(),
            k.dtype(),
            v.dtype()
        )));
    }
    super::check_float(op, q.dtype())?;
    if options.mask.is_some() && options.causal {
        return Err(Error::runtime(format!("{op}: Explicit attn_mask should not be set when is_causal=True")));
    }
    if !(0.0..=1.0).contains(&options.dropout) {
        return Err(Error::runtime(format!("{op}: dropout probability has to be between 0 and 1, but got {}", options.dropout)));
    }
    let last = |t: &Tensor, i: usize| t.shape()[t.ndim() - i];
    if last(q, 1) != last(k, 1) || last(k, 2) != last(v, 2) {
        return Err(Error::runtime(format!(
            "{op}: Expected size for the last dimension of query and key, and for the last but one of key and value, to be the same, but got query {}, key {}, value {}",
            show(q.shape()),
            show(k.shape()),
            show(v.shape())
        )));
    }
    if options.grouped && !same_heads(q, k, v) {
        check_groups(op, q, k, v)?;
    } else {
        let stacks = broadcast(op, &q.shape()[..q.ndim() - 2], &k.shape()[..k.ndim() - 2])?;
        broadcast(op, &stacks, &v.shape()[..v.ndim() - 2])?;
    }
    let Some(mask) = options.mask else { return Ok(()) };
    if mask.dtype() != DType::Bool && mask.dtype() != q.dtype() {
        return Err(Error::runtime(format!(
            "{op}: Expected attn_mask dtype to be bool or to match query dtype, but got attn_mask.dtype: {} and  query.dtype: {} instead.",
            mask.dtype(),
            q.dtype()
        )));
    }
    let mut scores = Dims::from_slice(&q.shape()[..q.ndim() - 1]);
    scores.push(last(k, 2));
    broadcast(op, &scores, mask.shape()).map(|_| ())
}

/// Whether there is nothing to share: as many heads everywhere, over stacks that may broadcast.
fn same_heads(q: &Tensor, k: &Tensor, v: &Tensor) -> bool {
    let heads = |t: &Tensor| if t.ndim() >= 3 { Some(t.shape()[t.ndim() - 3]) } else { None };
    heads(q).is_some() && heads(q) == heads(k) && heads(q) == heads(v)
}

fn check_groups(op: &str, q: &Tensor, k: &Tensor, v: &Tensor) -> Result<()> {
    let heads = |t: &Tensor| if t.ndim() >= 3 { t.shape()[t.ndim() - 3] } else { 0 };
    let (hq, hk) = (heads(q), heads(k));
    if q.ndim() < 3 || q.ndim() != k.ndim() || k.shape()[..k.ndim() - 2] != v.shape()[..v.ndim() - 2] || hk == 0 || hq % hk != 0 {
        return Err(Error::runtime(format!(
            "{op}: Number of heads in key and value must divide the number of heads in query (enable_gqa=True), but got query {}, key {}, value {}",
            show(q.shape()),
            show(k.shape()),
            show(v.shape())
        )));
    }
    Ok(())
}

/// The operands as `[batch, heads, length, width]`, where they are such a stack without broadcasting.
fn four_dimensional(q: &Tensor, k: &Tensor, v: &Tensor) -> Result<Option<[Tensor; 3]>> {
    let n = q.ndim();
    if k.ndim() != n || v.ndim() != n {
        return Ok(None);
    }
    let lead = |t: &Tensor| Dims::from_slice(&t.shape()[..n - 2]);
    if lead(k) != lead(v) {
        return Ok(None);
    }
    if n == 4 {
        let fits = q.shape()[0] == k.shape()[0] && k.shape()[1] > 0 && q.shape()[1].is_multiple_of(k.shape()[1]);
        return Ok(fits.then(|| [q.clone(), k.clone(), v.clone()]));
    }
    if lead(q) != lead(k) {
        return Ok(None);
    }
    let batch: usize = lead(q).iter().product();
    let four = |t: &Tensor| t.reshape_to(&[batch, 1, t.shape()[n - 2], t.shape()[n - 1]]);
    Ok(Some([four(q)?, four(k)?, four(v)?]))
}

/// The mask broadcast to all scores of the four-dimensional form; in four dimensions it is not copied.
fn mask4(mask: &Tensor, q: &Tensor, k: &Tensor) -> Result<Tensor> {
    let n = q.ndim();
    let mut sizes: SmallVec<[i64; 6]> = q.shape()[..n - 1].iter().map(|&n| n as i64).collect();
    sizes.push(k.shape()[n - 2] as i64);
    let full = mask.expand(&sizes)?;
    if n == 4 {
        return Ok(full);
    }
    let batch: usize = q.shape()[..n - 2].iter().product();
    full.reshape_to(&[batch, 1, q.shape()[n - 2], k.shape()[n - 2]])
}

fn attention(a: &Args) -> Result<Out> {
    let options =
        AttentionOptions { mask: a.opt_tensor(3)?, dropout: a.float(4)?, causal: a.bool(5)?, scale: a.opt_float(6)?, grouped: a.bool(7)? };
    Ok(a.tensor(0)?.attention(a.tensor(1)?, a.tensor(2)?, &options)?.into())
}

/// Attention of four-dimensional operands with the logarithms of sums of exponentials, `[batch, heads, queries]`.
fn with_lse(a: &Args) -> Result<Out> {
    let (q, k, v, mask) = (a.tensor(0)?, a.tensor(1)?, a.tensor(2)?, a.opt_tensor(5)?);
    let options = AttentionOptions { mask, dropout: a.float(3)?, causal: a.bool(4)?, scale: a.opt_float(6)?, grouped: false };
    if q.ndim() != 4 {
        return Err(Error::runtime(format!("{}: expected operands of 4 dimensions, got query {}", a.name, show(q.shape()))));
    }
    check(q, k, v, &AttentionOptions { mask: options.mask, causal: false, ..options })?;
    if options.dropout != 0.0 {
        return Err(Error::runtime(format!("{}: dropout is not supported, got {}", a.name, options.dropout)));
    }
    let width = q.shape()[3];
    let scale = options.scale.unwrap_or(1.0 / (width.max(1) as f64).sqrt());
    let mask = mask.map(|m| mask4(m, q, k)).transpose()?;
    let mut inputs: SmallVec<[&Tensor; 4]> = smallvec![q, k, v];
    inputs.extend(mask.as_ref());
    let mut found = bind(&Attention { causal: options.causal, scale }, &inputs)?;
    let (sums, out) = (found.remove(1), found.remove(0));
    // PyTorch's lie with the heads side by side.
    let sums = sums.transpose(1, 2)?.contiguous()?.transpose(1, 2)?;
    Ok(Out::Tuple(smallvec![out, sums]))
}

/// Softmax that gives zeros where all is -inf.
fn safe_softmax(a: &Args) -> Result<Out> {
    let (x, dim) = (a.tensor(0)?, a.int(1)?);
    let none = x.alias().eq(f64::NEG_INFINITY)?.all_dims(Some(&[dim]), true)?;
    let p = x.masked_fill(&none, 0.0)?.softmax(dim, a.opt_dtype(2)?)?;
    Ok(p.masked_fill(&none, 0.0)?.into())
}

pub(super) static OPS: &[Op] = &[
    function("_safe_softmax(Tensor self, int dim, ScalarType? dtype=None) -> Tensor", safe_softmax)
        .doc("Softmax along `dim` that gives zeros where all scores are -inf.")
        .places(place::TORCH)
        .samples(&["T(2,3), -1", "T(2,3,2), 1"])
        .without_out(),
    function(
        "_scaled_dot_product_flash_attention_for_cpu(Tensor query, Tensor key, Tensor value, float dropout_p=0.0, bool is_causal=False, *, Tensor? attn_mask=None, float? scale=None) -> (Tensor output, Tensor logsumexp)",
        with_lse,
    )
    .doc("`scaled_dot_product_attention` of four-dimensional operands, with the logarithms of sums of exponentials of scores.")
    .places(place::TORCH)
    .samples(&["T(2,3,5,4), T(2,3,6,4), T(2,3,6,4)"])
    .without_out(),
    function(
    "scaled_dot_product_attention(Tensor query, Tensor key, Tensor value, Tensor? attn_mask=None, float dropout_p=0.0, bool is_causal=False, *, float? scale=None, bool enable_gqa=False) -> Tensor",
    attention,
)
.autocast_lower()
.doc("`softmax(scale * query @ key.T + mask) @ value` over the last two dimensions, without holding the scores. A bool mask says which keys are seen, a float mask is added; `is_causal` lets query i see keys up to i; with `enable_gqa` several heads of queries share one of keys. Rows that are masked wholly give zeros.")
.places(place::NN)
.samples(&[
    "T(2,3,5,4), T(2,3,6,4), T(2,3,6,2)",
    "T(2,3,5,4), T(2,3,5,4), T(2,3,5,4), None, 0.0, True",
    "T(2,5,4), T(2,6,4), T(2,6,4), B(5,6)",
    "T(2,5,4), T(2,6,4), T(2,6,4), T(2,5,6), scale=0.3",
    "T(2,4,5,3), T(2,2,6,3), T(2,2,6,3), enable_gqa=True",
    "T(5,4), T(6,4), T(6,4)",
])
.without_out(),
];
