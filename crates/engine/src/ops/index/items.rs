//! `x[...]` by NumPy's rules, to read and to write.

use super::{Address, Pick, Place};
use crate::Tensor;
use crate::backend::IndexMode;
use crate::ops::Operand;
use crate::ops::view::{Step, Window, slice_range, view, wrap_index};
use crate::transform::{bind_inplace, bind1};
use flambeau_base::{DType, Error, Result, show};
use smallvec::{SmallVec, smallvec};

/// One item of an index.
#[derive(Clone, Debug)]
pub enum IndexItem {
    /// One place of a dimension, which is dropped; negative ones count from the end.
    Int(i64),
    /// A range of a dimension, by Python's rules; the step is positive.
    Slice {
        /// The first place.
        start: Option<i64>,
        /// One past the last.
        stop: Option<i64>,
        /// From one to the next; 1 where there is none.
        step: Option<i64>,
    },
    /// A new dimension of size 1.
    NewAxis,
    /// As many whole dimensions as the other items leave.
    Ellipsis,
    /// A mask without dimensions: a new dimension of size 1, or of size 0 for false.
    Bool(bool),
    /// Integers: the places of a dimension. `bool` or `uint8`: a mask over as many dimensions as it has.
    Tensor(Tensor),
}

impl IndexItem {
    /// How many dimensions of the tensor it takes.
    fn takes(&self) -> usize {
        match self {
            IndexItem::Int(_) | IndexItem::Slice { .. } => 1,
            IndexItem::NewAxis | IndexItem::Ellipsis | IndexItem::Bool(_) => 0,
            IndexItem::Tensor(t) if is_mask(t) => t.ndim(),
            IndexItem::Tensor(_) => 1,
        }
    }
}

fn is_mask(t: &Tensor) -> bool {
    matches!(t.dtype(), DType::Bool | DType::U8)
}

/// What items ask for: a view, and index tensors (or masks) at some of its dimensions.
struct Plan {
    steps: SmallVec<[Step; 4]>,
    tensors: SmallVec<[(usize, Tensor); 2]>,
}

/// Walks over the items: `at` is the dimension of the view, `from` that of the tensor.
struct Walk<'a> {
    x: &'a Tensor,
    plan: Plan,
    at: usize,
    from: usize,
    /// A whole dimension was taken by a range.
    whole: Option<Step>,
}

impl Walk<'_> {
    fn item(&mut self, item: &IndexItem, rest: &mut usize) -> Result<()> {
        match item {
            IndexItem::Int(i) => self.select(*i)?,
            IndexItem::Slice { start, stop, step } => self.slice(*start, *stop, step.unwrap_or(1))?,
            IndexItem::NewAxis => {
                self.plan.steps.push(Step::New(self.at));
                self.at += 1;
            }
            IndexItem::Ellipsis => {
                self.skip(std::mem::take(rest));
            }
            IndexItem::Bool(b) => self.truth(*b)?,
            IndexItem::Tensor(t) => self.tensor(t)?,
        }
        Ok(())
    }

    fn skip(&mut self, n: usize) {
        self.at += n;
        self.from += n;
    }

    fn select(&mut self, index: i64) -> Result<()> {
        let index = wrap_index("index", index, self.from, self.x.shape())?;
        self.plan.steps.push(Step::Select { dim: self.at, index });
        self.from += 1;
        Ok(())
    }

    fn slice(&mut self, start: Option<i64>, stop: Option<i64>, step: i64) -> Result<()> {
        if step == 0 {
            return Err(Error::value("index: slice step cannot be zero"));
        }
        if step < 0 {
            return Err(Error::value(format!("index: step must be greater than zero, got {step}; flip() reverses a dimension")));
        }
        let size = self.x.shape()[self.from];
        let (start, length) = slice_range(start, stop, step, size);
        let slice = Step::Slice { dim: self.at, start, length, step: step as usize };
        if length == size && step == 1 {
            self.whole = Some(slice);
        } else {
            self.plan.steps.push(slice);
        }
        self.skip(1);
        Ok(())
    }

    fn truth(&mut self, b: bool) -> Result<()> {
        self.plan.steps.push(Step::New(self.at));
        let places: &[i64] = if b { &[0] } else { &[] };
        self.plan.tensors.push((self.at, Tensor::from_slice(places, &[places.len()])?));
        self.at += 1;
        Ok(())
    }

    fn tensor(&mut self, t: &Tensor) -> Result<()> {
        if is_mask(t) {
            if t.ndim() == 0 {
                return self.truth(t.item()?.to_bool());
            }
            check_mask(self.x, t, self.from)?;
            self.plan.tensors.push((self.at, t.clone()));
            self.skip(t.ndim());
            return Ok(());
        }
        check_integral(t)?;
        if t.ndim() == 0 && !t.device().is_meta() {
            return self.select(t.item()?.to_i64());
        }
        self.plan.tensors.push((self.at, t.clone()));
        self.skip(1);
        Ok(())
    }
}

