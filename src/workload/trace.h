// Request traces and data sets as published, read in constant memory. One table of formats; a format is known by its
// column names or keys, never by positions.
//
//   azure        CSV TIMESTAMP,ContextTokens,GeneratedTokens (2023: 7 digits; 2024: "+00:00", fraction absent or any)
//   burstgpt     CSV Timestamp,Model,Request tokens,Response tokens,… (seconds; newer files have more columns)
//   mooncake     JSONL timestamp (ms), input_length | text_input, output_length, hash_ids (blocks of 512 tokens)
//   bailian      JSONL chat_id, parent_chat_id, timestamp (s), input_length, output_length, hash_ids (16 tokens)
//   timed_trace  JSONL with the keys of TraceLabels (s, 16 tokens): vLLM's
//   custom       JSONL prompt, output_tokens: vLLM's
//   sharegpt     JSON array (or JSONL) of {conversations | conversation | messages: [{from | role, value | content}]}
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/units.h"
#include "workload/spec.h"

namespace goodput {

// One request, or one turn of a conversation. What a format does not say is absent.
struct TraceRow {
  std::optional<Nanos> at;               // since the earliest row; full precision of the file
  std::optional<Tokens> prompt, output;  // 0: the trace's own mark of a failed request
  std::optional<std::string> text;       // the prompt's text, or what the user adds in this turn
  std::optional<std::string> answer;     // as recorded
  // Equal ids stand for equal tokens at equal positions; the i-th is of tokens [i, i + 1) × `block`.
  std::vector<uint64_t> blocks;
  Tokens block{0};
  std::optional<int64_t> id, parent;  // of conversations: the turn, and the turn that it follows
  uint64_t line = 0;                  // of the file; of a JSON array, where the element begins
};

struct TraceFacts {
  TraceFormat format = TraceFormat::kAuto;  // as found
  uint64_t rows = 0;
  uint64_t moved = 0;    // rows put in order
  uint64_t skipped = 0;  // conversations without a question and its answer
};

// Calls `row` in order of time (rows without times: in the file's order). Uses the spec's file, format, time_unit,
// block_tokens and labels; windows and factors are the caller's.
//
// Rows out of order by at most limits::kTraceReorderRows places are put in order (one warning says how many); one that
// comes later still is an error. Errors (kUsage) carry file:line and name the column or key; rows before it have been
// delivered. kNotFound, kIo: the file cannot be read.
Result<TraceFacts> read_trace(const TraceSpec&, const std::function<void(const TraceRow&)>& row);

}  // namespace goodput
