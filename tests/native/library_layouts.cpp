// Compile-time: the numbers and layouts of the math libraries' shims are those of NVIDIA's headers.
#define __CUDA_FP16_H__  // these two pull in other packages (nv/target); declarations need the types alone
#define __CUDA_BF16_H__
struct __half {
  unsigned short bits;
};
struct __nv_bfloat16 {
  unsigned short bits;
};

#include <cublasLt.h>
#include <cublas_v2.h>
#include <cudnn.h>

#include <cstddef>

#include "cublas/handle.h"
#include "cublaslt/descriptor.h"
#include "cudnn/backend.h"
#include "cudnn/element_type.h"
#include "cudnn/status.h"

namespace blas = phantora::cublas;
namespace dnn = phantora::cudnn;
namespace lt = phantora::cublaslt;
namespace shim = phantora::shim;

#define SAME(ours, theirs) static_assert(static_cast<int>(ours) == static_cast<int>(theirs))

SAME(shim::DataType::r32f, CUDA_R_32F);
SAME(shim::DataType::r64f, CUDA_R_64F);
SAME(shim::DataType::r16f, CUDA_R_16F);
SAME(shim::DataType::r16bf, CUDA_R_16BF);
SAME(shim::DataType::r8i, CUDA_R_8I);
SAME(shim::DataType::r8u, CUDA_R_8U);
SAME(shim::DataType::r16i, CUDA_R_16I);
SAME(shim::DataType::r16u, CUDA_R_16U);
SAME(shim::DataType::r32i, CUDA_R_32I);
SAME(shim::DataType::r32u, CUDA_R_32U);
SAME(shim::DataType::r64i, CUDA_R_64I);
SAME(shim::DataType::r64u, CUDA_R_64U);
SAME(shim::DataType::c16f, CUDA_C_16F);
SAME(shim::DataType::c32f, CUDA_C_32F);
SAME(shim::DataType::c64f, CUDA_C_64F);
SAME(shim::DataType::r8f_e4m3, CUDA_R_8F_E4M3);
SAME(shim::DataType::r8f_e5m2, CUDA_R_8F_E5M2);
SAME(shim::DataType::r8f_ue8m0, CUDA_R_8F_UE8M0);
SAME(shim::DataType::r4f_e2m1, CUDA_R_4F_E2M1);

SAME(shim::Operation::transpose, CUBLAS_OP_T);
SAME(shim::Operation::conjugate_transpose, CUBLAS_OP_C);
SAME(blas::Side::right, CUBLAS_SIDE_RIGHT);
SAME(blas::PointerMode::device, CUBLAS_POINTER_MODE_DEVICE);
SAME(blas::Math::tf32, CUBLAS_TF32_TENSOR_OP_MATH);
SAME(blas::Math::pedantic, CUBLAS_PEDANTIC_MATH);
SAME(blas::Status::not_initialized, CUBLAS_STATUS_NOT_INITIALIZED);
SAME(blas::Status::alloc_failed, CUBLAS_STATUS_ALLOC_FAILED);
SAME(blas::Status::invalid_value, CUBLAS_STATUS_INVALID_VALUE);
SAME(blas::Status::not_supported, CUBLAS_STATUS_NOT_SUPPORTED);

static_assert(sizeof(lt::MatrixLayout) <= sizeof(cublasLtMatrixLayoutOpaque_t));
static_assert(sizeof(lt::MatmulDesc) <= sizeof(cublasLtMatmulDescOpaque_t));
static_assert(sizeof(lt::Preference) <= sizeof(cublasLtMatmulPreferenceOpaque_t));
static_assert(sizeof(lt::Algorithm) <= sizeof(cublasLtMatmulAlgo_t));
static_assert(sizeof(cublasLtMatmulHeuristicResult_t) == 96);  // native/shims/cublaslt/algorithm.cpp
static_assert(offsetof(cublasLtMatmulHeuristicResult_t, workspaceSize) == 64);
static_assert(offsetof(cublasLtMatmulHeuristicResult_t, state) == 72);
static_assert(offsetof(cublasLtMatmulHeuristicResult_t, wavesCount) == 76);
SAME(lt::MatmulDesc{}.epilogue, CUBLASLT_EPILOGUE_DEFAULT);
SAME(lt::MatmulDesc{}.fill_mode, CUBLAS_FILL_MODE_FULL);

static_assert(sizeof(cudnnConvolutionFwdAlgoPerf_t) == 48);  // native/shims/cudnn/convolution.cpp
static_assert(sizeof(cudnnConvolutionBwdDataAlgoPerf_t) == 48);
static_assert(sizeof(cudnnConvolutionBwdFilterAlgoPerf_t) == 48);
static_assert(offsetof(cudnnConvolutionFwdAlgoPerf_t, memory) == 16);
static_assert(offsetof(cudnnConvolutionFwdAlgoPerf_t, mathType) == 28);
SAME(dnn::Status::not_initialized, CUDNN_STATUS_NOT_INITIALIZED);
SAME(dnn::Status::bad_param, CUDNN_STATUS_BAD_PARAM);
SAME(dnn::Status::null_pointer, CUDNN_STATUS_BAD_PARAM_NULL_POINTER);
SAME(dnn::Status::not_finalized, CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED);
SAME(dnn::Status::attribute_type, CUDNN_STATUS_BAD_PARAM_ATTRIBUTE_TYPE);
SAME(dnn::Status::descriptor_type, CUDNN_STATUS_BAD_PARAM_DESCRIPTOR_TYPE);
SAME(dnn::Status::not_supported, CUDNN_STATUS_NOT_SUPPORTED);