fn plan(x: &Tensor, items: &[IndexItem]) -> Result<Plan> {
    let taken: usize = items.iter().map(IndexItem::takes).sum();
    let Some(mut rest) = x.ndim().checked_sub(taken) else {
        return Err(match (x.ndim(), items) {
            (0, [IndexItem::Int(_)]) => Error::index(
                "index: invalid index of a 0-dim tensor. Use `tensor.item()` in Python or `Tensor::item` in Rust to convert a 0-dim tensor to a number",
            ),
            (n, _) => Error::index(format!(
                "index: too many indices for tensor of dimension {n} (shape {}): the index takes {taken}",
                show(x.shape())
            )),
        });
    };
    let mut walk = Walk { x, plan: Plan { steps: SmallVec::new(), tensors: SmallVec::new() }, at: 0, from: 0, whole: None };
    for item in items {
        walk.item(item, &mut rest)?;
    }
    let mut plan = walk.plan;
    if plan.steps.is_empty() && plan.tensors.is_empty() {
        plan.steps.extend(walk.whole);
    }
    Ok(plan)
}

/// The view that the plan begins with: a new tensor unless index tensors follow.
fn base(x: &Tensor, plan: &Plan) -> Result<Tensor> {
    if plan.steps.is_empty() && !plan.tensors.is_empty() {
        return Ok(x.clone());
    }
    view(Window(plan.steps.clone()), x)
}

/// A tensor with the dimensions and index tensors by which elements of it are named.
struct Named {
    tensor: Tensor,
    address: Address,
    indices: SmallVec<[Tensor; 2]>,
    distinct: bool,
}

/// Masks become the places where they are true.
fn name_elements(base: Tensor, tensors: &[(usize, Tensor)]) -> Result<Named> {
    if let [(dim, mask)] = tensors
        && is_mask(mask)
        && let Some(flat) = flattened(&base, *dim, mask.ndim())?
    {
        let places = super::mask::nonzero(mask, true)?;
        return Ok(Named { tensor: flat, address: Address::Dims(smallvec![*dim]), indices: smallvec![places], distinct: true });
    }
    let (mut dims, mut indices) = (SmallVec::new(), SmallVec::new());
    for (dim, t) in tensors {
        if is_mask(t) {
            for (d, places) in super::mask::nonzero(t, false)?.unbind(1)?.into_iter().enumerate() {
                dims.push(dim + d);
                indices.push(places);
            }
        } else {
            dims.push(*dim);
            indices.push(t.to_dtype(DType::I64)?);
        }
    }
    Ok(Named { tensor: base, address: Address::Dims(dims), indices, distinct: false })
}

/// Dimensions from `dim` on as one, where that needs no copy.
fn flattened(base: &Tensor, dim: usize, n: usize) -> Result<Option<Tensor>> {
    if n == 1 {
        return Ok(Some(base.clone()));
    }
    let mut sizes: SmallVec<[usize; 6]> = SmallVec::from_slice(&base.shape()[..dim]);
    sizes.push(base.shape()[dim..dim + n].iter().product());
    sizes.extend_from_slice(&base.shape()[dim + n..]);
    Ok(if base.layout().view(&sizes).is_some() { Some(base.reshape_to(&sizes)?) } else { None })
}

