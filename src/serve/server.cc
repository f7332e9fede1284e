#include "serve/server.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>

#include <fmt/format.h>
#include <pthread.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/random.h"
#include "model/model.h"
#include "net/http_server.h"
#include "serve/api_request.h"
#include "serve/api_response.h"
#include "serve/generation.h"
#include "serve/outbox.h"
#include "serve/workers.h"

namespace goodput {
namespace {

constexpr Nanos kFlushLimit = seconds(5);  // for clients to take the last bytes of their answers

ApiError not_found(std::string message, std::string param, std::string code) {
  return {404, std::move(message), "invalid_request_error", std::move(param), std::move(code)};
}

HttpReply refusal(int status, std::string_view message) {
  const bool ours = status >= 500;
  return error_reply({status, std::string(message), ours ? "server_error" : "invalid_request_error", {}, {}});
}

}  // namespace

struct Server::Impl {
  ServeOptions options;
  std::shared_ptr<const Model> model;
  size_t longest_piece = 1;  // bytes; bounds from below how many tokens a text has
  std::vector<TokenId> end_tokens;
  int64_t started = unix_seconds();
  std::unique_ptr<HttpServer> http;
  std::unique_ptr<Outbox> outbox;
  std::unique_ptr<Engine> engine;       // after what its thread calls
  std::unique_ptr<Workers> tokenizers;  // after what its threads call

  // Of the HTTP loop's thread.
  ServerMetrics metrics;
  std::vector<Outbox::Item> taken;

  std::atomic<int> tokenizing{0};
  std::atomic<uint64_t> unseeded{0};
  std::atomic<bool> draining{false};
  std::mutex mutex;
  std::condition_variable stop_asked;
  bool stopping = false;

