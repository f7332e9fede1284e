// SHA-256 for names that must not collide: workload hashes, schedule hashes, record hashes.
#pragma once

#include <memory>
#include <string>
#include <string_view>

namespace goodput {

// Feeds bytes in any split; the digest depends only on their concatenation.
class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(Sha256&&) noexcept;
  Sha256& operator=(Sha256&&) noexcept;

  void update(std::string_view bytes);
  std::string hex();  // 64 lower-case digits; ends the computation

 private:
  struct State;
  std::unique_ptr<State> state_;
};

std::string sha256_hex(std::string_view bytes);

}  // namespace goodput
