#include "load/job.h"

#include <boost/json.hpp>

#include <algorithm>
#include <cstdlib>

#include "base/limits.h"
#include "load/protocol.h"

namespace goodput {
namespace {

namespace json = boost::json;

constexpr std::string_view kSchema = "goodput.load-result/1";

json::value or_null(const std::optional<double>& v) { return v ? json::value(*v) : json::value(nullptr); }

json::object to_object(const ClientAudit& a) {
  return {{"loop_busy_share", a.loop_busy_share},
          {"wait_share", or_null(a.wait_share)},
          {"server_wait_share", or_null(a.server_wait_share)},
          {"clock_stepped", a.clock_stepped},
          {"server_before", a.server_before},
          {"server_after", a.server_after}};
}

// Reads members of one object and remembers the first that is missing or of the wrong type.
class Reader {
 public:
  explicit Reader(const json::object& o) : object_(o) {}

  const json::value* find(std::string_view key) const {
    const json::value* v = object_.if_contains(json::string_view(key.data(), key.size()));
    return v != nullptr && !v->is_null() ? v : nullptr;
  }
  std::optional<double> number(std::string_view key) {
    const json::value* v = find(key);
    if (v == nullptr)
      return std::nullopt;
    if (!v->is_number())
      return wrong(key, "a number"), std::nullopt;
    return v->to_number<double>();
  }
  std::optional<int64_t> integer(std::string_view key, int64_t low, int64_t high) {
    const json::value* v = find(key);
    if (v == nullptr)
      return std::nullopt;
    json::error_code bad;
    const auto n = v->to_number<int64_t>(bad);
    if (bad || n < low || n > high) {
      wrong(key, "an integer in " + std::to_string(low) + ".." + std::to_string(high));
      return std::nullopt;
    }
    return n;
  }
  std::optional<std::string> text(std::string_view key) {
    const json::value* v = find(key);
    if (v == nullptr)
      return std::nullopt;
    if (!v->is_string())
      return wrong(key, "a string"), std::nullopt;
    return std::string(v->get_string());
  }
  std::optional<Nanos> duration(std::string_view key) {
    const auto s = number(key);
    if (s && !(*s >= 0 && *s < 1e7))
      return wrong(key, "seconds"), std::nullopt;
    return s ? std::optional(from_seconds(*s)) : std::nullopt;
  }
  bool flag(std::string_view key) const {
    const json::value* v = find(key);
    return v != nullptr && v->is_bool() && v->get_bool();
  }
  void require(std::string_view key) {
    if (find(key) == nullptr)
      wrong(key, "a value, found none");
  }
  void wrong(std::string_view key, const std::string& expected) {
    if (problem_.empty())
      problem_ = "\"" + std::string(key) + "\": expected " + expected;
  }
  const std::string& problem() const { return problem_; }

