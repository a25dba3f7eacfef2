"""ONNX files: refused, flambeau does not write them yet."""

__all__ = ["OnnxExporterError", "export", "is_in_onnx_export"]


class OnnxExporterError(RuntimeError):
    """An export failed."""


def export(*args, **kwargs):
    """Write a model as ONNX: refused."""
    raise NotImplementedError("torch.onnx.export: flambeau does not write ONNX files yet")


dynamo_export = export


def is_in_onnx_export():
    """Whether an export is going on."""
    return False


def __getattr__(name):
    raise AttributeError(f"flambeau has no 'onnx.{name}' yet")