  void handle(IncomingRequest&&, HttpResponder);
  void accept(IncomingRequest&&, HttpResponder, bool chat);
  void tokenize_and_submit(const std::string& body, bool chat, const IncomingRequest&, const HttpResponder&);
  tl::expected<std::vector<TokenId>, ApiError> prompt_of(const ApiRequest&) const;
  tl::expected<Tokens, ApiError> output_limit(const ApiRequest&, Tokens prompt) const;
  tl::expected<void, ApiError> submit(const std::shared_ptr<Generation>&, std::vector<TokenId> prompt);
  void refuse(const HttpResponder&, const ApiError&);
  void drain_outbox();
  HttpReply models() const;
  HttpReply metrics_page() const;
};

using Impl = Server::Impl;

void Server::Impl::handle(IncomingRequest&& request, HttpResponder responder) {
  struct Route {
    std::string_view method, path;
  };
  constexpr Route kRoutes[] = {{"POST", "/v1/completions"},
                               {"POST", "/v1/chat/completions"},
                               {"GET", "/v1/models"},
                               {"GET", "/health"},
                               {"GET", "/metrics"}};
  const std::string_view path = std::string_view(request.target).substr(0, request.target.find('?'));
  const auto* route =
      std::find_if(std::begin(kRoutes), std::end(kRoutes), [&](const Route& r) { return r.path == path; });
  if (route == std::end(kRoutes)) {
    std::string all;
    for (const Route& r : kRoutes)
      all += fmt::format("{}{} {}", all.empty() ? "" : ", ", r.method, r.path);
    return responder.send(
        error_reply(not_found(fmt::format("there is no such path; this server has {}", all), {}, {})));
  }
  const bool matches = request.method == route->method || (request.method == "HEAD" && route->method == "GET");
  if (!matches) {
    HttpReply reply =
        error_reply({405, fmt::format("{} takes {}", path, route->method), "invalid_request_error", {}, {}});
    reply.headers.emplace_back("Allow", route->method);
    return responder.send(std::move(reply));
  }
  if (path == "/health")
    return responder.send(draining ? HttpReply{503, "text/plain", "draining\n", {}}
                                   : HttpReply{200, "text/plain", "ok\n", {}});
  if (path == "/metrics")
    return responder.send(metrics_page());
  if (path == "/v1/models")
    return responder.send(models());
  accept(std::move(request), std::move(responder), path == "/v1/chat/completions");
}

void Server::Impl::refuse(const HttpResponder& responder, const ApiError& error) {
  responder.send(error_reply(error));
  http->post([this, status = error.status] { metrics.answered(status); });
}

// On the loop's thread. What waits for the tokenizer counts as queued.
void Server::Impl::accept(IncomingRequest&& request, HttpResponder responder, bool chat) {
  if (draining)
    return refuse(responder, {503, "the server is shutting down", "overloaded_error", {}, "shutting_down"});
  const int limit = options.settings.max_num_queued_reqs;
  const int waiting = tokenizing + engine->state().waiting;
  if (waiting > 0 && waiting >= limit)
    return refuse(responder, {503,
                              fmt::format("{} requests wait already (max_num_queued_reqs): try again later", waiting),
                              "overloaded_error",
                              {},
                              "queue_full"});
  ++tokenizing;
  tokenizers->submit([this, chat, responder = std::move(responder), request = std::move(request)] {
    tokenize_and_submit(request.body, chat, request, responder);
    --tokenizing;
  });
}

// On a tokenizer's thread.
void Server::Impl::tokenize_and_submit(const std::string& body, bool chat, const IncomingRequest& incoming,
                                       const HttpResponder& responder) {
  if (responder.gone())
    return;
  auto request = parse_api_request(body, chat);
  if (!request)
    return refuse(responder, request.error());
  if (!request->model.empty() && request->model != options.model_name)
    return refuse(responder, not_found(fmt::format("the model '{}' does not exist; this server has '{}'",
                                                   request->model, options.model_name),
                                       "model", "model_not_found"));
  const TimePoint before = monotonic_now();
  auto prompt = prompt_of(*request);
  const Nanos spent = monotonic_now() - before;
  engine->add_tokenization(spent);
  http->post([this, spent] { metrics.tokenized(spent); });
  if (!prompt)
    return refuse(responder, prompt.error());

  const Tokens length(prompt->size());
  const auto max_new = output_limit(*request, length);
  if (!max_new)
    return refuse(responder, max_new.error());
  request->sampling.seed = request->seed.value_or(mix64(++unseeded));

  auto generation = std::make_shared<Generation>(std::move(*request), responder);
  generation->prompt_tokens = length;
  generation->max_new = *max_new;
  if (!generation->request.sampling.ignore_eos)
    generation->end_tokens = end_tokens;
  generation->created = unix_seconds();
  // The engine's clock may be scaled; at speed 1 this is `received` itself.
  generation->times.arrived = engine->clock().now() - (monotonic_now() - incoming.received);
  if (auto accepted = submit(generation, std::move(*prompt)); !accepted)
    refuse(responder, accepted.error());
}

tl::expected<std::vector<TokenId>, ApiError> Server::Impl::prompt_of(const ApiRequest& request) const {
  const auto too_long = [&](size_t at_least) {
    return tl::unexpected(ApiError{400,
                                   fmt::format("the prompt has at least {} tokens; this server's limit for prompt and "
                                               "output together is {} (max_model_len)",
                                               at_least, options.settings.max_model_len.count()),
                                   "invalid_request_error", request.chat ? "messages" : "prompt",
                                   "context_length_exceeded"});
  };
  const auto limit = static_cast<size_t>(options.settings.max_model_len.count());
  if (!request.prompt_tokens.empty()) {
    const int vocabulary = model->vocabulary_size();
    for (const TokenId token : request.prompt_tokens)
      if (token >= vocabulary)
        return tl::unexpected(ApiError{400, fmt::format("{} is no token id: the vocabulary has {}", token, vocabulary),
                                       "invalid_request_error", "prompt", "invalid_value"});
    return request.prompt_tokens;
  }
  std::string text = request.prompt;
  if (request.chat) {
    auto made = model->apply_chat_template(request.messages, true);
    if (!made)
      return tl::unexpected(ApiError{400,
                                     "the messages do not fit the model's chat template: " + describe(made.error()),
                                     "invalid_request_error",
                                     "messages",
                                     {}});
    text = std::move(*made);
  }
  // Tokenizing megabytes only to refuse them would hold up everyone behind.
  if (text.size() / longest_piece >= limit)
    return too_long(text.size() / longest_piece);
  auto tokens = model->tokenize(text, true, true);
  if (tokens.empty())
    return tl::unexpected(
        ApiError{400, "the prompt has no tokens", "invalid_request_error", "prompt", "invalid_value"});
  if (tokens.size() >= limit)
    return too_long(tokens.size());
  return tokens;
}

tl::expected<Tokens, ApiError> Server::Impl::output_limit(const ApiRequest& request, Tokens prompt) const {
  const Tokens room = options.settings.max_model_len - prompt;
  const int asked = request.max_tokens.value_or(request.chat ? std::max(room.count(), 1) : 16);
  if (Tokens(asked) <= room)
    return Tokens(asked);
  return tl::unexpected(ApiError{
      400,
      fmt::format("the prompt has {} tokens and {} are asked for: together more than this server's limit of {} "
                  "(max_model_len)",
                  prompt.count(), asked, options.settings.max_model_len.count()),
      "invalid_request_error", request.max_tokens ? "max_tokens" : "prompt", "context_length_exceeded"});
}

tl::expected<void, ApiError> Server::Impl::submit(const std::shared_ptr<Generation>& generation,
                                                  std::vector<TokenId> prompt) {
  EngineRequest out;
  out.request.arrival = *generation->times.arrived;
  out.request.prompt = std::move(prompt);
  out.request.stop_tokens = generation->end_tokens;
  out.request.max_new = generation->max_new;
  out.request.priority = generation->request.priority;
  out.request.cache_salt = generation->request.cache_salt;
  out.sampling = generation->request.sampling;
  out.on_update = [box = outbox.get(), generation](const RequestUpdate& update) { box->push(generation, update); };
  generation->times.queued = engine->clock().now();
  const auto id = engine->submit(std::move(out));
  if (!id) {
    if (id.error().code == ErrorCode::kUsage)
      return tl::unexpected(
          ApiError{400, describe(id.error()), "invalid_request_error", "prompt", "context_length_exceeded"});
    const bool full = id.error().code == ErrorCode::kExhausted;
    return tl::unexpected(
        ApiError{503, describe(id.error()), "overloaded_error", {}, full ? "queue_full" : "shutting_down"});
  }
  generation->submitted = id->value();
  // Registered only now: a client that vanished before is told of at the loop's next turn.
  generation->responder.on_disconnect([this, weak = std::weak_ptr(generation)] {
    const auto it = weak.lock();
    if (!it)
      return;
    it->gone = true;
    engine->finish(RequestId(it->submitted), FinishReason::kAbort);
  });
  http->post([generation] { generation->start(); });
  return {};
}

// On the loop's thread: everything that the engine told since the last turn, then one flush of each connection.
void Server::Impl::drain_outbox() {
  outbox->take(taken);
  for (const auto& [generation, update] : taken) {
    const bool finish = generation->update(update, *model, options.model_name, metrics);
    if (finish)
      engine->finish(update.event.id, FinishReason::kStop);
  }
  taken.clear();
}

HttpReply Server::Impl::models() const {
  std::string settings;
  for (const SettingRow& row : setting_rows())
    settings += fmt::format("{}{}:{}", settings.empty() ? "" : ",", json_string(row.name),
                            json_string(setting_text(options.settings, row.name)));
  const auto& kv = options.capabilities.kv;
  std::string body = fmt::format(
      R"({{"object":"list","data":[{{"id":{},"object":"model","created":{},"owned_by":"goodput","max_model_len":{},)"
      R"("goodput":{{"executor":{},"settings":{{{}}},"kv_blocks":{},"block_size":{},"slots":{},"vocabulary":{}}}}}]}})",
      json_string(options.model_name), started, options.settings.max_model_len.count(), json_string(options.executor),
      settings, kv.total.count(), kv.block_size.count(), kv.slots, model->vocabulary_size());
  return {200, "application/json", std::move(body), {}};
}

HttpReply Server::Impl::metrics_page() const {
  const ServerGauges gauges{engine->state(), tokenizing, http->connections(), draining};
  return {200,
          "text/plain; version=0.0.4; charset=utf-8",
          metrics.page(options.model_name, gauges, options.steps.get()),
          {}};
}

Server::Server(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Server::~Server() = default;

Result<std::unique_ptr<Server>> Server::create(const ServeOptions& options, std::shared_ptr<const Model> model,
                                               std::unique_ptr<Engine> engine) {
  auto impl = std::make_unique<Impl>();
  impl->options = options;
  impl->model = std::move(model);
  impl->end_tokens = impl->model->end_of_generation();
  for (TokenId token = 0; token < impl->model->vocabulary_size(); ++token)
    impl->longest_piece = std::max(impl->longest_piece, impl->model->piece(token).size());
  HttpServer::Options http;
  http.host = options.host;
  http.port = options.port;
  http.max_body_bytes = options.max_body_bytes;
  http.refusal = refusal;
  impl->http = TRY(HttpServer::create(http, [i = impl.get()](IncomingRequest&& request, HttpResponder responder) {
    i->handle(std::move(request), std::move(responder));
  }));
  impl->outbox = std::make_unique<Outbox>([i = impl.get()] { i->http->post([i] { i->drain_outbox(); }); });
  impl->engine = std::move(engine);
  impl->tokenizers = std::make_unique<Workers>(options.tokenizer_threads);
  return std::unique_ptr<Server>(new Server(std::move(impl)));
}

int Server::port() const { return impl_->http->port(); }

Result<void> Server::run() {
  Impl& i = *impl_;
  std::thread loop([&i] {
    ::pthread_setname_np(::pthread_self(), "http");
    i.http->run();
  });
  {
    std::unique_lock lock(i.mutex);
    i.stop_asked.wait(lock, [&i] { return i.stopping; });
  }
  i.draining = true;
  i.tokenizers->wait_idle();  // these were accepted
  const bool all_ended = i.engine->drain(i.options.drain_limit);
  // The loop's queue is in order: the engine's last events are told before connections are closed.
  i.http->shutdown(kFlushLimit);
  loop.join();
  if (!all_ended)
    log::warn(fmt::format("requests still ran after {:.3g} s of draining; they were ended",
                          to_seconds(i.options.drain_limit)));
  return {};
}

void Server::stop() {
  {
    std::lock_guard lock(impl_->mutex);
    impl_->stopping = true;
  }
  impl_->stop_asked.notify_all();
}

}  // namespace goodput
