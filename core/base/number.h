// A number that is an int or a float: a time, or a length of time.

#ifndef DYNHAC_BASE_NUMBER_H_
#define DYNHAC_BASE_NUMBER_H_

#include <cstdint>
#include <variant>

namespace dynhac {

using Number = std::variant<int64_t, double>;  // doubles are finite

inline double to_double(const Number& number) {
  return std::visit([](auto value) { return static_cast<double>(value); }, number);
}

}  // namespace dynhac

#endif  // DYNHAC_BASE_NUMBER_H_
