#include "cli/bench_flags.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/limits.h"
#include "base/text.h"

namespace goodput {
namespace {

using F = BenchFlags;
constexpr FlagOwner kV = FlagOwner::kVllm, kO = FlagOwner::kOurs;
constexpr int64_t kMostPlausible = limits::kMaxScheduledRequests;  // of any count; each use has its own bound

// In the order of `goodput help bench`.
const FlagRow kRows[] = {
    {"backend", "NAME", kV, &F::backend, "the server's API; decides the endpoint (openai, openai-chat, vllm, …)"},
    {"base-url", "URL", kV, &F::base_url, "server, e.g. http://127.0.0.1:8000; instead of --host and --port"},
    {"host", "HOST", kV, &F::host, "server's host"},
    {"port", "PORT", kV, &F::port, "server's port", 1},
    {"endpoint", "PATH", kV, &F::endpoint, "e.g. /v1/chat/completions; default: the backend's"},
    {"model", "NAME", kV, &F::model, "default: the first of /v1/models"},
    {"served-model-name", "NAME", kV, &F::served_model_name, "what the API calls it; default: --model"},
    {"tokenizer", "FILE", kV, &F::tokenizer,
     "GGUF whose vocabulary makes prompts of exact length; other names: prompts of words, counted by the server"},
    {"tokenizer-mode", "MODE", kV, FlagIgnored{}, "accepted; only GGUF vocabularies are read"},
    {"skip-tokenizer-init", "", kV, FlagIgnored{}, "accepted; no tokenizer is needed"},
    {"trust-remote-code", "", kV, FlagIgnored{}, "accepted; no code of a model is run"},
    {"header", "NAME=VALUE", kV, &F::headers, "sent with each request"},
    {"extra-body", "JSON", kV, &F::extra_body, "object whose members are added to each request's body"},
    {"request-id-prefix", "TEXT", kV, &F::request_id_prefix, "X-Request-Id of request i: this and i"},
    {"ready-check-timeout-sec", "S", kV, &F::ready_check_s,
     "wait as long for the server to answer; 0 (vLLM: 600): an unreachable server ends the run at once", 0},
    {"insecure", "", kV, &F::insecure, "accept any certificate"},
    {"ca-file", "FILE", kO, &F::ca_file, "more certificates to trust (PEM)"},

    {"dataset-name", "NAME", kV, &F::dataset,
     "random, prefix_repetition, sharegpt, custom, burstgpt, timed_trace; ours: trace, azure, mooncake, bailian"},
    {"dataset-path", "FILE", kV, &F::dataset_path, "of a dataset that is a file"},
    {"num-prompts", "N", kV, &F::prompts, "requests to send; default 1000, with --duration as many as fit", 1},
    {"seed", "N", kV, &F::seed, "of lengths, prompts and arrivals"},
    {"input-len", "TOKENS", kV, &F::input_len, "prompt length, whatever the dataset calls it", 1},
    {"output-len", "TOKENS", kV, &F::output_len, "answer length, whatever the dataset calls it", 1},
    {"random-input-len", "TOKENS", kV, &F::random_input, "random: prompt length without the prefix", 1},
    {"random-output-len", "TOKENS", kV, &F::random_output, "random: answer length", 1},
    {"random-range-ratio", "R|JSON", kV, &F::range_ratio,
     "random: lengths uniform in length × (1 ± R), R in [0, 1); or {\"input\":R,\"output\":R}"},
    {"random-prefix-len", "TOKENS", kV, &F::random_prefix, "random: tokens that all prompts share, in front", 0},
    {"sharegpt-output-len", "TOKENS", kV, &F::sharegpt_output, "sharegpt: answer length instead of the file's", 1},
    {"prefix-repetition-prefix-len", "TOKENS", kV, &F::prefix_len, "prefix_repetition: of each shared prefix", 1},
    {"prefix-repetition-suffix-len", "TOKENS", kV, &F::suffix_len, "prefix_repetition: behind it", 1},
    {"prefix-repetition-num-prefixes", "N", kV, &F::prefixes, "prefix_repetition: different prefixes", 1},
    {"prefix-repetition-output-len", "TOKENS", kV, &F::prefix_output, "prefix_repetition: answer length", 1},
    {"timed-trace-chunk-hash-size", "TOKENS", kV, &F::trace_hash_block, "timed_trace: tokens that a hash id stands for",
     1},
    {"timed-trace-sec-multiplier", "X", kV, &F::trace_multiplier, "timed_trace: seconds of one unit of the timestamps"},
    {"timed-trace-label-timestamp", "KEY", kV, &F::trace_timestamp, "timed_trace: key of the timestamp"},
    {"timed-trace-label-input-length", "KEY", kV, &F::trace_input, "timed_trace: key of the prompt's length"},
    {"timed-trace-label-output-length", "KEY", kV, &F::trace_output, "timed_trace: key of the answer's length"},
    {"timed-trace-label-hash-ids", "KEY", kV, &F::trace_hash_ids, "timed_trace: key of the block hashes"},
    {"self-timed", "", kV, &F::self_timed, "a trace's requests arrive at its own times"},
    {"ignore-eos", "", kV, &F::ignore_eos, "answers of the asked length; always so where lengths are synthetic"},
    {"temperature", "X", kV, &F::temperature, "sampling; default 0, greedy"},
    {"top-p", "X", kV, &F::top_p, "sampling"},
    {"top-k", "N", kV, &F::top_k, "sampling"},
    {"min-p", "X", kV, &F::min_p, "sampling"},
    {"frequency-penalty", "X", kV, &F::frequency_penalty, "sampling"},
    {"presence-penalty", "X", kV, &F::presence_penalty, "sampling"},
    {"repetition-penalty", "X", kV, &F::repetition_penalty, "sampling"},

    {"request-rate", "R", kV, &F::rate, "requests/s; inf: all at once, as --max-concurrency allows"},
    {"burstiness", "X", kV, &F::burstiness, "shape of the gaps: 1 Poisson, below 1 burstier, inf constant"},
    {"max-concurrency", "N", kV, &F::concurrency, "requests in flight at most", 1},
    {"ramp-up-strategy", "NAME", kV, &F::ramp_strategy, "linear or exponential, from start to end rate"},
    {"ramp-up-start-rps", "R", kV, &F::ramp_start, "requests/s at the start"},
    {"ramp-up-end-rps", "R", kV, &F::ramp_end, "requests/s at the end"},
    {"num-warmups", "N", kV, &F::warmups, "requests sent before, not counted; prompts of their own", 0},

    {"goodput", "KEY:MS", kV, &F::targets, "targets, e.g. ttft:200 tpot:50 e2el:5000; ours: ttfa itl icl max_gap"},
    {"percentile-metrics", "LIST", kV, &F::metrics,
     "of ttft,tpot,itl,e2el,client_queue_time,e2el_including_client_queue; default ttft,tpot,itl"},
    {"metric-percentiles", "LIST", kV, &F::percentiles, "e.g. 50,90,99.9"},
    {"save-result", "", kV, &F::save_result, "write vLLM's result JSON, ours under \"goodput\""},
    {"save-detailed", "", kV, &F::save_detailed, "with arrays per request, in seconds"},
    {"append-result", "", kV, &F::append_result, "add the result to the file as one more line"},
    {"result-dir", "DIR", kV, &F::result_dir, "default: here"},
    {"result-filename", "FILE", kV, &F::result_filename, "default: {label}-{rate}qps-{model}-{date}.json"},
    {"metadata", "KEY=VALUE", kV, &F::metadata, "kept in the result"},
    {"label", "TEXT", kV, &F::label, "of the result; default: the backend"},
    {"disable-tqdm", "", kV, &F::quiet, "no progress on stderr"},
    {"profile", "", kV, FlagRefused{}, "goodput does not drive a server's profiler; start it yourself around the run"},
    {"plot-timeline", "", kV, FlagRefused{},
     "goodput draws no timeline; --save-detailed has the times of each request"},
    {"plot-dataset-stats", "", kV, FlagRefused{}, "goodput draws no dataset; --save-detailed has the lengths"},
    {"timeline-itl-thresholds", "LIST", kV, FlagRefused{}, "belongs to --plot-timeline, which goodput does not have"},
    {"lora-modules", "NAME", kV, FlagRefused{}, "goodput asks for one model a run; name it with --served-model-name"},
    {"use-beam-search", "", kV, FlagRefused{}, "beam search has no stream to measure"},
    {"logprobs", "N", kV, FlagRefused{}, "pass it as --extra-body '{\"logprobs\": N}'"},
    {"probe-request-rate", "R", kV, FlagRefused{}, "goodput has no probe requests beside the load; run a second bench"},

    {"workload", "FILE", kO, &F::workload, "TOML file of classes (docs/workloads.md), instead of a dataset"},
    {"duration", "TIME", kO, &F::duration, "length of the measured window, e.g. 30s; arrivals go on behind it"},
    {"warm-up", "TIME", kO, &F::warm_up, "before the window, e.g. 2s"},
    {"salt", "N", kO, &F::salt, "not 0: other words, same lengths and times, so that no cache knows them"},
    {"rate-normalize", "", kO, &F::rate_normalize, "vLLM's arrivals: the last one at N ÷ rate (docs/bench.md)"},
    {"request-timeout", "S", kO, &F::timeout_s, "of one request, seconds", 1},
    {"no-stream", "", kO, &F::no_stream, "ask for whole answers: no token times then"},
    {"floor", "SHARE", kO, &F::floor, "attainment to keep, e.g. 0.9; exit code 4 unless shown to be kept"},
    {"table", "NAME", kO, &F::table, "vllm, lmdeploy, evalscope or dbgpt (CSV)"},
    {"lang", "LANGUAGE", kO, &F::language, "en or zh: labels of --table evalscope"},
    {"plain", "", kO, &F::plain, "tab-separated, no ornament"},
    {"json", "", kO, &F::json, "one JSON document on stdout: the result file's"},
    {"save-records", "FILE", kO, &F::records, "every request's record"},
    {"cpus", "LIST", kO, &F::cpus, "processors to run on, e.g. 1"},
    {"dry-run", "", kO, &F::dry_run, "print the plan: requests, time, descriptors, memory"},
};

// A whole number in [least, kMostPlausible]; without a name, so that help stays readable.
CLI::Validator at_least(int64_t least) {
  return CLI::Validator(
      [least](std::string& text) {
        const auto value = parse_int(text);
        if (value && *value >= least && *value <= kMostPlausible)
          return std::string();
        return fmt::format("expected a whole number from {} to {}, found '{}'", least, kMostPlausible, text);
      },
      "");
}

struct Declare {
  CLI::App& app;
  BenchFlags& flags;
  const FlagRow& row;
  std::string name = "--" + std::string(row.name);
  std::string meaning = std::string(row.meaning);

