//! The kernel language: scalar expressions over tiles.
