// Everything that could fail on a strange vocabulary is tried once while loading: afterwards the members only read.

#include "model/model.h"

#include <climits>
#include <utility>

#include <fmt/format.h>
#include <llama.h>

#include "base/check.h"
#include "model/gguf_file.h"
#include "model/libllama.h"

namespace goodput {
namespace {

struct FreeModel {
  void operator()(llama_model* m) const { llama_model_free(m); }
};

std::string make_piece(const llama_vocab* vocab, TokenId token) {
  std::string text(32, '\0');
  int32_t n = llama_token_to_piece(vocab, token, text.data(), static_cast<int32_t>(text.size()), 0, true);
  if (n < 0) {
    text.resize(static_cast<size_t>(-n));
    n = llama_token_to_piece(vocab, token, text.data(), static_cast<int32_t>(text.size()), 0, true);
  }
  text.resize(n > 0 ? static_cast<size_t>(n) : 0);
  return text;
}

std::vector<TokenId> tokenize_with(const llama_vocab* vocab, std::string_view text, bool add_special,
                                   bool parse_special) {
  CHECK(text.size() < INT32_MAX / 2, "a text beyond 1 GiB");
  std::vector<TokenId> tokens(text.size() / 3 + 16);
  const auto run = [&] {
    return llama_tokenize(vocab, text.data(), static_cast<int32_t>(text.size()), tokens.data(),
                          static_cast<int32_t>(tokens.size()), add_special, parse_special);
  };
  int32_t n = run();
  if (n < 0 && n != INT32_MIN) {  // INT32_MIN: more tokens than can be counted
    tokens.resize(static_cast<size_t>(-n));
    n = run();
  }
  tokens.resize(n > 0 ? static_cast<size_t>(n) : 0);
  return tokens;
}

// Each byte alone and a mixture: a vocabulary that cannot express some byte makes libllama throw, which must not
// happen for the first time in the middle of a request.
bool tokenizes_everything(const llama_vocab* vocab) {
  for (int byte = 0; byte < 256; ++byte) {
    const char c = static_cast<char>(byte);
    tokenize_with(vocab, {&c, 1}, true, true);
  }
  tokenize_with(vocab, "A plain text, \xE2\x82\xAC 12.50 \xF0\x9F\x98\x80\n\tand \xFF\xFE rubbish.", true, true);
  return true;
}

}  // namespace

struct Model::Impl {
  ModelInfo info;
  std::unique_ptr<llama_model, FreeModel> model;
  const llama_vocab* vocab = nullptr;
  std::vector<std::string> pieces;  // by token
  std::vector<TokenId> end_of_generation;
  std::string chat_template;  // empty: none

