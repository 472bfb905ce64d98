// cudnnStatus_t: the values that we give.
#pragma once

namespace phantora::cudnn {

enum class Status : int {
  success = 0,
  not_initialized = 1001,
  bad_param = 2000,
  null_pointer = 2002,
  not_finalized = 2004,
  size_insufficient = 2006,
  attribute_type = 2010,
  descriptor_type = 2012,
  not_supported = 3000,
};

}  // namespace phantora::cudnn
