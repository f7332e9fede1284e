#include "report/study_json.h"

#include <fmt/format.h>

#include "store/json_writer.h"

namespace goodput {
namespace {

constexpr std::string_view kSchema = "goodput.study/1";

void write(JsonWriter& w, const Estimate& e) {
  w.begin_object().field("value", e.value).field("low", e.low).field("high", e.high).end_object();
}

void write(JsonWriter& w, const std::optional<Estimate>& e) { e ? write(w, *e) : void(w.null()); }

void write(JsonWriter& w, const std::vector<std::pair<std::string, double>>& by_class) {
  w.begin_object();
  for (const auto& [name, value] : by_class)
    w.field(name, value);
  w.end_object();
}

void write(JsonWriter& w, const std::optional<Operating>& o) {
  if (!o) {
    w.null();
    return;
  }
  w.begin_object().field("rate", o->rate).field("goodput_rps", o->goodput_rps).key("attainment_by_class");
  write(w, o->attainment_by_class);
  w.field("interactive_ttft_p95_ms", o->interactive_ttft_p95_ms);
  w.field("interactive_gap_p95_ms", o->interactive_gap_p95_ms).end_object();
}

void write(JsonWriter& w, const Capacity& c) {
  const auto& best = c.best();
  w.begin_object().key("settings").raw(to_json(c.settings)).field("label", short_text(c.settings));
  w.field("rate", best ? std::optional(best->rate) : std::nullopt);
  w.field("goodput_rps", best ? std::optional(best->goodput_rps) : std::nullopt);
  w.key("attainment_by_class");
  best ? write(w, best->attainment_by_class) : void(w.null());
  w.key("predicted");
  write(w, c.predicted);
  w.key("measured");
  write(w, c.measured);
  w.field("offline_tokens_per_s", c.offline_tokens_per_s).end_object();
}

void write(JsonWriter& w, const LengthSpec& length) {
  w.begin_object();
  switch (length.kind) {
    case LengthSpec::Kind::kFixed:
      w.field("kind", "fixed").field("tokens", length.low.count());
      break;
    case LengthSpec::Kind::kUniform:
      w.field("kind", "uniform").field("low", length.low.count()).field("high", length.high.count());
      break;
    case LengthSpec::Kind::kLognormal:
      w.field("kind", "lognormal").field("median", length.median).field("sigma", length.sigma);
      w.field("low", length.low.count()).field("high", length.high.count());
  }
  w.end_object();
}

void write_workload(JsonWriter& w, const WorkloadSpec& spec, const std::string& hash) {
  w.key("workload").begin_object();
  w.field("name", spec.name).field("arrivals", to_string(spec.arrivals));
  w.key("classes").begin_array();
  for (const ClassSpec& c : spec.classes) {
    w.begin_object().field("name", c.name).field("share", c.share).field("priority", c.priority);
    w.key("prompt_tokens");
    write(w, c.prompt);
    w.key("output_tokens");
    write(w, c.output);
    w.field("shared_documents", c.shared_documents).field("question_tokens", c.question.count());
    w.field("interactive", c.targets.interactive()).end_object();
  }
  w.end_array().field("hash", hash).end_object();
}

void write_targets(JsonWriter& w, const WorkloadSpec& spec) {
  w.key("targets").begin_object();
  for (const ClassSpec& c : spec.classes) {
    w.key(c.name).begin_object();
    for (int k = 0; k < kTargetKeys; ++k)
      if (const auto limit = c.targets[static_cast<TargetKey>(k)])
        w.field(fmt::format("{}_ms", to_string(static_cast<TargetKey>(k))), to_ms(*limit));
    w.end_object();
  }
  w.end_object();
}

void write_cost(JsonWriter& w, const MapResult& m) {
  w.key("step_cost");
  if (!m.cost) {
    w.null();
    return;
  }
  w.begin_object().field("base_ns", m.cost->base_ns).field("prefill_ns", m.cost->prefill_ns);
  w.field("decode_ns", m.cost->decode_ns)
      .field("kv_ns", m.cost->kv_ns)
      .field("tile_ns", m.cost->tile_ns)
      .field("scan_ns", m.cost->scan_ns)
      .field("crowd_ns", m.cost->crowd_ns)
      .field("dense_ns", m.cost->dense_ns)
      .field("far_ns", m.cost->far_ns)
      .field("pass_ns", m.cost->pass_ns);
  w.field("swap_ns", m.cost->swap_ns).field("median_relative_error", m.cost_median_error);
  w.field("p90_relative_error", m.cost_p90_error).end_object();
}

void write_chosen(JsonWriter& w, const std::optional<Choice>& c) {
  w.key("chosen");
  if (!c) {
    w.null();
    return;
  }
  w.begin_object().key("settings").raw(to_json(c->settings)).field("label", short_text(c->settings));
  w.field("offered_rate", c->offered_rate).key("goodput");
  write(w, c->goodput);
  w.field("capacity_rate", c->capacity_rate).field("headroom", c->headroom).key("not_separable_from").begin_array();
  for (const Settings& s : c->not_separable_from)
    w.raw(to_json(s));
  w.end_array().key("not_separable_labels").begin_array();
  for (const Settings& s : c->not_separable_from)
    w.value(short_text(s));
  w.end_array().field("flags", c->flags).field("why", c->why).field("undecided", c->undecided).end_object();
}

void write_rule(JsonWriter& w, std::string_view key, const std::optional<Rule>& r) {
  w.key(key);
  if (!r) {
    w.null();
    return;
  }
  w.begin_object().key("settings").raw(to_json(r->settings)).field("label", short_text(r->settings)).key("goodput");
  write(w, r->goodput);
  w.key("regret");
  write(w, r->regret);
  w.field("measured", r->measured).end_object();
}

void write_background(JsonWriter& w, const std::optional<BackgroundCost>& b) {
  w.key("background");
  if (!b) {
    w.null();
    return;
  }
  w.begin_object().key("interactive_goodput_with");
  write(w, b->with);
  w.key("interactive_goodput_without");
  write(w, b->without);
  w.field("measured", b->measured).end_object();
}

void write_prediction_error(JsonWriter& w, const std::optional<PredictionError>& e) {
  w.key("prediction_error");
  if (!e) {
    w.null();
    return;
  }
  const auto errors = [&](const RelativeErrors& errors_of) {
    w.field("ttft_p50", errors_of.ttft_p50).field("tpot_p50", errors_of.tpot_p50).field("goodput", errors_of.goodput);
  };
  const auto both = [&](const RelativeErrors& as_predicted, const RelativeErrors& at_speed) {
    errors(as_predicted);
    w.key("at_speed").begin_object();
    errors(at_speed);
    w.end_object();
  };
  w.begin_object();
  both(e->as_predicted, e->at_speed);
  w.key("rows").begin_array();
  for (const auto& row : e->rows) {
    w.begin_object().field("key", row.key).field("label", short_text(row.settings)).field("rate", row.rate);
    w.field("slowdown", row.slowdown);
    both(row.as_predicted, row.at_speed);
    w.end_object();
  }
  w.end_array().end_object();
}

void write_timelines(JsonWriter& w, const std::vector<Timeline>& timelines) {
  w.key("timelines").begin_array();
  for (const Timeline& t : timelines) {
    w.begin_object().field("title", t.title).key("steps").begin_array();
    for (const TimelineStep& s : t.steps) {
      w.begin_object().field("start_ms", s.start_ms).field("end_ms", s.end_ms).key("lanes").begin_array();
      for (const auto& lane : s.lanes)
        w.begin_object()
            .field("request", lane.request)
            .field("tokens", lane.tokens)
            .field("decode", lane.decode)
            .end_object();
      w.end_array().end_object();
    }
    w.end_array().key("ended").begin_array();
    for (const auto& [request, at] : t.ended_ms)
      w.begin_object().field("request", request).field("at_ms", at).end_object();
    w.end_array().end_object();
  }
  w.end_array();
}

void write(JsonWriter& w, const std::vector<TtftCell>& cells) {
  w.begin_array();
  for (const TtftCell& c : cells) {
    w.begin_object().key("prompt_tokens").begin_array().value(c.prompt_low).value(c.prompt_high).end_array();
    w.key("running").begin_array().value(c.running_low).value(c.running_high).end_array();
    w.field("n", c.n).field("ttft_p50_ms", c.ttft_p50_ms).end_object();
  }
  w.end_array();
}

void write_ttft_map(JsonWriter& w, const std::optional<TtftMap>& t) {
  w.key("ttft_map");
  if (!t) {
    w.null();
    return;
  }
  w.begin_object().key("settings").raw(to_json(t->settings)).field("label", short_text(t->settings));
  w.key("measured");
  write(w, t->measured);
  w.key("predicted");
  write(w, t->predicted);
  w.end_object();
}

void write_unloaded(JsonWriter& w, const MapResult& m) {
  w.key("unloaded_ms").begin_object();
  for (const auto& [name, times] : m.unloaded_ms)
    w.key(name).begin_object().field("ttft_p50", times.first).field("tpot_p50", times.second).end_object();
  w.end_object();
}

void write(JsonWriter& w, std::string_view key, const std::vector<Capacity>& rows) {
  w.key(key).begin_array();
  for (const Capacity& c : rows)
    write(w, c);
  w.end_array();
}

}  // namespace

std::string to_json(const MapResult& m) {
  JsonWriter w;
  w.begin_object().field("schema", kSchema).field("study_file", m.study_file).field("report", m.report);
  w.field("version", m.version).field("machine", m.machine).field("model", m.model).field("started", m.started);
  write_workload(w, m.workload, m.workload_hash);
  write_targets(w, m.workload);
  w.field("floor", m.floor).field("seed", fmt::format("{}", m.seed));
  write_chosen(w, m.chosen);
  write_rule(w, "largest_batch", m.largest_batch);
  write_rule(w, "offline_throughput", m.offline_throughput);
  write_background(w, m.background);
  write(w, "capacity", m.capacity);
  write(w, "frontier", m.frontier);
  write_prediction_error(w, m.prediction_error);
  write_unloaded(w, m);
  write_cost(w, m);
  write_ttft_map(w, m.ttft_map);
  write_timelines(w, m.timelines);
  w.key("notes").begin_array();
  for (const std::string& note : m.notes)
    w.value(note);
  w.end_array().key("points").begin_array();
  for (const Point& p : m.points)
    w.raw(to_json(p));
  return w.end_array().end_object().take();
}

}  // namespace goodput
