// What is known of one request, and of one iteration, when it is over: plain values, one per row of the study file.
// nullopt means "cannot be known"; no field uses 0 or -1 for that. All times are on one monotonic timeline.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "base/units.h"

namespace goodput {

// Every scheduled request ends in exactly one of these (definitions: docs/method.md, "Outcome").
enum class Outcome : uint8_t { kOk, kRejected, kError, kTimeout, kReset, kCancelled, kUnfinished, kNotSent };
inline constexpr int kOutcomes = 8;

// Why an `error` (or `rejected`) is one.
enum class ErrorKind : uint8_t {
  kNone,
  kHttpStatus,   // a status that is not 2xx and not a rejection
  kErrorObject,  // an error object inside a 200 answer
  kMalformed,    // bytes that are not the protocol
  kTruncated,    // the stream ended without saying so
  kEmpty,        // a well-formed answer without any token
  kConnect,      // could not connect
  kLimit,        // a line or header beyond our bound
};

enum class FinishReason : uint8_t { kNone, kStop, kLength, kToolCalls, kAbort, kError };

// Who counted the output tokens.
enum class TokenSource : uint8_t { kNone, kUsage, kRunningUsage, kTokenizer, kChunks };

enum class Channel : uint8_t { kContent, kReasoning, kToolCall, kRefusal };

// One token-bearing event of a stream.
struct TokenEvent {
  Nanos user;                   // return of the read that completed it, since `scheduled`
  std::optional<Nanos> kernel;  // the kernel's receive stamp, since `scheduled`; absent under TLS
  uint16_t tokens = 0;          // 0: unknown
  Channel channel = Channel::kContent;
  bool coalesced = false;  // shared its read with another event

  bool operator==(const TokenEvent&) const = default;
};

// Server side, from the engine's own log.
struct ServerTimes {
  std::optional<TimePoint> arrived, queued, scheduled, first_token, last_token;
  int preempted_in_prefill = 0, preempted_in_decode = 0;

  bool operator==(const ServerTimes&) const = default;
};

struct RequestRecord {
  uint64_t index = 0;  // position in the schedule
  uint16_t cls = 0;    // index into the workload's classes
  Outcome outcome = Outcome::kNotSent;
  ErrorKind error = ErrorKind::kNone;
  FinishReason finish = FinishReason::kNone;
  int http_status = 0;  // 0: none was received
  int attempts = 0;
  TokenSource token_source = TokenSource::kNone;
  TimePoint scheduled;
  std::optional<TimePoint> dispatched, connected, sent, first_chunk, first_token, first_answer, done, closed;
  std::optional<Tokens> prompt_tokens, cached_tokens, output_tokens;
  Tokens asked_output{0};  // the output length that was asked for
  // Tokens inside output_tokens that no event carried (hidden reasoning); nullopt: there are some, of unknown number.
  std::optional<Tokens> hidden_tokens = Tokens{0};
  bool streamed = true;            // false: tokens' times are unmeasurable
  bool buffered = false;           // an unloaded probe confirmed that the server holds tokens back (mark_buffered)
  uint32_t chunks = 0;             // response events of any kind
  std::vector<TokenEvent> events;  // in order of arrival
  std::optional<ServerTimes> server;

  bool operator==(const RequestRecord&) const = default;
};

// Pairs of a computed token and a KV position: what attention costs. 64 bits, because a full iteration
// (limits::kMaxBatchedTokens) at the longest context (limits::kMaxModelLen) makes 6.9e10 of them.
using KvPairs = Quantity<struct KvPairsTag, int64_t>;

// What an iteration computed; the regressors of the step-cost model.
struct StepShape {
  Tokens prefill{0};  // prompt tokens computed
  // Σ over scheduled sequences of tokens computed × KV length after them, in forward passes of fewer than kDenseTokens
  // tokens and in larger ones; and tokens computed × all KV in use, likewise. See Batch::shape().
  KvPairs kv_read{0}, kv_tiled{0};
  KvPairs kv_scanned{0}, kv_dense{0};
  Tokens swapped{0};  // tokens whose KV moved between host and device
  int decodes = 0;    // sequences that computed one new token
  int passes = 1;     // forward passes that the executor needed

  bool operator==(const StepShape&) const = default;
};

struct StepRecord {
  TimePoint start;
  Nanos duration, decode, sampling, tokenization, host;  // duration ≈ decode + sampling + host; tokenization is
                                                         // beside it (other threads), summed since the last step
  StepShape shape;
  int running = 0, waiting = 0, preempted = 0;
  Blocks used{0}, retained{0};

  bool operator==(const StepRecord&) const = default;
};

// The generator writes, the study file implements.
class RecordSink {
 public:
  virtual ~RecordSink() = default;
  virtual void write(const RequestRecord&) = 0;
};
// The engine writes, a file or a vector implements. Called from the engine's thread: must not block.
class StepSink {
 public:
  virtual ~StepSink() = default;
  virtual void write(const StepRecord&) = 0;
};

std::string_view to_string(Outcome);
std::string_view to_string(ErrorKind);
std::string_view to_string(FinishReason);
std::string_view to_string(TokenSource);
std::string_view to_string(Channel);
std::optional<Outcome> parse_outcome(std::string_view);

}  // namespace goodput
