// Traces with a JSON object a line, and ShareGPT's array of conversations. simdjson reads on demand: nothing is built,
// numbers are taken from their own digits, and text is copied once.
#include <cstdint>
#include <optional>

#include <fmt/format.h>
#include <simdjson.h>

#include "base/limits.h"
#include "base/random.h"
#include "base/text.h"
#include "workload/trace_formats.h"
#include "workload/trace_time.h"

namespace goodput {
namespace {

namespace json = simdjson::ondemand;

tl::unexpected<Error> not_json(const TraceInput& input, simdjson::error_code error) {
  return input.wrong(fmt::format("not a JSON object: {}", shown(simdjson::error_message(error))));
}

// Calls `field(key, value)` for each field of the one object in `text`, which is given the room that simdjson wants.
template <class Field>
Result<void> for_fields(const TraceInput& input, json::parser& parser, std::string& text, Field field) {
  text.reserve(text.size() + simdjson::SIMDJSON_PADDING);
  json::document document;
  json::object object;
  if (const auto e = parser.iterate(text.data(), text.size(), text.capacity()).get(document))
    return not_json(input, e);
  if (const auto e = document.get_object().get(object))
    return not_json(input, e);
  for (auto entry : object) {
    std::string_view key;
    json::value value;
    if (const auto e = entry.unescaped_key().get(key))
      return not_json(input, e);
    if (const auto e = entry.value().get(value))
      return not_json(input, e);
    TRY(field(key, value));
  }
  const char* rest = nullptr;
  if (!document.current_location().get(rest))
    return input.wrong("text after the end of the JSON object");
  return {};
}

bool is_null(json::value& value) {
  bool null = false;
  return !value.is_null().get(null) && null;
}

// The digits of a number, or the text of a string.
struct Scalar {
  bool is_text = false;
  std::string_view text;
};
Result<Scalar> scalar(const TraceInput& input, std::string_view key, json::value& value) {
  json::json_type type{};
  if (const auto e = value.type().get(type))
    return not_json(input, e);
  Scalar s;
  if (type == json::json_type::number) {
    s.text = trim(std::string_view(value.raw_json_token()));
  } else if (type == json::json_type::string) {
    s.is_text = true;
    if (const auto e = value.get_string().get(s.text))
      return not_json(input, e);
  } else {
    return input.wrong(fmt::format("{}: expected a number", key));
  }
  return s;
}

Result<Tokens> read_tokens(const TraceInput& input, std::string_view key, json::value& value) {
  const Scalar s = TRY(scalar(input, key, value));
  const auto number = s.is_text ? std::nullopt : parse_decimal(s.text);
  if (!number || number->billionths != 0 || number->whole > limits::kMaxModelLen.count())
    return input.wrong(
        fmt::format("{}: expected 0 to {} tokens, found '{}'", key, limits::kMaxModelLen.count(), shown(s.text)));
  return Tokens(number->whole);
}

Result<std::string> read_text(const TraceInput& input, std::string_view key, json::value& value) {
  std::string_view text;
  if (value.get_string().get(text))
    return input.wrong(fmt::format("{}: expected a text", key));
  return std::string(text);
}

Result<int64_t> read_id(const TraceInput& input, std::string_view key, json::value& value) {
  const Scalar s = TRY(scalar(input, key, value));
  if (s.is_text)
    return static_cast<int64_t>(fnv1a(s.text));
  const auto id = parse_int(s.text);
  if (!id)
    return input.wrong(fmt::format("{}: expected a whole number, found '{}'", key, shown(s.text)));
  return *id;
}

Result<std::vector<uint64_t>> read_blocks(const TraceInput& input, std::string_view key, json::value& value) {
  std::vector<uint64_t> blocks;
  json::array array;
  if (value.get_array().get(array))
    return input.wrong(fmt::format("{}: expected an array of block ids", key));
  for (auto element : array) {
    json::value item;
    if (const auto e = element.get(item))
      return not_json(input, e);
    uint64_t id = 0;
    if (item.get_uint64().get(id))
      id = static_cast<uint64_t>(TRY(read_id(input, key, item)));
    blocks.push_back(id);
  }
  return blocks;
}

// How one format's lines are read.
struct Layout {
  TraceLabels labels;
  Nanos unit;
  Tokens block;
  bool unit_is_given = false;
  bool last_block_hashed = true;  // else the prompt's last, partial block may have no id
};

Layout layout_of(TraceFormat format, const TraceSpec& spec) {
  const bool mooncake = format == TraceFormat::kMooncake;
  Layout l;
  if (format == TraceFormat::kTimedTrace)
    l.labels = spec.labels;
  l.unit_is_given = spec.time_unit > Nanos(0);
  l.unit = l.unit_is_given ? spec.time_unit : mooncake ? milliseconds(1) : seconds(1);
  l.block = spec.block_tokens > Tokens(0) ? spec.block_tokens : Tokens(mooncake ? 512 : 16);
  l.last_block_hashed = mooncake;
  return l;
}

Result<Nanos> read_time(const TraceInput& input, TraceFormat format, const Layout& l, json::value& value) {
  const Scalar s = TRY(scalar(input, l.labels.timestamp, value));
  if (s.is_text) {
    if (const auto time = parse_timestamp(s.text))
      return *time;
  } else if (const auto number = parse_decimal(s.text)) {
    // A fraction of a millisecond is more likely a file in seconds: a factor of a thousand in load.
    if (format == TraceFormat::kMooncake && !l.unit_is_given && number->billionths != 0)
      return input.wrong(
          fmt::format("{}: {} is not a whole number of milliseconds: say what it counts with "
                      "time_unit (\"1ms\", \"1s\")",
                      l.labels.timestamp, shown(s.text)));
    if (const auto time = in_nanos(*number, l.unit))
      return *time;
  }
  return input.wrong(fmt::format("{}: expected a time of at least 0, found '{}'", l.labels.timestamp, shown(s.text)));
}

Result<void> check_blocks(const TraceInput& input, const Layout& l, const TraceRow& row) {
  if (row.blocks.empty() || !row.prompt)
    return {};
  const int64_t count = std::ssize(row.blocks), block = l.block.count(), length = row.prompt->count();
  const int64_t most = (count + (l.last_block_hashed ? 0 : 1)) * block - (l.last_block_hashed ? 0 : 1);
  if (length > (count - 1) * block && length <= most)
    return {};
  return input.wrong(
      fmt::format("{}: {} blocks of {} tokens stand for {} to {} tokens, {} is {}: another block size "
                  "is set with block_tokens",
                  l.labels.hash_ids, count, block, (count - 1) * block + 1, most, l.labels.input_length, length));
}

Result<TraceRow> read_lengths(TraceFormat format, const TraceInput& input, const Layout& l, json::parser& parser,
                              std::string& line) {
  TraceRow row;
  row.block = l.block;
  TRY(for_fields(input, parser, line, [&](std::string_view key, json::value& value) -> Result<void> {
    if (is_null(value))
      return {};
    if (key == l.labels.timestamp) {
      row.at = TRY(read_time(input, format, l, value));
    } else if (key == l.labels.input_length) {
      row.prompt = TRY(read_tokens(input, key, value));
    } else if (key == l.labels.output_length) {
      row.output = TRY(read_tokens(input, key, value));
    } else if (key == l.labels.hash_ids) {
      row.blocks = TRY(read_blocks(input, l.labels.hash_ids, value));
    } else if (key == "text_input") {
      row.text = TRY(read_text(input, "text_input", value));
    } else if (format == TraceFormat::kBailian && key == "chat_id") {
      row.id = TRY(read_id(input, "chat_id", value));
    } else if (format == TraceFormat::kBailian && key == "parent_chat_id") {
      if (const int64_t parent = TRY(read_id(input, "parent_chat_id", value)); parent != -1)
        row.parent = parent;
    }
    return {};
  }));
  if (!row.prompt && !row.text)
    return input.wrong(fmt::format("expected the key '{}' or 'text_input'", l.labels.input_length));
  if (format == TraceFormat::kBailian && !row.id)
    return input.wrong("expected the key 'chat_id'");
  if (row.text)
    row.blocks.clear();  // the text says it all
  TRY(check_blocks(input, l, row));
  return row;
}

Result<TraceRow> read_custom(const TraceInput& input, json::parser& parser, std::string& line) {
  TraceRow row;
  TRY(for_fields(input, parser, line, [&](std::string_view key, json::value& value) -> Result<void> {
    if (is_null(value))
      return {};
    if (key == "prompt")
      row.text = TRY(read_text(input, "prompt", value));
    else if (key == "output_tokens")
      row.output = TRY(read_tokens(input, "output_tokens", value));
    return {};
  }));
  if (!row.text)
    return input.wrong("expected the key 'prompt'");
  return row;
}

enum class Role { kSystem, kUser, kAnswer, kOther };

Role role_of(std::string_view name) {
  if (name == "human" || name == "user")
    return Role::kUser;
  if (name == "gpt" || name == "assistant" || name == "chatgpt" || name == "model" || name == "bing" || name == "bard")
    return Role::kAnswer;
  return name == "system" ? Role::kSystem : Role::kOther;
}

struct Message {
  Role role = Role::kOther;
  std::optional<std::string> text;
};

Result<Message> read_message(const TraceInput& input, json::value& value) {
  Message m;
  json::object object;
  if (value.get_object().get(object))
    return input.wrong("conversations: expected objects with from and value");
  for (auto entry : object) {
    std::string_view key, text;
    json::value field;
    if (const auto e = entry.unescaped_key().get(key))
      return not_json(input, e);
    if (const auto e = entry.value().get(field))
      return not_json(input, e);
    const bool role = key == "from" || key == "role", content = key == "value" || key == "content";
    if ((!role && !content) || field.get_string().get(text))
      continue;
    if (role)
      m.role = role_of(text);
    else
      m.text = std::string(text);
  }
  return m;
}

// Questions and their answers: what the user says before an answer is one question, a system text stands before it, and
// an answer without a question is left out.
class Turns {
 public:
  void add(Message&& m, uint64_t line) {
    if (!m.text || m.text->empty() || m.role == Role::kOther)
      return;
    if (m.role != Role::kAnswer) {
      asked_ = asked_ || m.role == Role::kUser;
      question_ += (question_.empty() ? "" : "\n") + *m.text;
    } else if (asked_) {
      TraceRow row;
      row.text = std::move(question_);
      row.answer = std::move(*m.text);
      row.line = line;
      rows_.push_back(std::move(row));
      question_.clear();
      asked_ = false;
    }
  }
  std::vector<TraceRow> take() { return std::move(rows_); }

