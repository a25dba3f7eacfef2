"""Events that TensorBoard shows: scalars, histograms, text, settings."""

from .writer import FileWriter, SummaryWriter

__all__ = ["FileWriter", "SummaryWriter"]
