// One context with unified cells: any free cell holds any token, a slot is a sequence id, sharing a prefix adds an
// owner to its cells. libllama aborts on batches that it does not expect, so each sequence is held against the context
// before the call, and what cannot be computed is lost alone; what the call itself refuses is lost with its batch.
//
// Owned by the engine's thread, which computes too: the pool's workers inherit the processors of the thread that calls
// make_llama_executor.

#include "engine/llama_executor.h"

#include <algorithm>
#include <unordered_map>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <ggml-cpu.h>
#include <llama.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/limits.h"
#include "base/process.h"
#include "model/libllama.h"
#include "model/sampler.h"

namespace goodput {
namespace {

struct FreePool {
  void operator()(ggml_threadpool* pool) const { ggml_threadpool_free(pool); }
};
struct FreeContext {
  void operator()(llama_context* context) const { llama_free(context); }
};
using PoolPtr = std::unique_ptr<ggml_threadpool, FreePool>;
using ContextPtr = std::unique_ptr<llama_context, FreeContext>;

// Plain vectors in the shape that llama_batch points into; they only grow while the first large steps pass.
class BatchArrays {
 public:
  void clear() {
    tokens_.clear();
    positions_.clear();
    slots_.clear();
    outputs_.clear();
  }
  void add(TokenId token, int32_t position, Slot slot, bool output) {
    tokens_.push_back(token);
    positions_.push_back(position);
    slots_.push_back(slot.value());
    outputs_.push_back(output ? 1 : 0);
  }
  int32_t size() const { return static_cast<int32_t>(tokens_.size()); }
  llama_batch view() {
    counts_.resize(tokens_.size(), 1);
    pointers_.resize(tokens_.size());
    for (size_t i = 0; i < slots_.size(); ++i)
      pointers_[i] = &slots_[i];
    return {.n_tokens = size(),
            .token = tokens_.data(),
            .embd = nullptr,
            .pos = positions_.data(),
            .n_seq_id = counts_.data(),
            .seq_id = pointers_.data(),
            .logits = outputs_.data()};
  }

 private:
  std::vector<llama_token> tokens_;
  std::vector<llama_pos> positions_;
  std::vector<int32_t> counts_;
  std::vector<llama_seq_id> slots_;
  std::vector<llama_seq_id*> pointers_;
  std::vector<int8_t> outputs_;
};

class LlamaExecutor final : public Executor {
 public:
  LlamaExecutor(std::shared_ptr<const Model> model, PoolPtr pool, ContextPtr context, const Capabilities& capabilities,
                int max_outputs)
      : model_(std::move(model)),
        pool_(std::move(pool)),
        context_(std::move(context)),
        memory_(llama_get_memory(context_.get())),
        capabilities_(capabilities),
        max_outputs_(max_outputs),
        end_of_generation_(model_->end_of_generation()),
        scratch_(model_->vocabulary_size()),
        in_batch_(static_cast<size_t>(capabilities.kv.slots)) {}

  Capabilities capabilities() const override { return capabilities_; }

  Result<void> open(RequestId id, const SamplingParams& p) override {
    SamplerOptions options{
        .temperature = p.temperature, .top_p = p.top_p, .top_k = p.top_k, .seed = p.seed, .banned = {}};
    if (p.ignore_eos)
      options.banned = end_of_generation_;
    samplers_.insert_or_assign(id, TRY(Sampler::create(std::move(options))));
    return {};
  }

  void close(RequestId id) override { samplers_.erase(id); }

  const StepResult& run(const Batch& batch) override {
    const TimePoint start = monotonic_now();
    for (const KvOp& op : batch.ops)
      carry_out(op);
    result_.sequences.assign(batch.sequences.size(), SequenceResult{});
    result_.decode = result_.sampling = Nanos(0);
    std::ranges::fill(in_batch_, uint8_t{0});
    const int passes = forward_passes(batch, pass_of_);
    TimePoint last = monotonic_now();
    for (int pass = 0; pass < passes; ++pass)
      last = run_pass(batch, pass);
    result_.duration = last - start;
    result_.passes = passes;
    return result_;
  }

  std::optional<Tokens> kv_length(Slot slot) const override {
    if (!exists(slot))
      return std::nullopt;
    return length(slot);
  }

  bool modelled_time() const override { return false; }

 private:
  // Each pass is sampled before the next one overwrites its logits. Returns when it ended.
  TimePoint run_pass(const Batch& batch, int pass) {
    collect(batch, pass);
    const TimePoint computing = monotonic_now();
    if (tokens_.size() > 0 && !decode())
      lose_computed(batch, pass);
    const TimePoint sampling = monotonic_now();
    if (tokens_.size() > 0)
      sample(batch);
    const TimePoint end = monotonic_now();
    result_.decode += sampling - computing;
    result_.sampling += end - sampling;
    return end;
  }

