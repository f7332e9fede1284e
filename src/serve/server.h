// The HTTP server over one engine: OpenAI's completions and chat, models, health, Prometheus metrics.
//
// Three kinds of thread. The HTTP loop owns connections, texts and counters; a tokenizer turns requests into tokens and
// submits them; the engine's thread only leaves its events in an outbox that the loop empties.
#pragma once

#include <memory>
#include <string>

#include "base/limits.h"
#include "base/result.h"
#include "base/units.h"
#include "engine/engine.h"
#include "scheduler/capabilities.h"
#include "scheduler/settings.h"
#include "serve/server_metrics.h"
#include "workload/tokenizer.h"

namespace goodput {

class Model;

struct ServeOptions {
  std::string host = "127.0.0.1";
  int port = 8080;         // 0: any free one
  std::string model_name;  // as /v1/models says
  Nanos drain_limit = seconds(30);
  uint64_t max_body_bytes = limits::kMaxBodyBytes;
  int tokenizer_threads = 1;
  // What the engine was made with: told by /v1/models, and the source of defaults and of admission.
  Settings settings;
  Capabilities capabilities;
  std::string executor = "llama";  // or "simulated"
  // The engine's StepSink, for iteration_tokens_total; may be null.
  std::shared_ptr<const StepCounter> steps;
};

class Server {
 public:
  // Binds at once: a busy port or an unknown address is an error here. `model` gives tokens and template.
  static Result<std::unique_ptr<Server>> create(const ServeOptions&, std::shared_ptr<const Model>,
                                                std::unique_ptr<Engine>);
  ~Server();
  int port() const;
  // Serves until stop(); then answers 503 to new requests while those in progress end, for at most drain_limit. Once.
  Result<void> run();
  void stop();  // from any thread, not from a signal handler

  struct Impl;  // server.cc

 private:
  explicit Server(std::unique_ptr<Impl>);
  std::unique_ptr<Impl> impl_;
};

}  // namespace goodput
