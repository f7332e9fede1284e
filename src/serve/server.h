// The HTTP server over one engine: OpenAI's completions and chat, models, health, Prometheus metrics.
#pragma once

#include <atomic>
#include <memory>
#include <string>

#include "base/result.h"
#include "base/units.h"
#include "engine/engine.h"
#include "workload/tokenizer.h"

namespace goodput {

class Model;

struct ServeOptions {
  std::string host = "127.0.0.1";
  int port = 8080;                      // 0: any free one
  std::string model_name;               // as /v1/models says
  Nanos drain_limit = seconds(30);
  uint64_t max_body_bytes = 16u << 20;
  int tokenizer_threads = 1;
};

class Server {
 public:
  // Binds at once: a busy port or an unknown address is an error here. `model` gives tokens and template.
  static Result<std::unique_ptr<Server>> create(const ServeOptions&, std::shared_ptr<const Model>,
                                                std::unique_ptr<Engine>);
  ~Server();
  int port() const;
  // Serves until `stop`() or SIGTERM/SIGINT via stop(); then drains. Returns when all is over.
  Result<void> run();
  void stop();                          // async-signal-unsafe; call from a thread

 private:
  struct Impl;
  explicit Server(std::unique_ptr<Impl>);
  std::unique_ptr<Impl> impl_;
};

}  // namespace goodput
