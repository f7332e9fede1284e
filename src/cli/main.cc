// Finds the verb, parses its flags, merges configuration, runs it. The only place that turns exceptions of last resort
// into an exit code.
#include <algorithm>
#include <csignal>
#include <cstdio>
#include <exception>
#include <vector>

#include <fmt/format.h>

#include "base/text.h"
#include "cli/config.h"
#include "cli/verb.h"

namespace goodput {
namespace {

constexpr std::string_view kVersion = "goodput 0.1.0";

void print_help() {
  fmt::print(
      "{}: which batch settings finish the most requests inside the latency targets, and why?\n\n"
      "  goodput map                          the built-in engine, five minutes\n"
      "  goodput bench --base-url URL         one endpoint, honestly\n"
      "  goodput help VERB                    flags and examples of a verb\n\nVerbs:\n",
      kVersion);
  for (const Verb& verb : verbs())
    if (!verb.summary.empty())
      fmt::print("  {:<12} {}\n", verb.name, verb.summary);
}

const Verb* find_verb(std::string_view name) {
  for (const Verb& verb : verbs())
    if (verb.name == name)
      return &verb;
  return nullptr;
}

Exit unknown_verb(std::string_view name) {
  std::vector<std::string_view> names;
  for (const Verb& verb : verbs())
    names.push_back(verb.name);
  const auto near = nearest(name, names);
  fmt::print(stderr, "goodput: unknown verb '{}'{}; 'goodput help' lists the verbs\n", name,
             near ? fmt::format("; did you mean '{}'?", *near) : "");
  return Exit::kUsage;
}

Exit run_verb(const Verb& verb, int argc, char** argv) {
  CLI::App app{std::string(verb.summary), "goodput " + std::string(verb.name)};
  app.footer("Flags may also stand in goodput.toml under [" + std::string(verb.name) +
             "], or in the environment as GOODPUT_" + "VERB_FLAG.");
  const auto run = verb.declare(app);
  std::vector<std::string> arguments(argv + 1, argv + argc);
  if (verb.complete) {
    auto completed = verb.complete(std::move(arguments));
    if (!completed)
      return report_error(completed.error());
    arguments = std::move(*completed);
  }
  std::reverse(arguments.begin(), arguments.end());  // CLI11 takes them from the back
  try {
    app.parse(arguments);
  } catch (const CLI::CallForHelp&) {
    const std::string examples = verb.examples.empty() ? "" : fmt::format("Examples:\n{}\n", verb.examples);
    std::fputs((examples + app.help()).c_str(), stdout);  // `goodput help VERB | head` is no error
    return Exit::kOk;
  } catch (const CLI::ExtrasError&) {
    std::vector<std::string_view> known;
    std::vector<std::string> names;
    for (const CLI::Option* o : app.get_options())
      for (const auto& name : o->get_lnames())
        names.push_back("--" + name);
    known.assign(names.begin(), names.end());
    const auto extra = app.remaining().empty() ? std::string() : app.remaining().front();
    const auto near = nearest(extra, known);
    fmt::print(stderr, "goodput {}: unknown argument '{}'{}; 'goodput help {}' lists the flags\n", verb.name, extra,
               near ? fmt::format("; did you mean '{}'?", *near) : "", verb.name);
    return Exit::kUsage;
  } catch (const CLI::ParseError& e) {
    fmt::print(stderr, "goodput {}: {}\n", verb.name, e.what());
    return Exit::kUsage;
  }
  if (const auto merged = merge_configuration(app, std::string(verb.name)); !merged)
    return report_error(merged.error());
  return run();
}

}  // namespace

Exit report_error(const Error& error) {
  fmt::print(stderr, "goodput: {}\n", describe(error));
  switch (error.code) {
    case ErrorCode::kUsage:
    case ErrorCode::kNotFound:
      return Exit::kUsage;
    case ErrorCode::kUnreachable:
      return Exit::kUnreachable;
    case ErrorCode::kInterrupted:
      return Exit::kInterrupted;
    case ErrorCode::kFailed:
    case ErrorCode::kIo:
    case ErrorCode::kExhausted:
      return Exit::kFailed;
  }
  return Exit::kFailed;
}

Exit run_main(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_IGN);  // a reader that went away is an error of the write, not a death
  const std::string_view name = argc > 1 ? argv[1] : "help";
  if (name == "--version" || name == "version") {
    fmt::print("{}\n", kVersion);
    return Exit::kOk;
  }
  const bool help = name == "help" || name == "--help" || name == "-h";
  if (help && argc < 3) {
    print_help();
    return Exit::kOk;
  }
  const std::string_view wanted = help ? argv[2] : name;
  const Verb* verb = find_verb(wanted);
  if (!verb)
    return unknown_verb(wanted);
  if (help) {
    char flag[] = "--help";
    char* arguments[] = {argv[0], flag};
    return run_verb(*verb, 2, arguments);
  }
  return run_verb(*verb, argc - 1, argv + 1);
}

}  // namespace goodput

int main(int argc, char** argv) {
  try {
    return static_cast<int>(goodput::run_main(argc, argv));
  } catch (const std::exception& e) {
    fmt::print(stderr, "goodput: internal error: {}. This is a bug; please report it.\n", e.what());
    return static_cast<int>(goodput::Exit::kFailed);
  }
}
