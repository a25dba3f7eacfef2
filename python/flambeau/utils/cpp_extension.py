"""Extensions in C++: refused, flambeau has no C++ interface."""

__all__ = [
    "BuildExtension",
    "CUDAExtension",
    "CUDA_HOME",
    "CppExtension",
    "ROCM_HOME",
    "include_paths",
    "load",
    "load_inline",
]

CUDA_HOME = ROCM_HOME = None
IS_HIP_EXTENSION = False


def _refuse(name):
    def refuse(*args, **kwargs):
        raise NotImplementedError(
            f"torch.utils.cpp_extension.{name}: flambeau has no C++ interface to compile extensions against"
        )

    refuse.__name__ = refuse.__qualname__ = name
    refuse.__doc__ = "Refused: there is no C++ interface."
    return refuse


load, load_inline, include_paths, library_paths = map(
    _refuse, ("load", "load_inline", "include_paths", "library_paths")
)
CppExtension, CUDAExtension, SyclExtension = map(_refuse, ("CppExtension", "CUDAExtension", "SyclExtension"))


class BuildExtension:
    """The command of setuptools that would build extensions: refused."""

    def __init__(self, *args, **kwargs):
        _refuse("BuildExtension")()

    @classmethod
    def with_options(cls, **options):
        """This class: the refusal comes when it is used."""
        return cls
