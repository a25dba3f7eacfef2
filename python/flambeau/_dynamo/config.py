"""Settings of PyTorch's tracer, which may be set and read and have no effect."""

suppress_errors = False
cache_size_limit = recompile_limit = 8
accumulated_cache_size_limit = accumulated_recompile_limit = 256
verbose = False
dynamic_shapes = True
assume_static_by_default = True
automatic_dynamic_shapes = True
optimize_ddp = True
capture_scalar_outputs = False
capture_dynamic_output_shape_ops = False
allow_unspec_int_on_nn_module = False
inline_inbuilt_nn_modules = True
guard_nn_modules = True
compiled_autograd = False
log_level = None