  CLI::Option* operator()(bool F::* field) const { return app.add_flag(name, flags.*field, meaning); }
  CLI::Option* operator()(FlagIgnored) const { return sink(); }
  CLI::Option* operator()(FlagRefused) const { return sink(); }
  template <class T>
  CLI::Option* operator()(T F::* field) const {
    return app.add_option(name, flags.*field, meaning);
  }
  CLI::Option* sink() const {
    if (row.syntax.empty())
      return app.add_flag_function(name, [](int64_t) {}, meaning);
    return app.add_option_function<std::vector<std::string>>(name, [](const std::vector<std::string>&) {}, meaning);
  }
};

}  // namespace

std::span<const FlagRow> bench_flag_rows() { return kRows; }

void declare_bench_flags(CLI::App& app, BenchFlags& flags) {
  const BenchFlags defaults;
  for (const FlagRow& row : kRows) {
    CLI::Option* option = std::visit(Declare{app, flags, row}, row.field);
    const bool refused = std::holds_alternative<FlagRefused>(row.field);
    option->group(refused           ? "vLLM's flags that have no counterpart"
                  : row.owner == kV ? "Flags as vLLM's bench serve has them"
                                    : "Flags of goodput");
    if (!row.syntax.empty())
      option->type_name(std::string(row.syntax));
    if (row.least != INT64_MIN)
      option->check(at_least(row.least));
    if (const auto* text = std::get_if<std::string F::*>(&row.field); text && !(defaults.**text).empty())
      option->default_str(defaults.**text);
    if (const auto* number = std::get_if<int64_t F::*>(&row.field))
      option->default_str(std::to_string(defaults.**number));
  }
}

Result<void> check_refused_flags(const CLI::App& app) {
  for (const FlagRow& row : kRows) {
    const std::string name = "--" + std::string(row.name);
    if (std::holds_alternative<FlagRefused>(row.field) && app.get_option(name)->count() > 0)
      return fail(ErrorCode::kUsage, std::string(row.meaning), name);
  }
  return {};
}

Result<std::vector<std::string>> complete_bench_arguments(std::vector<std::string> arguments) {
  if (!arguments.empty() && arguments.front() == "serve")
    arguments.erase(arguments.begin());
  for (std::string& argument : arguments) {
    if (!argument.starts_with("--") || argument.size() == 2)
      continue;
    const size_t end = std::min(argument.find('='), argument.size());
    std::string name = argument.substr(2, end - 2);
    std::ranges::replace(name, '_', '-');
    std::vector<std::string_view> candidates;
    for (const FlagRow& row : kRows) {
      if (row.name == name) {
        candidates = {row.name};
        break;
      }
      if (row.name.starts_with(name))
        candidates.push_back(row.name);
    }
    if (candidates.size() > 1) {
      return fail(ErrorCode::kUsage, fmt::format("ambiguous: it could be --{}", fmt::join(candidates, " or --")),
                  "--" + name);
    }
    if (candidates.size() == 1)
      argument = "--" + std::string(candidates.front()) + argument.substr(end);
  }
  return arguments;
}

}  // namespace goodput
