// What the scheduler asks of an executor and what it hears back: plain values. Nothing here knows models or sockets.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "base/units.h"
#include "metrics/record.h"

namespace goodput {

struct Request {
  RequestId id;
  TimePoint arrival;                 // receipt by the server, not submit()
  std::vector<TokenId> prompt;       // not empty
  std::vector<TokenId> stop_tokens;  // empty: ignore end-of-sequence; stop strings are the engine's
  Tokens max_new{16};                // >= 1
  int priority = 0;                  // lower is served first under the priority policy (vLLM's sense)
  uint64_t cache_salt = 0;           // prefixes are shared only between equal salts
};

// Ownership changes of KV, carried out in order before any compute of the same Batch.
struct KvOp {
  enum class Kind : uint8_t { kShare, kTruncate, kRelease };
  Kind kind = Kind::kRelease;
  Slot slot;       // the slot that changes
  Slot from;       // kShare: `slot` (empty) gets from[0, keep)
  Tokens keep{0};  // kShare, kTruncate: tokens that remain
  bool operator==(const KvOp&) const = default;
};

struct ScheduledSequence {
  RequestId id;
  Slot slot;
  Tokens first{0};                  // position of tokens[0]; equals the KV length of the slot after the ops
  std::span<const TokenId> tokens;  // valid until apply()
  bool samples = false;             // the last token's logits are sampled
  bool decode = false;              // generates (its prompt is computed), as opposed to prefill
};

// From so many tokens in one forward pass ggml's CPU flash attention works in tiles of 64 × 64, which it skips only
// where no row needs any of it (GGML_FA_TILE_Q of ggml-cpu/ops.cpp). Rows of different sequences in one tile then
// compute nearly all KV in use: mixed iterations took three times as long as their parts. So decodes and prefill go in
// passes of their own.
inline constexpr Tokens kDenseTokens{64};

struct Batch {
  uint64_t step = 0;
  std::vector<KvOp> ops;
  std::vector<ScheduledSequence> sequences;  // empty with ops: nothing is decoded
  Tokens total{0};                           // Σ tokens
  Tokens live{0};                            // KV in use, running and retained, whole blocks
  std::optional<TimePoint> wake_at;          // nothing to do now, but call next() again by then
  bool events = false;                       // apply() has something to tell, even if nothing is computed (for
                                             // example a request that was finished while it waited)

  // Nothing to carry out and nothing to tell. Any other batch is run and applied, one without sequences at once.
  bool empty() const { return ops.empty() && sequences.empty() && !events; }

  // What it costs, pass by pass. A decode reads its whole context once; a prefill chunk's triangle is counted as its
  // rectangle, since the kernels visit masked cells too. In unified cells every token's mask spans all KV in use.
  StepShape shape() const;
};

// The forward passes of a batch: one below kDenseTokens tokens; else the decodes, less than kDenseTokens a pass, and
// then all prefill. Fills the pass of each sequence and returns their number.
int forward_passes(const Batch&, std::vector<int>& pass_of_sequence);

struct SequenceResult {
  enum class Status : uint8_t {
    kOk,
    kKvLost,  // the slot was emptied; the scheduler recomputes once (told as kPreempted), then fails the request
    kFailed,  // the request cannot go on; its slot holds what it would after kOk, until the kRelease of a later batch
  };
  Status status = Status::kOk;
  std::optional<TokenId> sampled;  // present iff `samples` and kOk
};

struct StepResult {
  std::vector<SequenceResult> sequences;  // parallel to Batch::sequences
  Nanos duration;                         // of run(), on the executor's clock
  Nanos decode, sampling;                 // parts of it
  int passes = 1;
};

// What happened to a request since the last apply(), in order.
struct Event {
  enum class Kind : uint8_t {
    kScheduled,  // its first tokens were computed in this step; once per request
    kToken,      // one generated token; a stop token is never told as kToken
    kPreempted,  // its KV was taken or lost; it waits again, keeps its tokens, and will be recomputed
    kEnded,      // the last event of every request, exactly once
  };
  Kind kind = Kind::kToken;
  RequestId id;
  TokenId token = 0;                          // kToken; kEnded with kStop by a stop token: that token
  FinishReason reason = FinishReason::kNone;  // kEnded: kStop, kLength, kError, or what finish() was given
  bool in_prefill = false;                    // kPreempted: before its first token
  Tokens cached{0};                           // kScheduled: prompt tokens found in the cache
};

}  // namespace goodput
