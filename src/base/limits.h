// Every bound in the product, by name. A queue, buffer, header, line, retry or sweep without a row here is a bug: an
// unbounded thing is bounded by the machine, at the worst moment. A test reaches each of them.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/units.h"

namespace goodput::limits {

// Scheduler and engine.
inline constexpr int kMaxSlots = 256;                    // LLAMA_MAX_SEQ of the pinned libllama
inline constexpr int kMaxQueuedRequests = 4096;          // largest max_num_queued_reqs
inline constexpr int kMaxHeldRequests = 8;               // looked past in one step, while they wait for a prefix
inline constexpr Tokens kMaxModelLen{1 << 20};           // longest context that is believed
inline constexpr Tokens kMaxBatchedTokens{65536};        // largest iteration budget
inline constexpr size_t kMaxStepLogRecords = 16u << 20;  // steps that a server keeps until its end
inline constexpr size_t kMaxAheadRequests = 65536;       // submitted to an engine before their arrival

// Models.
inline constexpr uint64_t kMaxGgufEntries = 1 << 16;  // keys, and tensors, of one file (large mixtures: a few thousand)
inline constexpr uint64_t kMaxVocabularyFileBytes = 1 << 30;  // a vocabulary to make synthetic models with

// HTTP, both sides.
inline constexpr size_t kMaxHeaderBytes = 64 * 1024;         // status line and headers together
inline constexpr size_t kMaxBodyBytes = 16 * 1024 * 1024;    // a request body
inline constexpr size_t kMaxResponseLine = 4 * 1024 * 1024;  // one SSE or NDJSON line
inline constexpr size_t kMaxStreamBytes = 64 * 1024 * 1024;  // payload of one streamed answer
inline constexpr int kMaxProblems = 20;                      // distinct error messages that a run keeps
inline constexpr size_t kMaxErrorBody = 64 * 1024;           // how much of an error response is kept
inline constexpr int kMaxConnections = 20'000;
inline constexpr int kMaxJsonDepth = 32;
inline constexpr int kMaxStopStrings = 16;
inline constexpr size_t kMaxStopBytes = 1024;
inline constexpr size_t kMaxPipelinedBytes = 64 * 1024;         // read ahead while an answer is being made
inline constexpr size_t kMaxUnsentBytes = 8 * 1024 * 1024;      // of one connection whose client does not read
inline constexpr size_t kMaxDiscardedBytes = 64 * 1024 * 1024;  // read and dropped after refusing a body
inline constexpr Nanos kHeaderTimeout = seconds(10);            // first byte to end of headers
inline constexpr Nanos kBodyTimeout = seconds(60);              // end of headers to end of body
inline constexpr Nanos kIdleTimeout = seconds(120);             // between requests of one connection
inline constexpr Nanos kWriteTimeout = seconds(60);             // no byte of a response accepted by the client's kernel
inline constexpr Nanos kLingerTimeout = seconds(2);             // after a refusal, for the client to read it
inline constexpr size_t kMaxChatMessages = 4096;

// Benchmark results.
inline constexpr uint64_t kMaxResultFileBytes = 1 << 30;  // a result file that another result is appended to
inline constexpr int64_t kMaxWarmupRequests = 100'000;    // sent before a benchmark, one after the other

// Workloads and schedules.
inline constexpr size_t kMaxTraceLine = 1024 * 1024;
inline constexpr size_t kMaxTraceRecord = 16 * 1024 * 1024;  // one element of a JSON array: a conversation
inline constexpr size_t kMaxTraceTurns = 4096;               // of one conversation in a trace
inline constexpr int kMaxTurns = 1024;                       // of one conversation of a class
inline constexpr size_t kMaxStages = 1024;                   // of a rate profile
inline constexpr size_t kMaxStudyFileBytes = 4 * 1024 * 1024;
inline constexpr uint64_t kMaxScheduledRequests = 50'000'000;
inline constexpr uint64_t kMaxScheduledTokens = 1'000'000'000;  // prompt tokens of one schedule: 4 GB of ids
inline constexpr int kMaxClasses = 64;
inline constexpr size_t kMaxNameBytes = 64;                      // of a workload or class
inline constexpr int kMaxSharedDocuments = 4096;                 // of one class
inline constexpr double kMaxRate = 1e6;                          // requests/s, and the largest trace factor
inline constexpr int kMaxConcurrency = 20'000;                   // closed loop
inline constexpr Nanos kMaxWorkloadTime = seconds(12 * 86'400);  // a window, a think time; exact in TOML's doubles
inline constexpr int kMaxTomlDotsPerLine = 64;                   // a key of 10^5 dotted parts overflows toml++'s stack
inline constexpr size_t kTraceReorderRows = 64;                  // how far out of order a trace's row may stand
inline constexpr size_t kMaxPromptWords = 256;                   // of a vocabulary; prompts are made from them
inline constexpr int kMaxPromptRepairs = 16;                     // attempts at an exact length

// Results of benchmarks, ours and other tools', that `score` and `compare` read.
inline constexpr uint64_t kMaxResultBytes = 1u << 30;     // of one file that is not a study
inline constexpr size_t kMaxResultRuns = 4096;            // of one file: points, lines, benchmarks
inline constexpr size_t kMaxResultRequests = 20'000'000;  // of one run
inline constexpr size_t kMaxResultText = 256;             // of a label in a foreign file
inline constexpr double kMaxResultValue = 1e15;           // of a figure
inline constexpr size_t kMaxComparedFiles = 64;           // on one side

// Studies.
inline constexpr int kMaxSettings = 4096;                 // points of a settings grid
inline constexpr Nanos kStudyBusyWait = seconds(5);       // for another process that writes the same study file
inline constexpr Nanos kMaxStoredTime{int64_t{1} << 61};  // 73 years either way: differences of two cannot overflow

}  // namespace goodput::limits
