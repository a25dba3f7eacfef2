//! Element types, shapes, layouts, devices and errors. No tensors, no unsafe.
