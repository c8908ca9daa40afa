// Checks for the C++ test programs: a failure prints its place and makes the program return 1.
#pragma once

#include <iostream>
#include <string>

namespace check {

inline int failures = 0;

inline void report(bool passed, const char* file, int line, const std::string& what) {
  if (passed) return;
  ++failures;
  std::cerr << file << ':' << line << ": " << what << '\n';
}

template <class A, class B>
void report_equal(const A& a, const B& b, const char* file, int line, const char* what) {
  if (a == b) return;
  ++failures;
  std::cerr << file << ':' << line << ": " << what << ": got " << a << ", expected " << b << '\n';
}

// What main() returns.
inline int result() {
  if (failures != 0) std::cerr << failures << " checks failed\n";
  return failures == 0 ? 0 : 1;
}

}  // namespace check

#define CHECK(condition) check::report(static_cast<bool>(condition), __FILE__, __LINE__, #condition)

#define CHECK_EQUAL(actual, expected) check::report_equal((actual), (expected), __FILE__, __LINE__, #actual)

#define CHECK_THROWS(expression, Error)                                       \
  do {                                                                        \
    bool thrown = false;                                                      \
    try {                                                                     \
      static_cast<void>(expression);                                          \
    } catch (const Error&) {                                                  \
      thrown = true;                                                          \
    }                                                                         \
    check::report(thrown, __FILE__, __LINE__, #expression " throws " #Error); \
  } while (false)