 private:
  const json::object& object_;
  std::string problem_;
};

constexpr std::string_view kJobKeys[] = {
    "base_url", "api",        "model_path",        "workload_toml", "rate",         "concurrency",
    "seed",     "warm_up_s",  "duration_s",        "tail_s",        "block_size",   "max_model_len",
    "cpus",     "server_pid", "request_timeout_s", "drain_limit_s", "running_usage"};

Result<json::object> parse_object(std::string_view text) {
  json::error_code bad;
  json::parse_options options;
  options.max_depth = limits::kMaxJsonDepth;
  json::value v = json::parse(json::string_view(text.data(), text.size()), bad, {}, options);
  if (bad || !v.is_object())
    return fail(ErrorCode::kUsage, "expected one JSON object" + (bad ? ": " + bad.message() : ""));
  return std::move(v.get_object());
}

void read_cpus(Reader& in, LoadJob& job) {
  const json::value* cpus = in.find("cpus");
  if (cpus == nullptr)
    return;
  if (!cpus->is_array())
    return in.wrong("cpus", "an array of integers");
  for (const json::value& cpu : cpus->get_array()) {
    json::error_code bad;
    const int n = cpu.to_number<int>(bad);
    if (bad || n < 0)
      return in.wrong("cpus", "an array of integers");
    job.cpus.push_back(n);
  }
}

}  // namespace

std::string encode_job(const LoadJob& j) {
  json::object o{{"base_url", j.base_url},
                 {"api", json::string_view(protocol_of(j.api).name.data(), protocol_of(j.api).name.size())},
                 {"model_path", j.model_path},
                 {"workload_toml", j.workload_toml},
                 {"rate", j.rate},
                 {"seed", std::to_string(j.seed)},  // a string: most readers lose digits beyond 2^53
                 {"warm_up_s", to_seconds(j.warm_up)},
                 {"duration_s", to_seconds(j.window)},
                 {"tail_s", to_seconds(j.tail)},
                 {"block_size", j.block_size.count()},
                 {"max_model_len", j.max_model_len.count()},
                 {"request_timeout_s", to_seconds(j.request_timeout)},
                 {"drain_limit_s", to_seconds(j.drain_limit)},
                 {"running_usage", j.running_usage}};
  json::array cpus;
  for (const int cpu : j.cpus)
    cpus.push_back(cpu);
  o["cpus"] = std::move(cpus);
  if (j.concurrency)
    o["concurrency"] = *j.concurrency;
  if (j.server_pid)
    o["server_pid"] = *j.server_pid;
  return json::serialize(o);
}

Result<LoadJob> parse_job(std::string_view text) {
  const json::object o = TRY(parse_object(text));
  Reader in(o);
  for (const auto& member : o) {
    const std::string_view key(member.key().data(), member.key().size());
    if (std::find(std::begin(kJobKeys), std::end(kJobKeys), key) == std::end(kJobKeys))
      in.wrong(key, "no such key");
  }
  for (const char* key : {"base_url", "workload_toml", "duration_s"})
    in.require(key);
  LoadJob j;
  j.base_url = in.text("base_url").value_or("");
  const auto api = parse_api(in.text("api").value_or(std::string(protocol_of(Api::kCompletions).name)));
  if (!api)
    in.wrong("api", "one of " + protocol_names());
  j.api = api.value_or(Api::kCompletions);
  j.model_path = in.text("model_path").value_or("");
  j.workload_toml = in.text("workload_toml").value_or("");
  j.rate = in.number("rate").value_or(1);
  if (!(j.rate > 0))
    in.wrong("rate", "a number above 0");
  if (const auto n = in.integer("concurrency", 1, limits::kMaxConnections))
    j.concurrency = static_cast<int>(*n);
  const json::value* seed = in.find("seed");
  if (seed != nullptr && seed->is_string()) {
    const std::string digits(seed->get_string());
    const bool number =
        !digits.empty() && digits.size() <= 20 && digits.find_first_not_of("0123456789") == std::string::npos;
    if (!number)
      in.wrong("seed", "an unsigned integer");
    j.seed = number ? std::strtoull(digits.c_str(), nullptr, 10) : 0;
  } else {
    j.seed = static_cast<uint64_t>(in.integer("seed", 0, INT64_MAX).value_or(1));
  }
  j.warm_up = in.duration("warm_up_s").value_or(Nanos(0));
  j.window = in.duration("duration_s").value_or(Nanos(0));
  j.tail = in.duration("tail_s").value_or(j.tail);
  j.request_timeout = in.duration("request_timeout_s").value_or(j.request_timeout);
  j.drain_limit = in.duration("drain_limit_s").value_or(j.drain_limit);
  j.block_size = Tokens(in.integer("block_size", 1, 1 << 20).value_or(16));
  j.max_model_len = Tokens(in.integer("max_model_len", 1, limits::kMaxModelLen.count()).value_or(4096));
  if (const json::value* usage = in.find("running_usage")) {
    if (!usage->is_bool())
      in.wrong("running_usage", "true or false");
    else
      j.running_usage = usage->get_bool();
  }
  read_cpus(in, j);
  if (const auto pid = in.integer("server_pid", 1, INT32_MAX))
    j.server_pid = static_cast<pid_t>(*pid);
  if (!in.problem().empty())
    return fail(ErrorCode::kUsage, in.problem());
  return j;
}

std::string encode_result(const LoadJobResult& r) {
  json::array problems;
  for (const Problem& p : r.problems)
    problems.push_back({{"what", p.what}, {"count", p.count}});
  const json::object o{{"schema", std::string(kSchema)},
                       {"window_start_ns", r.window.start.since_zero().count()},
                       {"window_end_ns", r.window.end.since_zero().count()},
                       {"audit", to_object(r.audit)},
                       {"interrupted", r.interrupted},
                       {"schedule_hash", r.schedule_hash},
                       {"scheduled", r.scheduled},
                       {"implied_hit_rate", r.implied_hit_rate},
                       {"primed", r.primed},
                       {"model", r.model},
                       {"problems", std::move(problems)},
                       {"record_bytes", r.records.size()}};
  return json::serialize(o) + "\n" + r.records;
}

Result<LoadJobResult> parse_result(std::string_view bytes) {
  const auto broken = [](const std::string& what) {
    return fail(ErrorCode::kFailed, "the load generator's result is broken: " + what);
  };
  const size_t newline = bytes.find('\n');
  if (newline == std::string_view::npos)
    return broken("no header line");
  const auto parsed = parse_object(bytes.substr(0, newline));
  if (!parsed)
    return broken(parsed.error().message);
  Reader in(*parsed);
  for (const char* key :
       {"window_start_ns", "window_end_ns", "audit", "schedule_hash", "scheduled", "model", "record_bytes"})
    in.require(key);
  if (in.text("schema") != std::string(kSchema))
    in.wrong("schema", std::string(kSchema));
  LoadJobResult r;
  r.window.start = TimePoint(Nanos(in.integer("window_start_ns", INT64_MIN, INT64_MAX).value_or(0)));
  r.window.end = TimePoint(Nanos(in.integer("window_end_ns", INT64_MIN, INT64_MAX).value_or(0)));
  r.interrupted = in.flag("interrupted");
  r.primed = in.flag("primed");
  r.schedule_hash = in.text("schedule_hash").value_or("");
  r.scheduled = static_cast<uint64_t>(in.integer("scheduled", 0, INT64_MAX).value_or(0));
  r.implied_hit_rate = in.number("implied_hit_rate").value_or(0);
  r.model = in.text("model").value_or("");
  const auto size = in.integer("record_bytes", 0, INT64_MAX).value_or(0);
  if (const json::value* audit = in.find("audit"); audit != nullptr && audit->is_object()) {
    Reader a(audit->get_object());
    r.audit.loop_busy_share = a.number("loop_busy_share").value_or(0);
    r.audit.wait_share = a.number("wait_share");
    r.audit.server_wait_share = a.number("server_wait_share");
    r.audit.clock_stepped = a.flag("clock_stepped");
    r.audit.server_before = a.text("server_before").value_or("");
    r.audit.server_after = a.text("server_after").value_or("");
    if (!a.problem().empty())
      in.wrong("audit", a.problem());
  }
  if (const json::value* problems = in.find("problems"); problems != nullptr && problems->is_array()) {
    for (const json::value& p : problems->get_array()) {
      if (!p.is_object())
        continue;
      Reader one(p.get_object());
      r.problems.push_back(
          {one.text("what").value_or(""), static_cast<uint64_t>(one.integer("count", 0, INT64_MAX).value_or(0))});
    }
  }
  if (!in.problem().empty())
    return broken(in.problem());
  r.records = bytes.substr(newline + 1);
  if (static_cast<int64_t>(r.records.size()) != size)
    return broken("the records are cut off");
  return r;
}

std::string progress_line(const LoadCounts& c) {
  return json::serialize(json::object{{"sent", c.sent}, {"done", c.done}, {"of", c.of}}) + "\n";
}

std::optional<LoadCounts> parse_progress_line(std::string_view line) {
  const auto o = parse_object(line);
  if (!o)
    return std::nullopt;
  Reader in(*o);
  const auto sent = in.integer("sent", 0, INT64_MAX), done = in.integer("done", 0, INT64_MAX),
             of = in.integer("of", 0, INT64_MAX);
  if (!sent || !done || !of)
    return std::nullopt;
  return LoadCounts{static_cast<uint64_t>(*sent), static_cast<uint64_t>(*done), static_cast<uint64_t>(*of)};
}

std::string audit_json(const ClientAudit& a) { return json::serialize(to_object(a)); }

}  // namespace goodput