  bool prepare() {
    vocab = llama_model_get_vocab(model.get());
    const int n = llama_vocab_n_tokens(vocab);
    if (n <= 0)
      return false;
    pieces.reserve(static_cast<size_t>(n));
    for (TokenId token = 0; token < n; ++token) {
      pieces.push_back(make_piece(vocab, token));
      if (llama_vocab_is_eog(vocab, token))
        end_of_generation.push_back(token);
    }
    if (const char* text = llama_model_chat_template(model.get(), nullptr))
      chat_template = text;
    info.vocabulary = n;
    info.recurrent = llama_model_is_recurrent(model.get());
    info.hybrid = llama_model_is_hybrid(model.get());
    info.has_encoder = llama_model_has_encoder(model.get());
    info.has_chat_template = !chat_template.empty();
    return tokenizes_everything(vocab);
  }
};

Model::Model(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Model::~Model() = default;

Result<std::shared_ptr<const Model>> Model::load(const std::filesystem::path& path, bool vocabulary_only) {
  auto impl = std::make_unique<Impl>();
  impl->info = TRY(inspect_gguf(path, !vocabulary_only));
  llama_model_params params = llama_model_default_params();
  params.vocab_only = vocabulary_only;
  const auto loaded = call_libllama("libllama cannot load this model", [&] {
    impl->model.reset(llama_model_load_from_file(path.c_str(), params));
    return impl->model != nullptr;
  });
  if (!loaded)
    return fail(ErrorCode::kUsage, loaded.error().message, path.string());
  const auto prepared = call_libllama("the tokenizer of this model is damaged", [&] { return impl->prepare(); });
  if (!prepared)
    return fail(ErrorCode::kUsage, prepared.error().message, path.string());
  return std::shared_ptr<const Model>(new Model(std::move(impl)));
}

ModelInfo Model::info() const { return impl_->info; }

llama_model* Model::handle() const { return impl_->model.get(); }

int Model::vocabulary_size() const { return static_cast<int>(impl_->pieces.size()); }

std::vector<TokenId> Model::tokenize(std::string_view text, bool add_special, bool parse_special) const {
  std::vector<TokenId> tokens;
  const auto done = call_libllama("cannot tokenize", [&] {
    tokens = tokenize_with(impl_->vocab, text, add_special, parse_special);
    return true;
  });
  if (!done)
    tokens.clear();  // load() made sure that every byte has a token
  return tokens;
}

std::string Model::detokenize(std::span<const TokenId> tokens) const {
  // The space that tokenizers of the SentencePiece family put before a text is theirs, not the text's: libllama knows
  // when to take it away again.
  std::vector<TokenId> known;
  known.reserve(tokens.size());
  for (const TokenId token : tokens) {
    if (token >= 0 && token < vocabulary_size())
      known.push_back(token);
  }
  std::string text(known.size() * 4 + 16, '\0');
  const auto run = [&] {
    return llama_detokenize(impl_->vocab, known.data(), static_cast<int32_t>(known.size()), text.data(),
                            static_cast<int32_t>(text.size()), false, true);
  };
  int32_t n = 0;
  const auto done = call_libllama("cannot detokenize", [&] {
    n = run();
    if (n < 0) {
      text.resize(static_cast<size_t>(-n));
      n = run();
    }
    return true;
  });
  text.resize(done && n > 0 ? static_cast<size_t>(n) : 0);
  return text;
}

std::string Model::piece(TokenId token) const {
  return token >= 0 && token < vocabulary_size() ? impl_->pieces[static_cast<size_t>(token)] : std::string();
}

bool Model::is_special(TokenId token) const {
  if (token < 0 || token >= vocabulary_size())
    return true;
  constexpr int kSpecial = LLAMA_TOKEN_ATTR_CONTROL | LLAMA_TOKEN_ATTR_UNKNOWN | LLAMA_TOKEN_ATTR_UNUSED;
  return (llama_vocab_get_attr(impl_->vocab, token) & kSpecial) != 0;
}

std::vector<TokenId> Model::end_of_generation() const { return impl_->end_of_generation; }

Result<std::string> Model::apply_chat_template(std::span<const ChatMessage> messages, bool add_assistant) const {
  if (impl_->chat_template.empty()) {
    std::string plain;
    for (const ChatMessage& m : messages)
      plain += fmt::format("{}: {}\n", m.role, m.content);
    if (add_assistant)
      plain += "assistant:";
    return plain;
  }
  std::vector<llama_chat_message> chat;
  size_t bytes = 256;
  for (const ChatMessage& m : messages) {
    chat.push_back({m.role.c_str(), m.content.c_str()});
    bytes += 2 * (m.role.size() + m.content.size());
  }
  CHECK(bytes < INT32_MAX / 2, "a conversation beyond 1 GiB");
  std::string text(bytes, '\0');
  const auto run = [&] {
    return llama_chat_apply_template(impl_->chat_template.c_str(), chat.data(), chat.size(), add_assistant, text.data(),
                                     static_cast<int32_t>(text.size()));
  };
  int32_t n = 0;
  TRY(call_libllama("the chat template of this model is not among those that libllama knows", [&] {
    n = run();
    if (n > static_cast<int32_t>(text.size())) {
      text.resize(static_cast<size_t>(n));
      n = run();
    }
    return n >= 0;
  }));
  text.resize(static_cast<size_t>(n));
  return text;
}

}  // namespace goodput