 private:
  std::vector<TraceRow> rows_;
  std::string question_;
  bool asked_ = false;
};

bool holds_turns(std::string_view key) { return key == "conversations" || key == "conversation" || key == "messages"; }

Result<std::vector<TraceRow>> read_conversation(const TraceInput& input, json::parser& parser, std::string& element) {
  Turns turns;
  size_t messages = 0;
  TRY(for_fields(input, parser, element, [&](std::string_view key, json::value& value) -> Result<void> {
    if (!holds_turns(key) || is_null(value))
      return {};
    const std::string name(key);
    json::array array;
    if (value.get_array().get(array))
      return input.wrong(fmt::format("{}: expected an array of turns", name));
    for (auto item : array) {
      json::value message;
      if (const auto e = item.get(message))
        return not_json(input, e);
      if (++messages > limits::kMaxTraceTurns)
        return input.wrong(fmt::format("{}: more than {} turns", name, limits::kMaxTraceTurns));
      turns.add(TRY(read_message(input, message)), input.line());
    }
    return {};
  }));
  return turns.take();
}

}  // namespace

Result<TraceFormat> find_json_format(const TraceInput& input, std::string_view line) {
  json::parser parser;
  std::string text(line);
  bool chat = false, blocks = false, lengths = false, prompt = false, turns = false;
  TRY(for_fields(input, parser, text, [&](std::string_view key, json::value&) -> Result<void> {
    chat |= key == "chat_id";
    blocks |= key == "hash_ids" || key == "text_input";
    lengths |= key == "input_length";
    prompt |= key == "prompt";
    turns |= holds_turns(key);
    return {};
  }));
  if (turns)
    return TraceFormat::kShareGpt;
  if (chat)
    return TraceFormat::kBailian;
  if (blocks)
    return TraceFormat::kMooncake;
  if (prompt)
    return TraceFormat::kVllmCustom;
  if (lengths)
    return input.wrong(
        "lengths without hash_ids: mooncake (milliseconds) or timed_trace (seconds)? say it with format");
  return input.wrong(
      "not a line of a known trace: expected hash_ids (mooncake), chat_id (bailian), prompt (custom) or conversations "
      "(sharegpt)");
}

Result<void> read_jsonl_trace(TraceFormat format, TraceInput& input, const TraceSpec& spec, const RowSink& sink) {
  const Layout layout = layout_of(format, spec);
  json::parser parser;
  std::string line;
  while (TRY(input.next_line(line))) {
    if (trim(line).empty())
      continue;
    TraceRow row = TRY(format == TraceFormat::kVllmCustom ? read_custom(input, parser, line)
                                                          : read_lengths(format, input, layout, parser, line));
    row.line = input.line();
    TRY(sink(std::move(row)));
  }
  return {};
}

Result<void> read_sharegpt(TraceInput& input, const RowSink& sink, TraceFacts& facts) {
  json::parser parser;
  std::string element;
  int64_t next = 0;
  while (TRY(input.next_element(element))) {
    auto rows = TRY(read_conversation(input, parser, element));
    facts.skipped += rows.empty();
    for (size_t turn = 0; turn < rows.size(); ++turn) {
      rows[turn].id = next++;
      if (turn > 0)
        rows[turn].parent = *rows[turn].id - 1;
      TRY(sink(std::move(rows[turn])));
    }
  }
  return {};
}

}  // namespace goodput