impl Tensor {
    /// The part of this tensor that the items name, by NumPy's rules: a view where there are no index tensors or masks.
    ///
    /// `IndexError` for a place that is not there, for too many items, for masks of another shape and index tensors that
    /// do not broadcast.
    ///
    /// ```
    /// # use flambeau_engine::{Tensor, ops::index::IndexItem};
    /// # fn example() -> flambeau_engine::base::Result<()> {
    /// let x = Tensor::from_slice(&[1.0f32, 2.0, 3.0, 4.0], &[2, 2])?;
    /// let column = x.index_items(&[IndexItem::Ellipsis, IndexItem::Int(-1)])?;
    /// assert_eq!(column.to_vec::<f32>()?, [2.0, 4.0]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn index_items(&self, items: &[IndexItem]) -> Result<Tensor> {
        let plan = plan(self, items)?;
        let base = base(self, &plan)?;
        if plan.tensors.is_empty() {
            return Ok(base);
        }
        let named = name_elements(base, &plan.tensors)?;
        let mut inputs: SmallVec<[&Tensor; 4]> = smallvec![&named.tensor];
        inputs.extend(&named.indices);
        bind1(&Pick { name: "index", address: named.address, distinct: named.distinct, wraps: true }, &inputs)
    }

    /// Writes values, broadcast and converted to this tensor's dtype, to the part that the items name.
    ///
    /// Where an index tensor names an element more than once, the last value in row-major order stays. Errors as for
    /// [`Tensor::index_items`], and `RuntimeError` for values that do not broadcast.
    pub fn set_items<'a>(&self, items: &[IndexItem], values: impl Into<Operand<'a>>) -> Result<()> {
        let plan = plan(self, items)?;
        let base = base(self, &plan)?;
        let values = values.into();
        if plan.tensors.is_empty() {
            match values {
                Operand::Tensor(t) => base.copy_(&without_leading_ones(t, base.ndim())?)?,
                number => base.fill_(number)?,
            };
            return Ok(());
        }
        if let ([(dim, mask)], Operand::Scalar(_)) = (&plan.tensors[..], &values)
            && mask.dtype() == DType::Bool
        {
            let mut sizes: SmallVec<[usize; 6]> = SmallVec::from_slice(mask.shape());
            sizes.extend(std::iter::repeat_n(1, base.ndim() - dim - mask.ndim()));
            return base.masked_fill_(&mask.reshape_to(&sizes)?, values).map(|_| ());
        }
        let named = name_elements(base, &plan.tensors)?;
        let values = as_values(&named.tensor, values)?;
        let picked = self.picked_ndim(&named);
        let values = without_leading_ones(&values, picked)?;
        let mut inputs: SmallVec<[&Tensor; 4]> = smallvec![&named.tensor, &values];
        inputs.extend(&named.indices);
        bind_inplace(&Place { name: "index_put", address: named.address, mode: IndexMode::Put, wraps: true }, &inputs)
    }

    fn picked_ndim(&self, named: &Named) -> usize {
        let common = named.indices.iter().map(|t| t.ndim()).max().unwrap_or(0);
        named.tensor.ndim() - named.indices.len() + common
    }
}

/// Values in the dtype of the tensor they go to, and on its device.
fn as_values(target: &Tensor, values: Operand) -> Result<Tensor> {
    match values {
        Operand::Tensor(t) => t.to_dtype(target.dtype()),
        Operand::Scalar(s) => Tensor::full(&[], s.checked_for("index_put", target.dtype())?, target.dtype(), target.device()),
    }
}

/// Leading dimensions of size 1 beyond those of the target say nothing.
fn without_leading_ones(t: &Tensor, ndim: usize) -> Result<Tensor> {
    let extra = t.shape().iter().take(t.ndim().saturating_sub(ndim)).take_while(|&&n| n == 1).count();
    if extra == 0 { Ok(t.clone()) } else { t.reshape_to(&t.shape()[extra..]) }
}

/// Index tensors and masks by position, as index tensors with the dimensions that they stand for.
pub(super) fn places_of(x: &Tensor, items: &[Option<Tensor>]) -> Result<(SmallVec<[usize; 4]>, SmallVec<[Tensor; 2]>)> {
    let whole = IndexItem::Slice { start: None, stop: None, step: None };
    let items: Vec<IndexItem> = items.iter().map(|t| t.clone().map_or(whole.clone(), IndexItem::Tensor)).collect();
    let taken: usize = items.iter().map(IndexItem::takes).sum();
    if taken > x.ndim() {
        return Err(Error::index(format!("index_put: too many indices for tensor of dimension {} (got {taken})", x.ndim())));
    }
    let (mut dims, mut found, mut at) = (SmallVec::new(), SmallVec::new(), 0);
    for item in &items {
        match item {
            IndexItem::Tensor(t) if is_mask(t) => {
                check_mask(x, t, at)?;
                for (d, places) in super::mask::nonzero(t, false)?.unbind(1)?.into_iter().enumerate() {
                    dims.push(at + d);
                    found.push(places);
                }
            }
            IndexItem::Tensor(t) => {
                check_integral(t)?;
                dims.push(at);
                found.push(t.to_dtype(DType::I64)?);
            }
            _ => {}
        }
        at += item.takes();
    }
    if dims.is_empty() {
        return Err(Error::index("index_put: at least one of the indices must be a tensor"));
    }
    Ok((dims, found))
}

fn check_mask(x: &Tensor, mask: &Tensor, from: usize) -> Result<()> {
    let under = &x.shape()[from..from + mask.ndim()];
    match (0..mask.ndim()).find(|&d| mask.shape()[d] != under[d]) {
        Some(d) => Err(Error::index(format!(
            "index: The shape of the mask {} at index {d} does not match the shape of the indexed tensor {} at index {}",
            show(mask.shape()),
            show(x.shape()),
            from + d
        ))),
        None => Ok(()),
    }
}

fn check_integral(t: &Tensor) -> Result<()> {
    if t.dtype().is_integral() {
        return Ok(());
    }
    Err(Error::index(format!("index: tensors used as indices must be long, int, byte or bool tensors, got {}", t.dtype())))
}
