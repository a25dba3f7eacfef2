//! The table of operations as Python objects: functions in modules, methods of the tensor type.

use crate::error::*;
use crate::op_function::{Function, Shape, object};
use crate::parse::Form;
use flambeau_engine::ops::Row;
use flambeau_engine::ops::table::{ops, place};
use pyo3::prelude::*;
use std::collections::HashMap;
use std::sync::OnceLock;

type ByName = HashMap<String, &'static Function>;

/// Every function by name, with all of its rows.
static FUNCTIONS: OnceLock<ByName> = OnceLock::new();

/// The function of a name. `AttributeError` where the table has none.
pub fn function(name: &str) -> Ret<&'static Function> {
    let found = FUNCTIONS.get().and_then(|f| f.get(name)).copied();
    found.ok_or_else(|| Raised(pyo3::exceptions::PyNotImplementedError::new_err(format!("flambeau has no operation '{name}' yet"))))
}

fn leak(name: String, module: &'static str, rows: &[&'static Row], shape: Shape) -> &'static Function {
    let forms = rows.iter().map(|r| Form::new(r)).collect();
    Box::leak(Box::new(Function { name, module, forms, shape }))
}

struct Entry {
    function: &'static Function,
    places: u8,
}

/// Groups the rows by name, in the order in which names first occur.
fn entries() -> Vec<Entry> {
    let mut order: Vec<&'static str> = Vec::new();
    let mut by_name: HashMap<&'static str, Vec<&'static Row>> = HashMap::new();
    for row in ops() {
        let rows = by_name.entry(row.name()).or_default();
        if rows.is_empty() {
            order.push(row.name());
        }
        rows.push(row);
    }
    let mut out = Vec::new();
    for name in order {
        let rows = &by_name[name];
        let places = rows.iter().fold(0, |bits, r| bits | r.places);
        // `x.where(c, y)` and `where(c, x, y)` are of different rows.
        let of = |bits: u8| -> Vec<&'static Row> { rows.iter().copied().filter(|r| r.places & bits != 0).collect() };
        let (methods, functions) = (of(place::METHOD), of(!place::METHOD));
        let apart = !methods.is_empty() && !functions.is_empty() && methods.len().min(functions.len()) < rows.len();
        if apart {
            out.push(Entry { function: leak(name.to_owned(), "flambeau", &methods, Shape::Functional), places: place::METHOD });
        }
        let (rows_here, places_here) = if apart { (&functions, places & !place::METHOD) } else { (rows, places) };
        // Where pickle looks the function up.
        let module = if places_here & (place::TORCH | place::NN) == place::NN { "flambeau.nn.functional" } else { "flambeau" };
        out.push(Entry { function: leak(name.to_owned(), module, rows_here, Shape::Functional), places: places_here });
        let inplace: Vec<&'static Row> = rows.iter().copied().filter(|r| r.inplace).collect();
        if !inplace.is_empty() && !by_name.contains_key(format!("{name}_").as_str()) {
            let function = leak(format!("{name}_"), "flambeau", &inplace, Shape::InPlace);
            out.push(Entry { function, places: places | place::METHOD });
        }
    }
    out
}

/// Puts every operation where its name is found: on the tensor type and in the modules.
pub fn install(m: &Bound<'_, PyModule>, modules: &[(u8, Bound<'_, PyModule>)], tensor_type: &Bound<'_, PyAny>) -> Ret<()> {
    let py = m.py();
    let entries = entries();
    FUNCTIONS.get_or_init(|| entries.iter().map(|e| (e.function.name.clone(), e.function)).collect());
    for Entry { function, places } in entries {
        let name = function.name.as_str();
        let object = object(py, function)?;
        // What the type has natively needs no row's parser.
        if places & place::METHOD != 0 && !crate::methods::is_native(name) {
            tensor_type.setattr(name, &object)?;
        }
        if places & (place::TORCH | place::PRIVATE) != 0 {
            m.add(name, &object)?;
        }
        for (bit, module) in modules {
            if places & bit != 0 {
                module.add(name, &object)?;
            }
        }
    }
    Ok(())
}
