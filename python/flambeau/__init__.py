"""flambeau: a tensor and deep-learning engine; PyTorch programs run on it unchanged.

>>> import flambeau as torch
>>> x = torch.ones(2, requires_grad=True)
>>> (x * x).sum().backward()
>>> x.grad
tensor([2., 2.])
"""

from math import e, inf, nan, pi

from . import _C
from ._C import *  # noqa: F403
from . import _private  # noqa: F401
from ._grad_mode import enable_grad, inference_mode, no_grad, set_grad_enabled
from ._beyond import NAMES as _beyond_names
from ._tensor import Tensor
from .functional import *  # noqa: F403
from .version import __version__

newaxis = None
has_lapack = has_mkl = has_openmp = has_spectral = True  # what these libraries do is done

_LAZY_MODULES = frozenset((
    "_VF", "__config__", "_dynamo", "_jit_internal", "accelerator", "amp", "autograd", "backends", "compiler", "cpu",
    "cuda", "distributed", "distributions", "fft", "func", "futures", "hub", "jit", "library", "linalg", "masked",
    "mps", "mtia", "multiprocessing", "nn", "onnx", "ops", "optim", "overrides", "profiler", "random",
    "serialization", "signal", "special", "storage", "testing", "types", "utils", "version", "xpu",
))  # fmt: skip
# Names by the module that has them.
_LAZY_NAMES = {
    name: place
    for place, names in {
        "_install": "install_as_torch",
        "serialization": "load save",
        "random": "manual_seed seed initial_seed get_rng_state set_rng_state thread_safe_generator",
        "_compile": "compile",
        "_printing": "set_printoptions",
        "_lowrank": "lobpcg lu pca_lowrank svd_lowrank",
        "_spectra": "istft stft",
        "_buffers": "asarray frombuffer",
        "_windows": "bartlett_window blackman_window hamming_window hann_window kaiser_window",
        "amp": "autocast GradScaler",
        "amp._names": "is_autocast_cpu_enabled set_autocast_cpu_enabled get_autocast_cpu_dtype set_autocast_cpu_dtype "
        "get_autocast_gpu_dtype set_autocast_gpu_dtype is_autocast_ipu_enabled set_autocast_ipu_enabled "
        "get_autocast_ipu_dtype set_autocast_ipu_dtype is_autocast_xla_enabled set_autocast_xla_enabled "
        "get_autocast_xla_dtype set_autocast_xla_dtype",
        "_settings": "use_deterministic_algorithms are_deterministic_algorithms_enabled "
        "is_deterministic_algorithms_warn_only_enabled set_deterministic_debug_mode get_deterministic_debug_mode "
        "set_float32_matmul_precision get_float32_matmul_precision set_warn_always is_warn_always_enabled "
        "set_flush_denormal get_num_interop_threads set_num_interop_threads set_default_tensor_type get_default_device "
        "set_default_device get_device_module compiled_with_cxx11_abi is_storage",
        "_symbolic": "SymBool SymFloat SymInt sym_float sym_fresh_size sym_int sym_ite sym_max sym_min sym_not sym_sqrt "
        "sym_sum",
        "_absent": "Stream Event",
        "_more": "DisableTorchFunction DisableTorchFunctionSubclass as_strided_ bilinear cond cudnn_is_acceptable dequantize detach_ embedding_renorm_ "
        "fake_quantize_per_channel_affine fake_quantize_per_tensor_affine frobenius_norm from_file get_device init_num_threads "
        "is_distributed is_inference is_nonzero is_same_size is_signed is_vulkan_available norm_except_dim result_type "
        "slice_inverse sym_constrain_range sym_constrain_range_for_size vander _scaled_mm",
        "_script_types": "AnyType AwaitType BoolType ClassType ComplexType DeviceObjType DictType EnumType FloatType FutureType "
        "InterfaceType IntType ListType NoneType NumberType OptionalType PyObjectType RRefType StreamObjType StringType "
        "SymBoolType SymIntType TensorType TupleType Type UnionType unify_type_list",
        "_beyond": " ".join(_beyond_names),
        "func": "vmap",
        "futures": "Future",
        "jit": "JITException ScriptFunction ScriptModule fork wait",
        "storage": "TypedStorage BoolStorage ByteStorage CharStorage ShortStorage IntStorage LongStorage HalfStorage "
        "BFloat16Storage FloatStorage DoubleStorage ComplexFloatStorage ComplexDoubleStorage",
    }.items()
    for name in names.split()
}


def __getattr__(name):
    if name in _LAZY_MODULES:
        from importlib import import_module

        try:
            return import_module("." + name, __name__)
        except ModuleNotFoundError as error:
            if error.name != f"{__name__}.{name}":
                raise
            raise AttributeError(f"flambeau has no '{name}' yet") from None
    place = _LAZY_NAMES.get(name)
    if place is None and name.endswith("Tensor"):
        from ._legacy import DTYPES, tensor_type

        if name in DTYPES:
            made = globals()[name] = tensor_type(name)
            return made
    if place is None:
        raise AttributeError(f"flambeau has no '{name}' yet")
    from importlib import import_module

    value = globals()[name] = getattr(import_module("." + place, __name__), name)
    return value


def __dir__():
    return sorted({*globals(), *_LAZY_MODULES, *_LAZY_NAMES})


def is_tensor(obj):
    """Whether ``obj`` is a tensor."""
    return isinstance(obj, Tensor)


def typename(obj):
    """The name of a tensor's type, such as ``torch.FloatTensor``, or of any object's class."""
    if isinstance(obj, Tensor):
        return obj.type()
    cls = obj if isinstance(obj, type) else type(obj)
    return cls.__name__ if cls.__module__ == "builtins" else f"{cls.__module__}.{cls.__qualname__}"
