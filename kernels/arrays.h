// Arrays of numpy as the kernels see them: C order, one element type each, and the interpreter's lock released.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/tuple.h>

#include <cstdint>
#include <stdexcept>
#include <tuple>
#include <type_traits>

namespace limes {

namespace nb = nanobind;

template <typename T, int Dimensions>
using Array = nb::ndarray<T, nb::numpy, nb::ndim<Dimensions>, nb::c_contig, nb::device::cpu>;

using Vector = Array<const double, 1>;
using Matrix = Array<const double, 2>;
using Integers = Array<const std::int64_t, 1>;
using Places = Array<const std::uint32_t, 1>;
using Flags = Array<const bool, 1>;

// What a kernel writes to.
using VectorOut = Array<double, 1>;
using MatrixOut = Array<double, 2>;
using TensorOut = Array<double, 3>;

// Lengths that belong together are compared once, so that no loop reads beyond an array.
inline void require(bool agrees, const char* what) {
  if (!agrees) throw std::invalid_argument(what);
}

// Arrays of another type are refused: nanobind would convert them, and what is written to a copy is lost.
template <typename Argument>
struct IsArray : std::false_type {};
template <typename... Traits>
struct IsArray<nb::ndarray<Traits...>> : std::true_type {};

template <typename Argument>
auto argument() {
  if constexpr (IsArray<Argument>::value) {
    return nb::arg().noconvert();
  } else {
    return nb::arg();
  }
}

// Make a function callable from Python, with the interpreter's lock released.
template <typename Result, typename... Arguments>
void define(nb::module_& module, const char* name, Result (*function)(Arguments...)) {
  module.def(name, function, argument<Arguments>()..., nb::call_guard<nb::gil_scoped_release>());
}

}  // namespace limes
