// The library is built with hidden visibility; what its public headers declare is exported.
#pragma once

#define PHANTORA_EXPORT __attribute__((visibility("default")))
