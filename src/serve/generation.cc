#include "serve/generation.h"

#include <algorithm>
#include <utility>

namespace goodput {

Generation::Generation(ApiRequest r, HttpResponder to) : request(std::move(r)), responder(std::move(to)) {
  stops_ = StopMatcher(std::move(request.stop));
}

void Generation::start() {
  if (!std::exchange(started_, true) && request.stream)
    responder.start_stream("text/event-stream; charset=utf-8", {{"Cache-Control", "no-cache"}});
}

bool Generation::update(const RequestUpdate& update, const Tokenizer& tokenizer, std::string_view model_name,
                        ServerMetrics& metrics) {
  // Not where it ends before anything else: that may still become an error with a status of its own.
  if (update.event.kind != Event::Kind::kEnded)
    start();
  if (!response_)
    begin(update.event.id, model_name);
  const std::optional<TimePoint> last = times.last_token;
  add_event(times, update.event, update.started, update.at);
  switch (update.event.kind) {
    case Event::Kind::kScheduled:
      cached_ = std::max(cached_, update.event.cached);
      break;
    case Event::Kind::kToken:
      if (last)
        metrics.next_token(update.at - *last);
      else
        metrics.first_token(prompt_tokens, update.at - times.arrived.value_or(update.at));
      return token(update, tokenizer, metrics);
    case Event::Kind::kPreempted:
      break;
    case Event::Kind::kEnded:
      ended(update, metrics);
      break;
  }
  return false;
}

void Generation::begin(RequestId id, std::string_view model_name) {
  response_.emplace(request.chat, id, model_name, created);
}

// The reason is known with the token: waiting for kEnded would make an event more than there are tokens.
bool Generation::token(const RequestUpdate& update, const Tokenizer& tokenizer, ServerMetrics& metrics) {
  generated_ += Tokens(1);
  if (complete_ || gone.load(std::memory_order_relaxed))
    return false;
  const TokenId id = update.event.token;
  const bool end = std::find(end_tokens.begin(), end_tokens.end(), id) != end_tokens.end();
  std::string whole, text;
  if (!end && !tokenizer.is_special(id))
    decoder_.feed(tokenizer.piece(id), whole);
  const bool last = end || generated_ >= max_new;
  if (last)
    decoder_.finish(whole);
  const bool stopped = stops_.feed(whole, text);
  if (!stopped && last)
    stops_.finish(text);
  if (request.return_token_ids && !request.stream)
    tokens_.push_back(id);
  if (stopped || last) {
    complete(text, stopped || end ? FinishReason::kStop : FinishReason::kLength, {&id, 1});
    metrics.answered(200);
  } else {
    deliver(text, FinishReason::kNone, {&id, 1});
  }
  return stopped && !last;
}

void Generation::deliver(std::string_view text, FinishReason reason, std::span<const TokenId> tokens) {
  if (!request.stream) {
    text_ += text;
    return;
  }
  if (gone.load(std::memory_order_relaxed))
    return;
  responder.push(response_->chunk(text, !delivered_, reason,
                                  request.return_token_ids ? std::optional(tokens) : std::nullopt,
                                  request.continuous_usage ? std::optional(usage()) : std::nullopt));
  delivered_ = true;
}

void Generation::complete(std::string_view last_text, FinishReason reason, std::span<const TokenId> tokens) {
  complete_ = true;
  start();
  deliver(last_text, reason, tokens);
  if (!request.stream) {
    responder.send(
        {200,
         "application/json",
         response_->whole(text_, reason,
                          request.return_token_ids ? std::optional(std::span<const TokenId>(tokens_)) : std::nullopt,
                          usage(), times),
         {}});
    return;
  }
  if (request.include_usage)
    responder.push(response_->usage_chunk(usage(), times));
  responder.push(std::string(ApiResponse::done()));
  responder.finish();
}

void Generation::fail(const ApiError& error, ServerMetrics& metrics) {
  complete_ = true;
  metrics.answered(error.status);
  if (!started_ || !request.stream)
    return responder.send(error_reply(error));
  responder.push(error_event(error));
  responder.finish();
}

void Generation::ended(const RequestUpdate& update, ServerMetrics& metrics) {
  const FinishReason reason = update.event.reason;
  metrics.ended(reason, times, update.at, prompt_tokens, generated_, max_new);
  if (complete_ || gone.load(std::memory_order_relaxed))
    return;
  if (reason == FinishReason::kStop || reason == FinishReason::kLength) {
    std::string whole, text;
    decoder_.finish(whole);
    if (!stops_.feed(whole, text))
      stops_.finish(text);
    complete(text, reason, {});
    metrics.answered(200);
  } else if (reason == FinishReason::kAbort) {
    fail({503, "the server is shutting down", "overloaded_error", {}, "shutting_down"}, metrics);
  } else {
    fail({500, "the engine could not compute this request", "server_error", {}, "engine_error"}, metrics);
  }
}

}  // namespace goodput
