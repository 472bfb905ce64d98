// All overridden operators.
#pragma once
#include <functional>

#include "operator.h"

namespace phantora::aten {

// Overrides every operator that has a CUDA kernel, and looks out for those of libraries loaded later.
void override_operators();

// Overrides those that came since; cheap when there are none. Called before operators run: kernels follow their schema
// within the same library.
void override_new_operators();

void for_each_operator(const std::function<void(const Operator&)>& visit);

}  // namespace phantora::aten
