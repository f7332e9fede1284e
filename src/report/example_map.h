// For tests of this room: a whole map with plausible figures, everything present, made without measuring.
#pragma once

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>

#include <fmt/format.h>

#include "map/result.h"
#include "metrics/stats.h"

namespace goodput::example {

inline Settings settings(int seqs, int tokens, SchedulingPolicy policy) {
  Settings s;
  s.max_num_seqs = seqs;
  s.max_num_batched_tokens = Tokens(tokens);
  s.scheduling_policy = policy;
  return s;
}
inline Settings static_settings(int seqs) {
  Settings s = settings(seqs, 1024, SchedulingPolicy::kFcfs);
  s.batching = Batching::kStatic;
  return s;
}

// How one setting does at a rate, by a formula with the right shape: latencies grow like 1 / (1 − load).
struct Model {
  double limit, gap_ms;  // requests/s at which it saturates; time of one step when busy
  explicit Model(const Settings& s) {
    const double seqs = s.max_num_seqs, tokens = s.max_num_batched_tokens.count();
    limit = 9.5 * seqs / (seqs + 4.5) * (tokens < 100 ? 0.78 : 1);
    if (s.batching == Batching::kStatic)
      limit *= 0.55;
    gap_ms = 3.2 + 0.55 * seqs + tokens * 0.012;
    if (s.scheduling_policy == SchedulingPolicy::kPriority)
      gap_ms *= 0.93;
  }
  double load(double rate) const { return std::min(rate / limit, 1.4); }
  double ttft_ms(double rate) const { return 38 + 26 * load(rate) / std::max(0.04, 1 - load(rate)); }
  double tpot_ms(double rate) const { return 2.5 + gap_ms * std::min(1.0, load(rate)); }
  double attainment(double rate, double ease) const {
    return 1 / (1 + std::exp((load(rate) - 0.93) * 16 + (gap_ms - 15) * 0.22 - ease));
  }
};

inline Percentiles spread(double p50, double factor, size_t n) {
  Percentiles p{p50, p50 * factor, std::nullopt, p50 * factor * 1.35, n};
  if (n < min_samples(0.95))
    p.p95.reset();
  return p;
}

inline Operating operating(const Settings& s, double rate) {
  const Model m(s);
  Operating o;
  o.rate = rate;
  const double chat = m.attainment(rate, 1), rag = m.attainment(rate, 0.6), background = m.attainment(rate, 2);
  o.attainment_by_class = {{"chat", chat}, {"rag", rag}, {"background", background}};
  o.goodput_rps = rate * (0.7 * chat + 0.1 * rag + 0.2 * background);
  o.interactive_ttft_p95_ms = m.ttft_ms(rate) * 2.4;
  o.interactive_gap_p95_ms = m.tpot_ms(rate) * 1.7;
  return o;
}

// The largest rate at which every class keeps the floor; absent where none does.
inline std::optional<Operating> capacity(const Settings& s) {
  for (double rate = 9; rate > 0.3; rate -= 0.05) {
    Operating o = operating(s, rate);
    if (std::ranges::all_of(o.attainment_by_class, [](const auto& c) { return c.second >= 0.9; }))
      return o;
  }
  return std::nullopt;
}

inline Point point(std::string phase, std::string executor, const Settings& s, double rate, uint64_t seed,
                   double wobble) {
  const Model m(s);
  Point p;
  p.phase = std::move(phase);
  p.executor = std::move(executor);
  p.settings = s;
  p.rate = rate;
  p.seed = seed;
  p.key = fmt::format("{}/{}/{}/{}/{}", p.phase, p.executor, short_text(s), rate, seed);
  p.schedule_hash = std::string(48, 'a') + fmt::format("{:016x}", seed * 0x9E3779B97F4A7C15u);
  p.primed = true;
  if (p.executor != "simulated")
    p.audit = ClientAudit{.loop_busy_share = 0.08,
                          .wait_share = 0.001,
                          .server_wait_share = 0.002,
                          .server_before = "tiny",
                          .server_after = "tiny"};
  PointSummary& out = p.summary;
  out.window = {TimePoint(seconds(100)), TimePoint(seconds(112))};
  out.requests = static_cast<uint64_t>(rate * 12);
  out.offered_rate = static_cast<double>(out.requests) / 12;
  out.achieved_rate = out.offered_rate * 1.003;
  out.regime = m.load(rate) > 1 ? Regime::kSaturated : Regime::kSteady;
  const auto class_summary = [&](const char* name, double part, double ease, double slower) {
    ClassSummary c;
    c.name = name;
    c.scheduled = static_cast<uint64_t>(static_cast<double>(out.requests) * part);
    const double n = static_cast<double>(c.scheduled);
    c.good = static_cast<uint64_t>(std::round(n * std::min(1.0, m.attainment(rate, ease) * wobble)));
    const Interval i = wilson(static_cast<double>(c.good), n);
    c.attainment = Estimate{static_cast<double>(c.good) / n, i.low, i.high};
    const size_t count = c.scheduled;
    c.latency.ttft = c.latency.ttft_service = spread(m.ttft_ms(rate) * slower * wobble, 2.4, count);
    c.latency.tpot = c.latency.itl = c.latency.icl = spread(m.tpot_ms(rate) * wobble, 1.5, count);
    c.latency.e2e = spread((m.ttft_ms(rate) + 32 * m.tpot_ms(rate)) * slower, 1.9, count);
    return c;
  };
  out.by_class = {class_summary("chat", 0.7, 1, 0.9), class_summary("rag", 0.12, 0.6, 3),
                  class_summary("background", 0.18, 2, 1.2)};
  out.overall = class_summary("overall", 1, 1, 1);
  out.goodput_rps = static_cast<double>(out.overall.good) / 12;
  out.interactive_goodput_rps = out.goodput_rps * 0.8;
  out.token_goodput = out.goodput_rps * 58;
  out.throughput = {rate * 0.97, rate * 260, rate * 56, rate * 316};
  out.outcomes[0] = out.requests;
  out.kernel_stamp_share = 1;
  const double running = s.max_num_seqs * std::min(0.95, m.load(rate));
  p.observed.running = {running, running * 1.3, s.max_num_seqs};
  p.observed.batched_tokens = {running * 4, running * 12, s.max_num_batched_tokens.count()};
  p.observed.queue_depth = {m.load(rate) * 1.5, 6, 11};
  p.observed.kv_usage = {0.31, 0.44, 0.52};
  p.observed.preemptions = 0;
  p.observed.prefix_hit_rate = 0.41;
  p.observed.rejected = 0;
  p.observed.peak_rss_bytes = 183'500'800;
  return p;
}

// Four requests share a batch; one ends at step 5, another at step 8; two more wait for a seat.
inline Timeline timeline(bool continuous) {
  Timeline t;
  t.title = continuous ? "continuous" : "static";
  const int lengths[] = {7, 4, 8, 6, 5, 4};
  int left[6], done = 0, joined = 4;
  bool in[6] = {true, true, true, true, false, false}, prefilled[6] = {};
  std::copy(std::begin(lengths), std::end(lengths), left);
  double now = 0;
  while (done < 6) {
    TimelineStep step;
    step.start_ms = now;
    int running = 0;
    double cost = 2.2;
    for (int r = 0; r < 6; ++r) {
      if (!in[r] || left[r] == 0)
        continue;
      ++running;
      step.lanes.push_back({static_cast<uint64_t>(r), prefilled[r] ? 1 : 24, prefilled[r]});
      cost += prefilled[r] ? 0.35 : 1.6;
      prefilled[r] = true;
    }
    step.end_ms = now += cost;
    for (const auto& lane : step.lanes)
      if (--left[lane.request] == 0) {
        t.ended_ms.emplace_back(lane.request, now);
        ++done, --running;
      }
    t.steps.push_back(std::move(step));
    while (joined < 6 && (continuous ? running < 4 : running == 0)) {
      in[joined++] = true;
      ++running;
      if (!continuous) {
        while (joined < 6)
          in[joined++] = true;
      }
    }
  }
  return t;
}

inline std::vector<TtftCell> ttft_cells(double factor) {
  std::vector<TtftCell> cells;
  const int prompts[] = {32, 64, 128, 256, 1024, 2049}, running[] = {0, 1, 2, 4, 8, 16};
  for (int p = 0; p < 5; ++p)
    for (int r = 0; r < 5; ++r) {
      TtftCell c{prompts[p],  prompts[p + 1], running[r], running[r + 1], static_cast<size_t>(90 - 16 * p),
                 std::nullopt};
      if (p + r < 8)
        c.ttft_p50_ms = factor * (12 + prompts[p] * 0.11 + running[r] * 6.5);
      else
        c.n = 0;
      cells.push_back(c);
    }
  return cells;
}

inline WorkloadSpec workload() {
  WorkloadSpec w;
  w.name = "mixed";
  const auto uniform = [](int low, int high) {
    return LengthSpec{LengthSpec::Kind::kUniform, Tokens(low), Tokens(high)};
  };
  ClassSpec chat, rag, background;
  chat.name = "chat", chat.share = 0.7, chat.prompt = uniform(32, 96), chat.output = uniform(16, 48);
  rag.name = "rag", rag.share = 0.1, rag.prompt = uniform(1024, 2048), rag.output = uniform(16, 32);
  rag.shared_documents = 4, rag.question = Tokens(32);
  background.name = "background", background.share = 0.2, background.priority = 1;
  background.prompt = uniform(64, 192), background.output = uniform(128, 256);
  chat.targets[TargetKey::kTtft] = milliseconds(180), chat.targets[TargetKey::kTpot] = milliseconds(24);
  rag.targets[TargetKey::kTtft] = milliseconds(900), rag.targets[TargetKey::kTpot] = milliseconds(24);
  background.targets[TargetKey::kE2el] = seconds(20);
  w.classes = {chat, rag, background};
  return w;
}

inline void add_capacities(MapResult& m) {
  std::vector<Settings> all;
  for (const int seqs : {2, 4, 8, 16, 32}) {
    for (const int tokens : {64, 256, 1024})
      for (const SchedulingPolicy policy : {SchedulingPolicy::kFcfs, SchedulingPolicy::kPriority})
        all.push_back(settings(seqs, tokens, policy));
    all.push_back(static_settings(seqs));
  }
  const auto goodput = [](const Settings& s) { return capacity(s) ? capacity(s)->goodput_rps : -1; };
  std::ranges::stable_sort(all, std::greater(), goodput);
  for (const Settings& s : all)
    m.capacity.push_back({s, capacity(s), {}, 160.0 + 11 * s.max_num_seqs});
  for (const Capacity& c : m.capacity) {
    const auto beaten = [&](const Capacity& o) {
      return o.predicted && o.predicted->goodput_rps >= c.predicted->goodput_rps &&
             *o.predicted->interactive_ttft_p95_ms <= *c.predicted->interactive_ttft_p95_ms &&
             *o.predicted->interactive_gap_p95_ms < *c.predicted->interactive_gap_p95_ms;
    };
    if (c.predicted && std::ranges::none_of(m.capacity, beaten))
      m.frontier.push_back(c);
  }
}

inline void add_points(MapResult& m, const std::vector<Settings>& chosen) {
  double wobble = 1.04;
  for (const Settings& s : chosen)
    for (const double part : {0.6, 0.8, 0.95}) {
      const double rate = std::round((capacity(s) ? capacity(s)->rate : 3) * part * 20) / 20;
      wobble = wobble > 1 ? 0.97 : 1.03;
      m.points.push_back(point("screen", "simulated", s, rate, 7, 1));
      Point p = point("measure", "llama", s, rate, 7, wobble);
      const Point& predicted = m.points.back();
      const auto off = [](std::optional<double> a, std::optional<double> b) { return *a / *b - 1; };
      m.prediction_error->rows.push_back(
          {p.key,
           s,
           rate,
           1.06,
           {off(predicted.summary.overall.latency.ttft.p50, p.summary.overall.latency.ttft.p50),
            off(predicted.summary.overall.latency.tpot.p50, p.summary.overall.latency.tpot.p50),
            off(predicted.summary.goodput_rps, p.summary.goodput_rps)},
           {0.02, -0.01, 0.0}});
      m.points.push_back(std::move(p));
    }
}

inline MapResult map() {
  MapResult m;
  m.study_file = "goodput-study/study.db";
  m.report = "goodput-study/report.html";
  m.version = "goodput 0.1.0 (abc1234)";
  m.machine = "2 × AMD EPYC 7B13, 7.8 GiB, Linux 6.1; engine on core 0, generator on core 1";
  m.model = "tiny q8_0, 1.1M parameters, seed 1";
  m.started = "2026-01-15T09:30:00Z";
  m.workload = workload();
  m.workload_hash = "5f0c1d2e3b4a59687786a5b4c3d2e1f00f1e2d3c4b5a69788796a5b4c3d2e1f0";
  m.seed = 1;
  m.cost = StepCost{.base_ns = 410'000, .prefill_ns = 21'500, .decode_ns = 88'000, .kv_ns = 6.2};
  m.cost_median_error = 0.034;
  m.cost_p90_error = 0.11;
  m.unloaded_ms = {{"chat", {17.9, 2.9}}, {"rag", {88.5, 3.4}}, {"background", {19.2, 2.9}}};
  m.prediction_error = PredictionError{{}, {0.061, -0.044, 0.083}, {0.02, -0.01, 0.0}};
  add_capacities(m);
  const Settings best = settings(8, 256, SchedulingPolicy::kPriority);
  const Settings largest = settings(32, 1024, SchedulingPolicy::kFcfs);
  add_points(m, {best, settings(16, 256, SchedulingPolicy::kPriority), largest, static_settings(8)});
  m.points.back().verdict.reasons = {"contended"};
  for (Capacity& c : m.capacity)
    if (c.settings == best)
      c.measured = operating(best, 4.9);
  for (Capacity& c : m.frontier)
    if (c.settings == best)
      c.measured = operating(best, 4.9);
  for (const uint64_t seed : {101, 102, 103})
    m.points.push_back(point("confirm", "llama", best, 4.9, seed, 1));
  Choice choice;
  choice.settings = best;
  choice.offered_rate = 4.9;
  choice.goodput = {4.62, 4.31, 4.93};
  choice.capacity_rate = 5.15;
  choice.headroom = 0.051;
  choice.not_separable_from = {settings(16, 256, SchedulingPolicy::kPriority),
                               settings(8, 256, SchedulingPolicy::kFcfs)};
  choice.flags = "--max-num-seqs 8 --max-num-batched-tokens 256 --scheduling-policy priority";
  choice.why =
      "It keeps every class above the floor at the highest rate: chat would miss its gap target beyond 8 sequences, "
      "and "
      "a budget of 256 tokens keeps a long prompt from holding up the others.";
  m.chosen = choice;
  m.largest_batch = Rule{largest, {3.55, 3.2, 3.9}, {0.232, 0.118, 0.331}, true};
  m.offline_throughput =
      Rule{settings(32, 1024, SchedulingPolicy::kPriority), {3.71, 3.5, 3.92}, {0.197, 0.12, 0.27}, false};
  m.background = BackgroundCost{Estimate{3.74, 3.5, 3.98}, Estimate{4.21, 3.9, 4.5}, true};
  m.ttft_map = TtftMap{best, ttft_cells(1), ttft_cells(0.95)};
  m.timelines = {timeline(false), timeline(true)};
  m.notes = {"1 of 15 measured points is INVALID (contended) and was not used."};
  return m;
}

}  // namespace goodput::example
