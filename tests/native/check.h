// The least that a C++ test program needs: CHECK counts and prints, checks_failed() is main's result.
#pragma once
#include <cstdio>

inline int failures = 0;

#define CHECK(condition)                                                             \
  do {                                                                               \
    if (!(condition)) {                                                              \
      ++failures;                                                                    \
      std::fprintf(stderr, "%s:%d: not true: %s\n", __FILE__, __LINE__, #condition); \
    }                                                                                \
  } while (false)

#define CHECK_EQUAL(actual, expected)                                                       \
  do {                                                                                      \
    const auto actual_value = (actual);                                                     \
    const auto expected_value = (expected);                                                 \
    if (!(actual_value == expected_value)) {                                                \
      ++failures;                                                                           \
      std::fprintf(stderr, "%s:%d: %s is %.17g, not %.17g\n", __FILE__, __LINE__, #actual,  \
                   static_cast<double>(actual_value), static_cast<double>(expected_value)); \
    }                                                                                       \
  } while (false)

inline int checks_failed() { return failures == 0 ? 0 : 1; }
