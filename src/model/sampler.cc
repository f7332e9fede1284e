#include "model/sampler.h"

#include <array>
#include <cmath>
#include <limits>
#include <utility>

#include <fmt/format.h>
#include <llama.h>

#include "base/random.h"
#include "model/libllama.h"

namespace goodput {
namespace {

constexpr float kNever = -std::numeric_limits<float>::infinity();

// Two passes, the first of which the compiler vectorises: a plain arg-max takes as long as a tiny model's decode.
std::optional<TokenId> greedy(std::span<const float> logits) {
  constexpr size_t kLanes = 32;
  std::array<float, kLanes> best;
  best.fill(kNever);
  const size_t whole = logits.size() / kLanes * kLanes;
  for (size_t i = 0; i < whole; i += kLanes) {
    for (size_t lane = 0; lane < kLanes; ++lane)
      best[lane] = logits[i + lane] > best[lane] ? logits[i + lane] : best[lane];  // not-a-number never wins
  }
  float top = kNever;
  for (const float b : best)
    top = b > top ? b : top;
  for (size_t i = whole; i < logits.size(); ++i)
    top = logits[i] > top ? logits[i] : top;
  if (top == kNever)
    return std::nullopt;
  for (size_t i = 0; i < logits.size(); ++i) {
    if (logits[i] == top)
      return static_cast<TokenId>(i);
  }
  return std::nullopt;
}

// libllama takes one value of its 32-bit seeds for "choose one yourself".
uint32_t chain_seed(uint64_t seed) {
  const auto folded = static_cast<uint32_t>(mix64(seed));
  return folded == LLAMA_DEFAULT_SEED ? 0 : folded;
}

}  // namespace

SamplerScratch::SamplerScratch(int vocabulary) : candidates_(static_cast<size_t>(vocabulary)) {}
SamplerScratch::~SamplerScratch() = default;

Sampler::Sampler() = default;
Sampler::Sampler(Sampler&&) noexcept = default;
Sampler& Sampler::operator=(Sampler&&) noexcept = default;
Sampler::~Sampler() = default;
void Sampler::FreeChain::operator()(llama_sampler* chain) const { llama_sampler_free(chain); }

Result<Sampler> Sampler::create(SamplerOptions options) {
  if (!(options.temperature >= 0) || !std::isfinite(options.temperature))
    return fail(ErrorCode::kUsage, fmt::format("temperature: expected 0 or more, got {}", options.temperature));
  if (!(options.top_p > 0 && options.top_p <= 1))
    return fail(ErrorCode::kUsage, fmt::format("top_p: expected a share in (0, 1], got {}", options.top_p));
  if (options.top_k < 0)
    return fail(ErrorCode::kUsage, fmt::format("top_k: expected 0 (off) or more, got {}", options.top_k));
  Sampler sampler;
  if (options.temperature > 0) {
    TRY(call_libllama("cannot make a sampler", [&] {
      sampler.chain_.reset(llama_sampler_chain_init({.no_perf = true}));
      llama_sampler* chain = sampler.chain_.get();
      if (options.top_k > 0)
        llama_sampler_chain_add(chain, llama_sampler_init_top_k(options.top_k));
      // The field's order: the nucleus is that of the tempered distribution (vLLM, OpenAI).
      llama_sampler_chain_add(chain, llama_sampler_init_temp(options.temperature));
      if (options.top_p < 1)
        llama_sampler_chain_add(chain, llama_sampler_init_top_p(options.top_p, 1));
      llama_sampler_chain_add(chain, llama_sampler_init_dist(chain_seed(options.seed)));
      return true;
    }));
  }
  sampler.options_ = std::move(options);
  return sampler;
}

std::optional<TokenId> Sampler::sample(std::span<float> logits, SamplerScratch& scratch) {
  for (const TokenId token : options_.banned) {
    if (token >= 0 && static_cast<size_t>(token) < logits.size())
      logits[static_cast<size_t>(token)] = kNever;
  }
  if (!chain_)
    return greedy(logits);
  // Impossible candidates are left out: no rounding inside the chain can bring a banned token back.
  std::vector<llama_token_data>& candidates = scratch.candidates_;
  candidates.clear();
  for (size_t i = 0; i < logits.size(); ++i) {
    if (logits[i] > kNever)
      candidates.push_back({static_cast<TokenId>(i), logits[i], 0});
  }
  if (candidates.empty())
    return std::nullopt;
  llama_token_data_array row{.data = candidates.data(), .size = candidates.size(), .selected = -1, .sorted = false};
  llama_sampler_apply(chain_.get(), &row);
  if (row.selected < 0 || static_cast<size_t>(row.selected) >= row.size)
    return std::nullopt;
  const TokenId token = row.data[row.selected].id;
  llama_sampler_accept(chain_.get(), token);
  return token;
}

}  // namespace goodput
