// The bytes of records and steps: varints, one canonical form. A value has exactly one encoding and bytes have at most
// one meaning (overlong numbers, unknown flags and trailing rubbish are refused), so a hash over the bytes is a hash
// over the values, on every machine. Differences wrap modulo 2^64, so no pair of times can overflow. The decoder never
// trusts a count: it is held against the bytes that are left before anything is reserved.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>

#include "base/limits.h"
#include "metrics/record.h"

namespace goodput::codec {

inline constexpr uint8_t kRecordVersion = 1;

class Writer {
 public:
  void byte(uint8_t b) { out_ += static_cast<char>(b); }
  void unsigned_number(uint64_t v) {
    for (; v >= 0x80; v >>= 7)
      byte(static_cast<uint8_t>(v | 0x80));
    byte(static_cast<uint8_t>(v));
  }
  void signed_number(int64_t v) {  // zigzag: small magnitudes are short
    unsigned_number((static_cast<uint64_t>(v) << 1) ^ static_cast<uint64_t>(v >> 63));
  }
  void difference(int64_t to, int64_t from) {
    signed_number(static_cast<int64_t>(static_cast<uint64_t>(to) - static_cast<uint64_t>(from)));
  }
  std::string& out() { return out_; }

 private:
  std::string out_;
};

// Reads until something does not fit; from then on everything is zero and ok() is false, so that callers check once.
class Reader {
 public:
  explicit Reader(std::string_view bytes) : bytes_(bytes), size_(bytes.size()) {}

  bool ok() const { return ok_; }
  bool at_end() const { return bytes_.empty(); }
  size_t left() const { return bytes_.size(); }
  size_t position() const { return size_ - bytes_.size(); }
  // Why it stopped; a literal.
  const char* problem() const { return problem_; }
  void refuse(const char* why) {
    if (ok_)
      problem_ = why;
    ok_ = false;
  }

  uint8_t byte();
  uint64_t unsigned_number();
  int64_t signed_number() {
    const uint64_t v = unsigned_number();
    return static_cast<int64_t>((v >> 1) ^ (~(v & 1) + 1));
  }
  // A time or a length of time, written as its difference to `from`. Refused beyond kMaxStoredTime, so that whoever
  // subtracts two of them later cannot overflow.
  int64_t time(int64_t from) {
    const auto v = static_cast<int64_t>(static_cast<uint64_t>(from) + static_cast<uint64_t>(signed_number()));
    if (v > limits::kMaxStoredTime.count() || v < -limits::kMaxStoredTime.count())
      refuse("a time out of range");
    return ok_ ? v : 0;
  }
  // A number that must fit T.
  template <class T>
  T fitting() {
    if constexpr (std::is_signed_v<T>) {
      const int64_t v = signed_number();
      if (static_cast<int64_t>(static_cast<T>(v)) != v)
        refuse("a number out of range");
      return static_cast<T>(v);
    } else {
      const uint64_t v = unsigned_number();
      if (static_cast<uint64_t>(static_cast<T>(v)) != v)
        refuse("a number out of range");
      return static_cast<T>(v);
    }
  }
  // An enumerator 0..last.
  template <class E>
  E enumerator(E last) {
    const uint8_t b = byte();
    if (b > static_cast<uint8_t>(last))
      refuse("an unknown enumerator");
    return ok_ ? static_cast<E>(b) : E{};
  }
  // A count of things that take at least `least_bytes` each.
  size_t count(size_t least_bytes) {
    const uint64_t n = unsigned_number();
    if (n > left() / least_bytes)
      refuse("a count beyond the data");
    return ok_ ? static_cast<size_t>(n) : 0;
  }

 private:
  std::string_view bytes_;
  size_t size_;
  bool ok_ = true;
  const char* problem_ = "";
};

// One record, self-delimiting, starting with kRecordVersion.
void write_record(Writer&, const RequestRecord&);
RequestRecord read_record(Reader&);
// What encode_records puts before its records: hashing this and then each record's bytes gives records_hash.
std::string records_header(size_t count);

}  // namespace goodput::codec
