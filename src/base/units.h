// Distinct types for quantities and identities, so that a token count cannot be passed where a block count is
// expected. Quantities add and compare with their own kind and scale by plain numbers; identities only compare.
// Everything is a value the size of its representation; the compiler removes the wrapper.
#pragma once

#include <compare>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>

namespace goodput {

// A measurable amount of one kind.
template <class Tag, class Rep>
class Quantity {
 public:
  using rep = Rep;
  constexpr Quantity() = default;
  template <std::integral I>
  constexpr explicit Quantity(I value) : value_(static_cast<Rep>(value)) {}

  constexpr Rep count() const { return value_; }
  constexpr auto operator<=>(const Quantity&) const = default;

  constexpr Quantity operator-() const { return Quantity(-value_); }
  constexpr Quantity& operator+=(Quantity o) {
    value_ += o.value_;
    return *this;
  }
  constexpr Quantity& operator-=(Quantity o) {
    value_ -= o.value_;
    return *this;
  }
  friend constexpr Quantity operator+(Quantity a, Quantity b) { return Quantity(a.value_ + b.value_); }
  friend constexpr Quantity operator-(Quantity a, Quantity b) { return Quantity(a.value_ - b.value_); }
  template <std::integral I>
  friend constexpr Quantity operator*(Quantity a, I k) {
    return Quantity(a.value_ * static_cast<Rep>(k));
  }
  template <std::integral I>
  friend constexpr Quantity operator*(I k, Quantity a) {
    return a * k;
  }
  template <std::integral I>
  friend constexpr Quantity operator/(Quantity a, I k) {
    return Quantity(a.value_ / static_cast<Rep>(k));
  }
  friend constexpr Rep operator/(Quantity a, Quantity b) { return a.value_ / b.value_; }
  friend constexpr Rep operator%(Quantity a, Quantity b) { return a.value_ % b.value_; }

 private:
  Rep value_ = 0;
};

// A name for one thing; no arithmetic.
template <class Tag, class Rep>
class Id {
 public:
  using rep = Rep;
  constexpr Id() = default;
  constexpr explicit Id(Rep value) : value_(value) {}
  constexpr Rep value() const { return value_; }
  constexpr auto operator<=>(const Id&) const = default;

 private:
  Rep value_ = 0;
};

using Nanos = Quantity<struct NanosTag, int64_t>;    // a length of time, nanoseconds
using Tokens = Quantity<struct TokensTag, int32_t>;  // a number of tokens
using Blocks = Quantity<struct BlocksTag, int32_t>;  // a number of KV blocks

using RequestId = Id<struct RequestIdTag, uint64_t>;
using Slot = Id<struct SlotTag, int32_t>;           // a libllama sequence id, 0..255
using KvHandle = Id<struct KvHandleTag, uint64_t>;  // KV that lives outside the device (swapped out)
using TokenId = int32_t;                            // an entry of a vocabulary

// A point on a monotonic timeline whose zero has no meaning; nanoseconds.
class TimePoint {
 public:
  constexpr TimePoint() = default;
  constexpr explicit TimePoint(Nanos since_zero) : since_zero_(since_zero) {}
  constexpr Nanos since_zero() const { return since_zero_; }
  constexpr auto operator<=>(const TimePoint&) const = default;
  friend constexpr Nanos operator-(TimePoint a, TimePoint b) { return a.since_zero_ - b.since_zero_; }
  friend constexpr TimePoint operator+(TimePoint a, Nanos d) { return TimePoint(a.since_zero_ + d); }
  friend constexpr TimePoint operator-(TimePoint a, Nanos d) { return TimePoint(a.since_zero_ - d); }
  constexpr TimePoint& operator+=(Nanos d) {
    since_zero_ += d;
    return *this;
  }

 private:
  Nanos since_zero_;
};

constexpr Nanos microseconds(int64_t n) { return Nanos(n * 1'000); }
constexpr Nanos milliseconds(int64_t n) { return Nanos(n * 1'000'000); }
constexpr Nanos seconds(int64_t n) { return Nanos(n * 1'000'000'000); }
constexpr Nanos from_seconds(double s) { return Nanos(static_cast<int64_t>(s * 1e9 + (s < 0 ? -0.5 : 0.5))); }
constexpr Nanos from_ms(double ms) { return from_seconds(ms * 1e-3); }
constexpr double to_seconds(Nanos d) { return static_cast<double>(d.count()) / 1e9; }
constexpr double to_ms(Nanos d) { return static_cast<double>(d.count()) / 1e6; }

// Blocks needed to hold `tokens`, rounding up.
constexpr Blocks blocks_for(Tokens tokens, Tokens block_size) {
  return Blocks((tokens.count() + block_size.count() - 1) / block_size.count());
}

}  // namespace goodput

template <class Tag, class Rep>
struct std::hash<goodput::Id<Tag, Rep>> {
  size_t operator()(const goodput::Id<Tag, Rep>& id) const { return std::hash<Rep>{}(id.value()); }
};
