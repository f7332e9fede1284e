// Chooses the next token from a row of logits. One per request, because a seeded sequence of draws belongs to a request
// and must survive its preemption. Owned by the thread that samples.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/result.h"
#include "base/units.h"

struct llama_sampler;
struct llama_token_data;

namespace goodput {

struct SamplerOptions {
  float temperature = 0;        // >= 0; 0: greedy, the others are then without effect
  float top_p = 1;              // (0, 1]
  int top_k = 0;                // >= 0; 0: off
  uint64_t seed = 0;            // the same seed and logits give the same tokens
  std::vector<TokenId> banned;  // never chosen
};

// Room for one row of candidates, shared by all samplers of a thread.
class SamplerScratch {
 public:
  explicit SamplerScratch(int vocabulary);
  ~SamplerScratch();

 private:
  friend class Sampler;
  std::vector<llama_token_data> candidates_;
};

class Sampler {
 public:
  static Result<Sampler> create(SamplerOptions);  // kUsage: a value out of range
  Sampler(Sampler&&) noexcept;
  Sampler& operator=(Sampler&&) noexcept;
  ~Sampler();

  // Overwrites the logits of banned tokens. nullopt: no logit is a number above −infinity.
  std::optional<TokenId> sample(std::span<float> logits, SamplerScratch&);

 private:
  struct FreeChain {
    void operator()(llama_sampler*) const;
  };
  Sampler();
  SamplerOptions options_;
  std::unique_ptr<llama_sampler, FreeChain> chain_;  // null: greedy
};

}  // namespace goodput
