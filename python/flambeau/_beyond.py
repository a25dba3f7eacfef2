"""Names of PyTorch that belong to what flambeau is not: they answer what can be answered, and refuse the rest.

Dtypes of which there are no tensors, sparse and quantized tensors, libraries of other vendors, the inside of a compiler
of another kind. A program that asks for the name, or whether something is an instance, goes on; one that calls is told.
"""

from enum import Enum

from ._absent import refusing, refusing_class

__all__ = ["AVG", "AcceleratorError", "AggregationType", "FatalError", "SUM", "qscheme"]


class AggregationType(Enum):
    """How a logger of TorchScript joins what it counts."""

    SUM = 0
    AVG = 1


SUM, AVG = AggregationType.SUM, AggregationType.AVG


class AcceleratorError(RuntimeError):
    """What a device raises that is no CPU."""


class FatalError(Exception):
    """What nothing recovers from."""


class qscheme:
    """How numbers of few bits stand for others: there are no quantized tensors, so only names."""


class _Named:
    """A dtype that has a name and a size, and no tensors."""

    def __init__(self, name, itemsize, floating=False, complex=False, signed=False):
        self._name, self.itemsize = name, itemsize
        self.is_floating_point, self.is_complex, self.is_signed = floating, complex, signed

    def __repr__(self):
        return f"torch.{self._name}"

    def __reduce__(self):
        return self._name


_DTYPES = {
    "complex32": (4, False, True, True), "bcomplex32": (4, False, True, True), "float4_e2m1fn_x2": (1, True, False, True),
    "float8_e4m3fnuz": (1, True, False, True), "float8_e5m2fnuz": (1, True, False, True), "float8_e8m0fnu": (1, True),
    "bits8": (1,), "bits16": (2,), "bits1x8": (1,), "bits2x4": (1,), "bits4x2": (1,), "qint8": (1,), "quint8": (1,),
    "qint32": (4,), "quint4x2": (1,), "quint2x4": (1,), **{f"uint{n}": (1,) for n in range(1, 8)},
    **{f"int{n}": (1, False, False, True) for n in range(1, 8)},
}  # fmt: skip
_SAME = {"chalf": "complex32", "bit": "uint1"}

# What a function of these names would need, and the exception of one who calls it on tensors of the CPU.
_SPARSE = "sparse tensors are not part of flambeau; keep indices and values in two tensors"
_QUANTIZED = "quantized tensors are not part of flambeau; keep int8 values and their scale in two tensors"
_SCRIPT = "flambeau has no TorchScript: programs run as they are written"
_FUNCTIONS = {
    _SPARSE: "ccol_indices_copy col_indices_copy crow_indices_copy dsmm hsmm hspmm indices_copy resize_as_sparse_ "
    "row_indices_copy saddmm smm sparse_bsc_tensor sparse_bsr_tensor sparse_compressed_tensor sparse_coo_tensor "
    "sparse_csc_tensor sparse_csr_tensor spmm sspaddmm values_copy native_norm",
    _QUANTIZED: "choose_qparams_optimized empty_quantized fused_moving_avg_obs_fake_quant int_repr q_per_channel_axis "
    "q_per_channel_scales q_per_channel_zero_points q_scale q_zero_point quantize_per_channel quantize_per_tensor "
    "quantize_per_tensor_dynamic quantized_batch_norm quantized_gru_cell quantized_lstm_cell quantized_max_pool1d "
    "quantized_max_pool2d quantized_max_pool3d quantized_rnn_relu_cell quantized_rnn_tanh_cell "
    "fbgemm_linear_fp16_weight fbgemm_linear_fp16_weight_fp32_activation fbgemm_linear_int8_weight "
    "fbgemm_linear_int8_weight_fp32_activation fbgemm_linear_quantize_weight fbgemm_pack_gemm_matrix_fp16 "
    "fbgemm_pack_quantized_matrix",
    "it is a kernel of another vendor's library; call the operation of the same name without the prefix": "batch_norm_backward_elemt "
    "batch_norm_backward_reduce batch_norm_elemt batch_norm_gather_stats batch_norm_gather_stats_with_counts "
    "batch_norm_stats batch_norm_update_stats cudnn_affine_grid_generator cudnn_batch_norm cudnn_convolution "
    "cudnn_convolution_add_relu cudnn_convolution_relu cudnn_convolution_transpose cudnn_grid_sampler miopen_batch_norm "
    "miopen_convolution miopen_convolution_add_relu miopen_convolution_relu miopen_convolution_transpose miopen_ctc_loss "
    "miopen_depthwise_convolution miopen_rnn mkldnn_adaptive_avg_pool2d mkldnn_convolution mkldnn_linear_backward_weights "
    "mkldnn_max_pool2d mkldnn_max_pool3d mkldnn_rnn_layer",
    _SCRIPT: "import_ir_module import_ir_module_from_buffer "
    "merge_type_from_type_comment parse_ir parse_schema parse_type_comment",
}
_CLASSES = {
    _SCRIPT: "AliasDb Argument ArgumentSpec "
    "BenchmarkConfig BenchmarkExecutionStats Block BufferDict CallStack Capsule Code CompilationUnit CompleteArgumentSpec "
    "ConcreteModuleType ConcreteModuleTypeBuilder DeepCopyMemoTable DeserializationStorageContext ErrorReport "
    "ExecutionPlan FileCheck FunctionSchema Gradient Graph GraphExecutorState IODescriptor InferredType LiteScriptModule "
    "LockingLogger ModuleDict NoopLogger OperatorInfo ParameterDict PyTorchFileReader PyTorchFileWriter ScriptClass "
    "ScriptClassFunction ScriptDict ScriptDictIterator ScriptDictKeyIterator ScriptList ScriptListIterator ScriptMethod "
    "ScriptModuleSerializer ScriptObject ScriptObjectProperty SerializationStorageContext StaticModule ThroughputBenchmark "
    "TracingState Use Value",
    "operations reach their backend without PyTorch's dispatcher": "DispatchKey DispatchKeySet ExcludeDispatchKeyGuard Tag",
}


def _refusing(name, why):
    return refusing(name, NotImplementedError, f"{name}: {why}", f"Refused: {why}.")


def _refusing_class(name, why):
    return refusing_class(_refusing(name, why), "flambeau")


NAMES = [
    *__all__, *_DTYPES, *_SAME,
    *(n for table in (_FUNCTIONS, _CLASSES) for names in table.values() for n in names.split()),
]  # fmt: skip


def __getattr__(name):
    from . import _beyond as here

    made = None
    if name in _DTYPES:
        made = _Named(name, *_DTYPES[name])
    elif name in _SAME:
        made = getattr(here, _SAME[name])
    for make, table in ((_refusing, _FUNCTIONS), (_refusing_class, _CLASSES)):
        for why, names in table.items():
            if made is None and name in names.split():
                made = make(name, why)
    if made is None:
        raise AttributeError(name)
    globals()[name] = made
    return made