SAME(dnn::DataType::f32, CUDNN_DATA_FLOAT);
SAME(dnn::DataType::f64, CUDNN_DATA_DOUBLE);
SAME(dnn::DataType::f16, CUDNN_DATA_HALF);
SAME(dnn::DataType::bf16, CUDNN_DATA_BFLOAT16);
SAME(dnn::DataType::i64, CUDNN_DATA_INT64);
SAME(dnn::DataType::boolean, CUDNN_DATA_BOOLEAN);
SAME(dnn::DataType::f8_e4m3, CUDNN_DATA_FP8_E4M3);
SAME(dnn::DataType::f8_e5m2, CUDNN_DATA_FP8_E5M2);
SAME(dnn::DataType::f8_e8m0, CUDNN_DATA_FP8_E8M0);
SAME(dnn::DataType::f4_e2m1, CUDNN_DATA_FP4_E2M1);

using dnn::backend::ElementType;
using dnn::backend::Kind;
using dnn::backend::Name;
SAME(Kind::engine, CUDNN_BACKEND_ENGINE_DESCRIPTOR);
SAME(Kind::engine_config, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
SAME(Kind::engine_heuristics, CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
SAME(Kind::execution_plan, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
SAME(Kind::operation_graph, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
SAME(Kind::variant_pack, CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
SAME(Kind::tensor, CUDNN_BACKEND_TENSOR_DESCRIPTOR);
SAME(ElementType::boolean, CUDNN_TYPE_BOOLEAN);
SAME(ElementType::int64, CUDNN_TYPE_INT64);
SAME(ElementType::float64, CUDNN_TYPE_DOUBLE);
SAME(ElementType::pointer, CUDNN_TYPE_VOID_PTR);
SAME(ElementType::descriptor, CUDNN_TYPE_BACKEND_DESCRIPTOR);
SAME(ElementType::character, CUDNN_TYPE_CHAR);
SAME(ElementType::fraction, CUDNN_TYPE_FRACTION);
SAME(Name::heuristics_graph, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH);
SAME(Name::heuristics_results, CUDNN_ATTR_ENGINEHEUR_RESULTS);
SAME(Name::config_engine, CUDNN_ATTR_ENGINECFG_ENGINE);
SAME(Name::config_intermediates, CUDNN_ATTR_ENGINECFG_INTERMEDIATE_INFO);
SAME(Name::config_knob_choices, CUDNN_ATTR_ENGINECFG_KNOB_CHOICES);
SAME(Name::config_workspace, CUDNN_ATTR_ENGINECFG_WORKSPACE_SIZE);
SAME(Name::config_shared, CUDNN_ATTR_ENGINECFG_SHARED_MEMORY_USED);
SAME(Name::plan_config, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG);
SAME(Name::plan_workspace, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE);
SAME(Name::plan_computed_uids, CUDNN_ATTR_EXECUTION_PLAN_COMPUTED_INTERMEDIATE_UIDS);
SAME(Name::plan_run_only_uids, CUDNN_ATTR_EXECUTION_PLAN_RUN_ONLY_INTERMEDIATE_UIDS);
SAME(Name::graph_operations, CUDNN_ATTR_OPERATIONGRAPH_OPS);
SAME(Name::graph_engine_count, CUDNN_ATTR_OPERATIONGRAPH_ENGINE_GLOBAL_COUNT);
SAME(Name::tensor_type, CUDNN_ATTR_TENSOR_DATA_TYPE);
SAME(Name::tensor_dims, CUDNN_ATTR_TENSOR_DIMENSIONS);
SAME(Name::tensor_strides, CUDNN_ATTR_TENSOR_STRIDES);
SAME(Name::tensor_uid, CUDNN_ATTR_TENSOR_UNIQUE_ID);
SAME(Name::tensor_virtual, CUDNN_ATTR_TENSOR_IS_VIRTUAL);
SAME(Name::tensor_by_value, CUDNN_ATTR_TENSOR_IS_BY_VALUE);
SAME(Name::pack_uids, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS);
SAME(Name::pack_pointers, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS);
SAME(Name::engine_graph, CUDNN_ATTR_ENGINE_OPERATION_GRAPH);
SAME(Name::engine_index, CUDNN_ATTR_ENGINE_GLOBAL_INDEX);
SAME(Name::engine_knobs, CUDNN_ATTR_ENGINE_KNOB_INFO);
SAME(Name::engine_numerical_notes, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE);
SAME(Name::engine_layouts, CUDNN_ATTR_ENGINE_LAYOUT_INFO);
SAME(Name::engine_behavior_notes, CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE);
