// goodput model synth | info | tokenize: makes models with random weights, says what is in a GGUF file, and shows the
// tokens of a text.
#include <cstdio>
#include <iostream>
#include <memory>

#include <fmt/format.h>
#include <simdjson.h>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>

#include "base/limits.h"
#include "base/text.h"
#include "cli/models.h"
#include "cli/verb.h"
#include "model/model.h"
#include "model/synth.h"

namespace goodput {
namespace {

namespace json = boost::json;

struct Flags {
  std::string size = "tiny", type = "q8_0", output;
  SynthOptions synth;
  std::string file, text = "-";
  bool json = false, special = false;
};

Result<void> synth(const Flags& f) {
  SynthOptions options = f.synth;
  options.size = TRY(parse_synth_size(f.size));
  options.type = TRY(parse_synth_type(f.type));
  TRY(write_synthetic_model(f.output, options));
  const auto model = TRY(Model::load(f.output, true));
  fmt::print("{}: {:.1f} M parameters, {}\n", f.output, static_cast<double>(model->info().parameters) * 1e-6,
             format_bytes(model->info().file_bytes));
  return {};
}

json::object info_json(const ModelInfo& i) {
  return {{"schema", "goodput.model/1"},
          {"name", i.name},
          {"architecture", i.architecture},
          {"description", i.description},
          {"file_type", i.file_type},
          {"parameters", i.parameters},
          {"file_bytes", i.file_bytes},
          {"context_length", i.context_length.count()},
          {"vocabulary", i.vocabulary},
          {"layers", i.layers},
          {"embedding", i.embedding},
          {"heads", i.heads},
          {"kv_heads", i.kv_heads},
          {"sliding_window", i.sliding_window},
          {"has_chat_template", i.has_chat_template},
          {"recurrent", i.recurrent},
          {"hybrid", i.hybrid},
          {"has_encoder", i.has_encoder}};
}

void print_info(const ModelInfo& i) {
  const auto row = [](std::string_view name, const auto& value) { fmt::print("{:<16} {}\n", name, value); };
  const auto text = [&](std::string_view name, const std::string& value) { row(name, value.empty() ? "-" : value); };
  text("name", i.name);
  text("architecture", i.architecture);
  text("description", i.description);
  text("weights", i.file_type);
  row("parameters", i.parameters == 0 ? "none: a vocabulary"
                    : i.parameters >= 1'000'000'000
                        ? fmt::format("{:.2f} B", static_cast<double>(i.parameters) * 1e-9)
                        : fmt::format("{:.2f} M", static_cast<double>(i.parameters) * 1e-6));
  row("file", format_bytes(i.file_bytes));
  row("context", fmt::format("{} tokens", i.context_length.count()));
  row("vocabulary", fmt::format("{} tokens", i.vocabulary));
  row("layers", i.layers);
  row("embedding", i.embedding);
  row("heads", fmt::format("{} ({} for KV)", i.heads, i.kv_heads));
  row("sliding window", i.sliding_window > 0 ? fmt::format("{} tokens", i.sliding_window) : "none");
  row("chat template", i.has_chat_template ? "yes" : "no");
  row("kind", i.hybrid ? "hybrid" : i.recurrent ? "recurrent" : i.has_encoder ? "encoder" : "decoder");
}

Result<void> info(const Flags& f) {
  const auto model = TRY(Model::load(TRY(resolve_model(f.file)), true));
  if (f.json) {
    fmt::print("{}\n", json::serialize(info_json(model->info())));
  } else {
    print_info(model->info());
  }
  return {};
}

Result<std::string> read_text(const std::string& argument) {
  if (argument != "-")
    return argument;
  std::string text;
  char buffer[65536];
  while (std::cin.read(buffer, sizeof buffer) || std::cin.gcount() > 0) {
    text.append(buffer, static_cast<size_t>(std::cin.gcount()));
    if (text.size() > limits::kMaxBodyBytes)
      return fail(ErrorCode::kUsage, fmt::format("longer than {}", format_bytes(limits::kMaxBodyBytes)),
                  "standard input");
  }
  return text;
}

std::string hex(std::string_view bytes) {
  std::string digits;
  for (const char c : bytes)
    digits += fmt::format("{:02x}", static_cast<uint8_t>(c));
  return digits;
}

// A piece may be a fraction of a character, which neither a terminal nor JSON can show: its bytes are shown instead.
bool is_text(const std::string& piece) { return simdjson::validate_utf8(piece.data(), piece.size()); }

std::string visible(const std::string& piece) {
  if (!is_text(piece))
    return "bytes " + hex(piece);
  std::string shown = "'";
  for (const char c : piece) {
    const auto u = static_cast<uint8_t>(c);
    shown += c == '\n'               ? "\\n"
             : c == '\t'             ? "\\t"
             : c == '\r'             ? "\\r"
             : u < 0x20 || u == 0x7F ? fmt::format("\\x{:02x}", u)
                                     : std::string(1, c);
  }
  return shown + "'";
}

Result<void> tokenize(const Flags& f) {
  const auto model = TRY(Model::load(TRY(resolve_model(f.file)), true));
  const std::string text = TRY(read_text(f.text));
  const auto tokens = model->tokenize(text, f.special, f.special);
  if (!f.json) {
    for (const TokenId token : tokens)
      fmt::print("{:>7}  {}\n", token, visible(model->piece(token)));
    fmt::print("{} tokens, {} bytes\n", tokens.size(), text.size());
    return {};
  }
  json::array list;
  for (const TokenId token : tokens) {
    const std::string piece = model->piece(token);
    json::object entry{{"id", token}, {"special", model->is_special(token)}};
    if (is_text(piece)) {
      entry["piece"] = piece;
    } else {
      entry["bytes"] = hex(piece);
    }
    list.push_back(std::move(entry));
  }
  fmt::print("{}\n",
             json::serialize(json::object{{"schema", "goodput.tokens/1"}, {"count", tokens.size()}, {"tokens", list}}));
  return {};
}

std::function<Exit()> declare(CLI::App& app) {
  auto f = std::make_shared<Flags>();
  CLI::App* make = app.add_subcommand("synth", "writes a GGUF with random weights and a real tokenizer");
  make->add_option("--size", f->size, "tiny (1 M parameters), small (20 M) or base (125 M)")->capture_default_str();
  make->add_option("--type", f->type, "of the weights: q8_0 or q4_0")->capture_default_str();
  make->add_option("--seed", f->synth.seed, "the same seed gives the same weights")->capture_default_str();
  make->add_option("--layers", f->synth.layers, "0: the size's own; fewer layers are a prefix of more");
  make->add_option("--tail-from", f->synth.tail_from,
                   "damp layers from here on, so that a prefix can draft for the whole");
  make->add_option("--tail-scale", f->synth.tail_scale, "factor on what damped layers contribute, in (0, 1]");
  make->add_option("--vocab", f->synth.vocabulary, "a GGUF to take the tokenizer from; default: the one built in");
  make->add_option("-o,--output", f->output, "the file to write")->required();
  CLI::App* tell = app.add_subcommand("info", "what is in a GGUF file");
  CLI::App* split = app.add_subcommand("tokenize", "the tokens of a text");
  for (CLI::App* sub : {tell, split}) {
    sub->add_option("file", f->file, "a GGUF file, or tiny, small or base")->required();
    sub->add_flag("--json", f->json, "one JSON document on stdout");
  }
  split->add_option("text", f->text, "the text; - or nothing: standard input");
  split->add_flag("--special", f->special, "\"<|user|>\" is one token, and the text begins as the model asks");
  app.require_subcommand(1);
  return [f, make, tell] {
    const auto done = make->parsed() ? synth(*f) : tell->parsed() ? info(*f) : tokenize(*f);
    return done ? Exit::kOk : report_error(done.error());
  };
}

}  // namespace

extern const Verb kModelVerb;
const Verb kModelVerb{"model", "makes synthetic models; shows what a GGUF file holds and how it tokenizes",
                      "  goodput model synth --size small --type q4_0 --seed 7 -o small.gguf\n"
                      "  goodput model info model.gguf --json\n"
                      "  echo 'How many tokens?' | goodput model tokenize model.gguf\n",
                      declare};

}  // namespace goodput