  bool exists(Slot slot) const { return slot.value() >= 0 && slot.value() < capabilities_.kv.slots; }
  Tokens length(Slot slot) const { return Tokens(llama_memory_seq_pos_max(memory_, slot.value()) + 1); }
  void cut(Slot slot, Tokens keep) { llama_memory_seq_rm(memory_, slot.value(), keep.count(), -1); }

  // An op that cannot be carried out is left out; the sequence that relied on it then does not fit its slot.
  void carry_out(const KvOp& op) {
    if (!exists(op.slot))
      return;
    switch (op.kind) {
      case KvOp::Kind::kShare:
        if (!exists(op.from) || op.from == op.slot || length(op.slot) > Tokens(0) || op.keep > length(op.from))
          return;
        llama_memory_seq_cp(memory_, op.from.value(), op.slot.value(), 0, op.keep.count());
        return;
      case KvOp::Kind::kTruncate:
        cut(op.slot, std::max(op.keep, Tokens(0)));
        return;
      case KvOp::Kind::kRelease:
        cut(op.slot, Tokens(0));
        return;
    }
  }

  // Everything that libllama asserts on, per sequence.
  bool fits(const ScheduledSequence& s) const {
    if (!exists(s.slot) || in_batch_[static_cast<size_t>(s.slot.value())])
      return false;
    if (s.tokens.empty() || s.first != length(s.slot))
      return false;
    if (s.first + Tokens(s.tokens.size()) > capabilities_.max_len)
      return false;
    const int vocabulary = model_->vocabulary_size();
    return std::ranges::all_of(s.tokens, [&](TokenId t) { return t >= 0 && t < vocabulary; });
  }

  void lose(const ScheduledSequence& s, SequenceResult& result) {
    result = {.status = SequenceResult::Status::kKvLost, .sampled = std::nullopt};
    if (exists(s.slot))
      cut(s.slot, Tokens(0));
  }

  void lose_computed(const Batch& batch, int pass) {
    for (size_t i = 0; i < batch.sequences.size(); ++i) {
      if (pass_of_[i] == pass)
        lose(batch.sequences[i], result_.sequences[i]);
    }
    tokens_.clear();
  }

  // Fills the arrays with the pass's sequences that fit, and rows_ with where each one's logits will stand.
  void collect(const Batch& batch, int pass) {
    tokens_.clear();
    rows_.assign(batch.sequences.size(), -1);
    int outputs = 0;
    for (size_t i = 0; i < batch.sequences.size(); ++i) {
      const ScheduledSequence& s = batch.sequences[i];
      if (pass_of_[i] != pass)
        continue;
      if (!fits(s)) {
        // A slot that two sequences claim is emptied for both, or the first would go on with the second's loss.
        if (exists(s.slot) && in_batch_[static_cast<size_t>(s.slot.value())])
          return lose_computed(batch, pass);
        lose(s, result_.sequences[i]);
        continue;
      }
      in_batch_[static_cast<size_t>(s.slot.value())] = 1;
      for (size_t t = 0; t < s.tokens.size(); ++t)
        tokens_.add(s.tokens[t], s.first.count() + static_cast<int32_t>(t), s.slot,
                    s.samples && t + 1 == s.tokens.size());
      rows_[i] = s.samples ? tokens_.size() - 1 : -1;
      outputs += s.samples ? 1 : 0;
      if (Tokens(tokens_.size()) > capabilities_.max_batch_tokens || outputs > max_outputs_)
        return lose_computed(batch, pass);
    }
  }

  bool decode() {
    try {
      if (llama_decode(context_.get(), tokens_.view()) != 0)
        return false;
      llama_synchronize(context_.get());
      return true;
    } catch (...) {  // allocation inside libllama
      return false;
    }
  }

  void sample(const Batch& batch) {
    const auto vocabulary = static_cast<size_t>(model_->vocabulary_size());
    for (size_t i = 0; i < batch.sequences.size(); ++i) {
      if (rows_[i] < 0)
        continue;
      SequenceResult& result = result_.sequences[i];
      const auto sampler = samplers_.find(batch.sequences[i].id);
      float* logits = llama_get_logits_ith(context_.get(), rows_[i]);
      if (sampler != samplers_.end() && logits)
        result.sampled = sampler->second.sample({logits, vocabulary}, scratch_);
      // Weights or a prompt that make logits without numbers do so again: computing it once more would not help.
      if (!result.sampled)
        result.status = SequenceResult::Status::kFailed;
    }
  }

