// The library's own reading of numbers, to compare with.
#pragma once

#include <charconv>
#include <cstdlib>
#include <string>
#include <system_error>

// The nearest double; infinity beyond the largest.
inline double library_reads(const std::string& text) {
#if defined(__MINGW32__)  // strtod is not exact
  double value;
  if (std::from_chars(text.data(), text.data() + text.size(), value).ec == std::errc()) return value;
#endif
  return std::strtod(text.c_str(), nullptr);
}
