// Arbitrary valid workloads for property tests. Test code only.
#pragma once

#include <algorithm>
#include <limits>
#include <string>

#include <rapidcheck.h>

#include "base/limits.h"
#include "workload/spec.h"

namespace goodput {

inline double random_factor() { return *rc::gen::inRange<int64_t>(1, 1'000'000'000'000) * 1e-6; }
inline Nanos random_time() { return Nanos(*rc::gen::inRange<int64_t>(0, limits::kMaxWorkloadTime.count() + 1)); }

inline LengthSpec random_length(int least) {
  LengthSpec l;
  l.kind = *rc::gen::element(LengthSpec::Kind::kFixed, LengthSpec::Kind::kUniform, LengthSpec::Kind::kLognormal);
  l.low = Tokens(*rc::gen::inRange(least, 5000));
  l.high = l.kind == LengthSpec::Kind::kFixed ? l.low : Tokens(*rc::gen::inRange(l.low.count(), 9000));
  if (l.kind == LengthSpec::Kind::kLognormal) {
    l.median = *rc::gen::inRange(1, 1'000'000'000) * 1e-3;
    l.sigma = *rc::gen::inRange(0, 1'000'000) * 1e-5;
  }
  return l;
}

inline TimeSpec random_time_spec() {
  TimeSpec t;
  t.kind = *rc::gen::element(LengthSpec::Kind::kFixed, LengthSpec::Kind::kUniform, LengthSpec::Kind::kLognormal);
  t.low = Nanos(*rc::gen::inRange<int64_t>(0, 5'000'000'000'000));
  t.high = t.kind == LengthSpec::Kind::kFixed
               ? t.low
               : Nanos(*rc::gen::inRange<int64_t>(t.low.count(), limits::kMaxWorkloadTime.count()));
  if (t.kind == LengthSpec::Kind::kLognormal) {
    t.median = Nanos(*rc::gen::inRange<int64_t>(1, limits::kMaxWorkloadTime.count()));
    t.sigma = *rc::gen::inRange(0, 1'000'000) * 1e-5;
  }
  return t;
}

inline ClassSpec random_class(size_t index) {
  ClassSpec c;
  c.name = *rc::gen::container<std::string>(rc::gen::elementOf(std::string("abcXYZ019_-.")));
  c.name = c.name.substr(0, 40) + std::to_string(index);
  c.share = random_factor();
  c.priority = *rc::gen::arbitrary<int>();
  c.prompt = random_length(3);
  c.output = random_length(1);
  c.shared_documents = *rc::gen::inRange(0, 5);
  c.question = c.shared_documents > 0 ? Tokens(*rc::gen::inRange(1, c.prompt.low.count() - 1)) : Tokens(0);
  if (c.shared_documents == 0 && *rc::gen::arbitrary<bool>()) {
    c.prefix_groups = *rc::gen::inRange(1, 5);
    c.prefix_len = Tokens(*rc::gen::inRange(2, 500));
  }
  if (*rc::gen::arbitrary<bool>()) {
    c.turns.low = Tokens(*rc::gen::inRange(1, 3));
    c.turns.high = Tokens(*rc::gen::inRange(c.turns.low.count(), 4));
    c.turns.kind = c.turns.low == c.turns.high ? LengthSpec::Kind::kFixed : LengthSpec::Kind::kUniform;
    c.think_time = random_time_spec();
  }
  c.text = *rc::gen::element(TextKind::kEnglish, TextKind::kChinese, TextKind::kCode);
  for (auto& limit : c.targets.limit)
    if (*rc::gen::arbitrary<bool>())
      limit = Nanos(*rc::gen::inRange<int64_t>(1, 1'000'000'000'000));
  for (auto* multiple : {&c.ttft_times_unloaded, &c.gap_times_unloaded, &c.e2e_times_unloaded})
    if (*rc::gen::arbitrary<bool>())
      *multiple = random_factor();
  return c;
}

// A ramp or stages, or neither.
inline void random_profile(WorkloadSpec& w) {
  const int which = *rc::gen::inRange(0, 3);
  if (which == 0)
    w.rescale = *rc::gen::arbitrary<bool>();
  if (which == 1) {
    w.ramp = RampSpec{.from = random_factor(), .to = random_factor(), .over = random_time()};
    w.ramp->shape = *rc::gen::element(RampSpec::Shape::kLinear, RampSpec::Shape::kExponential);
    w.ramp->by = *rc::gen::element(RampSpec::By::kTime, RampSpec::By::kIndex);
    w.ramp->over += Nanos(1);
    w.ramp->over = std::min(w.ramp->over, limits::kMaxWorkloadTime);
  }
  if (which == 2)
    for (int i = *rc::gen::inRange(1, 5); i > 0; --i)
      w.stages.push_back({random_factor(), Nanos(*rc::gen::inRange<int64_t>(1, limits::kMaxWorkloadTime.count() / 5))});
}

inline WorkloadSpec random_workload() {
  WorkloadSpec w;
  w.arrivals = *rc::gen::element(ArrivalKind::kPoisson, ArrivalKind::kConstant, ArrivalKind::kGamma,
                                 ArrivalKind::kClosed, ArrivalKind::kTrace);
  w.burstiness = *rc::gen::element(1.0, 0.25, 3.5, std::numeric_limits<double>::infinity());
  random_profile(w);
  w.name = "w" + std::to_string(*rc::gen::inRange(0, 1000));
  w.rate = random_factor();
  w.concurrency = *rc::gen::inRange(1, limits::kMaxConcurrency + 1);
  w.think_time = random_time();
  if (w.arrivals == ArrivalKind::kTrace || *rc::gen::arbitrary<bool>()) {
    TraceSpec t;
    // Any path: quotes, backslashes, control and non-ASCII characters.
    t.file = *rc::gen::container<std::string>(rc::gen::elementOf(std::string("/a.\"'\\\n\t\x01\x7f #=[]{}")));
    t.file += *rc::gen::element<std::string>("x", "é", "データ.csv");
    t.format = *rc::gen::element(TraceFormat::kAuto, TraceFormat::kAzure, TraceFormat::kBurstGpt,
                                 TraceFormat::kMooncake, TraceFormat::kBailian, TraceFormat::kTimedTrace,
                                 TraceFormat::kVllmCustom, TraceFormat::kShareGpt);
    t.requests_only = w.arrivals != ArrivalKind::kTrace && *rc::gen::arbitrary<bool>();
    t.time_unit = random_time();
    t.block_tokens = Tokens(*rc::gen::inRange(0, 600));
    t.labels.timestamp = *rc::gen::element<std::string>("timestamp", "t", "時");
    t.labels.hash_ids = *rc::gen::element<std::string>("hash_ids", "h\"");
    t.assumed_prefix_share = *rc::gen::inRange(0, 1000) * 1e-3;
    t.from = random_time();
    t.length = random_time();
    t.rate_factor = random_factor();
    t.length_factor = random_factor();
    t.max_prompt = Tokens(*rc::gen::inRange(0, 9000));
    t.max_output = Tokens(*rc::gen::inRange(0, 9000));
    w.trace = t;
  }
  const size_t classes = *rc::gen::inRange<size_t>(1, 6);
  for (size_t i = 0; i < classes; ++i)
    w.classes.push_back(random_class(i));
  return w;
}

}  // namespace goodput
