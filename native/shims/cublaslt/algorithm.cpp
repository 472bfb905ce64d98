// Algorithm selection: one plausible algorithm, without workspace, for every problem. Which kernel the real heuristic
// would take is the cost engines' business.
#include "cublaslt/descriptor.h"

using phantora::cublaslt::Algorithm;
using phantora::cublaslt::MatmulDesc;
using phantora::cublaslt::MatrixLayout;
using phantora::cublaslt::Preference;
using phantora::cublaslt::Status;
using phantora::shim::DataType;

namespace {

struct AlgorithmStorage {  // cublasLtMatmulAlgo_t
  uint64_t data[8] = {};
};

struct HeuristicResult {  // cublasLtMatmulHeuristicResult_t
  AlgorithmStorage algorithm;
  size_t workspace_bytes = 0;
  Status state = Status::success;
  float waves = 1.0f;
  int reserved[4] = {};
};
static_assert(sizeof(HeuristicResult) == 96);

HeuristicResult the_result() {
  HeuristicResult result;
  phantora::cublaslt::initialise(&result.algorithm, sizeof(result.algorithm), Algorithm{});
  return result;
}

// A · B must be defined, and D must hold it.
bool shapes_agree(const MatmulDesc& desc, const MatrixLayout& a, const MatrixLayout& b, const MatrixLayout& d) {
  const uint64_t m = desc.transa ? a.cols : a.rows, ka = desc.transa ? a.rows : a.cols;
  const uint64_t n = desc.transb ? b.rows : b.cols, kb = desc.transb ? b.cols : b.rows;
  return ka == kb && d.rows == m && d.cols == n;
}

}  // namespace

extern "C" {

Status cublasLtMatmulAlgoGetHeuristic(void* handle, const MatmulDesc* desc, const MatrixLayout* a,
                                      const MatrixLayout* b, const MatrixLayout* c, const MatrixLayout* d,
                                      const Preference* preference, int requested, HeuristicResult results[],
                                      int* returned) {
  if (handle == nullptr) return Status::not_initialized;
  if (!desc || !a || !b || !c || !d || !preference || !results || !returned || requested < 1)
    return Status::invalid_value;
  *returned = 0;
  if (!shapes_agree(*desc, *a, *b, *d)) return Status::not_supported;
  results[0] = the_result();
  *returned = 1;
  return Status::success;
}

Status cublasLtMatmulAlgoGetIds(void* handle, int, int, DataType, DataType, DataType, DataType, int requested,
                                int ids[], int* returned) {
  if (handle == nullptr) return Status::not_initialized;
  if (requested < 1 || ids == nullptr) return Status::invalid_value;
  ids[0] = 0;
  if (returned != nullptr) *returned = 1;
  return Status::success;
}

Status cublasLtMatmulAlgoInit(void* handle, int, int, DataType, DataType, DataType, DataType, int id,
                              AlgorithmStorage* algorithm) {
  if (handle == nullptr) return Status::not_initialized;
  Algorithm made;
  made.id = id;
  return phantora::cublaslt::initialise(algorithm, sizeof(AlgorithmStorage), made);
}

Status cublasLtMatmulAlgoCheck(void* handle, const MatmulDesc* desc, const MatrixLayout* a, const MatrixLayout* b,
                               const MatrixLayout* c, const MatrixLayout* d, const AlgorithmStorage* algorithm,
                               HeuristicResult* result) {
  if (handle == nullptr) return Status::not_initialized;
  if (!desc || !a || !b || !c || !d || !algorithm || !result) return Status::invalid_value;
  if (!shapes_agree(*desc, *a, *b, *d)) return Status::not_supported;
  *result = the_result();
  result->algorithm = *algorithm;
  return Status::success;
}

Status cublasLtMatmulAlgoConfigSetAttribute(Algorithm* algorithm, int attribute, const void* value, size_t bytes) {
  return phantora::cublaslt::set_attribute(algorithm, attribute, value, bytes);
}
Status cublasLtMatmulAlgoConfigGetAttribute(const Algorithm* algorithm, int attribute, void* value, size_t bytes,
                                            size_t* written) {
  return phantora::cublaslt::get_attribute(algorithm, attribute, value, bytes, written);
}

}  // extern "C"