  std::shared_ptr<const Model> model_;
  PoolPtr pool_;  // outlives the context, which computes on it
  ContextPtr context_;
  llama_memory_t memory_;
  Capabilities capabilities_;
  int max_outputs_;
  std::vector<TokenId> end_of_generation_;
  std::unordered_map<RequestId, Sampler> samplers_;
  SamplerScratch scratch_;
  BatchArrays tokens_;
  std::vector<int> pass_of_;       // per sequence of the batch: its forward pass
  std::vector<int32_t> rows_;      // per sequence of the batch: index of its output token, or -1
  std::vector<uint8_t> in_batch_;  // per slot
  StepResult result_;
};

Result<void> check(const ModelInfo& info, const Settings& settings, const LlamaOptions& options) {
  const auto usage = [](std::string message) { return fail(ErrorCode::kUsage, std::move(message)); };
  if (info.recurrent || info.hybrid || info.has_encoder)
    return usage(fmt::format("the engine cannot batch {} models: their state is no KV cache that can be shared and cut",
                             info.architecture));
  if (settings.max_model_len > info.context_length)
    return usage(
        fmt::format("max_model_len {} is beyond the model's context of {} tokens; set max_model_len to at most that",
                    settings.max_model_len.count(), info.context_length.count()));
  if (settings.max_model_len < Tokens(1) || settings.block_size < Tokens(1))
    return usage("max_model_len and block_size must be at least 1");
  if (settings.max_num_seqs < 1 || settings.max_num_seqs > limits::kMaxSlots)
    return usage(fmt::format("max_num_seqs must be in 1..{}, got {}", limits::kMaxSlots, settings.max_num_seqs));
  if (settings.max_num_batched_tokens < Tokens(settings.max_num_seqs) ||
      settings.max_num_batched_tokens > limits::kMaxBatchedTokens)
    return usage(fmt::format("max_num_batched_tokens must be in max_num_seqs ({})..{}, got {}", settings.max_num_seqs,
                             limits::kMaxBatchedTokens.count(), settings.max_num_batched_tokens.count()));
  if (options.kv_tokens < settings.block_size)
    return usage(fmt::format("a KV cache of {} tokens does not hold one block of {}", options.kv_tokens.count(),
                             settings.block_size.count()));
  return {};
}

llama_context_params context_params(const Settings& settings, const LlamaOptions& options, int threads) {
  llama_context_params p = llama_context_default_params();
  p.n_ctx = static_cast<uint32_t>(options.kv_tokens.count());
  p.n_batch = p.n_ubatch = static_cast<uint32_t>(settings.max_num_batched_tokens.count());
  // With unified cells any id below 256 may be used whatever n_seq_max says; it only sizes the rows of logits.
  p.n_seq_max = static_cast<uint32_t>(settings.max_num_seqs);
  p.n_outputs_max = p.n_seq_max;
  p.n_threads = p.n_threads_batch = threads;
  p.flash_attn_type = LLAMA_FLASH_ATTN_TYPE_ENABLED;
  p.kv_unified = true;
  p.swa_full = true;  // sliding windows keep all cells, so that any prefix can be shared
  p.no_perf = true;
  return p;
}

}  // namespace

Result<std::unique_ptr<Executor>> make_llama_executor(std::shared_ptr<const Model> model, const Settings& settings,
                                                      const LlamaOptions& options) {
  CHECK(model != nullptr);
  TRY(check(model->info(), settings, options));
  const int threads = options.threads > 0 ? options.threads : std::max(1, static_cast<int>(allowed_cpus().size()) - 1);
  PoolPtr pool;
  ContextPtr context;
  TRY(call_libllama("libllama cannot make a context for this model", [&] {
    ggml_threadpool_params p;
    ggml_threadpool_params_init(&p, threads);
    p.poll = 0;  // spinning workers stall for tens of milliseconds where another process wants their processor
    pool.reset(ggml_threadpool_new(&p));
    context.reset(llama_init_from_model(model->handle(), context_params(settings, options, threads)));
    if (!pool || !context)
      return false;
    llama_attach_threadpool(context.get(), pool.get(), pool.get());
    return true;
  }));
  const Tokens cells(static_cast<int32_t>(llama_n_ctx(context.get())));
  Capabilities capabilities;
  capabilities.kv = {.block_size = settings.block_size,
                     .total = Blocks(cells / settings.block_size),
                     .per_slot = Blocks(cells / settings.block_size),
                     .slots = limits::kMaxSlots,
                     .share_copies = false,
                     .can_truncate = true};
  capabilities.max_batch_tokens =
      Tokens(static_cast<int32_t>(std::min(llama_n_batch(context.get()), llama_n_ubatch(context.get()))));
  capabilities.max_len = std::min(cells, model->info().context_length);
  return std::unique_ptr<Executor>(std::make_unique<LlamaExecutor>(
      std::move(model), std::move(pool), std::move(context), capabilities, settings.max_num_seqs));
}

}  // namespace goodput
