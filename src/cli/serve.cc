// goodput serve: an OpenAI-compatible server on the built-in engine, or the same server on modelled time (--simulate).
#include <algorithm>
#include <map>
#include <memory>
#include <thread>

#include <unistd.h>

#include <fmt/format.h>

#include "base/file.h"
#include "base/limits.h"
#include "base/process.h"
#include "base/text.h"
#include "cli/cpus.h"
#include "cli/interrupt.h"
#include "cli/models.h"
#include "cli/step_cost.h"
#include "cli/step_log.h"
#include "cli/verb.h"
#include "engine/llama_executor.h"
#include "engine/simulated_executor.h"
#include "model/synth.h"
#include "serve/api_response.h"
#include "serve/server.h"

namespace goodput {
namespace {

struct Flags {
  std::string model = "tiny", host = "127.0.0.1", name, cpus, cost, cost_file, step_log, drain_limit = "30s";
  int port = 8080, kv_tokens = 32768, threads = 0;
  double speed = 1;
  bool simulate = false, json = false;
  std::map<std::string, std::string> settings;  // by the row's name, as given
};

void declare_flags(CLI::App& app, Flags& f) {
  app.add_option("--model", f.model, "tiny, small or base (made and kept by goodput), or a GGUF file")
      ->capture_default_str();
  app.add_option("--served-model-name", f.name, "what clients call the model; default: the name or file name given");
  app.add_option("--host", f.host, "address to listen on; 0.0.0.0 for all")->capture_default_str();
  app.add_option("--port", f.port, "0: any free one")->capture_default_str()->check(CLI::Range(0, 65535));
  for (const SettingRow& row : setting_rows()) {
    std::string flag = "--" + std::string(row.name);
    std::ranges::replace(flag, '_', '-');
    app.add_option(flag, f.settings[std::string(row.name)], fmt::format("{} ({})", row.meaning, row.range))
        ->default_str(setting_text(Settings{}, row.name));
  }
  app.add_option("--kv-tokens", f.kv_tokens, "KV cells of the whole cache")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  app.add_option("--threads", f.threads, "of the computation; 0: processors − 1, at least 1")->capture_default_str();
  app.add_option("--cpus", f.cpus, "processors this process may use, e.g. 0 or 0,1; default: all");
  app.add_flag("--simulate", f.simulate, "compute nothing: modelled durations, tokens that can be checked, real HTTP");
  app.add_option("--cost", f.cost, "of a simulated step, e.g. base_ns=2e6,prefill_ns=2e4,decode_ns=1e5,kv_ns=1");
  app.add_option("--cost-file", f.cost_file, "the same as a JSON object");
  app.add_option("--speed", f.speed, "modelled seconds per real second")
      ->capture_default_str()
      ->check(CLI::Range(0.001, 1e6));
  app.add_option("--step-log", f.step_log, "file for the record of every step, written at the end (see goodput steps)");
  app.add_option("--drain-limit", f.drain_limit, "how long requests may go on after SIGTERM")->capture_default_str();
  app.add_flag("--json", f.json, "one JSON line on stdout once the server is ready");
}

// The longest run of ordinary tokens: a simulated end of sequence would cut answers short.
std::pair<TokenId, TokenId> ordinary_tokens(const Model& model) {
  const auto ends = model.end_of_generation();
  TokenId low = 0, best_low = 0, best_high = 0;
  for (TokenId token = 0; token <= model.vocabulary_size(); ++token) {
    const bool ordinary =
        token < model.vocabulary_size() && !model.is_special(token) && !std::ranges::count(ends, token);
    if (ordinary)
      continue;
    if (token - low > best_high - best_low)
      best_low = low, best_high = token;
    low = token + 1;
  }
  return {best_low, best_high};
}

struct Plan {
  ServeOptions serve;
  StepCost cost;
  Nanos drain;
  std::shared_ptr<const Model> model;
  std::pair<TokenId, TokenId> tokens;
  std::unique_ptr<Executor> executor;
};

Result<Settings> settings_of(const Flags& f, const Model& model) {
  Settings s;
  const Tokens context = model.info().context_length;
  if (!f.simulate && context > Tokens(0))
    s.max_model_len = std::min(s.max_model_len, context);
  for (const auto& [name, value] : f.settings)
    if (!value.empty())
      TRY(set_setting(s, name, value));
  TRY(validate(s));
  return s;
}

Result<Plan> plan(const Flags& f) {
  if (!f.simulate && (f.speed != 1 || !f.cost.empty() || !f.cost_file.empty()))
    return fail(ErrorCode::kUsage, "--speed, --cost and --cost-file belong to --simulate");
  Plan p;
  p.drain = TRY(parse_duration(f.drain_limit));
  p.cost = TRY(parse_step_cost(f.cost, f.cost_file));
  if (const auto cpus = TRY(parse_cpus(f.cpus, "--cpus")); !cpus.empty())
    TRY(pin_to_cpus(cpus));
  const std::filesystem::path file = TRY(resolve_model(f.model));
  p.model = TRY(Model::load(file, f.simulate));
  p.tokens = ordinary_tokens(*p.model);
  p.serve.host = f.host;
  p.serve.port = f.port;
  p.serve.drain_limit = p.drain;
  p.serve.model_name = !f.name.empty() ? f.name : parse_synth_size(f.model) ? f.model : file.stem().string();
  p.serve.settings = TRY(settings_of(f, *p.model));
  p.serve.executor = f.simulate ? "simulated" : "llama";
  const Settings& s = p.serve.settings;
  if (f.simulate) {
    const Blocks blocks(f.kv_tokens / s.block_size.count());
    const Capabilities c{{s.block_size, blocks, blocks, limits::kMaxSlots}, s.max_num_batched_tokens, s.max_model_len};
    p.executor =
        std::make_unique<SimulatedExecutor>(SimulatedExecutor::Options{c, p.cost, p.tokens.first, p.tokens.second});
  } else {
    p.executor = TRY(make_llama_executor(p.model, s, {Tokens(f.kv_tokens), f.threads}));
  }
  p.serve.capabilities = p.executor->capabilities();
  return p;
}

void render(const Flags& f, const Plan& p, int port) {
  const Capabilities& c = p.serve.capabilities;
  const ModelInfo info = p.model->info();
  std::string settings;
  for (const SettingRow& row : setting_rows())
    settings += fmt::format("{}{}={}", settings.empty() ? "" : " ", row.name, setting_text(p.serve.settings, row.name));
  fmt::print(stderr,
             "goodput serve: http://{}:{}/v1\n  model     {} ({}, {:.1f}M parameters, context {}){}\n  settings  {}\n"
             "  KV        {} blocks of {} tokens\n",
             f.host, port, p.serve.model_name, info.architecture, static_cast<double>(info.parameters) / 1e6,
             info.context_length.count(), f.simulate ? ", simulated: nothing is computed" : "", settings,
             c.kv.total.count(), c.kv.block_size.count());
  if (!f.json)
    return;
  fmt::print(
      R"({{"port":{},"pid":{},"model":{},"executor":"{}","kv_blocks":{},"capabilities":{{"block_size":{},"total_blocks":{},)"
      R"("blocks_per_slot":{},"slots":{},"share_copies":{},"can_truncate":{},"max_batch_tokens":{},"max_len":{}}},)"
      R"("simulated_tokens":[{},{}]}})"
      "\n",
      port, ::getpid(), json_string(p.serve.model_name), p.serve.executor, c.kv.total.count(), c.kv.block_size.count(),
      c.kv.total.count(), c.kv.per_slot.count(), c.kv.slots, c.kv.share_copies, c.kv.can_truncate,
      c.max_batch_tokens.count(), c.max_len.count(), p.tokens.first, p.tokens.second);
  std::fflush(stdout);
}

Result<void> serve(const Flags& f) {
  const std::atomic<bool>& interrupted = interrupt_flag();
  Plan p = TRY(plan(f));
  StepLog log;
  const auto counter = std::make_shared<StepCounter>(f.step_log.empty() ? nullptr : &log);
  p.serve.steps = counter;
  auto core = TRY(EngineCore::create(p.serve.settings, std::move(p.executor), counter.get()));
  auto engine = std::make_unique<Engine>(std::move(core), std::make_unique<WallClock>(f.speed));
  auto server = TRY(Server::create(p.serve, p.model, std::move(engine)));
  render(f, p, server->port());
  std::thread watcher([&] {
    while (!interrupted)
      ::usleep(20'000);
    server->stop();
  });
  auto ended = server->run();
  watcher.join();
  server.reset();  // the engine's last steps
  if (!f.step_log.empty())
    TRY(log.save(f.step_log));
  return ended;
}

std::function<Exit()> declare(CLI::App& app) {
  auto flags = std::make_shared<Flags>();
  declare_flags(app, *flags);
  return [flags] {
    if (const auto done = serve(*flags); !done)
      return report_error(done.error());
    return Exit::kOk;
  };
}

}  // namespace

extern const Verb kServeVerb;
const Verb kServeVerb{"serve", "an OpenAI-compatible server that keeps its latency under mixed load",
                      "  goodput serve                                    the synthetic model, port 8080\n"
                      "  goodput serve --model FILE.gguf --max-num-seqs 32 --max-num-batched-tokens 256\n"
                      "  goodput serve --simulate --cost base_ns=2e7,decode_ns=1e5   a loaded GPU, without one\n",
                      declare};

}  // namespace goodput
