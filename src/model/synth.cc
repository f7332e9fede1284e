// The architecture is llama's, the smallest that every back end knows. Weights are pseudo-random with the scale that a
// trained model's have: each matrix keeps the size of its input, so activations neither vanish nor explode with depth,
// and the output matrix is its own (not the embedding's), so the text is gibberish that does not repeat itself.

#include "model/synth.h"

#include <array>
#include <cmath>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gguf.h>
#include <llama.h>

#include "base/file.h"
#include "base/random.h"
#include "base/text.h"
#include "model/file_writer.h"
#include "model/gguf_file.h"
#include "model/libllama.h"
#include "model/vocabulary.h"

namespace goodput {
namespace {

// Part of cached names: raise it when the bytes of a file change for the same options.
constexpr int kFormat = 1;
constexpr int kContextLength = 4096;
constexpr int kMaxLayers = 512;              // LLAMA_MAX_LAYERS of the pinned libllama
constexpr int64_t kChunkElements = 1 << 20;  // made, quantised and written at once: bounds the memory

struct Shape {
  std::string_view name;
  int vocabulary;  // most entries, 0: all
  int embedding, layers, heads, kv_heads, feed_forward;
  int head = 64;  // a head size that every flash-attention kernel has (32 is missing on CUDA)
};
constexpr std::array<Shape, 3> kShapes{{
    {.name = "tiny", .vocabulary = 4096, .embedding = 64, .layers = 4, .heads = 2, .kv_heads = 1, .feed_forward = 384},
    {.name = "small", .vocabulary = 0, .embedding = 256, .layers = 4, .heads = 4, .kv_heads = 2, .feed_forward = 768},
    {.name = "base", .vocabulary = 0, .embedding = 768, .layers = 12, .heads = 12, .kv_heads = 4, .feed_forward = 2048},
}};

struct Type {
  std::string_view name;
  ggml_type weights;
  llama_ftype file;
};
constexpr std::array<Type, 2> kTypes{
    {{"q8_0", GGML_TYPE_Q8_0, LLAMA_FTYPE_MOSTLY_Q8_0}, {"q4_0", GGML_TYPE_Q4_0, LLAMA_FTYPE_MOSTLY_Q4_0}}};

const Shape& shape_of(const SynthOptions& o) { return kShapes.at(static_cast<size_t>(o.size)); }
const Type& type_of(const SynthOptions& o) { return kTypes.at(static_cast<size_t>(o.type)); }
int layers_of(const SynthOptions& o) { return o.layers > 0 ? o.layers : shape_of(o).layers; }

struct TensorPlan {
  std::string name;
  int64_t columns, rows;  // rows 0: a vector of ones (a norm)
  double deviation;
};

std::vector<TensorPlan> plan_tensors(const SynthOptions& o, int64_t vocabulary) {
  const Shape& s = shape_of(o);
  const int64_t e = s.embedding, q = s.heads * s.head, kv = s.kv_heads * s.head, f = s.feed_forward;
  const auto keep = [](int64_t inputs) { return 1 / std::sqrt(static_cast<double>(inputs)); };
  std::vector<TensorPlan> plan{{"token_embd.weight", e, vocabulary, 1.0},
                               {"output_norm.weight", e, 0, 0},
                               {"output.weight", e, vocabulary, 3 * keep(e)}};  // logits with a deviation of 3
  for (int layer = 0; layer < layers_of(o); ++layer) {
    // What a layer adds to the residual stream leaves through these two matrices alone.
    const double tail = o.tail_from >= 0 && layer >= o.tail_from ? o.tail_scale : 1.0;
    const auto add = [&](const char* name, int64_t columns, int64_t rows, double deviation) {
      plan.push_back({fmt::format("blk.{}.{}.weight", layer, name), columns, rows, deviation});
    };
    add("attn_norm", e, 0, 0);
    add("attn_q", e, q, keep(e));
    add("attn_k", e, kv, keep(e));
    add("attn_v", e, kv, keep(e));
    add("attn_output", q, e, 2 * tail * keep(q));
    add("ffn_norm", e, 0, 0);
    add("ffn_gate", e, f, keep(e));
    add("ffn_up", e, f, keep(e));
    add("ffn_down", f, e, 2 * tail * keep(f));
  }
  return plan;
}

struct FreeGguf {
  void operator()(gguf_context* g) const { gguf_free(g); }
};
struct FreeGgml {
  void operator()(ggml_context* c) const { ggml_free(c); }
};

std::string make_metadata(const SynthOptions& o, const Vocabulary& vocabulary, const std::vector<TensorPlan>& plan) {
  const Shape& s = shape_of(o);
  const std::unique_ptr<gguf_context, FreeGguf> g(gguf_init_empty());
  const auto text = [&](const char* key, const std::string& value) { gguf_set_val_str(g.get(), key, value.c_str()); };
  const auto number = [&](const char* key, int value) { gguf_set_val_u32(g.get(), key, static_cast<uint32_t>(value)); };
  text("general.architecture", "llama");
  text("general.name", fmt::format("goodput {}", s.name));
  text("general.description", fmt::format("random weights, seed {}", o.seed));
  number("general.file_type", type_of(o).file);
  number("general.quantization_version", GGML_QNT_VERSION);
  number("llama.context_length", kContextLength);
  number("llama.embedding_length", s.embedding);
  number("llama.block_count", layers_of(o));
  number("llama.feed_forward_length", s.feed_forward);
  number("llama.attention.head_count", s.heads);
  number("llama.attention.head_count_kv", s.kv_heads);
  number("llama.attention.key_length", s.head);
  number("llama.attention.value_length", s.head);
  number("llama.rope.dimension_count", s.head);
  number("llama.vocab_size", vocabulary.size());
  gguf_set_val_f32(g.get(), "llama.attention.layer_norm_rms_epsilon", 1e-5F);
  gguf_set_val_f32(g.get(), "llama.rope.freq_base", 10000.0F);
  vocabulary.copy_to(g.get());

  const std::unique_ptr<ggml_context, FreeGgml> tensors(
      ggml_init({.mem_size = ggml_tensor_overhead() * plan.size(), .mem_buffer = nullptr, .no_alloc = true}));
  for (const TensorPlan& t : plan) {
    ggml_tensor* tensor = t.rows > 0 ? ggml_new_tensor_2d(tensors.get(), type_of(o).weights, t.columns, t.rows)
                                     : ggml_new_tensor_1d(tensors.get(), GGML_TYPE_F32, t.columns);
    ggml_set_name(tensor, t.name.c_str());
    gguf_add_tensor(g.get(), tensor);
  }
  std::string bytes(gguf_get_meta_size(g.get()), '\0');
  gguf_get_meta_data(g.get(), bytes.data());
  return bytes;
}

// Element `index` of the tensor named by `key`: near enough to normal, from four 16-bit uniforms. One rounding only, so
// that every machine gets the same value.
float weight(uint64_t key, int64_t index, float scale) {
  const uint64_t bits = mix64(key + static_cast<uint64_t>(index));
  const auto sum = static_cast<int32_t>((bits & 0xFFFF) + (bits >> 16 & 0xFFFF) + (bits >> 32 & 0xFFFF) + (bits >> 48));
  return static_cast<float>(sum - 2 * 0xFFFF) * scale;
}

Result<void> write_tensor(FileWriter& file, const TensorPlan& t, ggml_type type, uint64_t seed) {
  const bool norm = t.rows == 0;
  const uint64_t key = mix64(seed, fnv1a(t.name));
  // The sum of four uniforms on [0, 65535] has the deviation 65535 / sqrt(3).
  const auto scale = static_cast<float>(t.deviation * std::sqrt(3.0) / 0xFFFF);
  const int64_t rows = norm ? 1 : t.rows, step = std::max<int64_t>(1, kChunkElements / t.columns);
  std::vector<float> values;
  std::string packed;
  size_t written = 0;
  for (int64_t row = 0; row < rows; row += step) {
    const int64_t n = std::min(step, rows - row);
    values.resize(static_cast<size_t>(n * t.columns));
    for (size_t i = 0; i < values.size(); ++i)
      values[i] = norm ? 1.0F : weight(key, row * t.columns + static_cast<int64_t>(i), scale);
    packed.resize(ggml_row_size(norm ? GGML_TYPE_F32 : type, t.columns) * static_cast<size_t>(n));
    if (norm) {
      std::memcpy(packed.data(), values.data(), packed.size());
    } else {
      ggml_quantize_chunk(type, values.data(), packed.data(), 0, n, t.columns, nullptr);
    }
    TRY(file.write(packed));
    written += packed.size();
  }
  return file.write(std::string(GGML_PAD(written, GGUF_DEFAULT_ALIGNMENT) - written, '\0'));
}

Result<void> check_options(const SynthOptions& o) {
  if (o.layers < 0 || o.layers > kMaxLayers)
    return fail(ErrorCode::kUsage,
                fmt::format("layers: expected 0 (the size's own) to {}, got {}", kMaxLayers, o.layers));
  if (o.tail_from < -1)
    return fail(ErrorCode::kUsage, fmt::format("tail-from: expected a layer, or -1 for none, got {}", o.tail_from));
  if (!(o.tail_scale > 0 && o.tail_scale <= 1))
    return fail(ErrorCode::kUsage, fmt::format("tail-scale: expected a factor in (0, 1], got {}", o.tail_scale));
  return {};
}

Result<void> write_model(const std::filesystem::path& path, const SynthOptions& o, const Vocabulary& vocabulary) {
  const std::vector<TensorPlan> plan = plan_tensors(o, vocabulary.size());
  std::string metadata;
  TRY(call_libllama("cannot make the model's metadata", [&] {
    metadata = make_metadata(o, vocabulary, plan);
    return true;
  }));
  FileWriter file = TRY(FileWriter::create(path));
  TRY(file.write(metadata));
  for (const TensorPlan& t : plan)
    TRY(write_tensor(file, t, type_of(o).weights, o.seed));
  return file.commit();
}

template <class Table>
Result<size_t> find_name(const Table& table, std::string_view name, std::string_view what) {
  std::string choices;
  for (size_t i = 0; i < table.size(); ++i) {
    if (table[i].name == name)
      return i;
    choices += fmt::format("{}{}", i == 0 ? "" : i + 1 < table.size() ? ", " : " or ", table[i].name);
  }
  return fail(ErrorCode::kUsage, fmt::format("unknown {} '{}': expected {}", what, name, choices));
}

}  // namespace

Result<void> write_synthetic_model(const std::filesystem::path& path, const SynthOptions& o) {
  TRY(check_options(o));
  return write_model(path, o, TRY(Vocabulary::open(o.vocabulary, shape_of(o).vocabulary)));
}

Result<std::filesystem::path> cached_synthetic_model(const SynthOptions& o) {
  TRY(check_options(o));
  const Vocabulary vocabulary = TRY(Vocabulary::open(o.vocabulary, shape_of(o).vocabulary));
  std::string name =
      fmt::format("synth-v{}-{}-{}-seed{}-layers{}", kFormat, shape_of(o).name, type_of(o).name, o.seed, layers_of(o));
  if (o.tail_from >= 0)
    name += fmt::format("-tail{}x{}", o.tail_from, o.tail_scale);
  name += fmt::format("-vocabulary{}.gguf", vocabulary.digest().substr(0, 12));
  std::filesystem::path path = cache_directory() / name;
  if (inspect_gguf(path, true))
    return path;  // otherwise absent, or damaged by somebody else: made again
  TRY(make_directories(path.parent_path()));
  TRY(write_model(path, o, vocabulary));
  return path;
}

Result<SynthSize> parse_synth_size(std::string_view name) {
  return static_cast<SynthSize>(TRY(find_name(kShapes, name, "model size")));
}

Result<SynthType> parse_synth_type(std::string_view name) {
  return static_cast<SynthType>(TRY(find_name(kTypes, name, "weight type")));
}

}  // namespace goodput
