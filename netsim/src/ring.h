// A first-in-first-out queue in one block of memory: none while it was never used. A fresh copy has room for what is in
// it and no more; what is copied into one that has room takes none anew.
#pragma once

#include <bit>
#include <cstddef>
#include <utility>
#include <vector>

namespace phantora::netsim {

template <class T>
class Ring {
 public:
  Ring() = default;
  Ring(const Ring& other) { *this = other; }
  Ring(Ring&& other) noexcept
      : slots_(std::move(other.slots_)), head_(std::exchange(other.head_, 0)), size_(std::exchange(other.size_, 0)) {}
  Ring& operator=(const Ring& other) {
    if (this == &other) return *this;
    if (slots_.size() < other.size_) slots_ = std::vector<T>(std::bit_ceil(other.size_));
    while (!empty()) pop();
    for (head_ = 0; size_ < other.size_; ++size_) slots_[size_] = other[size_];
    return *this;
  }
  Ring& operator=(Ring&& other) noexcept {
    std::swap(slots_, other.slots_);
    std::swap(head_, other.head_);
    std::swap(size_, other.size_);
    return *this;
  }

  bool empty() const { return size_ == 0; }
  size_t size() const { return size_; }
  T& front() { return slots_[head_]; }
  const T& front() const { return slots_[head_]; }
  T& operator[](size_t i) { return slots_[(head_ + i) & (slots_.size() - 1)]; }
  const T& operator[](size_t i) const { return slots_[(head_ + i) & (slots_.size() - 1)]; }

  void push(T item) {
    if (size_ == slots_.size()) grow();
    slots_[(head_ + size_++) & (slots_.size() - 1)] = std::move(item);
  }

  void pop() {
    slots_[head_] = T{};
    head_ = (head_ + 1) & (slots_.size() - 1);
    --size_;
  }

 private:
  void grow() {
    std::vector<T> larger(slots_.empty() ? 8 : slots_.size() * 2);
    for (size_t i = 0; i < size_; ++i) larger[i] = std::move((*this)[i]);
    slots_ = std::move(larger);
    head_ = 0;
  }

  std::vector<T> slots_;  // a power of two
  size_t head_ = 0;
  size_t size_ = 0;
};

}  // namespace phantora::netsim
