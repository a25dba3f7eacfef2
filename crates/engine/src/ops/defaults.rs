//! Defaults of parameters, from the text of the signature.

use super::schema::{Kind, Param};
use super::table::Value;
use flambeau_base::{MemoryFormat, Scalar};
use smallvec::SmallVec;

impl Param {
    /// What the parameter holds when nothing is given; `None` where something must be.
    pub fn default_value(&self) -> Option<Value> {
        let text = match self.default {
            None => return self.optional.then_some(Value::None),
            Some(text) => text,
        };
        if text == "None" {
            return Some(Value::None);
        }
        let list = || text.trim_matches(['[', ']', '(', ')']).split(',').map(str::trim).filter(|s| !s.is_empty());
        let number = |s: &str| match s {
            "True" => Scalar::Bool(true),
            "False" => Scalar::Bool(false),
            s => s.parse::<i64>().map(Scalar::Int).unwrap_or_else(|_| Scalar::Float(s.parse().unwrap_or(f64::NAN))),
        };
        Some(match self.kind {
            Kind::Bool => Value::Bool(text == "True"),
            Kind::Int => Value::Int(match text {
                "Mean" => 1,
                "Sum" => 2,
                text => text.parse().unwrap_or(0),
            }),
            Kind::Float => Value::Float(text.parse().unwrap_or(f64::NAN)),
            Kind::Scalar | Kind::Tensor => Value::Scalar(number(text)),
            Kind::Ints => {
                let given: SmallVec<[i64; 6]> = list().filter_map(|s| s.parse().ok()).collect();
                let single = !text.starts_with(['[', '(']);
                Value::Ints(if single && given.len() == 1 { SmallVec::from_elem(given[0], self.size.unwrap_or(1)) } else { given })
            }
            Kind::Floats => Value::Floats(list().filter_map(|s| s.parse().ok()).collect()),
            Kind::Scalars => Value::Scalars(list().map(number).collect()),
            Kind::Tensors => Value::Tensors(Vec::new()),
            Kind::Str => Value::Str(text.trim_matches(['"', '\'']).to_owned()),
            Kind::DType => text.parse().map_or(Value::None, Value::DType),
            Kind::Device => text.parse().map_or(Value::None, Value::Device),
            Kind::MemoryFormat => Value::MemoryFormat(match text.rsplit('.').next() {
                Some("preserve_format") => MemoryFormat::Preserve,
                Some("channels_last") => MemoryFormat::ChannelsLast,
                Some("channels_last_3d") => MemoryFormat::ChannelsLast3d,
                _ => MemoryFormat::Contiguous,
            }),
            Kind::Layout | Kind::Generator => Value::None,
        })
    }
}
