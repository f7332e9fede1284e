// `goodput compare`: which figures of two sides mean the same, and how they differ. Files of one side are replicates
// where their runs carry the same label; labels are matched between the sides. Two figures are compared only under one
// definition; where the sides share none, the row says so and has no difference. Pure; any thread.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "metrics/compare.h"
#include "store/result_file.h"

namespace goodput {

struct ComparedFigure {
  std::string label;                       // of the runs; empty: the only ones
  std::string name;                        // p95_ttft, goodput, …
  std::string unit;                        // "ms", "/s", "", or "share"
  std::optional<Difference> difference;    // absent: no common definition
  std::string definition_a, definition_b;  // equal where compared
  std::optional<double> value_a, value_b;  // where not compared
  size_t runs_a = 0, runs_b = 0;
};

struct Comparison {
  std::vector<ComparedFigure> figures;
  std::vector<std::string> notes;  // what the reader must know: labels without partner, sides not paired and why
};

// kUsage: the sides have no figure in common at all.
Result<Comparison> compare_results(const std::vector<ResultFile>& a, const std::vector<ResultFile>& b);

// A rule that sets the exit code: 'p95_ttft<=+5%' (B's change against A, relative), 'p95_ttft<=+20ms' or
// 'goodput>=-0.1' (absolute change: a sign), 'failed<=0' (B's own value: no sign).
struct Gate {
  std::string text, figure;
  bool at_most = true;
  enum class Of : uint8_t { kRatio, kChange, kValue } of = Of::kValue;
  double bound = 0;
};
Result<Gate> parse_gate(const std::string&);

enum class GateResult : uint8_t { kHolds, kViolated, kCannotJudge };
struct GateOutcome {
  Gate gate;
  std::string label;
  GateResult result = GateResult::kCannotJudge;
  bool undecided = false;  // the interval lies on both sides of the bound
  std::optional<double> seen;
  std::optional<Interval> interval;

  bool passes(bool strict) const { return result == GateResult::kHolds && !(strict && undecided); }
};
// One outcome per rule and label; at least one per rule.
std::vector<GateOutcome> judge_gates(const std::vector<Gate>&, const Comparison&);

}  // namespace goodput
