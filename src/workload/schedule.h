// A schedule: the list of requests with their times, made from (workload, seed) alone before the run. The load
// generator sends it, the simulator plays it; neither changes it.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/units.h"
#include "workload/spec.h"
#include "workload/tokenizer.h"

namespace goodput {

// A turn of a conversation. It is not sent before its `at`, nor before the answer to `after` ended and `think` went by.
struct Turn {
  uint64_t session = 0;           // of the schedule's conversations
  uint32_t number = 0;            // 0: the first
  std::optional<uint64_t> after;  // index of the request whose answer it follows; absent: the first turn
  Nanos think;
  Tokens added{0};  // of the prompt, by the user in this turn; 0: unknown
  // The prompt is what was said before, with the answers that were really given, and then `text`: see prompt_parts().
  // False: `text` is the whole prompt, and the link only orders (a trace that gives its prompts by blocks).
  bool continues = false;
};

struct ScheduledRequest {
  uint64_t index = 0;
  uint16_t cls = 0;
  Nanos at;  // since the start of the run; closed loop: unused
  int priority = 0;
  Tokens output{1};  // asked for, with ignore_eos
  // Exactly what the server will tokenize `text` to (special tokens included). Of a turn that continues: the whole
  // prompt, where stand-ins of the asked length are in the answers' places. Empty with a text: unknown (a trace's text
  // without a tokenizer).
  std::vector<TokenId> prompt;
  std::string text;  // empty when made without a tokenizer (simulation only); of a turn that continues, what it adds
  // Of the prompt: what a cache of whole blocks answers that holds the primed documents, all earlier requests' prompts,
  // and of conversations the answers.
  Tokens shared{0};
  std::shared_ptr<const Turn> turn;  // null: a request of its own
};

// nullopt: unknown.
std::optional<Tokens> prompt_tokens(const ScheduledRequest&);

// A stretch of a prompt: text, or the answer that the server gave to a request.
struct PromptPart {
  std::string_view text;
  std::optional<uint64_t> answer_of;
};

// What a trace turned out to be. Absent figures: not known.
struct TraceSummary {
  TraceFormat format = TraceFormat::kAuto;
  uint64_t rows = 0;                      // of the file
  uint64_t used = 0;                      // became requests
  uint64_t failed = 0;                    // of the window, skipped: without prompt or output tokens
  uint64_t skipped = 0;                   // conversations without a question and its answer
  uint64_t cut_turns = 0;                 // left out, with the turns after them: longer than max_model_len
  uint64_t moved = 0;                     // put in order
  Nanos span;                             // from the first row to the last
  bool has_prefixes = false;              // the trace says what prompts share
  std::optional<double> rate, peak_rate;  // rows/s as recorded: of the window, of the file's fullest three minutes
  std::vector<double> profile;            // rows/s of the window's equal parts, `profile_step` each
  Nanos profile_step;
  std::vector<std::string> notes;  // sentences for a report: what was left out or assumed
};

struct Schedule {
  std::vector<ScheduledRequest> requests;  // by time
  // One request per shared document (the document, a short question, one token of output), to be answered before the
  // window so that a document's first use in it is not a miss.
  std::vector<ScheduledRequest> priming;
  std::optional<TraceSummary> trace;
  std::string hash;  // over times, classes, priorities, lengths and prompt tokens
  uint64_t seed = 0;
  uint64_t distinct_prompts = 0;  // of the requests
  uint64_t unknown_lengths = 0;   // requests whose prompt_tokens() is unknown
  // Share of prompt tokens that a cache of whole blocks answers (ScheduledRequest::shared); a prompt's last token is
  // never cached.
  double implied_hit_rate = 0;
};

// The request's prompt from its conversation's first words on; of a request of its own, its text. Views into the
// schedule.
std::vector<PromptPart> prompt_parts(const Schedule&, const ScheduledRequest&);

struct ScheduleOptions {
  uint64_t seed = 1;
  // Not 0: other words with the same times and lengths, so that no run finds another's prompts in a server's cache. A
  // trace's own texts get it in front.
  uint64_t salt = 0;
  // Exactly one of the two; closed loop: requests. A trace may go without (its whole window) or take either as a cut.
  std::optional<Nanos> duration;     // arrivals in [0, duration)
  std::optional<uint64_t> requests;  // or this many
  Tokens block_size{16};             // for implied_hit_rate
  Tokens max_model_len{4096};        // a class or row whose prompt and output could exceed it together is refused
};

// Deterministic: the same workload and seed give the same schedule on every machine. Request i's class, lengths and
// words depend on (seed, i) alone and Poisson gaps are unit gaps over the rate, so that the same seed at another rate
// is the same requests with stretched times (common random numbers), and different seeds share nothing.
//
// With a tokenizer, every prompt's text has exactly the drawn number of tokens (verified by tokenizing it as
// /v1/completions does, special tokens added). Without one (null), prompts are token ids only: same lengths, same
// sharing, same arrivals for the same seed.
//
// Only the last conversation of a schedule may be cut short, where `requests` ends. A turn stands right behind the one
// it follows, with the same `at`, unless its trace gave it a time of its own.
//
// kUsage: wrong options, a spec that validate() refuses, lengths beyond max_model_len, more than
// limits::kMaxScheduledRequests or kMaxScheduledTokens, an empty trace window. kFailed: the tokenizer has no usable
// words.
Result<Schedule> make_schedule(const WorkloadSpec&, const ScheduleOptions&, const Tokenizer*);

}  // namespace goodput
