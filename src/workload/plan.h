// The first pass of making a schedule: when each request comes, of which class and how long it is. No words yet.
// Internal to the room.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/random.h"
#include "base/result.h"
#include "base/units.h"
#include "workload/prompts.h"
#include "workload/schedule.h"
#include "workload/spec.h"

namespace goodput {

// What few requests have. A turn of a conversation:
struct PlannedTurn {
  uint64_t session = 0;
  uint32_t turn = 0;
  std::optional<uint64_t> after;
  Nanos think;
  Tokens added{0};  // of the prompt, by the user; the rest is what was said before
};
// What a trace gives:
struct PlannedWords {
  std::vector<Stretch> stretches;         // blocks with ids; empty: none
  std::optional<std::string> text;        // as is
  std::optional<std::string> answer;      // as recorded
  std::vector<TokenId> tokens, answered;  // of the two, with a tokenizer; later turns without special tokens
};

struct Planned {
  Nanos at;
  uint16_t cls = 0;
  Tokens prompt{0}, output{0};       // prompt 0: unknown, a text without a tokenizer
  std::optional<uint32_t> document;  // over all classes' documents
  std::unique_ptr<PlannedTurn> turn;
  std::unique_ptr<PlannedWords> words;
};

// What prompts begin with: a shared document, primed, or a group's prefix.
struct PlannedDocument {
  uint16_t cls = 0;
  Tokens length{0};
  bool primed = true;
};

struct Plan {
  std::vector<Planned> requests;
  std::vector<PlannedDocument> documents;
  std::optional<TraceSummary> trace;
};

// kUsage: options or lengths that cannot be kept, or a trace that is wrong.
Result<Plan> make_plan(const WorkloadSpec&, const ScheduleOptions&, const Tokenizer*);

// A stream named by the seed, an index and a purpose, so that no draw can shift another.
inline Random stream(uint64_t seed, uint64_t index, std::string_view purpose) {
  return Random(mix64(seed, index), purpose);
}

Result<void> check_count(double requests);
// The part of make_plan that reads a trace.
Result<void> plan_trace(const WorkloadSpec&, const ScheduleOptions&, const Tokenizer*, Plan&);

}  // namespace goodput
