//! Files and exchange formats.
