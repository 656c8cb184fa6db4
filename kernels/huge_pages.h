// Large arrays that are read here and there: with pages of 2 MiB where the system has them, a read seldom has to look up
// its page first.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <new>
#include <vector>

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace limes {

template <typename T>
struct HugePages {
  using value_type = T;
  HugePages() = default;
  template <typename Other>
  HugePages(const HugePages<Other>&) {}

#if defined(__linux__)
  static constexpr std::size_t kPage = std::size_t{1} << 21;
  T* allocate(std::size_t count) {
    const std::size_t bytes = count * sizeof(T);
    if (bytes < kPage) return static_cast<T*>(::operator new(bytes));
    const std::size_t whole = (bytes + kPage - 1) / kPage * kPage;
    void* memory = std::aligned_alloc(kPage, whole);
    if (memory == nullptr) throw std::bad_alloc();
    madvise(memory, whole, MADV_HUGEPAGE);
    return static_cast<T*>(memory);
  }
  void deallocate(T* memory, std::size_t count) {
    if (count * sizeof(T) < kPage) {
      ::operator delete(memory);
    } else {
      std::free(memory);
    }
  }
#else
  T* allocate(std::size_t count) { return static_cast<T*>(::operator new(count * sizeof(T))); }
  void deallocate(T* memory, std::size_t) { ::operator delete(memory); }
#endif
  template <typename Other>
  bool operator==(const HugePages<Other>&) const {
    return true;
  }
  template <typename Other>
  bool operator!=(const HugePages<Other>&) const {
    return false;
  }
};

template <typename T>
using HugeVector = std::vector<T, HugePages<T>>;

}  // namespace limes
