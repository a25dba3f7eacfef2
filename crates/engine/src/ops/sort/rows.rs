//! Rows of sorting and selecting.

use crate::Tensor;
use crate::ops::table::{Args, Op, Out, function, out_rule, place};
use flambeau_base::Result;
use smallvec::smallvec;

fn both(pair: Result<(Tensor, Tensor)>) -> Result<Out> {
    let (values, places) = pair?;
    Ok(Out::Tuple(smallvec![values, places]))
}

fn first(pair: Result<(Tensor, Tensor)>) -> Result<Out> {
    Ok(pair?.0.into())
}

fn second(pair: Result<(Tensor, Tensor)>) -> Result<Out> {
    Ok(pair?.1.into())
}

fn topk(a: &Args) -> Result<Out> {
    both(a.tensor(0)?.topk(a.int(1)?, a.int(2)?, a.bool(3)?))
}

pub(super) static OPS: &[Op] = &[
    function("sort(Tensor self, int dim=-1, bool descending=False) -> (Tensor values, Tensor indices)", |a| {
        both(a.tensor(0)?.sort(a.int(1)?, a.bool(2)?))
    })
    .doc("Dimension `dim` in ascending order, or descending: the values and their places. Equal elements keep their order; NaN is the largest.")
    .samples(&["T(2,5)", "T(4,2), 0, True", "T()"]),
    function("sort.stable(Tensor self, *, bool? stable, int dim=-1, bool descending=False) -> (Tensor values, Tensor indices)", |a| {
        both(a.tensor(0)?.sort(a.int(2)?, a.bool(3)?))
    })
    .doc("As the other form; every sort is stable.")
    .samples(&["T(2,5), stable=True"]),
    function("argsort(Tensor self, int dim=-1, bool descending=False) -> Tensor", |a| second(a.tensor(0)?.sort(a.int(1)?, a.bool(2)?)))
        .without_out()
        .doc("The places that bring dimension `dim` into order.")
        .samples(&["T(2,5)", "T(4,2), 0, True"]),
    function("argsort.stable(Tensor self, *, bool stable, int dim=-1, bool descending=False) -> Tensor", |a| second(a.tensor(0)?.sort(a.int(2)?, a.bool(3)?)))
        .doc("As the other form; every sort is stable.")
        .samples(&["T(2,5), stable=True"]),
    function("msort(Tensor self) -> Tensor", |a| first(a.tensor(0)?.sort(0, false))).doc("Dimension 0 in ascending order.").samples(&["T(4,2)"]),
    function("topk(Tensor self, SymInt k, int dim=-1, bool largest=True, bool sorted=True) -> (Tensor values, Tensor indices)", topk)
        .doc("The `k` largest (or smallest) of dimension `dim`, in order, and their places. Of equal elements the first ones are taken, whatever `k`.")
        .samples(&["T(2,5), 3", "T(4,2), 2, 0, False"]),
    function("kthvalue(Tensor self, SymInt k, int dim=-1, bool keepdim=False) -> (Tensor values, Tensor indices)", |a| {
        both(a.tensor(0)?.kthvalue(a.int(1)?, a.int(2)?, a.bool(3)?))
    })
    .places(place::TORCH | place::METHOD)
    .out_rule(out_rule::APART)
        .doc("The `k`-th smallest of dimension `dim`, counted from 1, and its place.")
    .samples(&["T(2,5), 3", "T(4,2), 1, 0, True"]),
];
