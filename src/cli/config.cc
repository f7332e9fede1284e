#include "cli/config.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <sstream>

#include <fmt/format.h>
#include <toml++/toml.h>

#include "base/file.h"
#include "base/text.h"
#include "cli/verb.h"

namespace goodput {
namespace {

// Small enough that toml++ cannot be driven out of stack by a key of a hundred thousand dots.
constexpr uint64_t kMostConfigurationBytes = 64 * 1024;

std::string flag_of(const CLI::Option& option) {
  return option.get_lnames().empty() ? std::string() : option.get_lnames().front();
}

std::string environment_name(const std::string& verb, const std::string& flag) {
  std::string name = "GOODPUT_" + verb + "_" + flag;
  for (char& c : name)
    c = c == '-' ? '_' : static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return name;
}

// A TOML value as the text that the flag would have been given.
std::vector<std::string> as_text(const toml::node& node) {
  if (const auto* list = node.as_array()) {
    std::vector<std::string> all;
    for (const auto& item : *list)
      for (auto& text : as_text(item))
        all.push_back(std::move(text));
    return all;
  }
  if (const auto s = node.value<std::string>(); s && node.is_string())
    return {*s};
  std::ostringstream out;
  out << toml::node_view<const toml::node>(node);
  return {out.str()};
}

struct Source {
  std::string path;
  toml::table table;
};

Result<std::vector<Source>> configuration_files() {
  std::vector<std::filesystem::path> paths{"goodput.toml"};
  const char* xdg = std::getenv("XDG_CONFIG_HOME");
  const char* home = std::getenv("HOME");
  if (xdg && *xdg)
    paths.push_back(std::filesystem::path(xdg) / "goodput/config.toml");
  else if (home && *home)
    paths.push_back(std::filesystem::path(home) / ".config/goodput/config.toml");
  std::vector<Source> sources;
  for (const auto& path : paths) {
    std::error_code ignored;
    if (!std::filesystem::is_regular_file(path, ignored))
      continue;
    const std::string text = TRY(read_file(path, kMostConfigurationBytes));
    try {
      sources.push_back({path.string(), toml::parse(text, path.string())});
    } catch (const toml::parse_error& e) {
      return fail(ErrorCode::kUsage, std::string(e.description()),
                  fmt::format("{}:{}:{}", path.string(), e.source().begin.line, e.source().begin.column));
    }
  }
  return sources;
}

// Unknown verbs and unknown keys of this verb are mistakes, not comments.
Result<void> check_keys(const Source& source, const std::string& verb, const std::vector<std::string>& flags) {
  const auto where = [&](const toml::node& n) {
    return fmt::format("{}:{}:{}", source.path, n.source().begin.line, n.source().begin.column);
  };
  const auto unknown = [&](const toml::node& node, std::string_view key, const std::vector<std::string_view>& known) {
    const auto near = nearest(key, known);
    return fail(ErrorCode::kUsage,
                fmt::format("unknown key '{}'{}", key, near ? fmt::format("; did you mean '{}'?", *near) : ""),
                where(node));
  };
  std::vector<std::string_view> names;
  for (const Verb& v : verbs())
    names.push_back(v.name);
  for (const auto& [key, node] : source.table) {
    if (std::ranges::find(names, key.str()) == names.end())
      return unknown(node, key.str(), names);
    if (!node.is_table())
      return fail(ErrorCode::kUsage, fmt::format("expected a table [{}]", key.str()), where(node));
    if (key.str() != verb)
      continue;
    const std::vector<std::string_view> known(flags.begin(), flags.end());
    for (const auto& [name, value] : *node.as_table()) {
      std::string flag(name.str());
      std::ranges::replace(flag, '_', '-');
      if (std::ranges::find(known, flag) == known.end())
        return unknown(value, name.str(), known);
    }
  }
  return {};
}

Result<void> set_option(CLI::Option& option, const std::vector<std::string>& values, const std::string& from) {
  try {
    for (const auto& value : values)
      option.add_result(value);
    option.run_callback();
  } catch (const CLI::Error& e) {
    return fail(ErrorCode::kUsage, e.what(), from);
  }
  return {};
}

}  // namespace

Result<std::vector<Origin>> merge_configuration(CLI::App& app, const std::string& verb) {
  const auto sources = TRY(configuration_files());
  std::vector<std::string> flags;
  for (const CLI::Option* option : app.get_options())
    if (const auto flag = flag_of(*option); !flag.empty() && flag != "help")
      flags.push_back(flag);
  for (const auto& source : sources)
    TRY(check_keys(source, verb, flags));

  std::vector<Origin> origins;
  for (CLI::Option* option : app.get_options()) {
    const std::string flag = flag_of(*option);
    if (flag.empty() || flag == "help")
      continue;
    std::string from = "default";
    if (option->count() > 0) {
      from = "flag";
    } else if (const char* value = std::getenv(environment_name(verb, flag).c_str())) {
      from = environment_name(verb, flag);
      TRY(set_option(*option, {value}, from));
    } else {
      for (const auto& source : sources) {
        const auto* table = source.table[verb].as_table();
        if (!table)
          continue;
        std::string underscored = flag;
        std::ranges::replace(underscored, '-', '_');
        const toml::node* node = table->get(flag) ? table->get(flag) : table->get(underscored);
        if (!node)
          continue;
        from = fmt::format("{}:{}", source.path, node->source().begin.line);
        TRY(set_option(*option, as_text(*node), from));
        break;
      }
    }
    origins.push_back(
        {flag, option->count() > 0 ? fmt::format("{}", fmt::join(option->results(), " ")) : option->get_default_str(),
         from});
  }
  return origins;
}

std::vector<std::string> given_arguments(const CLI::App& app, const std::vector<std::string>& but) {
  std::vector<std::string> arguments;
  for (const CLI::Option* option : app.get_options()) {
    const std::string flag = flag_of(*option);
    if (flag.empty() || option->count() == 0 || std::ranges::find(but, flag) != but.end())
      continue;
    for (const auto& value : option->results())
      arguments.push_back(fmt::format("--{}={}", flag, value));
  }
  return arguments;
}

}  // namespace goodput
