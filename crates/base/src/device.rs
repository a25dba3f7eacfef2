//! Where memory is.

use crate::{Error, Result};
use std::fmt;
use std::str::FromStr;

/// A kind of device.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum DeviceKind {
    /// The processor's own memory.
    Cpu,
    /// No memory: tensors have shapes, strides and dtypes, and no values.
    Meta,
    /// An NVIDIA GPU.
    Cuda,
    /// An Apple GPU.
    Mps,
}

impl DeviceKind {
    /// The name that programs use, such as `cpu`.
    pub const fn name(self) -> &'static str {
        match self {
            DeviceKind::Cpu => "cpu",
            DeviceKind::Meta => "meta",
            DeviceKind::Cuda => "cuda",
            DeviceKind::Mps => "mps",
        }
    }
}

/// A device: its kind, and which of them where there are several.
///
/// ```
/// use flambeau_base::Device;
/// let device: Device = "cuda:1".parse().unwrap();
/// assert_eq!(device.to_string(), "cuda:1");
/// assert_eq!(Device::CPU.to_string(), "cpu");
/// assert!("abacus".parse::<Device>().is_err());
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Device {
    /// The kind of device.
    pub kind: DeviceKind,
    /// Which one, where the program said so.
    pub index: Option<u16>,
}

impl Device {
    /// The processor.
    pub const CPU: Device = Device { kind: DeviceKind::Cpu, index: None };
    /// The device without memory.
    pub const META: Device = Device { kind: DeviceKind::Meta, index: None };

    /// Whether the two name the same device: `cuda` is `cuda:0`, and there is one processor, whatever its index.
    pub fn same(self, other: Device) -> bool {
        let one = self.kind == DeviceKind::Cpu;
        self.kind == other.kind && (one || self.index.unwrap_or(0) == other.index.unwrap_or(0))
    }

    /// The device as memory on it is labelled: `cpu:1` is `cpu`.
    ///
    /// ```
    /// # use flambeau_base::Device;
    /// let device: Device = "cpu:1".parse().unwrap();
    /// assert_eq!(device.of_memory(), Device::CPU);
    /// ```
    pub fn of_memory(self) -> Device {
        if self.kind == DeviceKind::Cpu { Device::CPU } else { self }
    }

    /// Whether tensors there have no values.
    pub fn is_meta(self) -> bool {
        self.kind == DeviceKind::Meta
    }
}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.kind.name())?;
        match self.index {
            Some(i) => write!(f, ":{i}"),
            None => Ok(()),
        }
    }
}

impl FromStr for Device {
    type Err = Error;

    fn from_str(s: &str) -> Result<Device> {
        let (name, index) = match s.split_once(':') {
            Some((name, index)) => (name, Some(index)),
            None => (s, None),
        };
        let kind = match name {
            "cpu" => DeviceKind::Cpu,
            "meta" => DeviceKind::Meta,
            "cuda" => DeviceKind::Cuda,
            "mps" => DeviceKind::Mps,
            _ => {
                return Err(Error::runtime(format!(
                    "device: Expected one of cpu, cuda, mps, meta device type at start of device string: {name} (given '{s}')"
                )));
            }
        };
        let index = match index {
            None => None,
            Some(digits) => Some(
                digits
                    .parse()
                    .map_err(|_| Error::runtime(format!("device: '{digits}' is not a device index (Invalid device string: '{s}')")))?,
            ),
        };
        Ok(Device { kind, index })
    }
}
