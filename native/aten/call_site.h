// Where the script is.
#pragma once
#include <string>

namespace phantora::aten {

// "train.py:12" for the innermost Python frame outside torch; "" if the calling thread runs no Python.
std::string call_site();

}  // namespace phantora::aten
