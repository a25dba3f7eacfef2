//! The Python face of flambeau.
