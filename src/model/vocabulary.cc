#include "model/vocabulary.h"

#include <algorithm>
#include <cstring>
#include <string_view>

#include <fmt/format.h>
#include <gguf.h>
#include <llama.h>

#include "base/check.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/limits.h"
#include "model/gguf_file.h"
#include "model/libllama.h"

// The compiler's #embed does not exist yet in C++20; the assembler's .incbin does.
asm(".section .rodata\n"
    ".balign 16\n"
    ".global goodput_vocabulary_begin\n"
    ".global goodput_vocabulary_end\n"
    "goodput_vocabulary_begin:\n"
    ".incbin \"" GOODPUT_VOCABULARY
    "\"\n"
    "goodput_vocabulary_end:\n"
    ".byte 0\n"
    ".previous\n");
extern "C" const char goodput_vocabulary_begin[];
extern "C" const char goodput_vocabulary_end[];

namespace goodput {
namespace {

constexpr std::string_view kTokenizerPrefix = "tokenizer.";
constexpr std::string_view kIdSuffix = "_token_id";

std::string_view built_in() {
  return {goodput_vocabulary_begin, static_cast<size_t>(goodput_vocabulary_end - goodput_vocabulary_begin)};
}

bool is_id_key(const gguf_context* g, int64_t key) {
  return std::string_view(gguf_get_key(g, key)).ends_with(kIdSuffix) && gguf_get_kv_type(g, key) == GGUF_TYPE_UINT32;
}

const int32_t* token_types(const gguf_context* g, size_t tokens) {
  const int64_t key = gguf_find_key(g, "tokenizer.ggml.token_type");
  if (key < 0 || gguf_get_kv_type(g, key) != GGUF_TYPE_ARRAY || gguf_get_arr_type(g, key) != GGUF_TYPE_INT32 ||
      gguf_get_arr_n(g, key) < tokens)
    return nullptr;
  return static_cast<const int32_t*>(gguf_get_arr_data(g, key));
}

// All entries that carry meaning beyond their text (control, bytes, those a *_token_id names), the printable ASCII
// characters, then the rest in order, which in a SentencePiece vocabulary is the order of frequency.
std::vector<int32_t> choose_tokens(const gguf_context* g, int limit) {
  const int64_t list = gguf_find_key(g, "tokenizer.ggml.tokens");
  const size_t n = gguf_get_arr_n(g, list);
  const int32_t* types = token_types(g, n);
  std::vector<int32_t> all(n);
  for (size_t i = 0; i < n; ++i)
    all[i] = static_cast<int32_t>(i);
  if (limit <= 0 || n <= static_cast<size_t>(limit) || !types || gguf_find_key(g, "tokenizer.ggml.merges") >= 0)
    return all;
  std::vector<bool> needed(n);
  for (size_t i = 0; i < n; ++i) {
    const std::string_view text = gguf_get_arr_str(g, list, i);
    const bool plain = types[i] == LLAMA_TOKEN_TYPE_NORMAL || types[i] == LLAMA_TOKEN_TYPE_UNUSED;
    needed[i] = !plain || (types[i] == LLAMA_TOKEN_TYPE_NORMAL && (text.size() == 1 || text == "\xE2\x96\x81"));
  }
  for (int64_t key = 0; key < gguf_get_n_kv(g); ++key) {
    if (is_id_key(g, key) && gguf_get_val_u32(g, key) < n)
      needed[gguf_get_val_u32(g, key)] = true;
  }
  auto room = static_cast<int64_t>(limit) - std::count(needed.begin(), needed.end(), true);
  for (size_t i = 0; i < n && room > 0; ++i) {
    if (needed[i] || types[i] != LLAMA_TOKEN_TYPE_NORMAL)
      continue;
    needed[i] = true;
    --room;
  }
  std::erase_if(all, [&](int32_t id) { return !needed[static_cast<size_t>(id)]; });
  return all;
}

void copy_array(gguf_context* to, const gguf_context* from, int64_t key, const std::vector<int32_t>& kept,
                size_t tokens) {
  const char* name = gguf_get_key(from, key);
  const gguf_type type = gguf_get_arr_type(from, key);
  const size_t n = gguf_get_arr_n(from, key);
  const bool per_token = n == tokens;
  const size_t count = per_token ? kept.size() : n;
  const auto index = [&](size_t i) { return per_token ? static_cast<size_t>(kept[i]) : i; };
  if (type == GGUF_TYPE_STRING) {
    std::vector<const char*> strings(count);
    for (size_t i = 0; i < count; ++i)
      strings[i] = gguf_get_arr_str(from, key, index(i));
    gguf_set_arr_str(to, name, strings.data(), count);
  } else if (type == GGUF_TYPE_INT32 || type == GGUF_TYPE_FLOAT32 || type == GGUF_TYPE_UINT32) {
    std::vector<uint32_t> words(count);
    const auto* source = static_cast<const char*>(gguf_get_arr_data(from, key));
    for (size_t i = 0; i < count; ++i)
      std::memcpy(&words[i], source + index(i) * 4, 4);
    gguf_set_arr_data(to, name, type, words.data(), count);
  } else if (type == GGUF_TYPE_INT8 || type == GGUF_TYPE_UINT8) {  // a character map, never per token
    gguf_set_arr_data(to, name, type, gguf_get_arr_data(from, key), n);
  }
}

}  // namespace

Vocabulary::Vocabulary() = default;
Vocabulary::Vocabulary(Vocabulary&&) noexcept = default;
Vocabulary::~Vocabulary() = default;
void Vocabulary::FreeSource::operator()(gguf_context* g) const { gguf_free(g); }

Result<Vocabulary> Vocabulary::open(const std::filesystem::path& path, int limit) {
  Vocabulary vocabulary;
  std::string file;
  std::string_view bytes = built_in();
  if (!path.empty()) {
    TRY(inspect_gguf(path, false));
    file = TRY(read_file(path, limits::kMaxVocabularyFileBytes));
    bytes = file;
  }
  vocabulary.digest_ = sha256_hex(bytes);
  auto parsed = call_libllama("cannot read the vocabulary", [&] {
    vocabulary.source_.reset(gguf_init_from_buffer(bytes.data(), bytes.size(), {.no_alloc = true, .ctx = nullptr}));
    return vocabulary.source_ != nullptr;
  });
  if (!parsed)
    return fail(ErrorCode::kUsage, parsed.error().message, path.string());
  vocabulary.kept_ = choose_tokens(vocabulary.source_.get(), limit);
  return vocabulary;
}

void Vocabulary::copy_to(gguf_context* model) const {
  const gguf_context* from = source_.get();
  const size_t tokens = gguf_get_arr_n(from, gguf_find_key(from, "tokenizer.ggml.tokens"));
  const auto renumbered = [&](uint32_t id) {
    const auto at = std::lower_bound(kept_.begin(), kept_.end(), static_cast<int32_t>(id));
    return at != kept_.end() && *at == static_cast<int32_t>(id) ? static_cast<uint32_t>(at - kept_.begin()) : id;
  };
  for (int64_t key = 0; key < gguf_get_n_kv(from); ++key) {
    const char* name = gguf_get_key(from, key);
    if (!std::string_view(name).starts_with(kTokenizerPrefix))
      continue;
    switch (gguf_get_kv_type(from, key)) {
      case GGUF_TYPE_ARRAY:
        copy_array(model, from, key, kept_, tokens);
        break;
      case GGUF_TYPE_STRING:
        gguf_set_val_str(model, name, gguf_get_val_str(from, key));
        break;
      case GGUF_TYPE_BOOL:
        gguf_set_val_bool(model, name, gguf_get_val_bool(from, key));
        break;
      case GGUF_TYPE_UINT32: {
        const uint32_t value = gguf_get_val_u32(from, key);
        gguf_set_val_u32(model, name, is_id_key(from, key) ? renumbered(value) : value);
        break;
      }
      default:
        break;  // no tokenizer key has another type
    }
  }
}

}  // namespace goodput
