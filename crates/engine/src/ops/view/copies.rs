//! Copies of views: `view_copy` and its kin, one for each row of a view that is named here.

use crate::ops::table::{Args, Call, Op, Out, place};
use flambeau_base::{MemoryFormat, Result};

/// The views whose copy has a name.
const COPIED: &[&str] = &[
    "alias",
    "as_strided",
    "detach",
    "diagonal",
    "expand",
    "narrow",
    "permute",
    "select",
    "slice",
    "split",
    "split_with_sizes",
    "squeeze",
    "t",
    "transpose",
    "unbind",
    "unfold",
    "unsqueeze",
    "view",
    "view_as_complex",
    "view_as_real",
];

/// The row of the copy of a view, where there is one. Its texts live as long as the table.
pub(crate) fn copied(row: &Op) -> Option<Op> {
    let Call::Function(f) = row.call else { return None };
    let name = row.name();
    if !COPIED.contains(&name) {
        return None;
    }
    let schema = format!("{name}_copy{}", &row.schema[name.len()..]).replace("(a -> *)", "").replace("(a)", "");
    let doc = format!("`{name}`, copied: the result has memory of its own.");
    let places = if name == "narrow" { place::TORCH | place::METHOD } else { place::TORCH };
    Some(Op { schema: schema.leak(), doc: doc.leak(), call: Call::Copied(f), out: true, places, ..*row })
}

/// Carries out a view and copies what it gives.
pub(crate) fn run(view: fn(&Args) -> Result<Out>, args: &Args) -> Result<Out> {
    let copy = |t: &crate::Tensor| t.copy_in(MemoryFormat::Contiguous);
    Ok(match view(args)? {
        Out::Tensor(t) => Out::Tensor(copy(&t)?),
        Out::List(ts) => Out::List(ts.iter().map(copy).collect::<Result<_>>()?),
        other => other,
    })
}
