#include "model/gguf_file.h"

#include <bit>
#include <cerrno>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>
#include <gguf.h>
#include <llama.h>

#include "base/limits.h"
#include "base/text.h"
#include "model/libllama.h"

namespace goodput {
namespace {

struct FreeGguf {
  void operator()(gguf_context* g) const { gguf_free(g); }
};
using GgufPtr = std::unique_ptr<gguf_context, FreeGguf>;

struct Header {  // little-endian, as is every machine that libllama's files are made for
  char magic[4];
  uint32_t version;
  uint64_t tensors, keys;
};
static_assert(sizeof(Header) == 24 && std::endian::native == std::endian::little);

tl::unexpected<Error> unusable(std::string message) { return fail(ErrorCode::kUsage, std::move(message)); }

// Size of the file, its header judged. Counts are judged first because the reader compares every name with every other.
Result<uint64_t> check_header(const std::filesystem::path& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);  // a fifo must not block
  if (fd < 0)
    return fail(errno == ENOENT || errno == ENOTDIR ? ErrorCode::kNotFound : ErrorCode::kIo,
                errno == ENOENT || errno == ENOTDIR ? "no such model file"
                                                    : fmt::format("cannot open: {}", std::strerror(errno)));
  struct stat info{};
  Header header{};
  const bool inspected = ::fstat(fd, &info) == 0;
  const ssize_t n = inspected && S_ISREG(info.st_mode) ? ::pread(fd, &header, sizeof header, 0) : 0;
  const int error = errno;
  ::close(fd);
  if (!inspected || n < 0)
    return fail(ErrorCode::kIo, fmt::format("cannot read: {}", std::strerror(error)));
  if (S_ISDIR(info.st_mode))
    return unusable("expected a GGUF file, found a folder");
  if (!S_ISREG(info.st_mode))
    return unusable("expected a GGUF file, found something that is no regular file");
  if (n == 0)
    return unusable("the file is empty; expected a GGUF model");
  if (n < 4 || std::memcmp(header.magic, GGUF_MAGIC, 4) != 0)
    return unusable(
        "not a GGUF file: it does not begin with \"GGUF\" (safetensors and PyTorch files must be converted)");
  if (static_cast<size_t>(n) < sizeof header)
    return unusable(fmt::format("truncated: only {} bytes long", n));
  if (header.version < 2 || header.version > GGUF_VERSION)
    return unusable(fmt::format("GGUF version {}; 2 and {} can be read", header.version, GGUF_VERSION));
  if (header.tensors > limits::kMaxGgufEntries || header.keys > limits::kMaxGgufEntries)
    return unusable(fmt::format("damaged: claims {} tensors and {} keys, more than the {} that are believed",
                                header.tensors, header.keys, limits::kMaxGgufEntries));
  return static_cast<uint64_t>(info.st_size);
}

// The end of every tensor, from the checked shapes, against the size of the file.
Result<void> check_extent(const gguf_context* g, uint64_t size) {
  const uint64_t data = gguf_get_data_offset(g);
  for (int64_t i = 0; i < gguf_get_n_tensors(g); ++i) {
    const uint64_t offset = gguf_get_tensor_offset(g, i), bytes = gguf_get_tensor_size(g, i);
    if (bytes == 0)
      return unusable(fmt::format("damaged: tensor '{}' has no elements", gguf_get_tensor_name(g, i)));
    if (data > size || offset > size - data || bytes > size - data - offset)
      return unusable(fmt::format(
          "truncated: tensor '{}' ends beyond the end of the file ({} are there; download or copy it again)",
          gguf_get_tensor_name(g, i), format_bytes(size)));
  }
  return {};
}

std::optional<std::string> text_value(const gguf_context* g, const std::string& key) {
  const int64_t id = gguf_find_key(g, key.c_str());
  if (id < 0 || gguf_get_kv_type(g, id) != GGUF_TYPE_STRING)
    return std::nullopt;
  return gguf_get_val_str(g, id);
}

// Whole numbers of any width; of an array (values per layer) the first.
int64_t number_value(const gguf_context* g, const std::string& key) {
  const int64_t id = gguf_find_key(g, key.c_str());
  if (id < 0)
    return 0;
  const bool array = gguf_get_kv_type(g, id) == GGUF_TYPE_ARRAY;
  const gguf_type type = array ? gguf_get_arr_type(g, id) : gguf_get_kv_type(g, id);
  if (type == GGUF_TYPE_STRING || type == GGUF_TYPE_ARRAY || (array && gguf_get_arr_n(g, id) == 0))
    return 0;
  const void* data = array ? gguf_get_arr_data(g, id) : gguf_get_val_data(g, id);
  const auto as = [&](auto value) {
    std::memcpy(&value, data, sizeof value);
    return static_cast<int64_t>(value);
  };
  switch (type) {
    case GGUF_TYPE_UINT8:
      return as(uint8_t{});
    case GGUF_TYPE_UINT16:
      return as(uint16_t{});
    case GGUF_TYPE_UINT32:
      return as(uint32_t{});
    case GGUF_TYPE_INT32:
      return as(int32_t{});
    case GGUF_TYPE_UINT64:
      return as(uint64_t{});
    case GGUF_TYPE_INT64:
      return as(int64_t{});
    default:
      return 0;
  }
}

int small(int64_t n) { return n >= 0 && n <= INT32_MAX ? static_cast<int>(n) : 0; }

// libllama would give a file without tokenizer as many dummy tokens as it claims: no text can be served with it.
Result<int> check_tokenizer(const gguf_context* g) {
  const auto model = text_value(g, "tokenizer.ggml.model");
  if (!model || *model == "none" || *model == "no_vocab")
    return unusable("has no tokenizer (tokenizer.ggml.model)");
  const int64_t tokens = gguf_find_key(g, "tokenizer.ggml.tokens");
  if (tokens < 0 || gguf_get_kv_type(g, tokens) != GGUF_TYPE_ARRAY ||
      gguf_get_arr_type(g, tokens) != GGUF_TYPE_STRING || gguf_get_arr_n(g, tokens) == 0)
    return unusable("has no vocabulary (tokenizer.ggml.tokens)");
  return small(static_cast<int64_t>(gguf_get_arr_n(g, tokens)));
}

ModelInfo facts(const gguf_context* g, const std::string& architecture) {
  const auto number = [&](const char* key) { return number_value(g, architecture + "." + key); };
  ModelInfo info;
  info.architecture = architecture;
  info.name = text_value(g, "general.name").value_or("");
  info.description = text_value(g, "general.description").value_or("");
  if (gguf_get_n_tensors(g) > 0 && gguf_find_key(g, "general.file_type") >= 0)
    info.file_type = llama_ftype_name(static_cast<llama_ftype>(number_value(g, "general.file_type")));
  for (int64_t i = 0; i < gguf_get_n_tensors(g); ++i) {
    const int64_t* ne = gguf_get_tensor_ne(g, i);
    info.parameters += static_cast<uint64_t>(ne[0] * ne[1] * ne[2] * ne[3]);
  }
  info.context_length = Tokens(small(number("context_length")));
  info.layers = small(number("block_count"));
  info.embedding = small(number("embedding_length"));
  info.heads = small(number("attention.head_count"));
  info.kv_heads = small(number("attention.head_count_kv"));
  if (info.kv_heads == 0)
    info.kv_heads = info.heads;
  info.sliding_window = small(number("attention.sliding_window"));
  info.has_chat_template = text_value(g, "tokenizer.chat_template").has_value();
  return info;
}

// libllama asserts or divides by these before it looks at any tensor.
Result<void> check_shape(const ModelInfo& info) {
  const auto require = [&](bool holds, std::string_view key, int64_t value) -> Result<void> {
    if (holds)
      return {};
    return unusable(fmt::format("damaged: {}.{} is {}", info.architecture, key, value));
  };
  TRY(require(info.context_length > Tokens(0), "context_length", info.context_length.count()));
  TRY(require(info.layers > 0, "block_count", info.layers));
  return require(info.embedding > 0, "embedding_length", info.embedding);
}

// The kernels assert that epsilons are not negative, in a thread where nothing can be done about it any more; a number
// that is none makes every logit none.
Result<void> check_fractions(const gguf_context* g, const std::string& architecture) {
  for (int64_t id = 0; id < gguf_get_n_kv(g); ++id) {
    const std::string_view key = gguf_get_key(g, id);
    const gguf_type type = gguf_get_kv_type(g, id);
    if (!key.starts_with(architecture + ".") || (type != GGUF_TYPE_FLOAT32 && type != GGUF_TYPE_FLOAT64))
      continue;
    const double value = type == GGUF_TYPE_FLOAT32 ? gguf_get_val_f32(g, id) : gguf_get_val_f64(g, id);
    if (!std::isfinite(value) || (value < 0 && key.ends_with("epsilon")))
      return unusable(fmt::format("damaged: {} is {}", key, value));
  }
  return {};
}

Result<ModelInfo> inspect(const std::filesystem::path& path, bool need_weights) {
  const uint64_t size = TRY(check_header(path));
  GgufPtr g;
  auto parsed = call_libllama("truncated or damaged", [&] {
    g.reset(gguf_init_from_file(path.c_str(), {.no_alloc = true, .ctx = nullptr}));
    return g != nullptr;
  });
  if (!parsed)
    return unusable(parsed.error().message);
  TRY(check_extent(g.get(), size));
  const auto architecture = text_value(g.get(), "general.architecture");
  if (!architecture)
    return unusable("does not name its architecture (general.architecture)");
  const int vocabulary = TRY(check_tokenizer(g.get()));
  ModelInfo info = facts(g.get(), *architecture);
  info.vocabulary = vocabulary;
  info.file_bytes = size;
  if (need_weights) {
    if (gguf_get_n_tensors(g.get()) == 0)
      return unusable("holds a vocabulary only, no weights");
    TRY(check_shape(info));
    TRY(check_fractions(g.get(), *architecture));
  }
  return info;
}

}  // namespace

Result<ModelInfo> inspect_gguf(const std::filesystem::path& path, bool need_weights) {
  auto info = inspect(path, need_weights);
  if (!info)
    info.error().context = path.string();
  return info;
}

}  // namespace goodput
